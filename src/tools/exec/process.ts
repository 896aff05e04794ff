import * as Type from 'typebox';
import type { Clock } from '#base';
import type { Tool, ToolContext, ToolResult } from '#contract';
import { textResult } from '#contract';
import { type FeedArguments, feed } from './feed.ts';
import { failedResult, hasFailed, stateOf, withNotes } from './outcome.ts';
import type { KnownProcess, ProcessTable } from './process-table.ts';

const ACTIONS = ['list', 'poll', 'log', 'write', 'send-keys', 'submit', 'paste', 'kill', 'clear', 'remove'] as const;
const INPUT_CHARACTERS_MAX = 100_000;
const POLL_MS_MAX = 60_000;
const LOG_LINES_DEFAULT = 200;
const LOG_LINES_MAX = 2_000;
const LISTED_COMMAND_CHARACTERS_MAX = 200;

type ProcessArguments = Omit<FeedArguments, 'action'> & {
  readonly action: (typeof ACTIONS)[number];
  readonly sessionId?: string;
  readonly offset?: number;
  readonly limit?: number;
  readonly timeout?: number;
};

type Options = { readonly table: ProcessTable; readonly clock: Clock };

const input = (description: string) => Type.Optional(Type.String({ maxLength: INPUT_CHARACTERS_MAX, description }));
const number = (description: string) => Type.Optional(Type.Number({ minimum: 0, description }));

/** Looks after commands that exec left running in this session. */
export function processTool(options: Options): Tool {
  return {
    name: 'process',
    label: 'Look after a running command',
    description:
      'Looks after commands that exec left running. list shows them; poll shows what is new, and with timeout waits for the end first; log shows lines; write, submit (adds a line end), paste and send-keys give input; kill ends one; clear forgets what has ended; remove ends and forgets one.',
    parameters: Type.Object({
      action: Type.Enum([...ACTIONS], { type: 'string', description: 'What to do.' }),
      sessionId: Type.Optional(
        Type.String({
          maxLength: 64,
          description: 'The process, as exec named it. Needed for all but list and clear.',
        }),
      ),
      data: input('write: the input.'),
      text: input('submit and paste: the input.'),
      literal: input('send-keys: text as it is, before the keys.'),
      keys: Type.Optional(
        Type.Array(Type.String({ maxLength: 32 }), {
          maxItems: 256,
          description: 'send-keys: names such as Enter, C-c, Up.',
        }),
      ),
      hex: Type.Optional(
        Type.Array(Type.String({ pattern: '^[0-9a-fA-F]{2}$' }), {
          maxItems: 4_096,
          description: 'send-keys: bytes, after the keys.',
        }),
      ),
      bracketed: Type.Optional(Type.Boolean({ description: 'paste: mark it as pasted.' })),
      eof: Type.Optional(Type.Boolean({ description: 'write: end the input afterwards.' })),
      offset: number('log: the first line, counted from 1; without it the last lines are shown.'),
      limit: number('log: how many lines; default 200.'),
      timeout: number('poll: how long to wait for the end, in milliseconds; at most 60000.'),
    }),
    effect: 'writes',
    execute: (args, context) => act(args as ProcessArguments, context, options),
  };
}

async function act(args: ProcessArguments, context: ToolContext, options: Options): Promise<ToolResult> {
  const { table, clock } = options;
  if (args.action === 'list') return list(table.list(context.sessionKey), clock.now());
  if (args.action === 'clear' && args.sessionId === undefined) return clear(table, table.list(context.sessionKey));
  if (args.sessionId === undefined)
    return failedResult(`${args.action} needs sessionId. Use action list to see the processes.`);
  const known = table.get(context.sessionKey, args.sessionId);
  switch (args.action) {
    case 'poll':
      return await poll(known, Math.min(args.timeout ?? 0, POLL_MS_MAX), context.signal, clock);
    case 'log':
      return log(known, args);
    case 'kill':
      return await kill(known, table);
    case 'clear':
      return known.end ? clear(table, [known]) : failedResult(`Process ${known.id} is running. Use kill or remove.`);
    case 'remove':
      await kill(known, table);
      table.remove(known);
      return textResult(`Forgot process ${known.id}.`, { sessionId: known.id });
    default:
      return feed(known, { ...args, action: args.action });
  }
}

function list(processes: readonly KnownProcess[], now: number): ToolResult {
  if (processes.length === 0) return textResult('No processes in this session.', { processes: [] });
  const rows = processes.map((known) => ({
    sessionId: known.id,
    state: stateOf(known),
    seconds: Math.round(((known.endedAt ?? now) - known.startedAt) / 1000),
    command: known.command.slice(0, LISTED_COMMAND_CHARACTERS_MAX),
  }));
  const lines = rows.map((row) => `${row.sessionId}  ${row.state}  ${row.seconds} s  ${row.command}`);
  return textResult(lines.join('\n'), { processes: rows });
}

async function poll(known: KnownProcess, timeoutMs: number, signal: AbortSignal, clock: Clock): Promise<ToolResult> {
  if (!known.end && timeoutMs > 0) {
    const isOver = new AbortController();
    const stopped = AbortSignal.any([signal, isOver.signal]);
    const time = clock.sleep(timeoutMs, stopped).catch(() => undefined);
    await Promise.race([known.running.ended, time]);
    isOver.abort();
    signal.throwIfAborted();
  }
  const { output } = known.running;
  const news = output.since(known.shown);
  known.shown = output.total;
  const text = withNotes(news === '' ? '(nothing new)' : news, [`(${stateOf(known)})`]);
  const details = { sessionId: known.id, running: !known.end, exitCode: known.end?.code ?? null };
  return { ...textResult(text, details), outcome: known.end && hasFailed(known) ? 'failed' : 'ok' };
}

function log(known: KnownProcess, { offset, limit = LOG_LINES_DEFAULT }: ProcessArguments): ToolResult {
  const lines = known.running.output.text().replace(/\n$/, '').split('\n');
  const count = Math.min(Math.max(1, Math.floor(limit)), LOG_LINES_MAX);
  const from = offset === undefined ? Math.max(1, lines.length - count + 1) : Math.max(1, Math.floor(offset));
  const shown = lines.slice(from - 1, from - 1 + count);
  const note =
    shown.length === 0
      ? `(there are ${lines.length} lines; ${stateOf(known)})`
      : `(lines ${from} to ${from + shown.length - 1} of ${lines.length}; ${stateOf(known)})`;
  return textResult(withNotes(shown.join('\n'), [note]), { sessionId: known.id, lines: lines.length });
}

async function kill(known: KnownProcess, table: ProcessTable): Promise<ToolResult> {
  if (known.end)
    return textResult(`Process ${known.id} had already ended (${stateOf(known)}).`, { sessionId: known.id });
  await table.end(known);
  return textResult(`Ended process ${known.id}.`, { sessionId: known.id });
}

function clear(table: ProcessTable, processes: readonly KnownProcess[]): ToolResult {
  const ended = processes.filter((known) => known.end);
  for (const known of ended) table.remove(known);
  const what = ended.length === 1 ? '1 ended process' : `${ended.length} ended processes`;
  return textResult(`Forgot ${what}.`, { count: ended.length });
}
