import type { ToolResult } from '#contract';
import { textResult } from '#contract';
import type { KnownProcess } from './process-table.ts';

/** How a process stands, in words for a model and for people. */
export function stateOf({ end, timedOutAfterS }: KnownProcess): string {
  if (timedOutAfterS !== undefined) return `ended by its time limit of ${timedOutAfterS} s`;
  if (!end) return 'running';
  return end.signal ? `ended by ${end.signal}` : `ended with exit code ${end.code}`;
}

export const hasFailed = ({ end, timedOutAfterS }: KnownProcess): boolean =>
  timedOutAfterS !== undefined || end?.code !== 0;

/** What a finished command gives back: its output, and how it ended where that is not simply well. */
export function endedResult(known: KnownProcess): ToolResult {
  const output = known.running.output.text();
  const notes = [
    ...(hasFailed(known) ? [`(${stateOf(known)})`] : []),
    ...(known.end?.leftovers
      ? ['(It left processes behind; they were ended. Give such a command background: true instead of "&".)']
      : []),
  ];
  const details = {
    command: known.command,
    exitCode: known.end?.code ?? null,
    signal: known.end?.signal ?? null,
    timedOut: known.timedOutAfterS !== undefined,
    characters: known.running.output.total,
  };
  const text = withNotes(output, notes) || '(no output)';
  return { ...textResult(text, details), outcome: hasFailed(known) ? 'failed' : 'ok' };
}

/** What a command gives back that goes on without being waited for. */
export function runningResult(known: KnownProcess): ToolResult {
  known.shown = known.running.output.total;
  const note = `Still running as process ${known.id}. Use the process tool (poll, log, kill) with sessionId "${known.id}".`;
  return textResult(withNotes(known.running.output.text(), [note]), {
    command: known.command,
    sessionId: known.id,
    running: true,
  });
}

/** Notes on lines of their own after the output. */
export function withNotes(output: string, notes: readonly string[]): string {
  if (notes.length === 0) return output;
  return `${output}${output === '' || output.endsWith('\n') ? '' : '\n'}${notes.join('\n')}`;
}

export const failedResult = (text: string): ToolResult => ({ ...textResult(text), outcome: 'failed' });
