import type { Envelope } from '#domain';

export type SenderDecision = {
  readonly allowed: boolean;
  /** The deciding rule, in words for a person. */
  readonly reason: string;
};

/** One sender who may talk on one account of one channel. Ids are the platform's stable ones, compared exactly. */
export type SenderRule = { readonly channel: string; readonly account?: string; readonly sender: string };

/**
 * May this sender start a run? Decided on what the gateway authenticated, never on what the message claims. The default is no: whoever
 * is not the operator needs a rule that names them (security model T6).
 */
export function senderMayStartRun(
  envelope: Pick<Envelope, 'sender' | 'channel' | 'account'>,
  rules: readonly SenderRule[] = [],
): SenderDecision {
  const { sender, channel, account } = envelope;
  if (sender.owner) return { allowed: true, reason: 'the sender is the operator of this gateway' };
  if (sender.id === '') return { allowed: false, reason: `the sender on ${channel} has no id` };
  const place = account === undefined ? channel : `${channel}/${account}`;
  const isNamed = rules.some(
    (rule) => rule.sender === sender.id && rule.channel === channel && rule.account === account,
  );
  return isNamed
    ? { allowed: true, reason: `a rule lets ${sender.id} talk here on ${place}` }
    : { allowed: false, reason: `nobody has allowed ${sender.id} to talk here on ${place}` };
}
