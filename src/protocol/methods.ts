import type { Static, TSchema } from 'typebox';
import * as Type from 'typebox';
import { APPROVAL_DECISIONS } from '#domain';
import type { Scope } from './connect.ts';

type Properties = Record<string, TSchema>;
/** Strict: an unknown property is a mistake of the caller, and says so. */
const params = <T extends Properties>(properties: T) => Type.Object(properties, { additionalProperties: false });

const key = Type.String({ minLength: 1, maxLength: 512 });
const id = Type.String({ minLength: 1, maxLength: 256 });
const text = (maxLength: number) => Type.String({ maxLength });
const limit = Type.Integer({ minimum: 1, maximum: 1_000 });
const opt = Type.Optional;

export const Attachment = Type.Object({
  type: opt(text(32)),
  mimeType: text(128),
  fileName: opt(text(512)),
  /** Base64. */
  content: text(28_000_000),
});

const MESSAGE_CHARACTERS_MAX = 1_000_000;
const message = text(MESSAGE_CHARACTERS_MAX);
const attachments = opt(Type.Array(Attachment, { maxItems: 16 }));
const thinking = opt(text(16));

export const ChatSend = params({
  sessionKey: key,
  message,
  idempotencyKey: id,
  sessionId: opt(id),
  thinking,
  deliver: opt(Type.Boolean()),
  attachments,
  timeoutMs: opt(Type.Integer({ minimum: 0 })),
});
export const ChatHistory = params({ sessionKey: key, limit: opt(limit), maxChars: opt(Type.Integer({ minimum: 1 })) });
export const ChatAbort = params({ sessionKey: key, runId: opt(id) });
export const AgentRun = params({
  message,
  idempotencyKey: id,
  agentId: opt(text(64)),
  sessionKey: opt(key),
  sessionId: opt(id),
  to: opt(text(256)),
  channel: opt(text(64)),
  deliver: opt(Type.Boolean()),
  thinking,
  model: opt(text(256)),
  provider: opt(text(64)),
  /** Seconds. */
  timeout: opt(Type.Integer({ minimum: 0, maximum: 172_800 })),
  attachments,
  extraSystemPrompt: opt(text(100_000)),
  label: opt(text(128)),
  lane: opt(text(64)),
});
export const AgentWait = params({ runId: id, timeoutMs: opt(Type.Integer({ minimum: 0, maximum: 24 * 60 * 60_000 })) });

export const SessionsList = params({
  limit: opt(limit),
  activeMinutes: opt(Type.Integer({ minimum: 1 })),
  includeGlobal: opt(Type.Boolean()),
  includeUnknown: opt(Type.Boolean()),
  includeDerivedTitles: opt(Type.Boolean()),
  includeLastMessage: opt(Type.Boolean()),
  label: opt(text(128)),
  spawnedBy: opt(key),
  agentId: opt(text(64)),
  search: opt(text(256)),
});
export const SessionKeyOnly = params({ key });
export const SessionsPreview = params({
  keys: Type.Array(key, { maxItems: 50 }),
  limit: opt(limit),
  maxChars: opt(Type.Integer({ minimum: 1, maximum: 100_000 })),
});
export const SessionsResolve = params({
  key: opt(key),
  sessionId: opt(id),
  label: opt(text(128)),
  agentId: opt(text(64)),
});
export const SessionsCreate = params({
  key: opt(key),
  agentId: opt(text(64)),
  label: opt(text(128)),
  model: opt(text(256)),
});
export const SessionsSend = params({
  key,
  message,
  idempotencyKey: opt(id),
  thinking,
  attachments,
  timeoutMs: opt(Type.Integer({ minimum: 0 })),
});
export const SessionsAbort = params({ key: opt(key), runId: opt(id) });
const nullable = (schema: TSchema) => opt(Type.Union([schema, Type.Null()]));
export const SessionsPatch = params({
  key,
  label: nullable(text(128)),
  model: nullable(text(256)),
  thinkingLevel: nullable(text(16)),
  queueMode: nullable(Type.Enum(['steer', 'followup', 'collect', 'interrupt'])),
});
export const SessionsReset = params({ key, reason: opt(Type.Enum(['new', 'reset'])) });
export const SessionsDelete = params({ key, deleteTranscript: opt(Type.Boolean()) });

