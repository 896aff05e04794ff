export type Severity = 'critical' | 'warn' | 'info';

/** One thing that `doctor` found. `checkId` stays the same over versions, so that a script can look for it. */
export type Finding = {
  readonly checkId: string;
  readonly severity: Severity;
  /** The file, or the key of the config, that it is about. */
  readonly path?: string;
  readonly reason: string;
  /** What to do; absent where nothing needs doing. */
  readonly fix?: string;
  /** Present when `--fix` has mended it. */
  readonly fixed?: true;
};
