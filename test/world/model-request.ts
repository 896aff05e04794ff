import type { WireFormat } from './model-reply.ts';

/** A request as it arrived, with what a script decides by in one form for all formats. */
export type SeenRequest = {
  /** Counts from 1. */
  readonly number: number;
  /** Milliseconds since the epoch, when the whole body was there. */
  readonly at: number;
  readonly format: WireFormat;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The exact text of the body. */
  readonly bodyText: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly model: string;
  readonly streamed: boolean;
  readonly system: string;
  readonly toolNames: readonly string[];
  readonly turns: readonly SeenTurn[];
  /** The text of the newest user turn that has any. */
  readonly userText: string;
  /** Results that stand at the end of the request: what the last calls returned. */
  readonly newResults: readonly SeenResult[];
};

export type SeenTurn = {
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly thinking: string;
  readonly images: number;
  readonly calls: readonly SeenCall[];
  readonly results: readonly SeenResult[];
};
export type SeenCall = { readonly id: string; readonly name: string; readonly argumentsText: string };
export type SeenResult = { readonly id: string; readonly text: string };

type Json = Readonly<Record<string, unknown>>;

/** Reads the parts that the three formats have in common; what is missing or odd reads as empty. */
export function readTurns(format: WireFormat, body: Json): readonly SeenTurn[] {
  if (format === 'openai-completions') return list(body['messages']).flatMap(chatTurn);
  if (format === 'anthropic-messages') return list(body['messages']).map(messagesTurn);
  return list(body['contents']).map(geminiTurn);
}

export function readSystem(format: WireFormat, body: Json): string {
  if (format === 'openai-completions')
    return list(body['messages'])
      .filter((m) => m['role'] === 'system' || m['role'] === 'developer')
      .map((m) => contentText(m['content']))
      .join('\n');
  if (format === 'anthropic-messages') return contentText(body['system']);
  return list(record(body['systemInstruction'])['parts'])
    .map((part) => text(part['text']))
    .join('\n');
}

export function readToolNames(format: WireFormat, body: Json): readonly string[] {
  const tools = list(body['tools']);
  if (format === 'openai-completions') return tools.map((tool) => text(record(tool['function'])['name']));
  if (format === 'anthropic-messages') return tools.map((tool) => text(tool['name']));
  return tools.flatMap((tool) => list(tool['functionDeclarations']).map((f) => text(f['name'])));
}

function chatTurn(message: Json): readonly SeenTurn[] {
  const said = contentText(message['content']);
  if (message['role'] === 'tool')
    return [{ ...EMPTY, role: 'user', results: [{ id: text(message['tool_call_id']), text: said }] }];
  if (message['role'] === 'assistant') {
    const calls = list(message['tool_calls']).map((call) => ({
      id: text(call['id']),
      name: text(record(call['function'])['name']),
      argumentsText: text(record(call['function'])['arguments']),
    }));
    return [{ ...EMPTY, role: 'assistant', text: said, thinking: text(message['reasoning_content']), calls }];
  }
  if (message['role'] !== 'user') return [];
  const images = list(message['content']).filter((part) => part['type'] === 'image_url').length;
  return [{ ...EMPTY, role: 'user', text: said, images }];
}

function messagesTurn(message: Json): SeenTurn {
  const blocks = list(message['content']);
  const of = (type: string) => blocks.filter((block) => block['type'] === type);
  return {
    role: message['role'] === 'assistant' ? 'assistant' : 'user',
    text: contentText(message['content']),
    thinking: of('thinking')
      .map((block) => text(block['thinking']))
      .join(''),
    images: of('image').length,
    calls: of('tool_use').map((block) => ({
      id: text(block['id']),
      name: text(block['name']),
      argumentsText: JSON.stringify(block['input']),
    })),
    results: of('tool_result').map((block) => ({
      id: text(block['tool_use_id']),
      text: contentText(block['content']),
    })),
  };
}

function geminiTurn(content: Json): SeenTurn {
  const parts = list(content['parts']);
  const of = (key: string) => parts.flatMap((part) => (key in part ? [record(part[key])] : []));
  const spoken = parts.filter((part) => 'text' in part);
  return {
    role: content['role'] === 'model' ? 'assistant' : 'user',
    text: spoken.map((part) => (part['thought'] === true ? '' : text(part['text']))).join(''),
    thinking: spoken.map((part) => (part['thought'] === true ? text(part['text']) : '')).join(''),
    images: of('inlineData').length,
    calls: of('functionCall').map((call) => ({
      id: text(call['id']),
      name: text(call['name']),
      argumentsText: JSON.stringify(call['args'] ?? {}),
    })),
    results: of('functionResponse').map((result) => {
      const response = record(result['response']);
      return { id: text(result['id']), text: text(response['content'] ?? response['error']) };
    }),
  };
}

/** Why a strict server refuses these turns, or undefined: the rules that every vendor has on calls and their results. */
export function sequenceFault(turns: readonly SeenTurn[]): string | undefined {
  const seen = new Set<string>();
  let open: readonly SeenCall[] = [];
  for (const turn of turns) {
    if (turn.results.length > 0) {
      for (const result of turn.results) {
        if (!open.some((call) => call.id === result.id)) return `result "${result.id}" has no call directly before it`;
        open = open.filter((call) => call.id !== result.id);
      }
      if (turn.text === '' && turn.images === 0) continue;
    }
    if (open.length > 0) return `call "${open[0]!.id}" has no result directly after it`;
    for (const call of turn.calls) {
      if (call.id === '') return 'a call has no id';
      if (seen.has(call.id)) return `the id "${call.id}" occurs twice`;
      seen.add(call.id);
      if (!isJsonObject(call.argumentsText)) return `the arguments of "${call.id}" are not a JSON object`;
    }
    open = turn.calls;
  }
  return open.length > 0 ? `call "${open[0]!.id}" has no result directly after it` : undefined;
}

function isJsonObject(source: string): boolean {
  try {
    const value: unknown = JSON.parse(source);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const EMPTY = { role: 'user' as const, text: '', thinking: '', images: 0, calls: [], results: [] };

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const record = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(record) : []);

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => text(part['text']))
    .join('');
}
