// What the visitors of the kill test ask for and what the model makes of it. A task has steps; each step is one tool call that
// leaves exactly one trace per execution in the workspace, so that a repeated execution shows.
import type { Script, ScriptedCall, WireMessage } from './scripted-model.ts';
import { textOfWire } from './scripted-model.ts';

/** One line per execution of a step. */
export const TRACE_FILE = 'trace.txt';

/** Names of the steps by form: `one` call, `slow` one that takes its time, `both` at the same time, `chain` one after the other. */
const STEPS = { one: ['a'], slow: ['a'], both: ['a', 'b'], chain: ['a', 'b'], file: ['w'] } as const;
export type TaskForm = keyof typeof STEPS;
export const TASK_FORMS = Object.keys(STEPS) as readonly TaskForm[];

export const taskText = (number: number, form: TaskForm): string => `task ${number} ${form}`;
export const taskDone = (number: number): string => `done ${number}`;

/** What the model says before its calls; a run that went on after a restart may answer with it or without. */
const OPENING = 'Working on it.';

/** The answer's text without what was said on the way. */
export const finalPart = (answer: string): string => answer.split('\n\n').at(-1) ?? '';

/**
 * Asks for each step until it is settled, believing what the gateway says of a call: one that was *not run* is asked for again, one
 * whose outcome is unknown is left alone. So a gateway that says "not run" of a call that did run is caught by two traces.
 */
export const taskScript: Script = (messages) => {
  const start = messages.findLastIndex((message) => message.role === 'user' && taskIn(message) !== undefined);
  const task = messages[start] && taskIn(messages[start]);
  if (!task) return { text: 'Nothing to do.' };
  const settled = settledSteps(messages.slice(start + 1));
  const open = STEPS[task.form].map((step) => `${task.number}.${step}`).filter((step) => !settled.has(step));
  if (open.length === 0) return { text: taskDone(task.number) };
  const now = task.form === 'chain' ? open.slice(0, 1) : open;
  return { text: OPENING, calls: now.map((step) => callFor(step, task.form)) };
};

function taskIn(message: WireMessage): { readonly number: number; readonly form: TaskForm } | undefined {
  const found = [...textOfWire(message).matchAll(/\btask (\d+) ([a-z]+)\b/g)].at(-1);
  const form = TASK_FORMS.find((known) => known === found?.[2]);
  return found && form ? { number: Number(found[1]), form } : undefined;
}

function settledSteps(messages: readonly WireMessage[]): ReadonlySet<string> {
  const steps = new Map<string, string>();
  const settled = new Set<string>();
  for (const message of messages) {
    for (const call of message.tool_calls ?? []) {
      const step = stepIn(call.function.arguments);
      if (step !== undefined) steps.set(call.id, step);
    }
    if (message.role !== 'tool' || textOfWire(message).startsWith('Not run')) continue;
    const step = steps.get(message.tool_call_id ?? '');
    if (step !== undefined) settled.add(step);
  }
  return settled;
}

/** The step that a call's arguments carry out. */
export const stepIn = (args: string): string | undefined => /\b(\d+\.[abw])\b/.exec(args)?.[1];

function callFor(step: string, form: TaskForm): ScriptedCall {
  if (form === 'file') return { name: 'write', arguments: { path: `notes/${step}.txt`, content: step } };
  const trace = `echo ${step} >> ${TRACE_FILE}`;
  // A kill can fall before the trace, after it, and between the trace and the result.
  return { name: 'exec', arguments: { command: form === 'slow' ? `sleep 0.04; ${trace}; sleep 0.04` : trace } };
}
