import type { AgentId, SessionKey } from '#domain';

/** One command of a parsed line: what is spawned, with no shell in between. `file` is the real path of argv[0]. */
export type ExecStep = { readonly argv: readonly string[]; readonly file: string };

/** Commands joined by `|` run together; a pipeline's fate decides whether the next one runs. */
export type ExecPipeline = {
  readonly steps: readonly ExecStep[];
  /** When to run it, given the pipeline before: `&&` only after success, `||` only after failure, `;` always. */
  readonly when: 'always' | 'after-success' | 'after-failure';
};

/** What may be executed, exactly as it was decided. */
export type ExecPlan =
  /** A parsed line that is on the allow-list: run as argv, never by a shell. */
  | { readonly kind: 'argv'; readonly pipelines: readonly ExecPipeline[] }
  /** The whole string was approved, by a person or by a config that says so: given to `sh -c` as it is. */
  | { readonly kind: 'shell'; readonly command: string };

export type ExecRequest = {
  readonly command: string;
  /** Absolute real path. */
  readonly cwd: string;
  /** The checked overrides of this call; part of what is approved. */
  readonly env: Readonly<Record<string, string>>;
  readonly agent: AgentId;
  readonly sessionKey: SessionKey;
  readonly runId: string;
  readonly callId: string;
  readonly owner: boolean;
};

export type ExecVerdict =
  | { readonly allowed: true; readonly plan: ExecPlan; readonly by: 'allowlist' | 'approval' | 'config' }
  /** `reason` is for the model and for people; it never tells whether a file exists. */
  | { readonly allowed: false; readonly reason: string };

/** The one place that says whether a command may run; may wait for a person. Must not reject but with the signal's reason. */
export interface ExecGate {
  authorise(request: ExecRequest, signal: AbortSignal): Promise<ExecVerdict>;
}
