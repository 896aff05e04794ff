export { type BridgeOptions, bridge } from './bridge.ts';
export {
  type PromptFacts,
  type PromptRules,
  type SdkAccess,
  type SdkClient,
  type Signature,
  type SignedKind,
  type WireFamily,
  withSomeKey,
} from './wire-family.ts';
