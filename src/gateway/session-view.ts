import { type SessionKey, sessionKind, THINKING_LEVELS } from '#domain';
import type { SessionRow } from '#sessions';
import type { GatewayPorts } from './ports.ts';

const LEVELS = THINKING_LEVELS.map((id) => ({ id, label: id }));

/** A session as the protocol's lists show it. */
export function sessionView(row: SessionRow, ports: GatewayPorts): Readonly<Record<string, unknown>> {
  const hasActiveRun = ports.dispatch.activeRun(row.key) !== undefined;
  const { model, provider, contextTokens } = modelOf(row, ports);
  const status = hasActiveRun
    ? 'running'
    : row.status === 'idle'
      ? undefined
      : row.status === 'running'
        ? 'done'
        : row.status;
  return {
    key: row.key,
    kind: sessionKind(row.key),
    ...(row.label === undefined ? {} : { label: row.label, displayName: row.label }),
    ...(row.chatType === undefined ? {} : { chatType: row.chatType }),
    ...(row.channel === undefined
      ? {}
      : { channel: row.channel, lastChannel: row.channel, origin: { provider: row.channel, surface: row.channel } }),
    updatedAt: row.updatedAt,
    sessionId: row.sessionId,
    systemSent: row.runEndedAt !== undefined,
    abortedLastRun: row.status === 'aborted',
    ...(row.thinkingLevel === undefined ? {} : { thinkingLevel: row.thinkingLevel }),
    thinkingLevels: LEVELS,
    thinkingOptions: THINKING_LEVELS,
    inputTokens: row.inputTokens,
    outputTokens: row.outputTokens,
    totalTokens: row.totalTokens,
    totalTokensFresh: row.totalTokens > 0,
    cacheRead: row.cacheRead,
    cacheWrite: row.cacheWrite,
    estimatedCostUsd: row.costUsd,
    ...(status === undefined ? {} : { status }),
    ...(row.runStartedAt === undefined ? {} : { startedAt: row.runStartedAt }),
    ...(row.runEndedAt === undefined || hasActiveRun ? {} : { endedAt: row.runEndedAt }),
    ...(row.runEndedAt === undefined || row.runStartedAt === undefined
      ? {}
      : { runtimeMs: Math.max(0, row.runEndedAt - row.runStartedAt) }),
    modelProvider: provider,
    model,
    contextTokens,
    hasActiveRun,
    ...(row.modelOverride === undefined ? {} : { modelOverride: row.modelOverride }),
  };
}

/** The model that the last run used, else the one the next would use. */
function modelOf(
  row: SessionRow,
  ports: GatewayPorts,
): { readonly provider: string; readonly model: string; readonly contextTokens: number } {
  const agents = ports.agents.list();
  const fallback = (agents.find((agent) => agent.id === row.agent) ?? agents[0])?.model;
  const provider = row.provider ?? fallback?.provider ?? '';
  const model = row.model ?? fallback?.model ?? '';
  const known = ports.models.list().find((m) => m.provider === provider && m.id === model);
  return { provider, model, contextTokens: row.contextTokens ?? known?.contextWindow ?? fallback?.contextTokens ?? 0 };
}

/** The first words of a session's first message, for a list. */
export async function derivedTitle(
  key: SessionKey,
  ports: GatewayPorts,
): Promise<{ readonly title?: string; readonly last?: string }> {
  const { messages } = await ports.sessions.history(key, { limit: 200 });
  const text = (message: (typeof messages)[number]['message']) =>
    typeof message.content === 'string'
      ? message.content
      : message.content.map((b) => (b.type === 'text' ? b.text : '')).join(' ');
  const short = (value: string | undefined) =>
    value
      ?.replace(/^\[.*?\] /, '')
      .replaceAll(/\s+/g, ' ')
      .trim()
      .slice(0, 80);
  const first = messages.find(({ message }) => message.role === 'user');
  const last = messages.findLast(({ message }) => message.role !== 'toolResult');
  return {
    ...(first ? { title: short(text(first.message)) } : {}),
    ...(last ? { last: short(text(last.message)) } : {}),
  } as {
    readonly title?: string;
    readonly last?: string;
  };
}
