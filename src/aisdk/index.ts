export { type BridgeOptions, bridge } from './bridge.ts';
export type { PromptFacts, PromptRules, SdkClient, Signature, SignedKind, WireFamily } from './wire-family.ts';
