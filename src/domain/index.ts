export { APPROVAL_DECISIONS, type Approval, type ApprovalDecision } from './approval.ts';
export {
  type Envelope,
  type InboundMeta,
  inboundMeta,
  type QueueMode,
  type RunOptions,
  type Sender,
} from './envelope.ts';
export {
  type AssistantContent,
  type AssistantMessage,
  addUsage,
  type Cost,
  type ImageBlock,
  type Message,
  NO_COST,
  NO_USAGE,
  type StopReason,
  type TextBlock,
  type ThinkingBlock,
  type ToolCallBlock,
  type ToolResultMessage,
  textOf,
  toolCallsOf,
  type Usage,
  type UserContent,
  type UserMessage,
} from './message.ts';
export { type ModelRef, modelRefText, parseModelRef } from './model-ref.ts';
export {
  answerText,
  type RunEvent,
  type RunNotice,
  type RunResult,
  type ToolCallFacts,
  type ToolOutcome,
} from './run-event.ts';
export {
  type AgentId,
  agentId,
  agentOf,
  agentSessionKey,
  channelSessionKey,
  DEFAULT_AGENT,
  type DmScope,
  MAIN_SESSION,
  mainSessionKey,
  resolveSessionKey,
  type SessionKey,
  type SessionKind,
  sessionKind,
  verbatimSessionKey,
} from './session-key.ts';
export { withoutStamp, withStamp } from './stamp.ts';
export { isThinkingLevel, THINKING_LEVELS, type ThinkingLevel } from './thinking.ts';
export {
  type CompactionEntry,
  type CustomEntry,
  type CustomMessageEntry,
  ENTRY,
  type MessageEntry,
  type ModelChangeEntry,
  type NewEntry,
  type OtherEntry,
  type ThinkingChangeEntry,
  type TranscriptEntry,
  type TranscriptHeader,
} from './transcript-entry.ts';
