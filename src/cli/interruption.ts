import { type Clock, GatewayError, systemClock } from '#base';
import { EXIT } from './fault.ts';
import type { Surroundings } from './terminal.ts';

/**
 * One press of Ctrl-C arrives up to three times: from the terminal to the whole process group, again from npm, again from the
 * launcher. Signals this close together are one.
 */
const ECHO_MS = 500;

/** The first signal asks for an orderly end (`signal` aborts), a later one ends the process at once. */
export class Interruption implements Disposable {
  readonly #controller = new AbortController();
  readonly #surroundings: Surroundings;
  readonly #clock: Clock;
  #askedAt: number | undefined;
  /** Which signal it was, once there was one. */
  name: 'SIGINT' | 'SIGTERM' | undefined;

  constructor(surroundings: Surroundings, clock: Clock = systemClock) {
    this.#surroundings = surroundings;
    this.#clock = clock;
    surroundings.signals.on('SIGINT', this.#onInterrupt);
    surroundings.signals.on('SIGTERM', this.#onTerminate);
  }

  /** Aborts with a `RUN_ABORTED` error. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The exit code of work that the signal cut off. */
  get exitCode(): number {
    return this.name === 'SIGTERM' ? EXIT.terminated : EXIT.interrupted;
  }

  /** Resolves at the first signal. */
  happened(): Promise<void> {
    if (this.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => this.signal.addEventListener('abort', () => resolve(), { once: true }));
  }

  [Symbol.dispose](): void {
    this.#surroundings.signals.off('SIGINT', this.#onInterrupt);
    this.#surroundings.signals.off('SIGTERM', this.#onTerminate);
  }

  readonly #onInterrupt = (): void => this.#asked('SIGINT');
  readonly #onTerminate = (): void => this.#asked('SIGTERM');

  #asked(name: 'SIGINT' | 'SIGTERM'): void {
    if (this.#askedAt === undefined) {
      this.#askedAt = this.#clock.now();
      this.name = name;
      this.#controller.abort(
        new GatewayError('RUN_ABORTED', name === 'SIGINT' ? 'Stopped by Ctrl-C' : 'Stopped by SIGTERM', {
          next: 'Send it again if you want it done.',
        }),
      );
    } else if (this.#clock.now() - this.#askedAt >= ECHO_MS) {
      this.#surroundings.exitNow(name === 'SIGTERM' ? EXIT.terminated : EXIT.interrupted);
    }
  }
}
