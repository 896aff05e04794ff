// The one client of the gateway's protocol, for the command line and the web chat: it keeps a connection alive, and what was asked
// survives a lost one where that is safe.
import { type Backoff, backoffMs, type Clock, EventQueue, GatewayError, isRecord, newId, systemClock } from '#base';
import type { EventFrame, HelloOk, MethodName, MethodParams } from '#protocol';
import { Connection, type Identity } from './connection.ts';
import type { EventName, EventPayload, Result } from './methods.ts';
import { Outstanding, type Request } from './outstanding.ts';

export type ClientState =
  | { readonly status: 'idle' }
  | { readonly status: 'connecting' }
  | { readonly status: 'connected'; readonly hello: HelloOk }
  /** `retryAt` in milliseconds since the epoch; `attempt` counts from 1 since the connection was lost. */
  | { readonly status: 'reconnecting'; readonly attempt: number; readonly retryAt: number; readonly reason: string }
  /** Final until `connect` is called again: the gateway does not want this client, or the attempts are used up. */
  | { readonly status: 'refused'; readonly error: GatewayError }
  | { readonly status: 'closed' };

export type ClientOptions = Identity & {
  readonly clock?: Clock;
  readonly backoff?: Backoff;
  /** Failed attempts in a row before giving up with `GATEWAY_UNREACHABLE`; default: never give up. */
  readonly attemptsMax?: number;
  /** Requests that may wait for an answer at the same time; default 256. */
  readonly requestsMax?: number;
};

export type RequestOptions = {
  /** From the call to the answer, waiting for a connection included; default 30 s. */
  readonly timeoutMs?: number;
  /** Aborting stops the wait, not what the gateway does; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
};

export type RunOptions = RequestOptions & {
  /** Called when the gateway took the message; the run goes on. */
  readonly onAccepted?: (accepted: { readonly runId: string }) => void;
};

const REQUEST_MS = 30_000;
const RUN_MS_MAX = 24 * 60 * 60 * 1000;
const REQUESTS_MAX = 256;
const RETRY_AFTER_MS_MAX = 5 * 60_000;
const DEFAULT_BACKOFF: Backoff = { firstMs: 500, factor: 2, maxMs: 5_000, jitter: 0.3 };

type Listener = (payload: never, frame: EventFrame) => void;

