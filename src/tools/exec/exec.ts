import * as Type from 'typebox';
import type { Clock } from '#base';
import type { Tool, ToolContext, ToolResult } from '#contract';
import { textResult } from '#contract';
import { checkedOverrides, childEnvironment, openWorkspace } from '#host';
import { endedResult, runningResult } from './outcome.ts';
import type { KnownProcess, ProcessTable } from './process-table.ts';

export type ExecOptions = {
  readonly table: ProcessTable;
  readonly clock: Clock;
  /** Where the passed-on part of a child's environment comes from. */
  readonly env: Readonly<Record<string, string | undefined>>;
};

const COMMAND_CHARACTERS_MAX = 32_768;
const YIELD_MS_DEFAULT = 10_000;
const YIELD_MS_MAX = 120_000;
const TIMEOUT_S_DEFAULT = 1_800;
const TIMEOUT_S_MAX = 24 * 60 * 60;
const PROGRESS_EVERY_MS = 250;
const PROGRESS_CHARACTERS_MAX = 8_000;

export function execTool(options: ExecOptions): Tool {
  return {
    name: 'exec',
    label: 'Run a command',
    description:
      'Runs a shell command in the workspace and returns its output and exit code. It has no input to read. A command that takes longer than yieldMs goes on in the background: look after it with the process tool. For a server, or for a command that is to be given input, set background: true. The gateway may ask a person first, or refuse.',
    parameters: Type.Object({
      command: Type.String({ minLength: 1, maxLength: COMMAND_CHARACTERS_MAX, description: 'The command line.' }),
      workdir: Type.Optional(Type.String({ description: 'A folder of the workspace to run it in.' })),
      env: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Further environment variables.' })),
      yieldMs: Type.Optional(
        Type.Number({ minimum: 0, description: 'How long to wait for the end, in milliseconds; default 10000.' }),
      ),
      background: Type.Optional(
        Type.Boolean({ description: 'Do not wait, and keep its input open for the process tool.' }),
      ),
      timeout: Type.Optional(
        Type.Number({
          minimum: 0,
          description: 'When to end the command, in seconds; default 1800, 0 for the longest.',
        }),
      ),
      pty: Type.Optional(Type.Boolean({ description: 'Run it in a terminal. Not available in this version.' })),
      elevated: Type.Optional(Type.Boolean({ description: 'Run it with more rights. Not available in this version.' })),
      host: Type.Optional(Type.String({ description: 'Where: auto or gateway.' })),
      security: Type.Optional(Type.String({ description: 'Can only make the call stricter: deny runs nothing.' })),
      ask: Type.Optional(Type.String({ description: 'Has no effect: the gateway decides whom to ask.' })),
      node: Type.Optional(Type.String({ description: 'Another machine. Not available in this version.' })),
    }),
    effect: 'writes-when-allowed',
    execute: (args, context) => execute(args as ExecArguments, context, options),
  };
}

type ExecArguments = {
  readonly command: string;
  readonly workdir?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly yieldMs?: number;
  readonly background?: boolean;
  readonly timeout?: number;
  readonly pty?: boolean;
  readonly elevated?: boolean;
  readonly host?: string;
  readonly security?: string;
  readonly node?: string;
};

async function execute(args: ExecArguments, context: ToolContext, options: ExecOptions): Promise<ToolResult> {
  const refusal = unsupported(args);
  if (refusal !== undefined) return denied(refusal);
  // Before anyone is asked: what would be refused anyway is not a question for a person.
  const env = checkedOverrides(args.env ?? {});
  const cwd = await (await openWorkspace(context.workspace)).folder(args.workdir ?? '.');
  const { command } = args;
  const { agent, sessionKey, runId, callId, owner, signal } = context;
  const verdict = await context.ports.exec.authorise(
    { command, cwd, env, agent, sessionKey, runId, callId, owner },
    signal,
  );
  if (!verdict.allowed) return denied(verdict.reason);
  signal.throwIfAborted();
  const show = throttled(options.clock, () =>
    context.progress([{ type: 'text', text: known.running.output.latest(PROGRESS_CHARACTERS_MAX) }]),
  );
  const known: KnownProcess = options.table.start({
    plan: verdict.plan,
    command,
    cwd,
    env: childEnvironment(options.env, env),
    input: args.background ? 'open' : 'none',
    timeoutS: Math.min(args.timeout || (args.timeout === 0 ? TIMEOUT_S_MAX : TIMEOUT_S_DEFAULT), TIMEOUT_S_MAX),
    sessionKey,
    onOutput: show.call,
  });
  const yieldMs = args.background ? 0 : Math.min(args.yieldMs ?? YIELD_MS_DEFAULT, YIELD_MS_MAX);
  const outcome = await waitFor(known, yieldMs, signal, options.clock);
  show.stop();
  if (outcome === 'running') return runningResult(known);
  if (outcome === 'aborted') await options.table.end(known);
  options.table.remove(known);
  signal.throwIfAborted();
  return endedResult(known);
}

/** Why this version cannot do what the call asks for, or undefined. Never done in another way than asked: that could be a wider one. */
function unsupported(args: ExecArguments): string | undefined {
  if (args.security === 'deny') return 'the call itself asks for security "deny".';
  if (args.elevated) return 'there is no elevated mode in this version.';
  if (args.pty) return 'there is no terminal (pty) in this version. Run it without pty.';
  if (args.node !== undefined || args.host === 'node') return 'there are no other machines (nodes) in this version.';
  if (args.host === 'sandbox') return 'there is no sandbox in this version, and the call demands one.';
  if (args.host !== undefined && args.host !== 'auto' && args.host !== 'gateway')
    return `the host "${args.host.slice(0, 40)}" is not known. Known: auto, gateway.`;
  return undefined;
}

const denied = (reason: string): ToolResult => ({
  ...textResult(`Not run: ${reason}`, { denied: reason }),
  outcome: 'denied',
});

function waitFor(
  known: KnownProcess,
  yieldMs: number,
  signal: AbortSignal,
  clock: Clock,
): Promise<'ended' | 'running' | 'aborted'> {
  return new Promise((resolve) => {
    const settle = (outcome: 'ended' | 'running' | 'aborted') => {
      cancel();
      signal.removeEventListener('abort', stop);
      resolve(outcome);
    };
    const stop = () => settle('aborted');
    const cancel = clock.after(yieldMs, () => settle(known.end ? 'ended' : 'running'));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    void known.running.ended.then(() => settle('ended'));
  });
}

/** Calls `action` at most once in a while, and once more for what came meanwhile. */
function throttled(clock: Clock, action: () => void): { readonly call: () => void; readonly stop: () => void } {
  let cancel: (() => void) | undefined;
  let stopped = false;
  return {
    call: () => {
      if (stopped) return;
      cancel ??= clock.after(PROGRESS_EVERY_MS, () => {
        cancel = undefined;
        if (!stopped) action();
      });
    },
    stop: () => {
      stopped = true;
      cancel?.();
    },
  };
}