export const ApprovalId = params({ id });
export const ApprovalResolve = params({ id, decision: Type.Enum([...APPROVAL_DECISIONS]) });

const Nothing = params({});
export const LogsTail = params({
  cursor: opt(Type.Integer({ minimum: 0 })),
  limit: opt(Type.Integer({ minimum: 1, maximum: 5_000 })),
  maxBytes: opt(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
});

/** Every method, what it takes and the least scope that reaches it. A name that is not here does not exist. */
export const METHODS = {
  health: { params: params({ probe: opt(Type.Boolean()) }), scope: 'none' },
  status: { params: Nothing, scope: 'operator.read' },
  'system-presence': { params: Nothing, scope: 'operator.read' },
  'chat.send': { params: ChatSend, scope: 'operator.write' },
  'chat.history': { params: ChatHistory, scope: 'operator.read' },
  'chat.abort': { params: ChatAbort, scope: 'operator.write' },
  agent: { params: AgentRun, scope: 'operator.write' },
  'agent.wait': { params: AgentWait, scope: 'operator.write' },
  'agent.identity.get': { params: params({ agentId: opt(text(64)), sessionKey: opt(key) }), scope: 'operator.read' },
  'agents.list': { params: Nothing, scope: 'operator.read' },
  'models.list': { params: params({ view: opt(Type.Enum(['default', 'configured', 'all'])) }), scope: 'operator.read' },
  'commands.list': {
    params: params({
      agentId: opt(text(64)),
      provider: opt(text(64)),
      scope: opt(text(32)),
      includeArgs: opt(Type.Boolean()),
    }),
    scope: 'operator.read',
  },
  'sessions.list': { params: SessionsList, scope: 'operator.read' },
  'sessions.describe': { params: SessionKeyOnly, scope: 'operator.read' },
  'sessions.preview': { params: SessionsPreview, scope: 'operator.read' },
  'sessions.resolve': { params: SessionsResolve, scope: 'operator.read' },
  'sessions.get': { params: SessionKeyOnly, scope: 'operator.read' },
  'sessions.create': { params: SessionsCreate, scope: 'operator.write' },
  'sessions.send': { params: SessionsSend, scope: 'operator.write' },
  'sessions.abort': { params: SessionsAbort, scope: 'operator.write' },
  'sessions.patch': { params: SessionsPatch, scope: 'operator.admin' },
  'sessions.reset': { params: SessionsReset, scope: 'operator.admin' },
  'sessions.delete': { params: SessionsDelete, scope: 'operator.admin' },
  'sessions.subscribe': { params: Nothing, scope: 'operator.read' },
  'sessions.unsubscribe': { params: Nothing, scope: 'operator.read' },
  'sessions.messages.subscribe': { params: SessionKeyOnly, scope: 'operator.read' },
  'sessions.messages.unsubscribe': { params: SessionKeyOnly, scope: 'operator.read' },
  'exec.approval.list': { params: Nothing, scope: 'operator.approvals' },
  'exec.approval.get': { params: ApprovalId, scope: 'operator.approvals' },
  'exec.approval.resolve': { params: ApprovalResolve, scope: 'operator.approvals' },
  'exec.approval.waitDecision': { params: ApprovalId, scope: 'operator.approvals' },
  'config.get': { params: Nothing, scope: 'operator.read' },
  'logs.tail': { params: LogsTail, scope: 'operator.read' },
} as const satisfies Record<string, { readonly params: TSchema; readonly scope: Scope | 'none' }>;

export type MethodName = keyof typeof METHODS;
export type MethodParams<M extends MethodName> = Static<(typeof METHODS)[M]['params']>;
