import type { ModelRequest } from '#contract';
import type { ToolCallBlock } from '#domain';
import { type Done, type Exchange, resultText } from './exchange.ts';
import type { Intent, Understanding } from './understand.ts';

export const MEMORY_FILE = 'MEMORY.md';

/** What the guide does next: calls, or at the end an answer. */
export type Step =
  | { readonly type: 'calls'; readonly calls: readonly ToolCallBlock[] }
  | { readonly type: 'answer'; readonly missing: readonly Intent[] };

type Wanted = { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };

/** A pure function of the request: the calls that were made tell how far the exchange is. */
export function nextStep(request: ModelRequest, exchange: Exchange, { intents }: Understanding): Step {
  const tools = new Set(request.tools.map((tool) => tool.name));
  const isMissing = (intent: Intent): boolean => {
    const call = firstCall(intent);
    return call !== undefined && !tools.has(call.name);
  };
  const stages = stagesOf(intents.filter((intent) => !isMissing(intent)));
  const place = exchange.rounds.length;
  const calls = stages[place] ?? (place === stages.length ? memoryCalls(intents, exchange.rounds.flat(), tools) : []);
  if (calls.length === 0) return { type: 'answer', missing: intents.filter(isMissing) };
  return {
    type: 'calls',
    calls: calls.map((call, i) => ({ type: 'toolCall', id: idOf(request, exchange, i), ...call })),
  };
}

/** Calls that do not need each other go together; after a change of a file a new stage begins, so that its effect is seen. */
function stagesOf(intents: readonly Intent[]): readonly (readonly Wanted[])[] {
  const stages: Wanted[][] = [];
  let changes = false;
  for (const intent of intents) {
    const call = firstCall(intent);
    if (!call) continue;
    const isChange = intent.kind === 'write' || intent.kind === 'edit';
    const stage = stages.at(-1);
    if (!stage || changes || (isChange && stage.length > 0)) stages.push([call]);
    else if (!stage.some((other) => JSON.stringify(other) === JSON.stringify(call))) stage.push(call);
    changes = isChange;
  }
  return stages;
}

/** Unique within a session and the same whenever this step is asked for again. */
const idOf = (request: ModelRequest, exchange: Exchange, place: number): string =>
  ['guide', exchange.saidAt.toString(36), request.messages.length, exchange.rounds.length + 1, place + 1].join('_');

function firstCall(intent: Intent): Wanted | undefined {
  switch (intent.kind) {
    case 'read':
      return { name: 'read', arguments: { path: intent.path } };
    case 'list':
      return {
        name: 'exec',
        arguments: { command: intent.path === undefined ? 'ls' : `ls ${shellWord(intent.path)}` },
      };
    case 'write': {
      const content = intent.content.endsWith('\n') ? intent.content : `${intent.content}\n`;
      return { name: 'write', arguments: { path: intent.path, content } };
    }
    case 'edit':
      return {
        name: 'edit',
        arguments: { path: intent.path, edits: [{ oldText: intent.oldText, newText: intent.newText }] },
      };
    case 'run':
      return { name: 'exec', arguments: { command: intent.command } };
    case 'remember':
    case 'recall':
      return { name: 'read', arguments: { path: MEMORY_FILE } };
    case 'time':
      return { name: 'exec', arguments: { command: 'date' } };
    case 'help':
      return undefined;
  }
}

function shellWord(path: string): string {
  const word = path.startsWith('-') ? `./${path}` : path;
  return /^[A-Za-z0-9_./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** To remember is to read what is there and then to add to it. */
function memoryCalls(intents: readonly Intent[], done: readonly Done[], tools: ReadonlySet<string>): readonly Wanted[] {
  const facts = factsIn(intents);
  const memory = memoryIn(done);
  if (facts.length === 0 || memory === undefined) return [];
  const fresh = facts.filter((fact) => !memory.text.split('\n').includes(`- ${fact}`));
  if (fresh.length === 0) return [];
  const added = fresh.map((fact) => `- ${fact}`).join('\n');
  if (memory.text.trim() === '')
    return tools.has('write')
      ? [{ name: 'write', arguments: { path: MEMORY_FILE, content: `# Memory\n\n${added}\n` } }]
      : [];
  // An edit and not a new file: what was read may be only the beginning of what is there.
  const anchor = anchorOf(memory.text);
  const edits = [{ oldText: anchor, newText: `${anchor}\n${added}` }];
  return tools.has('edit') ? [{ name: 'edit', arguments: { path: MEMORY_FILE, edits } }] : [];
}

/** The last lines, as many as it takes to be found only once. */
function anchorOf(text: string): string {
  const lines = text.split('\n');
  for (let from = lines.length - 1; from > 0; from--) {
    const anchor = lines.slice(from).join('\n');
    if (anchor.trim() !== '' && text.indexOf(anchor) === text.lastIndexOf(anchor)) return anchor;
  }
  return text;
}

/** One line each, since a line is an entry. */
export const factsIn = (intents: readonly Intent[]): readonly string[] =>
  intents.flatMap((intent) => (intent.kind === 'remember' ? [intent.fact.replace(/\s+/gu, ' ').trim()] : []));

const NOT_THERE = /does not exist|no such file|not found|ENOENT/i;

/** What MEMORY.md holds, nothing when there is none yet; undefined when it could not be read. */
export function memoryIn(done: readonly Done[]): { readonly text: string } | undefined {
  const read = done.find(({ call }) => call.name === 'read' && call.arguments['path'] === MEMORY_FILE);
  if (!read) return undefined;
  const text = resultText(read.result);
  if (read.result.isError) return NOT_THERE.test(text) ? { text: '' } : undefined;
  return { text: text === '(The file is empty.)' ? '' : text };
}
