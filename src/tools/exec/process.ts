import { Type } from 'typebox';
import type { Clock } from '#base';
import type { Tool, ToolContext, ToolResult } from '#contract';
import { textResult } from '#contract';
import { keyBytes } from './keys.ts';
import type { KnownProcess, ProcessTable } from './process-table.ts';

const ACTIONS = ['list', 'poll', 'log', 'write', 'send-keys', 'submit', 'paste', 'kill', 'clear', 'remove'] as const;
const INPUT_CHARACTERS_MAX = 100_000;
const POLL_MS_MAX = 60_000;
const LOG_LINES_DEFAULT = 200;

type ProcessArguments = {
  readonly action: (typeof ACTIONS)[number];
  readonly sessionId?: string;
  readonly data?: string;
  readonly text?: string;
  readonly literal?: string;
  readonly keys?: readonly string[];
  readonly hex?: readonly string[];
  readonly bracketed?: boolean;
  readonly eof?: boolean;
  readonly offset?: number;
  readonly limit?: number;
  readonly timeout?: number;
};

const input = (description: string) => Type.Optional(Type.String({ maxLength: INPUT_CHARACTERS_MAX, description }));

/** Looks after commands that exec left running in this session. */
export function processTool(options: { readonly table: ProcessTable; readonly clock: Clock }): Tool {
  return {
    name: 'process',
    label: 'Look after a running command',
    description:
      'Lists, reads, feeds and ends commands that exec left running. poll shows what is new (timeout: milliseconds to wait for it), log shows lines, write, submit, paste and send-keys give input, kill ends, clear and remove forget.',
    parameters: Type.Object({
      action: Type.Enum([...ACTIONS], { description: 'What to do.' }),
      sessionId: Type.Optional(
        Type.String({ maxLength: 64, description: 'The process, as exec named it. Not for list.' }),
      ),
      data: input('write: the input.'),
      text: input('submit and paste: the input.'),
      literal: input('send-keys: text as it is.'),
      keys: Type.Optional(
        Type.Array(Type.String({ maxLength: 32 }), {
          maxItems: 256,
          description: 'send-keys: names such as Enter, C-c, Up.',
        }),
      ),
      hex: Type.Optional(
        Type.Array(Type.String({ pattern: '^[0-9a-fA-F]{2}$' }), { maxItems: 4_096, description: 'send-keys: bytes.' }),
      ),
      bracketed: Type.Optional(Type.Boolean({ description: 'paste: mark it as pasted.' })),
      eof: Type.Optional(Type.Boolean({ description: 'write: end the input afterwards.' })),
      offset: Type.Optional(Type.Integer({ minimum: 1, description: 'log: the first line.' })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_000, description: 'log: how many lines.' })),
      timeout: Type.Optional(
        Type.Integer({ minimum: 0, maximum: POLL_MS_MAX, description: 'poll: how long to wait, in milliseconds.' }),
      ),
    }),
    effect: 'writes',
    execute: (args, context) => act(args as ProcessArguments, context, options),
  };
}

type Options = { readonly table: ProcessTable; readonly clock: Clock };

async function act(args: ProcessArguments, context: ToolContext, options: Options): Promise<ToolResult> {
  if (args.action === 'list') return list(options.table.list(context.sessionKey), options.clock.now());
  if (args.action === 'clear') return clear(options.table, context);
  if (args.sessionId === undefined)
    return failed(`${args.action} needs sessionId. Use action list to see the processes.`);
  const known = options.table.get(context.sessionKey, args.sessionId);
  switch (args.action) {
    case 'poll':
      return await poll(known, args.timeout ?? 0, context.signal, options.clock);
    case 'log':
      return log(known, args);
    case 'kill':
      return await kill(known, options.clock);
    case 'remove':
      if (!known.end) await kill(known, options.clock);
      options.table.remove(known);
      return textResult(`Forgot process ${known.id}.`);
    default:
      return feed(known, args);
  }
}

