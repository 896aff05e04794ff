/**
 * A bounded hand-over from one producer to one reader. Events wait in order; past `max` the queue closes itself with
 * `overflowed`, so a slow reader costs itself its stream and nobody else any memory.
 */
export class EventQueue<T> implements AsyncIterable<T> {
  readonly #waiting: T[] = [];
  readonly #max: number;
  #wake: (() => void) | undefined;
  #closed = false;
  overflowed = false;

  constructor(options: { readonly max: number }) {
    this.#max = options.max;
  }

  /** False when the queue is closed or just overflowed. */
  push(event: T): boolean {
    if (this.#closed) return false;
    if (this.#waiting.length >= this.#max) {
      this.overflowed = true;
      this.close();
      return false;
    }
    this.#waiting.push(event);
    this.#wake?.();
    return true;
  }

  /** What waits is still read; then the reader's loop ends. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    let next = 0;
    try {
      for (;;) {
        if (next < this.#waiting.length) {
          const event = this.#waiting[next++]!;
          if (next === this.#waiting.length) {
            this.#waiting.length = 0;
            next = 0;
          }
          yield event;
        } else if (this.#closed) return;
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          this.#wake = undefined;
        }
      }
    } finally {
      this.close();
    }
  }
}
