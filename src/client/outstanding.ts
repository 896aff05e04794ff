import { type Clock, GatewayError } from '#base';
import type { Answer } from './connection.ts';
import { errorFromWire } from './wire-error.ts';

export type Request = {
  readonly id: string;
  readonly method: string;
  readonly params: unknown;
  /** The gateway answers a repeat with the first answer, so it may be sent again on a new connection. */
  readonly repeatable: boolean;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Called for a response that is not the last; absent when the first response is the last. */
  readonly onInterim?: (payload: unknown) => void;
};

type Entry = {
  readonly request: Request;
  sent: boolean;
  readonly resolve: (payload: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly release: () => void;
};

/** A second response of the same id follows one with such a status. */
const INTERIM_STATUS = new Set(['accepted', 'in_flight', 'started']);

/** The requests that wait for an answer, in the order they were made; at most `max`. */
export class Outstanding {
  readonly #entries = new Map<string, Entry>();
  readonly #clock: Clock;
  readonly #max: number;

  constructor(options: { readonly clock: Clock; readonly max: number }) {
    this.#clock = options.clock;
    this.#max = options.max;
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Resolves with the payload of the last response.
   * @throws {GatewayError} `GATEWAY_BUSY` when full, `REQUEST_TIMEOUT`, what the gateway answered; or the signal's reason.
   */
  add(request: Request): Promise<unknown> {
    if (this.#entries.size >= this.#max) {
      const busy = new GatewayError('GATEWAY_BUSY', `${this.#max} requests already wait for an answer`, {
        next: 'Wait for some of them, then try again.',
      });
      return Promise.reject(busy);
    }
    return new Promise((resolve, reject) => {
      const { id, signal, timeoutMs, method } = request;
      if (signal?.aborted) return reject(signal.reason);
      const stop = () => this.#settle(id)?.reject(signal?.reason);
      const cancelTimer = this.#clock.after(timeoutMs, () => {
        const text = `the gateway did not answer "${method}" within ${Math.round(timeoutMs / 1000)} s`;
        this.#settle(id)?.reject(new GatewayError('REQUEST_TIMEOUT', text, { next: 'Try again.' }));
      });
      signal?.addEventListener('abort', stop, { once: true });
      const release = () => {
        cancelTimer();
        signal?.removeEventListener('abort', stop);
      };
      this.#entries.set(id, { request, sent: false, resolve, reject, release });
    });
  }

  /** Requests to put on a fresh connection, oldest first; they count as sent afterwards. */
  takeUnsent(): Request[] {
    const unsent = [...this.#entries.values()].filter((entry) => !entry.sent);
    for (const entry of unsent) entry.sent = true;
    return unsent.map((entry) => entry.request);
  }

  /** A response that nobody waits for any more is ignored. */
  answer(frame: Answer): void {
    const entry = this.#entries.get(frame.id);
    if (!entry) return;
    const status = (frame.payload as { status?: unknown } | undefined)?.status;
    if (frame.ok && entry.request.onInterim && typeof status === 'string' && INTERIM_STATUS.has(status)) {
      entry.request.onInterim(frame.payload);
      return;
    }
    this.#settle(frame.id);
    if (frame.ok) entry.resolve(frame.payload);
    else entry.reject(errorFromWire(frame.error ?? { code: 'UNAVAILABLE', message: 'the gateway gave no reason' }));
  }

  /** After a lost connection: repeatable requests wait for the next one, of the others nobody knows whether they happened. */
  connectionLost(reason: string): void {
    for (const entry of [...this.#entries.values()]) {
      if (!entry.sent) continue;
      if (entry.request.repeatable) entry.sent = false;
      else {
        const error = new GatewayError('GATEWAY_UNREACHABLE', `"${entry.request.method}" was not answered: ${reason}`);
        this.#settle(entry.request.id)?.reject(error);
      }
    }
  }

  failAll(error: GatewayError): void {
    for (const id of [...this.#entries.keys()]) this.#settle(id)?.reject(error);
  }

  #settle(id: string): Entry | undefined {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    entry?.release();
    return entry;
  }
}
