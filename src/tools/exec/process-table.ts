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
  /** It was ended because its time was over, after so many seconds. */
  timedOutAfterS?: number;
  /** How many characters of the output a model has seen. */
  shown: number;
};

export type StartFacts = {
  readonly plan: SpawnPlan;
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input: 'none' | 'open';
  readonly timeoutS: number;
  readonly sessionKey: SessionKey;
  onOutput(): void;
};

const RUNNING_MAX = 64;
const RUNNING_IN_SESSION_MAX = 16;
const ENDED_MAX = 64;
const ENDED_KEPT_MS = 30 * 60_000;
const CHARACTERS_MAX = 200_000;
const KILL_AFTER_MS = 2_000;

/** The processes of all sessions, each seen only by its own; shared by exec and process. What has ended is kept for a while, not for ever. */
export class ProcessTable {
  readonly #processes: Processes;
  readonly #clock: Clock;
  readonly #known = new Map<string, KnownProcess>();

  constructor(options: { readonly processes: Processes; readonly clock: Clock }) {
    this.#processes = options.processes;
    this.#clock = options.clock;
  }

  /** @throws {GatewayError} `PROCESS_FAILED` too many are running; `GATEWAY_STOPPING` */
  start(facts: StartFacts): KnownProcess {
    this.#forgetOld();
    this.#assertRoom(facts.sessionKey);
    const running = this.#processes.start(facts.plan, {
      cwd: facts.cwd,
      env: facts.env,
      charactersMax: CHARACTERS_MAX,
      input: facts.input,
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
    const cancel = this.#clock.after(facts.timeoutS * 1000, () => {
      known.timedOutAfterS = facts.timeoutS;
      void this.end(known);
    });
    void running.ended.then((end) => {
      cancel();
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
    const own = this.list(sessionKey);
    const known = own.find((process) => process.id === id);
    if (known) return known;
    const near = nearestName(
      id,
      own.map((process) => process.id),
    );
    throw new GatewayError(
      'PROCESS_UNKNOWN',
      `There is no process "${id.slice(0, 64)}" in this session${near ? `; there is ${near}` : ''}`,
      {
        next: 'Use action list to see them.',
      },
    );
  }

  /** Ends it, hard where it does not end by itself in 2 s; resolves when it has ended. */
  async end(known: KnownProcess): Promise<void> {
    known.running.kill('SIGTERM');
    const cancel = this.#clock.after(KILL_AFTER_MS, () => known.running.kill('SIGKILL'));
    await known.running.ended;
    cancel();
  }

  remove(known: KnownProcess): void {
    this.#known.delete(known.id);
  }

  #assertRoom(sessionKey: SessionKey): void {
    const running = [...this.#known.values()].filter((known) => known.end === undefined);
    const own = running.filter((known) => known.sessionKey === sessionKey);
    if (running.length < RUNNING_MAX && own.length < RUNNING_IN_SESSION_MAX) return;
    throw new GatewayError(
      'PROCESS_FAILED',
      `Not run: ${own.length} commands of this session are running already, and that is enough`,
      {
        next: 'End one first with the process tool.',
      },
    );
  }

  #forgetOld(): void {
    const now = this.#clock.now();
    const ended = [...this.#known.values()]
      .filter((known) => known.endedAt !== undefined)
      .sort((a, b) => (b.endedAt ?? now) - (a.endedAt ?? now));
    for (const [i, known] of ended.entries()) {
      if (i >= ENDED_MAX || now - (known.endedAt ?? now) > ENDED_KEPT_MS) this.#known.delete(known.id);
    }
  }

  #freshId(): string {
    for (;;) {
      const id = shortId();
      if (!this.#known.has(id)) return id;
    }
  }
}
