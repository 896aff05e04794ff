export type { Identity } from './connection.ts';
export {
  type AnswerItem,
  type AnswerPart,
  type Conversation,
  type ConversationItem,
  emptyConversation,
  type Failure,
  type LiveRun,
  type NoticeItem,
  type PersonItem,
  type RunEnd,
  runUnderWay,
  type SentMessage,
  type ToolPart,
  withAgentEvent,
  withHistory,
  withMessage,
  withNotice,
  withoutSent,
  withRunEnd,
  withSent,
  withSentStatus,
} from './conversation.ts';
export { ConversationView, itemsOf } from './conversation-view.ts';
export {
  type ClientOptions,
  type ClientState,
  GatewayClient,
  type RequestOptions,
  type RunOptions,
} from './gateway-client.ts';
export type {
  ActiveRun,
  AgentEvent,
  ApprovalRecord,
  ChatEvent,
  Command,
  EventName,
  EventPayload,
  HistoryMessage,
  Result,
  SessionSummary,
} from './methods.ts';
