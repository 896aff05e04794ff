import { GatewayError } from '#base';
import type { SessionKey } from '#domain';

export type LaneLimits = {
  /** Runs at once, over all sessions. */
  readonly runningMax: number;
  /** Runs that may wait behind the one under way, per session. */
  readonly waitingMax: number;
  /** Runs that may wait in all. */
  readonly waitingTotalMax: number;
};

/** One queued piece of work. `start` must not reject; the lane goes on when it settles. */
export type LaneItem = { readonly id: string; start(): Promise<void> };

type Lane = { running: LaneItem | undefined; readonly waiting: LaneItem[]; queued: boolean };

/**
 * Makes a session's runs happen one at a time and in the order they were put in, many sessions at once, and never more than
 * `runningMax` in all: sessions that wait for a place get it in turn.
 */
export class Lanes {
  readonly #limits: LaneLimits;
  readonly #lanes = new Map<SessionKey, Lane>();
  /** Sessions with work and no run, in the order in which they became ready. */
  readonly #ready: SessionKey[] = [];
  #running = 0;
  #waiting = 0;

  constructor(limits: LaneLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** @throws {GatewayError} `LANE_FULL` or `GATEWAY_BUSY` when there is no room; ask before recording a message. */
  assertRoom(key: SessionKey): void {
    if ((this.#lanes.get(key)?.waiting.length ?? 0) >= this.#limits.waitingMax) {
      throw new GatewayError('LANE_FULL', `This session already has ${this.#limits.waitingMax} messages waiting`, {
        next: 'Wait for an answer, or stop the run with /stop, and send it again.',
      });
    }
    if (this.#waiting >= this.#limits.waitingTotalMax) {
      throw new GatewayError('GATEWAY_BUSY', 'Too many messages are waiting', { next: 'Try again in a moment.' });
    }
  }

  /** Queues the item; starts it at once where nothing is before it. Does not check room: see {@link assertRoom}. */
  put(key: SessionKey, item: LaneItem): void {
    const lane = this.#lane(key);
    lane.waiting.push(item);
    this.#waiting++;
    this.#offer(key, lane);
    this.#startReady();
  }

  /**
   * Takes waiting items out, oldest first: for a run that answers them itself, and for those that are called off.
   * @param isBarrier an item that nothing behind it may overtake
   */
  takeWaiting<T extends LaneItem>(
    key: SessionKey,
    wanted: (item: T) => boolean,
    isBarrier: (item: T) => boolean = () => false,
  ): readonly T[] {
    const lane = this.#lanes.get(key);
    if (!lane) return [];
    const taken: T[] = [];
    for (let i = 0; i < lane.waiting.length; ) {
      const item = lane.waiting[i] as T;
      if (isBarrier(item)) break;
      if (wanted(item)) {
        lane.waiting.splice(i, 1);
        this.#waiting--;
        taken.push(item);
      } else i++;
    }
    this.#forgetIfIdle(key, lane);
    return taken;
  }

  current(key: SessionKey): LaneItem | undefined {
    return this.#lanes.get(key)?.running;
  }

  #lane(key: SessionKey): Lane {
    let lane = this.#lanes.get(key);
    if (!lane) {
      lane = { running: undefined, waiting: [], queued: false };
      this.#lanes.set(key, lane);
    }
    return lane;
  }

  #offer(key: SessionKey, lane: Lane): void {
    if (lane.running || lane.queued || lane.waiting.length === 0) return;
    lane.queued = true;
    this.#ready.push(key);
  }

  #startReady(): void {
    while (this.#running < this.#limits.runningMax) {
      const key = this.#ready.shift();
      if (key === undefined) return;
      const lane = this.#lanes.get(key);
      if (!lane) continue;
      lane.queued = false;
      const item = lane.waiting.shift();
      if (item) this.#start(key, lane, item);
    }
  }

  #start(key: SessionKey, lane: Lane, item: LaneItem): void {
    lane.running = item;
    this.#waiting--;
    this.#running++;
    const over = () => {
      lane.running = undefined;
      this.#running--;
      this.#offer(key, lane);
      this.#forgetIfIdle(key, lane);
      this.#startReady();
    };
    // A failed run must not fail the runs behind it: the lane remembers order, not outcome.
    item.start().then(over, over);
  }

  #forgetIfIdle(key: SessionKey, lane: Lane): void {
    if (!lane.running && lane.waiting.length === 0 && this.#lanes.get(key) === lane) this.#lanes.delete(key);
  }
}
