import { type Clock, GatewayError } from '#base';
import type { Envelope, QueueMode, RunEvent, RunNotice, RunResult } from '#domain';
import type { LaneItem } from '#sessions';
import type { InboxRow } from './inbox.ts';

/** A run from its admission to its end: what it answers, who waits for it, and how it is told to stop. */
export class ActiveRun implements LaneItem {
  readonly envelope: Envelope;
  readonly digest: string;
  queue: QueueMode;
  /** True when an earlier process accepted the message. */
  readonly resumed: boolean;
  readonly finished: Promise<RunResult>;
  /** Resolves to false when the message was not accepted after all. Set before the run is queued. */
  admitted: Promise<boolean> = Promise.resolve(true);
  /** The row that was there before, where the message is a repeat; rejects when the message could not be recorded. */
  recorded: Promise<InboxRow | undefined> = Promise.resolve(undefined);
  isAdmitted = false;
  /** Another run took the message in and answers it. */
  isSteered = false;
  /** The transcript that an earlier process may have begun the answer in. */
  earlierSessionId: string | undefined;
  /** How many other runs this one's message stopped. */
  stopped = 0;
  /** Messages that this run took in and answers. */
  readonly steered: ActiveRun[] = [];
  readonly #controller = new AbortController();
  readonly #execute: (run: ActiveRun) => Promise<void>;
  readonly #publish: (notice: RunNotice) => void;
  #resolve!: (result: RunResult) => void;
  #seq = 0;

  constructor(facts: {
    readonly envelope: Envelope;
    readonly digest: string;
    readonly queue: QueueMode;
    readonly resumed: boolean;
    readonly execute: (run: ActiveRun) => Promise<void>;
    readonly publish: (notice: RunNotice) => void;
  }) {
    this.envelope = facts.envelope;
    this.digest = facts.digest;
    this.queue = facts.queue;
    this.resumed = facts.resumed;
    this.#execute = facts.execute;
    this.#publish = facts.publish;
    this.finished = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get id(): string {
    return this.envelope.idempotencyKey;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(): Promise<void> {
    return this.#execute(this);
  }

  emit(event: RunEvent): void {
    this.#publish({ runId: this.id, sessionKey: this.envelope.sessionKey, seq: ++this.#seq, event });
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  settle(result: RunResult): void {
    this.#resolve(result);
  }
}

/** A run's allowance of wall time. Waiting for a person does not count. */
export class Deadline {
  readonly #clock: Clock;
  readonly #expire: () => void;
  #leftMs: number;
  #since: number | undefined;
  #cancel: (() => void) | undefined;
  #pauses = 0;

  constructor(options: {
    readonly clock: Clock;
    readonly timeoutMs: number;
    readonly expire: (reason: GatewayError) => void;
  }) {
    this.#clock = options.clock;
    this.#leftMs = options.timeoutMs;
    const seconds = Math.round(options.timeoutMs / 1000);
    this.#expire = () =>
      options.expire(
        new GatewayError('RUN_TIMEOUT', `The run was stopped after ${seconds} s`, {
          next: 'Ask to go on, or raise agents.defaults.timeoutSeconds.',
        }),
      );
    this.#run();
  }

  /** Runs `wait` with the allowance standing still. */
  async pausedFor<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#pauses++ === 0) this.#halt();
    try {
      return await wait();
    } finally {
      if (--this.#pauses === 0) this.#run();
    }
  }

  close(): void {
    this.#pauses = Number.POSITIVE_INFINITY;
    this.#halt();
  }

  #run(): void {
    this.#since = this.#clock.now();
    this.#cancel = this.#clock.after(this.#leftMs, this.#expire);
  }

  #halt(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#since !== undefined) this.#leftMs = Math.max(0, this.#leftMs - (this.#clock.now() - this.#since));
    this.#since = undefined;
  }
}
