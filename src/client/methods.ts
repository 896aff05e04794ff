// What our own clients read of the gateway's answers and events. Params have their types from the protocol's schemas.
import type { ApprovalDecision, Message, Usage } from '#domain';
import type { MethodName } from '#protocol';

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

/** What the methods answer that our clients read; the answer of any other is `unknown`. */
type Results = {
  agent: { readonly runId: string; readonly status: string; readonly summary?: string; readonly result?: unknown };
  /** `/stop` is answered as `chat.abort` is, without a run of its own. */
  'chat.send':
    | { readonly runId: string; readonly status: string }
    | { readonly runId?: undefined; readonly aborted: boolean; readonly runIds: readonly string[] };
  'chat.history': {
    readonly sessionKey: string;
    readonly sessionId?: string;
    readonly messages: readonly HistoryMessage[];
    readonly activeRun?: ActiveRun;
  };
  'chat.abort': { readonly ok: boolean; readonly aborted: boolean; readonly runIds: readonly string[] };
  'sessions.list': {
    readonly sessions: readonly SessionSummary[];
    readonly hasMore: boolean;
    readonly totalCount: number;
  };
  'commands.list': { readonly commands: readonly Command[] };
  'exec.approval.list': readonly ApprovalRecord[];
  'exec.approval.resolve': { readonly ok: boolean };
};

export type Result<M extends MethodName> = M extends keyof Results ? Results[M] : unknown;

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
