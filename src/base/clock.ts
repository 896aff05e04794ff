/** The only source of time and timers for code whose tests must not sleep. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `delayMs`, or rejects with the signal's reason. Does not keep the process alive. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /** Calls `action` once after `delayMs` unless the returned function is called first. */
  after(delayMs: number, action: () => void): () => void;
}

const DELAY_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, Math.min(Math.max(0, delayMs), DELAY_MS_MAX));
    (timer as { unref?: () => void }).unref?.();
    return () => clearTimeout(timer);
  },
  sleep(delayMs, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = systemClock.after(delayMs, () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      });
      signal?.addEventListener('abort', stop, { once: true });
    });
  },
};
