import { open, stat } from 'node:fs/promises';
import { agentId, agentOf, MAIN_SESSION, resolveSessionKey } from '#domain';
import { sessionView } from '../session-view.ts';
import type { Methods } from './method.ts';

const LOG_BYTES_DEFAULT = 250_000;
const LOG_LINES_DEFAULT = 500;

type Names =
  | 'health'
  | 'status'
  | 'system-presence'
  | 'agents.list'
  | 'agent.identity.get'
  | 'models.list'
  | 'commands.list'
  | 'config.get'
  | 'logs.tail';

export const overviewMethods: Methods<Names> = {
  health: (_params, { view }) => view.health(),

  async status(_params, { ports }) {
    const { rows, total } = await ports.sessions.list({ limit: 10 });
    return {
      runtimeVersion: ports.version,
      load: ports.dispatch.load(),
      approvals: ports.approvals.list().length,
      channelSummary: [],
      queuedSystemEvents: [],
      sessions: {
        count: total,
        defaults: ports.agents.list()[0]?.model ?? null,
        recent: rows.map((row) => sessionView(row, ports)),
      },
    };
  },

  'system-presence': (_params, { view }) => view.presence(),

  'agents.list'(_params, { ports }) {
    const agents = ports.agents.list().map(({ id, name, workspace, model }) => ({
      id,
      name,
      workspace,
      model: { primary: `${model.provider}/${model.model}` },
    }));
    return { defaultId: ports.agents.defaultId(), mainKey: MAIN_SESSION, scope: 'per-sender', agents };
  },

  'agent.identity.get'({ agentId: named, sessionKey }, { ports }) {
    const key = sessionKey === undefined ? undefined : resolveSessionKey(sessionKey, ports.agents.defaultId());
    const id = named === undefined ? ((key && agentOf(key)) ?? ports.agents.defaultId()) : agentId(named);
    const name = ports.agents.list().find((agent) => agent.id === id)?.name ?? id;
    return { agentId: id, name, avatar: name.slice(0, 1).toUpperCase(), avatarStatus: 'none', avatarReason: 'missing' };
  },

  'models.list': (_params, { ports }) => ({ models: ports.models.list() }),

  'commands.list'(_params, { ports }) {
    const commands = ports.commands().map(({ name, description }) => ({
      name,
      nativeName: name,
      textAliases: [`/${name}`],
      description,
      category: 'session',
      source: 'native',
      scope: 'both',
      acceptsArgs: false,
    }));
    return { commands };
  },

  'config.get': (_params, { ports }) => ports.configView(),

  /** The end of the log, or what came after `cursor` (a byte offset). */
  async 'logs.tail'({ cursor, limit = LOG_LINES_DEFAULT, maxBytes = LOG_BYTES_DEFAULT }, { ports }) {
    const size = (await stat(ports.logFile).catch(() => undefined))?.size ?? 0;
    const reset = cursor !== undefined && cursor > size;
    const from = Math.max(cursor === undefined || reset ? 0 : cursor, size - maxBytes);
    if (size === 0) return { file: ports.logFile, cursor: 0, size, lines: [] };
    const file = await open(ports.logFile, 'r');
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
      const lines = buffer.subarray(0, bytesRead).toString('utf8').split('\n');
      // A read that starts inside a line begins with the rest of one.
      if (from > 0 && from !== cursor) lines.shift();
      const whole = lines.filter((line) => line !== '');
      return {
        file: ports.logFile,
        cursor: from + bytesRead,
        size,
        lines: whole.slice(-limit),
        truncated: whole.length > limit,
        reset,
      };
    } finally {
      await file.close();
    }
  },
};
