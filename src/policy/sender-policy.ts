import type { Envelope } from '#domain';

export type SenderDecision = {
  readonly allowed: boolean /** The deciding rule, in words for a person. */;
  readonly reason: string;
};

/**
 * May this sender start a run? Decided on what the gateway authenticated, never on what the message claims. The default is no: whoever
 * is not the operator needs a rule that names them.
 */
export function senderMayStartRun(envelope: Pick<Envelope, 'sender' | 'channel'>): SenderDecision {
  if (envelope.sender.owner) return { allowed: true, reason: 'the sender is the operator of this gateway' };
  return { allowed: false, reason: `nobody has allowed ${envelope.sender.id} to talk here on ${envelope.channel}` };
}
