import { type Clock, GatewayError } from '#base';

export type WatchLimits = {
  /** Without a byte for this long a response is given up. */
  readonly idleMs: number;
  /** Bytes of one response body. */
  readonly bytesMax: number;
};

/** Why a watch gave a response up. */
export type WatchVerdict = 'idle' | 'too-large';

/**
 * Watches the bytes of one response, comments and all, since the SDK shows only whole events. Aborts `signal` when none come for too
 * long or too many come.
 */
export class ByteWatch {
  readonly #clock: Clock;
  readonly #limits: WatchLimits;
  readonly #abort = new AbortController();
  #lastAt: number;
  #bytes = 0;
  #cancel: () => void;
  verdict: WatchVerdict | undefined;
  responded = false;

  constructor(clock: Clock, limits: WatchLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#lastAt = clock.now();
    this.#cancel = clock.after(limits.idleMs, () => this.#look());
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  abort(reason?: unknown): void {
    this.#abort.abort(reason);
  }

  stop(): void {
    this.#cancel();
  }

  /** One timer that is set anew only when it fires, so that a chunk costs no more than reading the clock. */
  #look(): void {
    const left = this.#lastAt + this.#limits.idleMs - this.#clock.now();
    if (left > 0) this.#cancel = this.#clock.after(left, () => this.#look());
    else this.#give('idle');
  }

  #give(verdict: WatchVerdict): void {
    this.verdict ??= verdict;
    this.#abort.abort(new GatewayError('MODEL_TIMEOUT', `the response was given up: ${verdict}`));
  }

  /** The response with its body counted. */
  watched(response: Response): Response {
    this.responded = response.ok;
    this.#lastAt = this.#clock.now();
    if (!response.body) return response;
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        this.#lastAt = this.#clock.now();
        this.#bytes += chunk.byteLength;
        if (this.#bytes > this.#limits.bytesMax) this.#give('too-large');
        controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
  }
}
