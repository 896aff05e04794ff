import { statSync } from 'node:fs';
import { type Clock, isGatewayError, systemClock } from '#base';
import type { Issue } from './issue.ts';
import { type LoadedConfig, type LoadOptions, loadConfig } from './load.ts';
import { codeOf } from './owned-file.ts';

export type ConfigEvent =
  /** The file is another one and good: in force from now on. */
  | { readonly type: 'config-change'; readonly loaded: LoadedConfig }
  /** The file is another one and has issues: what was in force stays. */
  | { readonly type: 'config-refused'; readonly file: string; readonly issues: readonly Issue[] }
  /** The file had issues and is again what is in force. */
  | { readonly type: 'config-restored'; readonly loaded: LoadedConfig };

export type WatchOptions = LoadOptions & {
  readonly initial: LoadedConfig;
  /** Must not throw. */
  readonly onEvent: (event: ConfigEvent) => void;
  readonly clock?: Clock;
};

/**
 * Between two looks. Looks at the files' facts a few times a second instead of asking the system for events: the config lies in the
 * state folder, where the database and the transcripts change with every message, and each of those would wake the watcher; and facts
 * are right on every file system and through links. A look is one `stat` for each file.
 */
const LOOK_EVERY_MS = 400;
/** A changed file is read when it lay still for this many looks, because editors and scripts write in pieces. */
const STILL_LOOKS = 1;
/** One with issues may still be half written: anyone is told only when it lay still for this many. */
const STILL_LOOKS_TO_REFUSE = 3;

/** Follows the owner's file and what it includes, from `initial` on, until closed. */
export class ConfigWatch {
  readonly #options: WatchOptions;
  readonly #clock: Clock;
  #current: LoadedConfig;
  #files: readonly string[];
  #facts: string;
  /** Looks since the files last changed; undefined when what they hold now was dealt with. */
  #still: number | undefined;
  /** What was last told, so that one state of the file makes one event. */
  #told: string;
  #cancel: (() => void) | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#current = options.initial;
    this.#files = filesOf(options.initial);
    // Unknown, not looked up: what changed between the load and now is seen by the first look.
    this.#facts = '';
    this.#told = stateOf(options.initial.fingerprint, options.initial.issues);
    this.#lookLater();
  }

  /** The config in force. */
  get current(): LoadedConfig {
    return this.#current;
  }

  /** Reads the file now, for whoever just wrote it. */
  check(): void {
    this.#facts = factsOf(this.#files);
    this.#still = undefined;
    this.#read('tell');
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #lookLater(): void {
    this.#cancel = this.#clock.after(LOOK_EVERY_MS, () => {
      this.#lookLater();
      this.#look();
    });
  }

  #look(): void {
    const facts = factsOf(this.#files);
    if (facts !== this.#facts) {
      this.#facts = facts;
      this.#still = 0;
    } else if (this.#still !== undefined) {
      this.#still++;
      const isLast = this.#still >= STILL_LOOKS_TO_REFUSE;
      if (this.#still < STILL_LOOKS) return;
      if (this.#read(isLast ? 'tell' : 'wait') === 'done' || isLast) this.#still = undefined;
    }
  }

  /** @param onIssues `wait`: say nothing yet of a file that has issues */
  #read(onIssues: 'wait' | 'tell'): 'done' | 'waiting' {
    const { loaded, issues } = this.#load();
    if (issues.length > 0 && onIssues === 'wait') return 'waiting';
    const state = stateOf(loaded?.fingerprint ?? '', issues);
    if (state === this.#told) return 'done';
    this.#told = state;
    if (loaded) this.#files = filesOf(loaded);
    if (issues.length > 0) {
      this.#options.onEvent({ type: 'config-refused', file: this.#current.file, issues });
    } else if (loaded) {
      const isSame = loaded.fingerprint === this.#current.fingerprint && this.#current.source !== 'last-good';
      this.#current = loaded;
      this.#options.onEvent({ type: isSame ? 'config-restored' : 'config-change', loaded });
    }
    return 'done';
  }

  #load(): { readonly loaded?: LoadedConfig; readonly issues: readonly Issue[] } {
    const { file } = this.#current;
    try {
      const loaded = loadConfig(this.#options);
      if (loaded.exists || !this.#current.exists) return { loaded, issues: loaded.issues };
      return { issues: [{ path: '', message: 'is gone; what was in force stays', file }] };
    } catch (error) {
      if (!isGatewayError(error)) throw error;
      const { issues } = error.detail as { readonly issues?: readonly Issue[] };
      return { issues: issues ?? [{ path: '', message: error.message, file }] };
    }
  }
}

const filesOf = (loaded: LoadedConfig): readonly string[] => [...new Set([loaded.file, ...loaded.files])];

const stateOf = (fingerprint: string, issues: readonly Issue[]): string => JSON.stringify([fingerprint, issues]);

/** What tells one state of the files from another without reading them. */
function factsOf(files: readonly string[]): string {
  return files
    .map((file) => {
      try {
        const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
        return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
      } catch (error) {
        return codeOf(error);
      }
    })
    .join('\n');
}
