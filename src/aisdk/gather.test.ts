import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { Gatherer } from './gather.ts';

type Part = LanguageModelV4StreamPart;
const text: readonly Part[] = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'so' },
  { type: 'text-end', id: 't' },
];
const call = (input: string, id = 'c'): readonly Part[] => [
  { type: 'tool-input-start', id, toolName: 'f' },
  ...(input === '' ? [] : [{ type: 'tool-input-delta' as const, id, delta: input }]),
  { type: 'tool-call', toolCallId: id, toolName: 'f', input },
];
const finish = (unified: LanguageModelV4FinishReason['unified'], raw: string | undefined): Part => ({
  type: 'finish',
  finishReason: { unified, raw },
  usage: {
    inputTokens: { total: 10, noCache: undefined, cacheRead: 4, cacheWrite: 1 },
    outputTokens: { total: 2, text: undefined, reasoning: undefined },
  },
});

function play(parts: readonly Part[]) {
  const gathered = new Gatherer(() => undefined);
  for (const part of parts) gathered.take(part);
  return gathered.end();
}
const outcome = (parts: readonly Part[]): string => {
  const end = play(parts);
  if (end.type === 'broken') return end.code;
  const cut = end.cutCalls === undefined ? '' : ` cut ${end.cutCalls}`;
  return `${end.stopReason} ${end.content.map((block) => block.type).join('+')}${cut}`;
};

const ends: readonly (readonly [string, readonly Part[], string])[] = [
  ['no finish at all', text, 'MODEL_STREAM_CUT'],
  ['a finish without reason', [...text, finish('other', undefined)], 'MODEL_STREAM_CUT'],
  ['the SDK says interrupted', [...text, finish('interrupted', undefined)], 'MODEL_STREAM_CUT'],
  ['a server that gave up', [...text, finish('other', 'abort')], 'MODEL_STREAM_CUT'],
  ['a vendor without resources', [...text, finish('other', 'insufficient_system_resource')], 'MODEL_OVERLOADED'],
  ['a malformed call', [finish('error', 'MALFORMED_FUNCTION_CALL')], 'MODEL_STREAM_CUT'],
  ['a reason that nobody knows', [...text, finish('other', 'eos')], 'stop text'],
  ['stop with text', [...text, finish('stop', 'stop')], 'stop text'],
  ['stop with a call', [...call('{}'), finish('stop', 'stop')], 'toolUse toolCall'],
  ['stop with half a call', [...text, ...call('{"a'), finish('tool-calls', 'tool_calls')], 'MODEL_STREAM_CUT'],
  ['stop with an array for arguments', [...call('[1]'), finish('stop', 'stop')], 'MODEL_STREAM_CUT'],
  ['stop with null for arguments', [...call('null'), finish('stop', 'stop')], 'toolUse toolCall'],
  ['stop with nothing', [finish('stop', 'stop')], 'stop '],
  ['length with half a call', [...text, ...call('{"a'), finish('length', 'length')], 'length text cut 1'],
  [
    'length with a whole and half a call',
    [...call('{}', 'a'), ...call('{"a', 'b'), finish('length', 'length')],
    'toolUse toolCall cut 1',
  ],
  ['length before the arguments', [...call(''), finish('length', 'length')], 'length  cut 1'],
  [
    'length after a call without arguments',
    [...call('', 'a'), ...call('{}', 'b'), finish('length', 'length')],
    'toolUse toolCall+toolCall',
  ],
  ['a filter with text', [...text, finish('content-filter', 'content_filter')], 'stop text'],
  ['a filter alone', [finish('content-filter', 'refusal')], 'MODEL_REFUSED'],
  ['a full window', [finish('length', 'model_context_window_exceeded')], 'MODEL_CONTEXT_OVERFLOW'],
  ['a full window after text', [...text, finish('other', 'model_context_window_exceeded')], 'length text'],
];
for (const [name, parts, expected] of ends) {
  test(`D-01: ${name} → ${expected}`, () => assert.equal(outcome(parts), expected));
}

test('M-14: tokens are counted once each', () => {
  const end = play([...text, finish('stop', 'stop')]);
  assert.ok(end.type === 'finish');
  assert.deepEqual(end.usage, { input: 5, output: 2, cacheRead: 4, cacheWrite: 1 });
});

test('M-15: ids that occur twice or are empty are made unique', () => {
  const end = play([...call('{}', 'x'), ...call('{}', 'x'), ...call('{}', ''), finish('stop', 'stop')]);
  assert.ok(end.type === 'finish');
  const ids = end.content.map((block) => (block.type === 'toolCall' ? block.id : ''));
  assert.deepEqual(ids.slice(0, 2), ['x', 'x_2']);
  assert.match(ids[2]!, /^call_/);
});
