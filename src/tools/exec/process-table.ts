import { type Clock, GatewayError, nearestName, shortId } from '#base';
import type { SessionKey } from '#domain';
import type { ProcessEnd, Processes, RunningProcess, SpawnPlan } from '#host';

/** A command that runs, or has run, for one session. */
export type KnownProcess = {
  readonly id: string;
  readonly sessionKey: SessionKey;
  readonly command: string;
  readonly startedAt: number;
  readonly running: RunningProcess;
  endedAt?: number;
  end?: ProcessEnd;
  /** How much of the output `poll` has shown. */
  shown: number;
};

const RUNNING_MAX = 32;
const ENDED_MAX = 64;
const ENDED_KEPT_MS = 30 * 60_000;
const CHARACTERS_MAX = 200_000;

/** The processes of all sessions, each seen only by its own; shared by exec and process. */
export class ProcessTable {
  readonly #processes: Processes;
  readonly #clock: Clock;
  readonly #known = new Map<string, KnownProcess>();

  constructor(options: { readonly processes: Processes; readonly clock: Clock }) {
    this.#processes = options.processes;
    this.#clock = options.clock;
  }

  start(facts: {
    readonly plan: SpawnPlan;
    readonly command: string;
    readonly cwd: string;
    readonly env: Readonly<Record<string, string>>;
    readonly sessionKey: SessionKey;
    onOutput(): void;
  }): KnownProcess {
    this.#forgetOld();
    const busy = [...this.#known.values()].filter((known) => known.end === undefined).length;
    if (busy >= RUNNING_MAX) {
      throw new GatewayError('PROCESS_FAILED', `${RUNNING_MAX} commands are already running`, {
        next: 'End one first with the process tool.',
      });
    }
    const running = this.#processes.start(facts.plan, {
      cwd: facts.cwd,
      env: facts.env,
      charactersMax: CHARACTERS_MAX,
      onOutput: facts.onOutput,
    });
    const known: KnownProcess = {
      id: this.#freshId(),
      sessionKey: facts.sessionKey,
      command: facts.command,
      startedAt: this.#clock.now(),
      running,
      shown: 0,
    };
    this.#known.set(known.id, known);
    void running.ended.then((end) => {
      known.end = end;
      known.endedAt = this.#clock.now();
    });
    return known;
  }

  list(sessionKey: SessionKey): readonly KnownProcess[] {
    this.#forgetOld();
    return [...this.#known.values()].filter((known) => known.sessionKey === sessionKey);
  }

  /** @throws {GatewayError} `PROCESS_UNKNOWN`, also for another session's process */
  get(sessionKey: SessionKey, id: string): KnownProcess {
    const known = this.#known.get(id);
    if (known?.sessionKey === sessionKey) return known;
    const near = nearestName(
      id,
      this.list(sessionKey).map((p) => p.id),
    );
    throw new GatewayError('PROCESS_UNKNOWN', `There is no process "${id}" in this session`, {
      next: near ? `Did you mean ${near}?` : 'Use action list to see them.',
    });
  }

  remove(known: KnownProcess): void {
    this.#known.delete(known.id);
  }

  #forgetOld(): void {
    const now = this.#clock.now();
    const ended = [...this.#known.values()].filter((known) => known.endedAt !== undefined);
    for (const known of ended) if (now - (known.endedAt ?? now) > ENDED_KEPT_MS) this.#known.delete(known.id);
    for (const known of ended.slice(0, Math.max(0, ended.length - ENDED_MAX))) this.#known.delete(known.id);
  }

  #freshId(): string {
    for (;;) {
      const id = shortId();
      if (!this.#known.has(id)) return id;
    }
  }
}
