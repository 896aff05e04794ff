import type { Clock } from '#base';

/** A clock that moves only when told. Timers due fire in order while it moves, and what they start gets its turn. */
export class ManualClock implements Clock {
  #now: number;
  #timers: { readonly at: number; readonly action: () => void }[] = [];

  constructor(now = Date.UTC(2026, 10, 30, 12)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, delayMs), action };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((t) => t !== timer);
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = this.after(delayMs, () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      });
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#timers.length;
  }

  async advance(byMs: number): Promise<void> {
    const until = this.#now + byMs;
    for (;;) {
      const [next] = this.#timers.filter((t) => t.at <= until).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.#timers = this.#timers.filter((t) => t !== next);
      this.#now = Math.max(this.#now, next.at);
      next.action();
      await new Promise(setImmediate);
    }
    this.#now = until;
    await new Promise(setImmediate);
  }
}