export class GatewayClient {
  readonly #options: ClientOptions;
  readonly #clock: Clock;
  readonly #outstanding: Outstanding;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #stateListeners = new Set<(state: ClientState) => void>();
  readonly #gapListeners = new Set<() => void>();
  readonly #queues = new Set<EventQueue<EventFrame>>();
  #state: ClientState = { status: 'idle' };
  #connection: Connection | undefined;
  #failedAttempts = 0;
  #lastSeq = 0;
  #cancelRetry: () => void = () => undefined;
  #holdProcess: ReturnType<typeof setInterval> | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#outstanding = new Outstanding({ clock: this.#clock, max: options.requestsMax ?? REQUESTS_MAX });
  }

  get state(): ClientState {
    return this.#state;
  }

  /**
   * Starts connecting if that is not under way, and resolves with the gateway's hello once connected.
   * @throws {GatewayError} `UNAUTHORIZED`, `PROTOCOL_MISMATCH` and whatever else the gateway refuses with; `GATEWAY_UNREACHABLE` when
   *   `attemptsMax` is used up or the client was closed. Or the signal's reason; connecting goes on then.
   */
  connect(signal?: AbortSignal): Promise<HelloOk> {
    if (this.#state.status === 'idle' || this.#state.status === 'refused') {
      this.#failedAttempts = 0;
      this.#open();
    }
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const settle = (state: ClientState): void => {
        if (state.status === 'connected') resolve(state.hello);
        else if (state.status === 'refused') reject(state.error);
        else if (state.status === 'closed') reject(closedError());
        else return;
        stop();
      };
      const aborted = () => {
        stop();
        reject(signal?.reason);
      };
      const stop = () => {
        this.#stateListeners.delete(settle);
        signal?.removeEventListener('abort', aborted);
      };
      this.#stateListeners.add(settle);
      signal?.addEventListener('abort', aborted, { once: true });
      settle(this.#state);
    });
  }

  /** Skips what is left of the wait before the next attempt, e.g. when the browser comes back online. */
  retryNow(): void {
    if (this.#state.status !== 'reconnecting') return;
    this.#cancelRetry();
    this.#open();
  }

  /** Ends the connection; what waits for an answer rejects with `GATEWAY_UNREACHABLE`. A closed client stays closed. */
  close(): void {
    this.#cancelRetry();
    this.#changeState({ status: 'closed' });
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close();
    this.#outstanding.failAll(closedError());
    for (const queue of this.#queues) queue.close();
    this.#releaseProcess();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * One question, one answer. Asked while there is no connection, it waits for one. A connection lost before the answer fails it,
   * unless it carries an idempotency key: then it is asked again on the next connection.
   * @throws {GatewayError} what the gateway answered; `REQUEST_TIMEOUT`, `GATEWAY_UNREACHABLE`, `GATEWAY_BUSY`, `MESSAGE_TOO_LARGE`
   */
  request<M extends MethodName>(method: M, params: MethodParams<M>, options: RequestOptions = {}): Promise<Result<M>> {
    return this.#ask({ ...options, method, params, timeoutMs: options.timeoutMs ?? REQUEST_MS }) as Promise<Result<M>>;
  }

  /** `agent`: resolves with the second response, when the run has ended. Without `timeoutMs` it waits up to a day. */
  run(params: MethodParams<'agent'>, options: RunOptions = {}): Promise<Result<'agent'>> {
    let accepted = false;
    const onInterim = (payload: unknown) => {
      // A repeat on a new connection is accepted again; the caller hears of it once.
      if (!accepted) options.onAccepted?.(payload as { runId: string });
      accepted = true;
    };
    const { signal, timeoutMs = RUN_MS_MAX } = options;
    return this.#ask({ method: 'agent', params, timeoutMs, onInterim, ...(signal ? { signal } : {}) }) as Promise<
      Result<'agent'>
    >;
  }

  /** Calls `listener` for every such event until the returned function is called. */
  on<E extends EventName>(event: E, listener: (payload: EventPayload<E>, frame: EventFrame) => void): () => void {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener as Listener));
    return () => listeners.delete(listener as Listener);
  }

  onState(listener: (state: ClientState) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Calls `listener` when broadcast events are missing from the stream: state read before may be stale. */
  onGap(listener: () => void): () => void {
    this.#gapListeners.add(listener);
    return () => this.#gapListeners.delete(listener);
  }

  /** Every event from now on, in order, across reconnects. A reader more than `max` events behind loses the stream: `overflowed`. */
  events(options: { readonly max: number }): EventQueue<EventFrame> {
    const queue = new EventQueue<EventFrame>(options);
    this.#queues.add(queue);
    return queue;
  }

  #ask(facts: Omit<Request, 'id' | 'repeatable'>): Promise<unknown> {
    const ended = this.#endedError();
    if (ended) return Promise.reject(ended);
    const repeatable = isRecord(facts.params) && typeof facts.params['idempotencyKey'] === 'string';
    const tooLarge = this.#sizeFault(facts);
    if (tooLarge) return Promise.reject(tooLarge);
    const answer = this.#outstanding.add({ ...facts, id: newId(), repeatable });
    this.#keepProcess();
    this.#flush();
    return answer.finally(() => this.#releaseProcess());
  }

  #endedError(): GatewayError | undefined {
    if (this.#state.status === 'refused') return this.#state.error;
    return this.#state.status === 'closed' ? closedError() : undefined;
  }

  #sizeFault({ method, params }: { readonly method: string; readonly params: unknown }): GatewayError | undefined {
    const bytesMax =
      this.#state.status === 'connected' ? this.#state.hello.policy.maxPayload : Number.POSITIVE_INFINITY;
    const bytes = JSON.stringify(params)?.length ?? 0;
    if (bytes < bytesMax - 1_024) return undefined;
    return new GatewayError('MESSAGE_TOO_LARGE', `"${method}" with ${bytes} bytes is more than the gateway takes`, {
      next: `Send at most ${bytesMax} bytes at a time.`,
    });
  }

  #open(): void {
    this.#changeState({ status: 'connecting' });
    let connection: Connection | undefined;
    const current = (): boolean => connection === undefined || this.#connection === connection;
    try {
      connection = new Connection(this.#options, this.#clock, {
        onHello: (hello) => {
          if (!current()) return;
          this.#failedAttempts = 0;
          this.#lastSeq = 0;
          this.#changeState({ status: 'connected', hello });
          this.#flush();
        },
        onResponse: (frame) => this.#outstanding.answer(frame),
        onEvent: (frame) => this.#publish(frame),
        onClose: (reason, refusal) => {
          if (current()) this.#lost(reason, refusal);
        },
      });
    } catch (cause) {
      // An address that no WebSocket can have; trying again would not help.
      const error = new GatewayError('REQUEST_INVALID', `"${this.#options.url}" is no address of a gateway`, { cause });
      this.#refuse(error);
      return;
    }
    this.#connection = connection;
  }

  #lost(reason: string, refusal: GatewayError | undefined): void {
    const hadHello = this.#state.status === 'connected';
    this.#connection = undefined;
    this.#outstanding.connectionLost(reason);
    if (this.#state.status === 'closed') return;
    if (refusal && !refusal.retryable) {
      this.#refuse(refusal);
      return;
    }
    if (!hadHello) this.#failedAttempts += 1;
    if (this.#failedAttempts >= (this.#options.attemptsMax ?? Number.POSITIVE_INFINITY)) {
      this.#refuse(refusal ?? unreachable(this.#options.url, reason));
      return;
    }
    const asked = Number(refusal?.detail['retryAfterMs'] ?? 0) || 0;
    const attempt = Math.max(1, this.#failedAttempts);
    const backoff = backoffMs(this.#options.backoff ?? DEFAULT_BACKOFF, attempt);
    const delayMs = Math.min(RETRY_AFTER_MS_MAX, Math.max(asked, backoff));
    this.#cancelRetry = this.#clock.after(delayMs, () => this.#open());
    const retryAt = this.#clock.now() + delayMs;
    this.#changeState({ status: 'reconnecting', attempt, retryAt, reason });
  }

  #refuse(error: GatewayError): void {
    this.#outstanding.failAll(error);
    this.#changeState({ status: 'refused', error });
    for (const queue of this.#queues) queue.close();
  }

  #flush(): void {
    const connection = this.#connection;
    if (this.#state.status !== 'connected' || !connection) return;
    for (const { id, method, params } of this.#outstanding.takeUnsent()) {
      connection.send({ type: 'req', id, method, params });
      // A send can find the connection stuck and end it; the rest waits for the next one.
      if (this.#connection !== connection) return;
    }
  }

  #publish(frame: EventFrame): void {
    if (frame.seq !== undefined) {
      const gap = this.#lastSeq !== 0 && frame.seq > this.#lastSeq + 1;
      this.#lastSeq = frame.seq;
      if (gap) for (const listener of this.#gapListeners) listener();
    }
    for (const queue of this.#queues) if (!queue.push(frame)) this.#queues.delete(queue);
    for (const listener of this.#listeners.get(frame.event) ?? []) listener(frame.payload as never, frame);
  }

  #changeState(state: ClientState): void {
    if (this.#state.status === 'closed') return;
    this.#state = state;
    for (const listener of [...this.#stateListeners]) listener(state);
  }

  // The clock's timers let a process end; between two connections nothing else would hold one that waits for an answer.
  #keepProcess(): void {
    this.#holdProcess ??= setInterval(() => undefined, 2 ** 30);
  }

  #releaseProcess(): void {
    if (this.#outstanding.size > 0) return;
    clearInterval(this.#holdProcess);
    this.#holdProcess = undefined;
  }
}

const closedError = () => new GatewayError('GATEWAY_UNREACHABLE', 'the connection to the gateway was closed');

const unreachable = (url: string, reason: string) =>
  new GatewayError('GATEWAY_UNREACHABLE', `cannot connect to ${url}: ${reason}`, {
    next: 'Check that the gateway runs: “reins status”, or start it with “reins start”.',
  });
