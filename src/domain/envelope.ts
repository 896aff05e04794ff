import type { ImageBlock } from './message.ts';
import type { AgentId, SessionKey } from './session-key.ts';
import type { ThinkingLevel } from './thinking.ts';

/** Who sent it, from authenticated facts only; the basis of every decision (security model T17). */
export type Sender = {
  /** The stable id that the channel authenticated, e.g. `operator` or a platform's user id. */
  readonly id: string;
  /** The operator of this gateway: may be asked for approvals. */
  readonly owner: boolean;
};

/** What happens to a message that arrives while its session is busy. */
export type QueueMode = 'steer' | 'followup' | 'collect' | 'interrupt';

/** One inbound message before any decision. Everything here but `claims`, `text` and `images` was made by the gateway. */
export type Envelope = {
  /** Unique in the window for this source and session; a repeat returns the first answer. Also the run's id. */
  readonly idempotencyKey: string;
  /** The door it came in by: `webchat`, `cli`, `http`, or a channel's id. */
  readonly channel: string;
  readonly account?: string;
  readonly surface: string;
  readonly chatType: 'direct' | 'group' | 'channel';
  readonly sender: Sender;
  readonly sessionKey: SessionKey;
  readonly agent: AgentId;
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly receivedAt: number;
  /** What the other side says of itself: names, topics, labels. Data for the model, never for a decision. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly queue?: QueueMode;
  readonly options?: RunOptions;
};

export type RunOptions = {
  /** `provider/model` or an alias, for this run only. */
  readonly model?: string;
  readonly thinking?: ThinkingLevel;
  readonly timeoutMs?: number;
  /** Added to the end of the system prompt for this run: the HTTP API's system messages. */
  readonly extraSystem?: string;
  /** Earlier messages that a stateless caller sent along, oldest first. */
  readonly history?: readonly { readonly role: 'user' | 'assistant'; readonly text: string }[];
};

/** Facts about the message that the gateway vouches for, as the model's system prompt shows them. */
export type InboundMeta = {
  readonly schema: 'reins.inbound_meta.v1';
  readonly channel: string;
  readonly provider: string;
  readonly surface: string;
  readonly chat_type: Envelope['chatType'];
  readonly account_id?: string;
  readonly sender_id: string;
  readonly sender_is_owner: boolean;
};

export function inboundMeta(envelope: Envelope): InboundMeta {
  return {
    schema: 'reins.inbound_meta.v1',
    channel: envelope.channel,
    provider: envelope.channel,
    surface: envelope.surface,
    chat_type: envelope.chatType,
    ...(envelope.account === undefined ? {} : { account_id: envelope.account }),
    sender_id: envelope.sender.id,
    sender_is_owner: envelope.sender.owner,
  };
}
