import {
  argumentPieces,
  argumentsText,
  chunksOf,
  type Reply,
  type ScriptedError,
  type ScriptedUsage,
  type WireFormat,
} from './model-reply.ts';

/** The facts of a response that are not in the reply. */
export type ResponseFacts = { readonly id: string; readonly model: string; readonly usage: ScriptedUsage };

/** The server-sent events of a reply, one string each, with the blank line that ends it. */
export function eventsOf(format: WireFormat, reply: Reply, facts: ResponseFacts): readonly string[] {
  const events = [...ENCODERS[format](reply, facts)];
  return events.flatMap((event, i) => (reply.commentsBefore?.includes(i) ? [': keepalive\n\n', event] : [event]));
}

const ENCODERS: Readonly<Record<WireFormat, (reply: Reply, facts: ResponseFacts) => Iterable<string>>> = {
  'openai-completions': chatEvents,
  'anthropic-messages': messagesEvents,
  'google-generative-ai': geminiEvents,
};

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { readonly type: string }): string => `event: ${value.type}\n${data(value)}`;

function finishOf(reply: Reply, words: Readonly<Record<string, string>>): string | null {
  const finish = reply.finish === undefined ? (reply.toolCalls?.length ? 'toolUse' : 'stop') : reply.finish;
  return finish === null ? null : (words[finish] ?? finish);
}

const CHAT_FINISH = { stop: 'stop', toolUse: 'tool_calls', length: 'length', filtered: 'content_filter' };

function* chatEvents(reply: Reply, { id, model, usage }: ResponseFacts): Generator<string> {
  const base = { id, object: 'chat.completion.chunk', created: 1, model };
  const delta = (fields: object, finish: string | null = null) =>
    data({ ...base, choices: [{ index: 0, delta: fields, finish_reason: finish }] });
  yield delta({ role: 'assistant', content: '' });
  for (const text of chunksOf(reply.thinking)) yield delta({ reasoning_content: text });
  for (const text of chunksOf(reply.text)) yield delta({ content: text });
  for (const [index, call] of (reply.toolCalls ?? []).entries()) {
    const [first = '', ...later] = argumentPieces(call);
    // With pieces, the name comes first and alone, as the large vendors send it.
    const split = call.pieceLength !== undefined;
    const begin = {
      index,
      id: call.id ?? `call_${index + 1}`,
      type: 'function',
      function: { name: call.name, arguments: split ? '' : first },
    };
    yield delta({ tool_calls: [begin] });
    for (const piece of split ? [first, ...later] : later) {
      const rest =
        call.laterDeltas === 'empty-strings'
          ? { index, id: '', function: { name: '', arguments: piece } }
          : { index, function: { arguments: piece } };
      yield delta({ tool_calls: [rest] });
    }
  }
  const finish = finishOf(reply, CHAT_FINISH);
  if (finish !== null) yield delta({}, finish);
  yield data({ ...base, choices: [], usage: chatUsage(usage) });
  if (reply.done !== 'omit') yield 'data: [DONE]\n\n';
}

/** A chat completion that is not streamed. */
export function chatCompletion(reply: Reply, { id, model, usage }: ResponseFacts): object {
  const toolCalls = (reply.toolCalls ?? []).map((call, index) => ({
    id: call.id ?? `call_${index + 1}`,
    type: 'function',
    function: { name: call.name, arguments: argumentsText(call) },
  }));
  const thinking = chunksOf(reply.thinking).join('');
  const message = {
    role: 'assistant',
    content: chunksOf(reply.text).join(''),
    ...(thinking === '' ? {} : { reasoning_content: thinking }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
  const choices = [{ index: 0, message, finish_reason: finishOf(reply, CHAT_FINISH) }];
  return { id, object: 'chat.completion', created: 1, model, choices, usage: chatUsage(usage) };
}

const chatUsage = (usage: ScriptedUsage) => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.output,
  total_tokens: usage.prompt + usage.output,
  ...(usage.cacheRead === undefined ? {} : { prompt_tokens_details: { cached_tokens: usage.cacheRead } }),
  ...(usage.thinking === undefined ? {} : { completion_tokens_details: { reasoning_tokens: usage.thinking } }),
});

const MESSAGES_FINISH = { stop: 'end_turn', toolUse: 'tool_use', length: 'max_tokens', filtered: 'refusal' };

