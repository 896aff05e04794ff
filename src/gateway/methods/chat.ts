import { isRecord, newId } from '#base';
import {
  type AgentId,
  agentId,
  agentOf,
  agentSessionKey,
  answerText,
  type Envelope,
  type ImageBlock,
  isThinkingLevel,
  mainSessionKey,
  type RunOptions,
  type RunResult,
  resolveSessionKey,
  type SessionKey,
} from '#domain';
import type { MethodParams } from '#protocol';
import { shownMessage } from '../run-events.ts';
import { RefusedRequest } from '../wire-error.ts';
import type { MethodContext, Methods } from './method.ts';

const HISTORY_DEFAULT = 200;
/** So that a history full of pictures stays within what a client takes as one frame. */
const HISTORY_CHARACTERS_MAX = 16 * 1024 * 1024;
const HISTORY_ATTEMPTS_MAX = 3;
const WAIT_MS_DEFAULT = 30_000;
const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const IMAGE_BASE64_MAX = 8 * 1024 * 1024;

export const chatMethods: Methods<
  'chat.send' | 'chat.history' | 'chat.abort' | 'agent' | 'agent.wait' | 'sessions.send' | 'sessions.abort'
> = {
  async 'chat.send'(params, context) {
    const sessionKey = resolveSessionKey(params.sessionKey, context.ports.agents.defaultId());
    const agent = agentInKey(sessionKey, context, 'chat.send');
    if (params.message.trim() === '/stop') {
      const runIds = context.ports.dispatch.abort(sessionKey);
      return { ok: true, aborted: runIds.length > 0, runIds };
    }
    return await send(envelopeOf({ ...params, sessionKey, agent }, context), context);
  },

  async 'chat.history'({ sessionKey: given, limit = HISTORY_DEFAULT, maxChars = HISTORY_CHARACTERS_MAX }, context) {
    const sessionKey = resolveSessionKey(given, context.ports.agents.defaultId());
    const { live, messages, ...facts } = await historyOf(sessionKey, limit, context);
    const activeRun = live && {
      runId: live.runId,
      startedAt: live.startedAt,
      text: live.text,
      thinking: live.thinking,
      seq: live.seq,
    };
    const shown = messages.map(({ entryId, seq, message }) => shownMessage(message, entryId, seq));
    return {
      sessionKey,
      ...facts,
      messages: withinCharacters(shown, Math.min(maxChars, HISTORY_CHARACTERS_MAX)),
      ...(activeRun ? { activeRun } : {}),
    };
  },

  'chat.abort'({ sessionKey, runId }, { ports }) {
    const runIds = ports.dispatch.abort(resolveSessionKey(sessionKey, ports.agents.defaultId()), runId);
    return { ok: true, aborted: runIds.length > 0, runIds };
  },

  async agent(params, context) {
    const { agent, sessionKey } = agentPlace(params, context);
    const options: RunOptions = {
      ...(params.model === undefined
        ? {}
        : { model: params.provider === undefined ? params.model : `${params.provider}/${params.model}` }),
      ...(params.timeout === undefined || params.timeout === 0 ? {} : { timeoutMs: params.timeout * 1000 }),
      ...(params.extraSystemPrompt === undefined ? {} : { extraSystem: params.extraSystemPrompt }),
    };
    const envelope = envelopeOf({ ...params, sessionKey, agent, options }, context);
    const { runId, finished } = await context.ports.dispatch.submit(envelope);
    context.caller.respondLater(finished.then((result) => agentResult(runId, result)));
    return { runId, status: 'accepted', acceptedAt: context.ports.clock.now() };
  },

  async 'agent.wait'({ runId, timeoutMs = WAIT_MS_DEFAULT }, { ports, caller }) {
    const result = await ports.dispatch.wait(runId, timeoutMs, caller.gone);
    if (!result) return { runId, status: 'timeout' };
    const endedAt = ports.clock.now();
    if (result.outcome === 'aborted') return { runId, status: 'error', error: 'aborted', stopReason: 'rpc', endedAt };
    if (result.outcome === 'failed')
      return { runId, status: 'error', error: result.error?.message ?? 'failed', endedAt, livenessState: 'blocked' };
    return { runId, status: 'ok', endedAt, livenessState: 'working' };
  },

  async 'sessions.send'(params, context) {
    const sessionKey = resolveSessionKey(params.key, context.ports.agents.defaultId());
    const agent = agentInKey(sessionKey, context, 'sessions.send');
    return await send(
      envelopeOf({ ...params, idempotencyKey: params.idempotencyKey ?? newId(), sessionKey, agent }, context),
      context,
    );
  },

  'sessions.abort'({ key, runId }, { ports }) {
    if (key === undefined) return { ok: true, abortedRunId: null, status: 'no-active-run' };
    const [aborted] = ports.dispatch.abort(resolveSessionKey(key, ports.agents.defaultId()), runId);
    return { ok: true, abortedRunId: aborted ?? null, status: aborted === undefined ? 'no-active-run' : 'aborted' };
  },
};

/**
 * What is stored and what is being said, without a gap between the two: a message that was stored while the transcript was read would
 * be in neither, so the transcript is read again when the run moved on meanwhile.
 */
