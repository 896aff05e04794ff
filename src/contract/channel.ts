import type { SessionKey } from '#domain';

/** A promise to put text on one channel. `id` is the same on every attempt, so the far side can tell a repeat. */
export type Delivery = {
  readonly id: string;
  readonly runId: string;
  readonly channel: string;
  readonly account?: string;
  readonly to: string;
  readonly sessionKey: SessionKey;
  readonly text: string;
};

/** An adapter to a platform, outbound side. */
export interface Channel {
  readonly id: string;
  /**
   * Resolves when the platform accepted it.
   * @throws {GatewayError} `DELIVERY_GONE` it will never arrive; `DELIVERY_BUSY` try again after `detail.retryAfterMs`
   */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<void>;
}
