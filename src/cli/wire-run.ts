import { isRecord } from '#base';
import type { AgentEvent } from '#client';
import type { ToolOutcome, UserContent } from '#domain';
import type { RunView } from './run-view.ts';

/** Tells a view of a run that happens in the gateway, from the `agent` events of that run. */
export function wireRunListener(view: RunView): (event: AgentEvent) => void {
  let turn = 0;
  let toolSince = false;
  let thought = '';
  return ({ stream, data }) => {
    if (stream === 'assistant') {
      // The text starts over after a tool call; without one in between it is the same message, or its second try.
      if (toolSince) turn++;
      toolSince = false;
      if (typeof data['text'] === 'string') view.answer(turn, data['text']);
    } else if (stream === 'thinking') {
      const text = typeof data['text'] === 'string' ? data['text'] : thought + String(data['delta'] ?? '');
      view.thinking(text.startsWith(thought) ? text.slice(thought.length) : text);
      thought = text;
    } else if (stream === 'tool') {
      toolSince = true;
      thought = '';
      const name = String(data['name'] ?? 'tool');
      if (data['phase'] === 'start') view.toolStart(name, data['args']);
      if (data['phase'] === 'result') view.toolEnd(name, outcomeOf(data), contentOf(data['result']));
    }
  };
}

const OUTCOMES: readonly unknown[] = ['ok', 'failed', 'denied', 'aborted'] satisfies ToolOutcome[];

function outcomeOf(data: Readonly<Record<string, unknown>>): ToolOutcome {
  if (OUTCOMES.includes(data['outcome'])) return data['outcome'] as ToolOutcome;
  return data['isError'] === true ? 'failed' : 'ok';
}

function contentOf(result: unknown): readonly UserContent[] {
  const content = isRecord(result) ? result['content'] : result;
  return Array.isArray(content)
    ? content.filter(
        (block): block is UserContent =>
          isRecord(block) && block['type'] === 'text' && typeof block['text'] === 'string',
      )
    : [];
}
