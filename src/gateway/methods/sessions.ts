import { newId } from '#base';
import {
  agentId,
  agentOf,
  isThinkingLevel,
  mainSessionKey,
  resolveSessionKey,
  type SessionKey,
  textOf,
  withoutStamp,
} from '#domain';
import { derivedTitle, sessionView } from '../session-view.ts';
import { RefusedRequest } from '../wire-error.ts';
import type { MethodContext, Methods } from './method.ts';

const LIST_DEFAULT = 100;
const PREVIEW_DEFAULT = 10;
const PREVIEW_CHARACTERS = 400;
const RAW_MAX = 1_000;
/** Sessions of one list that get a title or preview made of their words. */
const WORDS_MAX = 100;

type Names =
  | 'sessions.list'
  | 'sessions.describe'
  | 'sessions.preview'
  | 'sessions.resolve'
  | 'sessions.get'
  | 'sessions.create'
  | 'sessions.patch'
  | 'sessions.reset'
  | 'sessions.delete'
  | 'sessions.subscribe'
  | 'sessions.unsubscribe'
  | 'sessions.messages.subscribe'
  | 'sessions.messages.unsubscribe';

export const sessionMethods: Methods<Names> = {
  async 'sessions.list'(params, context) {
    const { ports } = context;
    const limit = params.limit ?? LIST_DEFAULT;
    const { rows, total } = await ports.sessions.list({
      limit,
      ...(params.agentId === undefined ? {} : { agent: agentId(params.agentId) }),
      ...(params.label === undefined ? {} : { label: params.label }),
      ...(params.search === undefined ? {} : { search: params.search }),
      ...(params.activeMinutes === undefined ? {} : { activeSince: ports.clock.now() - params.activeMinutes * 60_000 }),
    });
    const sessions: Readonly<Record<string, unknown>>[] = [];
    for (const [index, row] of rows.entries()) {
      const view = sessionView(row, ports);
      const wantsWords = params.includeDerivedTitles || params.includeLastMessage;
      // Words are read from transcripts, one after the other: a list must not open a thousand files at once.
      const { title, last } = wantsWords && index < WORDS_MAX ? await derivedTitle(row.key, ports) : {};
      sessions.push({
        ...view,
        ...(params.includeDerivedTitles && title ? { derivedTitle: title } : {}),
        ...(params.includeLastMessage && last ? { lastMessagePreview: last } : {}),
      });
    }
    const defaultId = ports.agents.defaultId();
    const model = ports.agents.list().find(({ id }) => id === defaultId)?.model;
    return {
      ts: ports.clock.now(),
      path: '(multiple)',
      count: sessions.length,
      totalCount: total,
      limitApplied: limit,
      hasMore: total > sessions.length,
      defaults: {
        modelProvider: model?.provider ?? null,
        model: model?.model ?? null,
        contextTokens: model?.contextTokens ?? null,
      },
      sessions,
    };
  },

  async 'sessions.describe'({ key }, context) {
    return { session: sessionView(await existing(key, context), context.ports) };
  },

  async 'sessions.preview'({ keys, limit = PREVIEW_DEFAULT, maxChars = PREVIEW_CHARACTERS }, context) {
    const previews: { readonly key: string; readonly status: string; readonly items: readonly unknown[] }[] = [];
    for (const key of keys) {
      const { messages } = await context.ports.sessions.history(keyOf(key, context), { limit });
      const items = messages
        .map(({ message }) => ({ role: message.role, text: withoutStamp(textOf(message)).slice(0, maxChars) }))
        .filter(({ text }) => text !== '');
      previews.push({ key, status: messages.length > 0 ? 'ok' : 'empty', items });
    }
    return { ts: context.ports.clock.now(), previews };
  },

  async 'sessions.resolve'({ key, sessionId, label, agentId: agent }, context) {
    if (key !== undefined) {
      const row = await context.ports.sessions.get(keyOf(key, context));
      if (row) return { ok: true, key: row.key };
    }
    const { rows } = await context.ports.sessions.list({
      limit: 1_000,
      ...(label === undefined ? {} : { label }),
      ...(agent === undefined ? {} : { agent: agentId(agent) }),
    });
    const found = rows.find(
      (row) => (sessionId !== undefined && row.sessionId === sessionId) || (label !== undefined && row.label === label),
    );
    if (found) return { ok: true, key: found.key };
    throw new RefusedRequest(`No session found: ${key ?? sessionId ?? label ?? ''}`);
  },

  async 'sessions.get'({ key }, context) {
    const { messages } = await context.ports.sessions.history(keyOf(key, context), { limit: RAW_MAX });
    return { messages: messages.map(({ message }) => message) };
  },

  async 'sessions.create'({ key, agentId: agent, label, model }, context) {
    const { ports } = context;
    const chosen = agent === undefined ? ports.agents.defaultId() : agentId(agent);
    const sessionKey = resolveSessionKey(key ?? `dashboard:${newId()}`, chosen);
    const owner = agentOf(sessionKey) ?? chosen;
    if (!ports.agents.list().some(({ id }) => id === owner)) throw new RefusedRequest(`unknown agent id "${owner}"`);
    const created = await ports.sessions.create(sessionKey, {
      agent: owner,
      ...(label === undefined ? {} : { label }),
    });
    const row = model === undefined ? created : await ports.sessions.patch(sessionKey, { modelOverride: model });
    return { ok: true, key: row.key, sessionId: row.sessionId, entry: sessionView(row, ports), runStarted: false };
  },

  async 'sessions.patch'({ key, label, model, thinkingLevel, queueMode }, context) {
    if (typeof thinkingLevel === 'string' && !isThinkingLevel(thinkingLevel)) {
      throw new RefusedRequest('invalid thinkingLevel (use off|minimal|low|medium|high|xhigh)');
    }
    const sessionKey = keyOf(key, context);
    await context.ports.sessions.create(sessionKey, { agent: agentOf(sessionKey) ?? context.ports.agents.defaultId() });
    const row = await context.ports.sessions.patch(sessionKey, {
      ...(label === undefined ? {} : { label: label as string | null }),
      ...(model === undefined ? {} : { modelOverride: model as string | null }),
      ...(thinkingLevel === undefined ? {} : { thinkingLevel: thinkingLevel as 'off' | null }),
      ...(queueMode === undefined ? {} : { queueMode: queueMode as 'steer' | null }),
    });
    const view = sessionView(row, context.ports);
    return {
      ok: true,
      path: '(multiple)',
      key: row.key,
      entry: view,
      resolved: { modelProvider: view['modelProvider'], model: view['model'] },
    };
  },

  async 'sessions.reset'({ key }, context) {
    const { key: sessionKey } = await existing(key, context);
    context.ports.dispatch.abort(sessionKey);
    const row = await context.ports.sessions.reset(sessionKey);
    return { ok: true, key: row.key, entry: sessionView(row, context.ports) };
  },

  async 'sessions.delete'({ key }, context) {
    const sessionKey = keyOf(key, context);
    if (agentOf(sessionKey) !== undefined && sessionKey === mainSessionKey(agentOf(sessionKey)!)) {
      throw new RefusedRequest(`Cannot delete the main session (${sessionKey}).`);
    }
    context.ports.dispatch.abort(sessionKey);
    return { ok: true, key: sessionKey, deleted: await context.ports.sessions.delete(sessionKey), archived: [] };
  },

  'sessions.subscribe'(_params, { caller }) {
    caller.subscriptions.sessions = true;
    return { subscribed: true };
  },

  'sessions.unsubscribe'(_params, { caller }) {
    caller.subscriptions.sessions = false;
    return { subscribed: false };
  },

  'sessions.messages.subscribe'({ key }, context) {
    const sessionKey = keyOf(key, context);
    const { messages } = context.caller.subscriptions;
    if (messages.size >= SUBSCRIPTIONS_MAX)
      throw new RefusedRequest(`at most ${SUBSCRIPTIONS_MAX} sessions per connection`);
    messages.add(sessionKey);
    return { subscribed: true, key: sessionKey };
  },

  'sessions.messages.unsubscribe'({ key }, context) {
    const sessionKey = keyOf(key, context);
    context.caller.subscriptions.messages.delete(sessionKey);
    return { subscribed: false, key: sessionKey };
  },
};

const SUBSCRIPTIONS_MAX = 256;

const keyOf = (key: string, { ports }: MethodContext): SessionKey => resolveSessionKey(key, ports.agents.defaultId());

async function existing(key: string, context: MethodContext) {
  const row = await context.ports.sessions.get(keyOf(key, context));
  if (row) return row;
  throw new RefusedRequest(`No session found: ${key}`);
}
