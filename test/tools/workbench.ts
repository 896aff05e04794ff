import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ArgumentChecker } from '#agent';
import { type Clock, systemClock } from '#base';
import type { ExecGate, ExecRequest, ExecVerdict, Tool, ToolContext, ToolResult } from '#contract';
import { agentId, mainSessionKey, resolveSessionKey, type SessionKey, type UserContent } from '#domain';
import { Processes } from '#host';
import { builtinTools } from '#tools';

export const CANARY = 'CANARY-7f3a';

export type Workbench = {
  /** The workspace, `…/agent`; beside it the outside, `…/agent-evil`, with the file `secret` that holds the canary. */
  readonly workspace: string;
  readonly outside: string;
  readonly processes: Processes;
  /** What was asked of the gate, in order. */
  readonly asked: ExecRequest[];
  /** What the tools showed so far, the newest last. */
  readonly shown: string[];
  readonly tools: ReadonlyMap<string, Tool>;
  /** Checks the arguments as the loop does, then runs the tool. @throws what the tool throws */
  call(name: string, args: Readonly<Record<string, unknown>>, as?: CallAs): Promise<ToolResult>;
  close(): Promise<void>;
};

export type CallAs = { readonly session?: string; readonly signal?: AbortSignal; readonly owner?: boolean };

/** The built-in tools over a real folder and real processes. The gate lets everything run by a shell unless `verdict` says otherwise. */
export async function workbench({
  clock = systemClock,
  verdict = ({ command }) => ({ allowed: true, plan: { kind: 'shell', command }, by: 'config' }),
}: {
  readonly clock?: Clock;
  readonly verdict?: (request: ExecRequest) => ExecVerdict | Promise<ExecVerdict>;
} = {}): Promise<Workbench> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'tools-')));
  const workspace = join(base, 'agent');
  const outside = join(base, 'agent-evil');
  mkdirSync(workspace);
  mkdirSync(outside);
  writeFileSync(join(outside, 'secret'), CANARY);
  const processes = new Processes({ clock });
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', SOME_PROVIDER_API_KEY: CANARY };
  const tools = new Map((await builtinTools({ processes, clock, env })).map((tool) => [tool.name, tool]));
  const checker = new ArgumentChecker();
  const asked: ExecRequest[] = [];
  const shown: string[] = [];
  const exec: ExecGate = {
    authorise: async (request) => {
      asked.push(request);
      return await verdict(request);
    },
  };
  const agent = agentId('main');
  const keyOf = (name: string | undefined): SessionKey =>
    name === undefined ? mainSessionKey(agent) : resolveSessionKey(name);
  let calls = 0;
  return {
    ...{ workspace, outside, processes, asked, shown, tools },
    async call(name, given, as = {}) {
      const tool = tools.get(name);
      if (!tool) throw new Error(`no tool ${name}`);
      const checked = checker.check(tool, given);
      if (!checked.ok) throw new InvalidArguments(checked.message);
      const context: ToolContext = {
        ...{ agent, sessionKey: keyOf(as.session), runId: 'run-1', callId: `call-${++calls}`, workspace },
        owner: as.owner ?? true,
        signal: as.signal ?? new AbortController().signal,
        progress: (content) => shown.push(textIn(content)),
        ports: { exec },
      };
      return await tool.execute(checked.args, context);
    },
    async close() {
      await processes.closeAll();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** The loop would not have run the call. */
export class InvalidArguments extends Error {}

export const textIn = (content: readonly UserContent[]): string =>
  content.reduce((text, block) => (block.type === 'text' ? text + block.text : text), '');

export const textOf = ({ content }: ToolResult): string => textIn(content);
