import { type Backoff, backoffMs, type Clock, isGatewayError, messageOf } from '#base';
import type { Channel, Delivery } from '#contract';
import type { Database, OutboxTable } from '#store';

export type OutboxOptions = {
  readonly database: Database;
  readonly clock: Clock;
  readonly channel: (id: string) => Channel | undefined;
  readonly onDeadLetter: (delivery: Delivery, error: string) => void;
  /** The disk took no record. Delivering goes on: what is not recorded is attempted again after a restart, under the same id. */
  readonly onUnrecorded: (error: unknown) => void;
};

const RETRY: Backoff = { firstMs: 1_000, factor: 3, maxMs: 10 * 60_000, jitter: 0.3 };
const EXPIRES_AFTER_MS = 24 * 60 * 60_000;
const SETTLED_BATCH = 64;
const SETTLE_AFTER_MS = 200;
const SETTLE_AGAIN_AFTER_MS = 30_000;

/**
 * Every promised answer until a channel accepted it. A row is on disk before the first attempt; after a crash what was not settled is
 * attempted again under the same id, by which the far side can tell a repeat.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #stopped = new AbortController();
  /** Order per session: an answer waits for the one before it. */
  readonly #tails = new Map<string, Promise<void>>();
  #settled: string[] = [];
  #settling: Promise<void> = Promise.resolve();
  #cancelSettle: (() => void) | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Puts it on disk, in the transaction that records the answer. {@link send} comes after that. */
  async promise(delivery: Delivery, transaction: Database): Promise<void> {
    const now = this.#options.clock.now();
    await transaction
      .insertInto('outbox')
      .values({
        id: delivery.id,
        run_id: delivery.runId,
        session_key: delivery.sessionKey,
        delivery_json: JSON.stringify(delivery),
        status: 'pending',
        attempts: 0,
        next_at: now,
        created_at: now,
        ended_at: null,
        error: null,
      })
      .execute();
  }

  /** Delivers in the background, after the session's earlier deliveries. */
  send(delivery: Delivery, createdAt: number = this.#options.clock.now()): void {
    const before = this.#tails.get(delivery.sessionKey) ?? Promise.resolve();
    const tail = before.then(() => this.#deliver(delivery, createdAt));
    this.#tails.set(delivery.sessionKey, tail);
    void tail.finally(() => {
      if (this.#tails.get(delivery.sessionKey) === tail) this.#tails.delete(delivery.sessionKey);
    });
  }

  /** What an earlier process promised and did not settle. */
  async resume(): Promise<number> {
    const rows = await this.#options.database
      .selectFrom('outbox')
      .select(['delivery_json', 'created_at'])
      .where('status', '=', 'pending')
      .orderBy('created_at')
      .execute();
    for (const row of rows) this.send(JSON.parse(row.delivery_json) as Delivery, row.created_at);
    return rows.length;
  }

  async prune(windowMs: number): Promise<void> {
    await this.#options.database
      .deleteFrom('outbox')
      .where('status', '=', 'accepted')
      .where('ended_at', '<', this.#options.clock.now() - windowMs)
      .execute();
  }

  /** Stops retrying; what is not settled stays on disk for the next start. */
  async close(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#tails.values());
    await this.#settle();
  }

  async #deliver(delivery: Delivery, createdAt: number): Promise<void> {
    const channel = this.#options.channel(delivery.channel);
    if (!channel) return await this.#end(delivery, 'gone', `There is no channel "${delivery.channel}"`);
    for (let attempt = 1; !this.#stopped.signal.aborted; attempt++) {
      try {
        await channel.deliver(delivery, this.#stopped.signal);
        return this.#accepted(delivery.id);
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (isGatewayError(error, 'DELIVERY_GONE')) return await this.#end(delivery, 'gone', error.message);
        if (this.#options.clock.now() - createdAt > EXPIRES_AFTER_MS)
          return await this.#end(delivery, 'expired', messageOf(error));
        if (!(await this.#waitForRetry(delivery, error, attempt))) return;
      }
    }
  }

  /** False when the outbox closed meanwhile. */
  async #waitForRetry(delivery: Delivery, error: unknown, attempt: number): Promise<boolean> {
    const asked = isGatewayError(error) ? Number(error.detail['retryAfterMs'] ?? 0) : 0;
    const delayMs = Math.max(asked, backoffMs(RETRY, attempt));
    await this.#record([delivery.id], {
      attempts: attempt,
      next_at: this.#options.clock.now() + delayMs,
      error: messageOf(error),
    });
    return await this.#options.clock.sleep(delayMs, this.#stopped.signal).then(
      () => true,
      () => false,
    );
  }

  async #end(delivery: Delivery, status: 'gone' | 'expired', error: string): Promise<void> {
    await this.#record([delivery.id], { status, error, ended_at: this.#options.clock.now() });
    this.#options.onDeadLetter(delivery, error);
  }

  /** Receipts are written in batches: a repeat after a crash is told by its id, a write per answer would cost every turn. */
  #accepted(id: string): void {
    this.#settled.push(id);
    if (this.#settled.length >= SETTLED_BATCH) void this.#settle();
    else this.#settleIn(SETTLE_AFTER_MS);
  }

  #settleIn(delayMs: number): void {
    this.#cancelSettle ??= this.#options.clock.after(delayMs, () => void this.#settle());
  }

  /** One after the other, so that closing waits for the one under way. Never rejects. */
  #settle(): Promise<void> {
    this.#cancelSettle?.();
    this.#cancelSettle = undefined;
    this.#settling = this.#settling.then(async () => {
      const ids = this.#settled;
      this.#settled = [];
      if (ids.length === 0) return;
      if (await this.#record(ids, { status: 'accepted', ended_at: this.#options.clock.now() })) return;
      this.#settled = [...ids, ...this.#settled];
      if (!this.#stopped.signal.aborted) this.#settleIn(SETTLE_AGAIN_AFTER_MS);
    });
    return this.#settling;
  }

  /** False when the disk did not take it. */
  async #record(ids: readonly string[], change: Partial<OutboxTable>): Promise<boolean> {
    try {
      await this.#options.database.updateTable('outbox').set(change).where('id', 'in', ids).execute();
      return true;
    } catch (error) {
      this.#options.onUnrecorded(error);
      return false;
    }
  }
}
