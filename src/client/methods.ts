// The methods and events that our own clients use, with the shapes they read. The gateway checks params by its schemas; here a
// name or a field that does not exist is a type error.
import type { ApprovalDecision, Message, Usage } from '#domain';

export type HistoryMessage = Message & { readonly __openclaw?: { readonly id?: string; readonly seq: number } };

/** A run that is under way, for a client that was not there when it started. */
export type ActiveRun = {
  readonly runId: string;
  readonly startedAt: number;
  /** The assistant message that is being written; earlier ones of the run are already in the history. */
  readonly text: string;
  readonly thinking?: string;
  readonly seq: number;
};

export type SessionSummary = {
  readonly key: string;
  readonly kind: string;
  readonly label?: string;
  readonly displayName?: string;
  readonly derivedTitle?: string;
  readonly lastMessagePreview?: string;
  readonly channel?: string;
  readonly updatedAt: number | null;
  readonly sessionId?: string;
  readonly status?: string;
  readonly hasActiveRun?: boolean;
  readonly modelProvider?: string;
  readonly model?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  readonly contextTokens?: number;
  readonly estimatedCostUsd?: number;
  readonly thinkingLevel?: string;
};

export type Command = { readonly name: string; readonly textAliases: readonly string[]; readonly description: string };

/** `exec.approval.list` and the event of a new one. Times are milliseconds since the epoch. */
export type ApprovalRecord = {
  readonly id: string;
  readonly request: {
    readonly command: string;
    readonly cwd?: string;
    readonly agentId?: string;
    readonly sessionKey?: string;
    readonly warningText?: string;
    readonly allowedDecisions?: readonly ApprovalDecision[];
    readonly runId?: string;
    readonly toolCallId?: string;
  };
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
};

type Methods = {
  agent: {
    params: {
      readonly message: string;
      readonly idempotencyKey: string;
      readonly agentId?: string;
      readonly sessionKey?: string;
      readonly thinking?: string;
      readonly model?: string;
      readonly timeout?: number;
    };
    result: { readonly runId: string; readonly status: string; readonly summary?: string; readonly result?: unknown };
  };
  'chat.send': {
    params: { readonly sessionKey: string; readonly message: string; readonly idempotencyKey: string };
    result: { readonly runId: string; readonly status: string };
  };
  'chat.history': {
    params: { readonly sessionKey: string; readonly limit?: number };
    result: {
      readonly sessionKey: string;
      readonly sessionId?: string;
      readonly messages: readonly HistoryMessage[];
      readonly activeRun?: ActiveRun;
    };
  };
  'chat.abort': {
    params: { readonly sessionKey: string; readonly runId?: string };
    result: { readonly ok: boolean; readonly aborted: boolean; readonly runIds: readonly string[] };
  };
  'sessions.list': {
    params: {
      readonly limit?: number;
      readonly search?: string;
      readonly includeDerivedTitles?: boolean;
      readonly includeLastMessage?: boolean;
    };
    result: { readonly sessions: readonly SessionSummary[]; readonly hasMore: boolean; readonly totalCount: number };
  };
  'sessions.subscribe': { params: Record<string, never>; result: { readonly subscribed: boolean } };
  'sessions.messages.subscribe': { params: { readonly key: string }; result: { readonly subscribed: boolean } };
  'sessions.messages.unsubscribe': { params: { readonly key: string }; result: { readonly subscribed: boolean } };
  'commands.list': { params: { readonly scope?: string }; result: { readonly commands: readonly Command[] } };
  'exec.approval.list': { params: Record<string, never>; result: readonly ApprovalRecord[] };
  'exec.approval.resolve': {
    params: { readonly id: string; readonly decision: ApprovalDecision };
    result: { readonly ok: boolean };
  };
  health: { params: Record<string, never>; result: Readonly<Record<string, unknown>> };
};

export type MethodName = keyof Methods;
export type Params<M extends MethodName> = Methods[M]['params'];
export type Result<M extends MethodName> = Methods[M]['result'];

type RunPlace = { readonly runId: string; readonly sessionKey: string; readonly seq: number };

export type AgentEvent = RunPlace & {
  readonly stream: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly ts: number;
};
export type ChatEvent = RunPlace & {
  readonly state: 'delta' | 'final' | 'aborted' | 'error';
  readonly message?: { readonly content: unknown };
  readonly errorMessage?: string;
  readonly stopReason?: string;
  readonly usage?: Usage;
};
export type SessionMessageEvent = {
  readonly sessionKey: string;
  readonly message: HistoryMessage;
  readonly messageId?: string;
  readonly messageSeq?: number;
};
export type SessionsChangedEvent = {
  readonly sessionKey: string;
  readonly session?: SessionSummary;
  readonly phase?: string;
  readonly reason?: string;
};
export type ApprovalResolvedEvent = { readonly id: string; readonly decision: string; readonly resolvedBy?: string };

type Events = {
  agent: AgentEvent;
  chat: ChatEvent;
  'session.message': SessionMessageEvent;
  'sessions.changed': SessionsChangedEvent;
  'exec.approval.requested': ApprovalRecord;
  'exec.approval.resolved': ApprovalResolvedEvent;
  shutdown: { readonly reason: string; readonly restartExpectedMs: number | null };
};
export type EventName = keyof Events;
export type EventPayload<E extends EventName> = Events[E];
