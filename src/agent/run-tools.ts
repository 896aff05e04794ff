import { isGatewayError, messageOf } from '#base';
import type { Tool, ToolContext, ToolResult } from '#contract';
import {
  ENTRY,
  type NewEntry,
  type RunEvent,
  type ToolCallBlock,
  type ToolCallFacts,
  type ToolOutcome,
  type TranscriptEntry,
  type UserContent,
} from '#domain';
import type { ArgumentChecker } from './argument-checker.ts';
import { boundResult, type ResultBound } from './tool-result-bound.ts';

export type ToolRun = {
  readonly turn: number;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly checker: ArgumentChecker;
  readonly bound: ResultBound;
  /** A context for one call, the same but for its id and progress. */
  contextFor(callId: string, progress: (content: readonly UserContent[]) => void): ToolContext;
  append(...entries: readonly NewEntry[]): readonly TranscriptEntry[];
  messageSeq(): number;
  emit(event: RunEvent): void;
  now(): number;
  readonly signal: AbortSignal;
};

/**
 * Runs the calls of one turn at the same time. Each result is on disk as soon as its tool has finished, so that a crash loses none; the
 * model gets them in call order (`pairToolCalls`). Never throws: what goes wrong becomes a result.
 */
export async function runTools(calls: readonly ToolCallBlock[], run: ToolRun): Promise<void> {
  await Promise.all(calls.map((call) => runTool(call, run)));
}

async function runTool(call: ToolCallBlock, run: ToolRun): Promise<void> {
  const facts: ToolCallFacts = { id: call.id, name: call.name, arguments: call.arguments };
  const startedAt = run.now();
  run.emit({ type: 'tool-start', turn: run.turn, call: facts, at: startedAt });
  const result = await outcomeOf(call, facts, run);
  // A gateway that is going down records nothing more: after the restart this call's outcome counts as unknown.
  if (isShutdown(run.signal)) return;
  const content = boundResult(result.content, run.bound);
  const outcome = result.outcome ?? 'ok';
  const at = run.now();
  const [entry] = run.append({
    type: 'message',
    message: {
      role: 'toolResult',
      toolCallId: call.id,
      toolName: call.name,
      content,
      ...(result.details === undefined ? {} : { details: result.details }),
      isError: outcome !== 'ok',
      ...(outcome === 'ok' ? {} : { outcome }),
      timestamp: at,
    },
  });
  const details = result.details === undefined ? {} : { details: result.details };
  run.emit({ type: 'tool-end', turn: run.turn, call: facts, outcome, content, ...details, startedAt, at });
  if (entry?.type === 'message')
    run.emit({ type: 'message', entryId: entry.id, message: entry.message, seq: run.messageSeq() });
}

type Outcome = Omit<ToolResult, 'outcome'> & { readonly outcome?: ToolOutcome };

async function outcomeOf(call: ToolCallBlock, facts: ToolCallFacts, run: ToolRun): Promise<Outcome> {
  const tool = run.tools.get(call.name);
  if (!tool) {
    const names = [...run.tools.keys()].join(', ') || 'none';
    return failed(`There is no tool "${call.name}". Available: ${names}.`);
  }
  const checked = run.checker.check(tool, call.arguments);
  if (!checked.ok) return failed(checked.message);
  const context = run.contextFor(call.id, (content) =>
    run.emit({ type: 'tool-delta', turn: run.turn, call: facts, content }),
  );
  const started = () =>
    run.append({
      type: 'custom',
      customType: ENTRY.toolStart,
      data: { runId: context.runId, callId: call.id, name: call.name },
    });
  if (tool.effect === 'writes') started();
  try {
    return await tool.execute(
      checked.args,
      tool.effect === 'writes-when-allowed' ? startedWhenAllowed(context, started) : context,
    );
  } catch (error) {
    if (run.signal.aborted) return { ...failed('Stopped before it finished.'), outcome: 'aborted' };
    return failed(
      isGatewayError(error) && error.next !== undefined ? `${error.message}. ${error.next}` : messageOf(error),
    );
  }
}

/** The same context, with the call's start recorded when the gate lets it through: a question that waits for a person is no start. */
function startedWhenAllowed(context: ToolContext, started: () => void): ToolContext {
  const { exec } = context.ports;
  const authorise: typeof exec.authorise = async (request, signal) => {
    const verdict = await exec.authorise(request, signal);
    if (verdict.allowed) started();
    return verdict;
  };
  return { ...context, ports: { ...context.ports, exec: { authorise } } };
}

const failed = (text: string): Outcome => ({ content: [{ type: 'text', text }], outcome: 'failed' });

/** The reason with which a gateway that goes down aborts its runs: they are not ended but go on after the restart. */
export const SHUTDOWN = Symbol('shutdown');

export const isShutdown = (signal: AbortSignal): boolean => signal.aborted && signal.reason === SHUTDOWN;
