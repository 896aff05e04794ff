import type { Envelope, RunNotice, RunResult, SessionKey } from '#domain';

/** What became of an envelope. When this exists, the message is on disk and will be answered once. */
export type Submission = {
  /** Equals the envelope's idempotency key. */
  readonly runId: string;
  /**
   * `started` it was accepted now; `in_flight` the same key was accepted before and still runs; `done` it was answered before and
   * `finished` holds that answer; `steered` it was put into the run that is under way, which answers it.
   */
  readonly status: 'started' | 'in_flight' | 'done' | 'steered';
  /** Never rejects. */
  readonly finished: Promise<RunResult>;
};

/** The one door for messages: web chat, CLI, HTTP, channels and schedules all enter here. */
export interface Dispatch {
  /**
   * Admits, records and queues a message.
   * @throws {GatewayError} `LANE_FULL`, `GATEWAY_BUSY`, `GATEWAY_STOPPING` (retry later); `AGENT_UNKNOWN`, `MESSAGE_INVALID`,
   *   `MESSAGE_TOO_LARGE`, `IDEMPOTENCY_CONFLICT` (same key, other text), `UNAUTHORIZED` (sender policy)
   */
  submit(envelope: Envelope): Promise<Submission>;
  /** Tells the session's runs (or the one named) to stop, waiting ones too; answers with the ids that were told. */
  abort(key: SessionKey, runId?: string): readonly string[];
  /** The run's end, or undefined when it is unknown or did not end within `timeoutMs`. */
  wait(runId: string, timeoutMs: number, signal?: AbortSignal): Promise<RunResult | undefined>;
  /** The session's run under way. */
  activeRun(key: SessionKey): string | undefined;
  /** Every event of every run, synchronously and in order; a listener must not throw and must not block. */
  subscribe(listener: (notice: RunNotice) => void): () => void;
  /** Counts for status: runs under way and waiting. */
  load(): { readonly running: number; readonly waiting: number };
}