function* messagesEvents(reply: Reply, { id, model, usage }: ResponseFacts): Generator<string> {
  const cacheRead = usage.cacheRead ?? 0;
  const cacheWrite = usage.cacheWrite ?? 0;
  const counts = {
    input_tokens: usage.prompt - cacheRead - cacheWrite,
    cache_read_input_tokens: cacheRead,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: 1,
  };
  const message = { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage: counts };
  yield named({ type: 'message_start', message } as { type: string });
  yield named({ type: 'ping' });
  let index = 0;
  const block = function* (start: object, deltas: readonly object[]): Generator<string> {
    yield named({ type: 'content_block_start', index, content_block: start } as { type: string });
    for (const delta of deltas) yield named({ type: 'content_block_delta', index, delta } as { type: string });
    yield named({ type: 'content_block_stop', index } as { type: string });
    index++;
  };
  if (reply.thinking !== undefined) {
    const deltas = chunksOf(reply.thinking).map((thinking): object => ({ type: 'thinking_delta', thinking }));
    if (reply.thinkingSignature) deltas.push({ type: 'signature_delta', signature: reply.thinkingSignature });
    yield* block({ type: 'thinking', thinking: '', signature: '' }, deltas);
  }
  if (reply.text !== undefined) {
    const deltas = chunksOf(reply.text).map((text) => ({ type: 'text_delta', text }));
    yield* block({ type: 'text', text: '' }, deltas);
  }
  for (const [i, call] of (reply.toolCalls ?? []).entries()) {
    const deltas = argumentPieces(call).map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
    yield* block({ type: 'tool_use', id: call.id ?? `toolu_${i + 1}`, name: call.name, input: {} }, deltas);
  }
  const finish = finishOf(reply, MESSAGES_FINISH);
  if (finish === null) return;
  const delta = { stop_reason: finish, stop_sequence: null };
  yield named({ type: 'message_delta', delta, usage: { output_tokens: usage.output } } as { type: string });
  yield named({ type: 'message_stop' });
}

const GEMINI_FINISH = { stop: 'STOP', toolUse: 'STOP', length: 'MAX_TOKENS', filtered: 'SAFETY' };

function* geminiEvents(reply: Reply, { id, model, usage }: ResponseFacts): Generator<string> {
  const parts: object[] = [];
  const thoughts = chunksOf(reply.thinking);
  for (const [i, text] of thoughts.entries()) {
    const signed = i === thoughts.length - 1 && reply.thinkingSignature;
    parts.push({ text, thought: true, ...(signed ? { thoughtSignature: reply.thinkingSignature } : {}) });
  }
  for (const text of chunksOf(reply.text)) parts.push({ text });
  for (const call of reply.toolCalls ?? []) {
    const functionCall = {
      ...(call.id === undefined ? {} : { id: call.id }),
      name: call.name,
      args: call.arguments === '' ? undefined : call.arguments,
    };
    parts.push({ functionCall, ...(call.signature ? { thoughtSignature: call.signature } : {}) });
  }
  const usageMetadata = {
    promptTokenCount: usage.prompt,
    candidatesTokenCount: usage.output - (usage.thinking ?? 0),
    totalTokenCount: usage.prompt + usage.output,
    ...(usage.cacheRead === undefined ? {} : { cachedContentTokenCount: usage.cacheRead }),
    ...(usage.thinking === undefined ? {} : { thoughtsTokenCount: usage.thinking }),
  };
  const finish = finishOf(reply, GEMINI_FINISH);
  const chunk = (part: object | undefined, last: boolean) =>
    data({
      candidates: [
        {
          content: { role: 'model', parts: part === undefined ? [] : [part] },
          index: 0,
          ...(last && finish !== null ? { finishReason: finish } : {}),
        },
      ],
      responseId: id,
      modelVersion: model,
      usageMetadata,
    });
  // The finish reason comes in an event of its own: a body that is cut before it is cut, whatever arrived.
  for (const part of parts) yield chunk(part, false);
  yield chunk(undefined, true);
}

/** An error body as the vendor of this format writes it. */
export function errorBody(format: WireFormat, error: ScriptedError): object {
  const message = error.message ?? '';
  if (format === 'openai-completions')
    return { error: { message, type: error.type ?? 'invalid_request_error', param: null, code: error.code ?? null } };
  if (format === 'anthropic-messages')
    return { type: 'error', error: { type: error.type ?? error.code ?? anthropicType(error.status), message } };
  return { error: { code: error.status, message, status: error.code ?? error.type ?? googleStatus(error.status) } };
}

const anthropicType = (status: number): string =>
  ({
    401: 'authentication_error',
    402: 'billing_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    529: 'overloaded_error',
  })[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');

const googleStatus = (status: number): string =>
  ({
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    503: 'UNAVAILABLE',
  })[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT');
