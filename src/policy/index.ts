export { type SenderDecision, senderMayStartRun } from './sender-policy.ts';
