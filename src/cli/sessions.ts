import { GatewayError, nearestName, printable, printableLine } from '#base';
import type { HistoryMessage, SessionSummary } from '#client';
import { type SessionKey, textOf, toolCallsOf, withoutStamp } from '#domain';
import { durationText } from './duration.ts';
import { EXIT } from './fault.ts';
import { connectGateway, type GatewayLink, sessionKeyFor } from './gateway-link.ts';
import type { CommandContext } from './program.ts';
import { type Column, tableLines } from './table.ts';
import { safeText } from './terminal.ts';

type Json = { readonly json?: boolean };
type Limited = Json & { readonly limit: number };

const COLUMNS: readonly Column[] = [
  { title: 'SESSION', shrinks: 'yes' },
  { title: 'TITLE', shrinks: 'yes' },
  { title: 'MODEL', shrinks: 'yes' },
  { title: 'STATE' },
  { title: 'TOKENS', align: 'right' },
  { title: 'ACTIVE', align: 'right' },
];

export async function listSessions(context: CommandContext, { limit, json }: Limited): Promise<number> {
  using link = await connectGateway(context);
  const { terminal } = context;
  const list = await link.client.request('sessions.list', { limit, includeDerivedTitles: true });
  if (json) {
    terminal.json({ ok: true, sessions: list.sessions, totalCount: list.totalCount, hasMore: list.hasMore });
    return EXIT.done;
  }
  if (list.sessions.length === 0) {
    terminal.line('No sessions yet. Start one with: reins chat');
    return EXIT.done;
  }
  const now = Date.now();
  for (const line of tableLines(
    COLUMNS,
    list.sessions.map((row) => cellsOf(row, now)),
    terminal.width,
  ))
    terminal.line(line);
  if (list.hasMore) terminal.note(`${list.sessions.length} of ${list.totalCount}; --limit shows more`);
  return EXIT.done;
}

function cellsOf(row: SessionSummary, now: number): readonly string[] {
  return [
    row.key,
    row.label ?? row.derivedTitle ?? row.displayName ?? '',
    row.model === undefined ? '' : `${row.modelProvider === undefined ? '' : `${row.modelProvider}/`}${row.model}`,
    row.hasActiveRun ? 'running' : (row.status ?? ''),
    row.totalTokens === undefined ? '' : String(row.totalTokens),
    row.updatedAt === null ? '' : `${durationText(now - row.updatedAt)} ago`,
  ];
}

export async function showSession(context: CommandContext, given: string, { limit, json }: Limited): Promise<number> {
  using link = await connectGateway(context);
  const { terminal } = context;
  const row = await existing(link, sessionKeyFor(link, { session: given }));
  const history = await link.client.request('chat.history', { sessionKey: row.key, limit });
  if (json) {
    terminal.json({ ok: true, session: row, messages: history.messages });
    return EXIT.done;
  }
  const facts: [string, string | undefined][] = [
    ['Session', row.key],
    ['Label', row.label],
    ['Transcript', row.sessionId],
    ['Model', row.model && `${row.modelProvider ?? ''}/${row.model}`],
    ['State', row.hasActiveRun ? 'running' : row.status],
    [
      'Tokens',
      row.totalTokens === undefined ? undefined : `${row.totalTokens} of ${row.contextTokens ?? 'an unknown window'}`,
    ],
    ['Cost', row.estimatedCostUsd === undefined ? undefined : `$${row.estimatedCostUsd.toFixed(4)} (last run)`],
  ];
  for (const [name, value] of facts) {
    if (value) terminal.line(`${terminal.paint('bold', name.padEnd(11))} ${printableLine(value)}`);
  }
  for (const message of history.messages) showMessage(context, message);
  return EXIT.done;
}

function showMessage({ terminal }: CommandContext, message: HistoryMessage): void {
  const text = safeText(withoutStamp(textOf(message))).trim();
  if (message.role === 'toolResult') {
    terminal.line(terminal.paint('dim', `  ${message.isError ? '✗' : '✓'} ${printable(message.toolName)}`));
    return;
  }
  terminal.line();
  terminal.line(terminal.paint('bold', message.role === 'user' ? 'You' : 'Agent'));
  if (text !== '') terminal.line(text);
  if (message.role === 'assistant') {
    for (const call of toolCallsOf(message)) terminal.line(terminal.paint('dim', `  · ${printable(call.name)}`));
    if (message.errorMessage) terminal.line(terminal.paint('yellow', `✗ ${printableLine(message.errorMessage)}`));
  }
}

export async function resetSession(context: CommandContext, given: string, { json }: Json): Promise<number> {
  using link = await connectGateway(context);
  const row = await existing(link, sessionKeyFor(link, { session: given }));
  await link.client.request('sessions.reset', { key: row.key });
  if (json) context.terminal.json({ ok: true, key: row.key });
  else context.terminal.line(`✓ ${row.key} starts over; the old transcript stays on disk`);
  return EXIT.done;
}

export async function deleteSession(context: CommandContext, given: string, { json }: Json): Promise<number> {
  using link = await connectGateway(context);
  const row = await existing(link, sessionKeyFor(link, { session: given }));
  await link.client.request('sessions.delete', { key: row.key });
  if (json) context.terminal.json({ ok: true, key: row.key });
  else context.terminal.line(`✓ ${row.key} is deleted`);
  return EXIT.done;
}

const SEARCHED_MAX = 1_000;

/** @throws {GatewayError} `SESSION_KEY_INVALID` when there is no such session, with the nearest name. */
async function existing(link: GatewayLink, key: SessionKey): Promise<SessionSummary> {
  const { sessions } = await link.client.request('sessions.list', { limit: SEARCHED_MAX });
  const row = sessions.find((one) => one.key === key);
  if (row) return row;
  const near = nearestName(
    key,
    sessions.map((one) => one.key),
  );
  throw new GatewayError('SESSION_KEY_INVALID', `There is no session ${key}`, {
    next: near === undefined ? 'list them with: reins sessions' : `did you mean ${near}?`,
  });
}