async function historyOf(sessionKey: SessionKey, limit: number, { ports, feed }: MethodContext) {
  for (let attempt = 1; ; attempt++) {
    const before = feed.stored(sessionKey);
    const history = await ports.sessions.history(sessionKey, { limit });
    if (feed.stored(sessionKey) === before || attempt === HISTORY_ATTEMPTS_MAX)
      return { ...history, live: feed.ofSession(sessionKey) };
  }
}

async function send(envelope: Envelope, { ports }: MethodContext): Promise<unknown> {
  const { runId, status } = await ports.dispatch.submit(envelope);
  const wire = { started: 'started', steered: 'started', in_flight: 'in_flight', done: 'ok' } as const;
  return { runId, status: wire[status] };
}

type Sent = {
  readonly message: string;
  readonly idempotencyKey: string;
  readonly sessionKey: SessionKey;
  readonly agent: AgentId;
  readonly thinking?: string;
  readonly timeoutMs?: number;
  readonly attachments?: MethodParams<'chat.send'>['attachments'];
  readonly options?: RunOptions;
};

function envelopeOf(sent: Sent, { ports, caller }: MethodContext): Envelope {
  const images = (sent.attachments ?? []).map(imageOf);
  if (sent.message.trim() === '' && images.length === 0) throw new RefusedRequest('message or attachment required');
  if (sent.thinking !== undefined && !isThinkingLevel(sent.thinking))
    throw new RefusedRequest(`invalid thinking level "${sent.thinking}"`);
  return {
    idempotencyKey: sent.idempotencyKey,
    channel: caller.channel,
    surface: caller.surface,
    chatType: 'direct',
    // Whoever holds the shared secret is the operator.
    sender: { id: 'operator', owner: true },
    sessionKey: sent.sessionKey,
    agent: sent.agent,
    text: sent.message,
    images,
    receivedAt: ports.clock.now(),
    options: {
      ...sent.options,
      ...(sent.thinking === undefined ? {} : { thinking: sent.thinking }),
      ...(sent.timeoutMs === undefined || sent.timeoutMs === 0 ? {} : { timeoutMs: sent.timeoutMs }),
    },
  };
}

function imageOf({ mimeType, content }: NonNullable<Sent['attachments']>[number]): ImageBlock {
  const data = content.replace(/^data:[^,]*;base64,/, '');
  if (!IMAGE_TYPES.has(mimeType))
    throw new RefusedRequest(
      `attachments of type ${mimeType} are not supported in this version; send png, jpeg, gif or webp`,
    );
  if (data.length > IMAGE_BASE64_MAX || !/^[A-Za-z0-9+/]+=*$/.test(data))
    throw new RefusedRequest('an attachment is too large or not base64');
  return { type: 'image', data, mimeType };
}

function agentInKey(key: SessionKey, { ports }: MethodContext, method: string): AgentId {
  const agent = agentOf(key) ?? ports.agents.defaultId();
  if (ports.agents.list().some(({ id }) => id === agent)) return agent;
  throw new RefusedRequest(
    method === 'chat.send' ? `Agent "${agent}" no longer exists in configuration` : `unknown agent id "${agent}"`,
  );
}

/** Session and agent of an `agent` call: a key, a session id, or the agent's main session. */
function agentPlace(
  params: MethodParams<'agent'>,
  context: MethodContext,
): { readonly agent: AgentId; readonly sessionKey: SessionKey } {
  const { ports } = context;
  const named = params.agentId === undefined ? undefined : agentId(params.agentId);
  if (named !== undefined && !ports.agents.list().some(({ id }) => id === named)) {
    throw new RefusedRequest(`invalid agent params: unknown agent id "${named}"`);
  }
  const wanted = named ?? ports.agents.defaultId();
  const sessionKey =
    params.sessionKey !== undefined
      ? resolveSessionKey(params.sessionKey, wanted)
      : params.sessionId !== undefined
        ? agentSessionKey(wanted, `explicit:${params.sessionId}`)
        : mainSessionKey(wanted);
  const agent = agentInKey(sessionKey, context, 'agent');
  if (named !== undefined && agent !== named) {
    throw new RefusedRequest(`invalid agent params: agent "${named}" does not match session key agent "${agent}"`);
  }
  return { agent, sessionKey };
}

function agentResult(runId: string, result: RunResult): unknown {
  if (result.outcome === 'failed') {
    const message = result.error?.next
      ? `${result.error.message}. ${result.error.next}`
      : (result.error?.message ?? 'failed');
    throw new RefusedRequest(message, { runId, ...(result.error ? { code: result.error.code } : {}) }, 'UNAVAILABLE');
  }
  const { usage } = result;
  return {
    runId,
    status: 'ok',
    summary: result.outcome === 'aborted' ? 'aborted' : 'completed',
    result: {
      payloads: result.texts.map((text) => ({ text, mediaUrl: null })),
      meta: {
        aborted: result.outcome === 'aborted',
        turns: result.turns,
        text: answerText(result),
        agentMeta: { provider: result.provider, model: result.model, usage },
      },
    },
  };
}

/** The newest messages whose texts together stay within a bound; at least one. */
function withinCharacters(messages: readonly unknown[], max: number): readonly unknown[] {
  let room = max;
  const first = messages.findLastIndex((message, i) => {
    room -= isRecord(message) ? JSON.stringify(message['content'] ?? '').length : 0;
    return room < 0 && i < messages.length - 1;
  });
  return messages.slice(first + 1);
}
