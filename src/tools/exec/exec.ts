import { Type } from 'typebox';
import type { Clock } from '#base';
import type { Tool, ToolContext, ToolResult } from '#contract';
import { textResult } from '#contract';
import { checkedOverrides, childEnvironment, openWorkspace } from '#host';
import type { KnownProcess, ProcessTable } from './process-table.ts';

export type ExecOptions = {
  readonly table: ProcessTable;
  readonly clock: Clock;
  /** Where the passed-on part of a child's environment comes from. */
  readonly env: Readonly<Record<string, string | undefined>>;
};

const YIELD_MS_DEFAULT = 10_000;
const YIELD_MS_MAX = 120_000;
const TIMEOUT_S_DEFAULT = 1_800;
const TIMEOUT_S_MAX = 24 * 60 * 60;
const PROGRESS_EVERY_MS = 250;
const KILL_AFTER_MS = 2_000;

export function execTool(options: ExecOptions): Tool {
  return {
    name: 'exec',
    label: 'Run a command',
    description:
      'Runs a shell command in the workspace and returns its output and exit code. A command that takes longer than yieldMs goes on in the background: look after it with the process tool. The gateway may ask a person first, or refuse.',
    parameters: Type.Object({
      command: Type.String({ minLength: 1, maxLength: 32_768, description: 'The command line.' }),
      workdir: Type.Optional(Type.String({ description: 'A folder of the workspace to run it in.' })),
      env: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Further environment variables.' })),
      yieldMs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: YIELD_MS_MAX,
          description: 'How long to wait for the end, in milliseconds; default 10000.',
        }),
      ),
      background: Type.Optional(Type.Boolean({ description: 'Do not wait at all.' })),
      timeout: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: TIMEOUT_S_MAX,
          description: 'When to end the command, in seconds; default 1800.',
        }),
      ),
      pty: Type.Optional(Type.Boolean({ description: 'Run it in a terminal. Not available in this version.' })),
      elevated: Type.Optional(Type.Boolean({ description: 'Run it with more rights. Not available in this version.' })),
      host: Type.Optional(Type.String({ description: 'Where: auto or gateway.' })),
      security: Type.Optional(
        Type.String({ description: 'Only deny has an effect: it makes the call a test of what would be refused.' }),
      ),
      ask: Type.Optional(Type.String({ description: 'Has no effect: the gateway decides whom to ask.' })),
      node: Type.Optional(Type.String({ description: 'Another machine. Not available in this version.' })),
    }),
    effect: 'writes',
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
  if (refusal) return denied(refusal);
  // Before anyone is asked: what would be refused anyway is not a question for a person.
  const env = checkedOverrides(args.env ?? {});
  const cwd = await (await openWorkspace(context.workspace)).folder(args.workdir ?? '.');
  const verdict = await context.ports.exec.authorise(
    {
      command: args.command,
      cwd,
      env,
      agent: context.agent,
      sessionKey: context.sessionKey,
      runId: context.runId,
      callId: context.callId,
      owner: context.owner,
    },
    context.signal,
  );
  if (!verdict.allowed) return denied(verdict.reason);
  context.signal.throwIfAborted();
  const show = throttled(options.clock, () => context.progress([{ type: 'text', text: known.running.output.text() }]));
  const known: KnownProcess = options.table.start({
    plan: verdict.plan,
    command: args.command,
    cwd,
    env: childEnvironment(options.env, env),
    sessionKey: context.sessionKey,
    onOutput: show.call,
  });
  limitTime(known, (args.timeout ?? TIMEOUT_S_DEFAULT) * 1000, options.clock);
  const yieldMs = args.background ? 0 : (args.yieldMs ?? YIELD_MS_DEFAULT);
  const outcome = await waitFor(known, yieldMs, context.signal, options.clock);
  show.stop();
  if (outcome === 'aborted') {
    known.running.kill('SIGTERM');
    options.clock.after(KILL_AFTER_MS, () => known.running.kill('SIGKILL'));
    await known.running.ended;
    options.table.remove(known);
    throw context.signal.reason;
  }
  if (outcome === 'running') return stillRunning(known);
  options.table.remove(known);
  return ended(known);
}

function unsupported(args: ExecArguments): string | undefined {
  if (args.security === 'deny') return 'The call itself asks for security "deny".';
  if (args.elevated) return 'There is no elevated mode in this version.';
  if (args.pty) return 'There is no terminal (pty) in this version. Run it without pty.';
  if (args.node !== undefined || args.host === 'node') return 'There are no other machines (nodes) in this version.';
  if (args.host === 'sandbox') return 'There is no sandbox in this version, and the call demands one.';
  if (args.host !== undefined && args.host !== 'auto' && args.host !== 'gateway')
    return `The host "${args.host}" is not known.`;
  return undefined;
}

const denied = (reason: string): ToolResult => ({
  ...textResult(`Not run: ${reason}`, { denied: reason }),
  outcome: 'denied',
});

function ended(known: KnownProcess): ToolResult {
  const { end, running } = known;
  const output = running.output.text();
  const how = end?.signal ? `ended by ${end.signal}` : `exit code ${end?.code ?? 'unknown'}`;
  const failed = end?.code !== 0;
  const text = failed
    ? `${output}${output === '' || output.endsWith('\n') ? '' : '\n'}(${how})`
    : output === ''
      ? '(no output)'
      : output;
  const details = {
    command: known.command,
    exitCode: end?.code ?? null,
    signal: end?.signal ?? null,
    characters: running.output.total,
  };
  return { ...textResult(text, details), outcome: failed ? 'failed' : 'ok' };
}

function stillRunning(known: KnownProcess): ToolResult {
  const output = known.running.output.text();
  known.shown = known.running.output.total;
  const note = `Still running as process ${known.id}. Use the process tool (poll, log, kill) with sessionId "${known.id}".`;
  return textResult(output === '' ? note : `${output}\n${note}`, {
    command: known.command,
    sessionId: known.id,
    running: true,
  });
}

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

/** Ends the command when its time is over, hard after a moment. */
function limitTime(known: KnownProcess, timeoutMs: number, clock: Clock): void {
  const cancel = clock.after(timeoutMs, () => {
    known.running.kill('SIGTERM');
    clock.after(KILL_AFTER_MS, () => known.running.kill('SIGKILL'));
  });
  void known.running.ended.then(cancel);
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