function list(processes: readonly KnownProcess[], now: number): ToolResult {
  if (processes.length === 0) return textResult('No processes in this session.', { processes: [] });
  const rows = processes.map((known) => ({
    sessionId: known.id,
    state: stateOf(known),
    seconds: Math.round(((known.endedAt ?? now) - known.startedAt) / 1000),
    command: known.command.slice(0, 200),
  }));
  return textResult(rows.map((r) => `${r.sessionId}  ${r.state}  ${r.seconds} s  ${r.command}`).join('\n'), {
    processes: rows,
  });
}

async function poll(known: KnownProcess, timeoutMs: number, signal: AbortSignal, clock: Clock): Promise<ToolResult> {
  if (!known.end && known.running.output.total === known.shown && timeoutMs > 0) {
    const stop = new AbortController();
    await Promise.race([
      known.running.ended,
      clock.sleep(timeoutMs, AbortSignal.any([signal, stop.signal])).catch(() => undefined),
    ]);
    stop.abort();
    signal.throwIfAborted();
  }
  const { output } = known.running;
  const fresh = output.total - known.shown;
  known.shown = output.total;
  const text = output.text();
  const news = fresh === 0 ? '(nothing new)' : fresh >= text.length ? text : text.slice(-fresh);
  return textResult(`${news}\n(${stateOf(known)})`, {
    sessionId: known.id,
    running: !known.end,
    exitCode: known.end?.code ?? null,
  });
}

function log(known: KnownProcess, { offset, limit = LOG_LINES_DEFAULT }: ProcessArguments): ToolResult {
  const lines = known.running.output.text().split('\n');
  const from = offset ?? Math.max(1, lines.length - limit + 1);
  const shown = lines.slice(from - 1, from - 1 + limit);
  const note = `(lines ${from} to ${from + shown.length - 1} of ${lines.length}; ${stateOf(known)})`;
  return textResult(`${shown.join('\n')}\n${note}`, { sessionId: known.id, lines: lines.length });
}

async function kill(known: KnownProcess, clock: Clock): Promise<ToolResult> {
  if (known.end) return textResult(`Process ${known.id} had already ended (${stateOf(known)}).`);
  known.running.kill('SIGTERM');
  const cancel = clock.after(2_000, () => known.running.kill('SIGKILL'));
  await known.running.ended;
  cancel();
  return textResult(`Ended process ${known.id}.`, { sessionId: known.id });
}

function clear(table: ProcessTable, context: ToolContext): ToolResult {
  const ended = table.list(context.sessionKey).filter((known) => known.end);
  for (const known of ended) table.remove(known);
  return textResult(`Forgot ${ended.length} ended processes.`);
}

function feed(known: KnownProcess, args: ProcessArguments): ToolResult {
  const text = inputOf(args);
  if (typeof text !== 'string') return failed(text.fault);
  if (text !== '' && !known.running.write(text))
    return failed(`Process ${known.id} takes no input any more (${stateOf(known)}).`);
  if (args.eof) known.running.endInput();
  return textResult(`Gave ${text.length} characters to process ${known.id}${args.eof ? ' and ended its input' : ''}.`);
}

function inputOf(args: ProcessArguments): string | { readonly fault: string } {
  if (args.action === 'write') return args.data ?? args.text ?? '';
  if (args.action === 'submit') return `${args.text ?? args.data ?? ''}\n`;
  if (args.action === 'paste') {
    const text = args.text ?? args.data ?? '';
    return args.bracketed ? `\u001b[200~${text}\u001b[201~` : text;
  }
  const parts = [args.literal ?? ''];
  for (const name of args.keys ?? []) {
    const bytes = keyBytes(name);
    if (bytes === undefined)
      return {
        fault: `The key "${name}" is not known. Known: Enter, Tab, Escape, Space, Backspace, Up, Down, Left, Right, Home, End, C-<letter>.`,
      };
    parts.push(bytes);
  }
  for (const byte of args.hex ?? []) parts.push(String.fromCharCode(Number.parseInt(byte, 16)));
  return parts.join('');
}

function stateOf({ end }: KnownProcess): string {
  if (!end) return 'running';
  return end.signal ? `ended by ${end.signal}` : `ended with exit code ${end.code}`;
}

const failed = (text: string): ToolResult => ({ ...textResult(text), outcome: 'failed' });
