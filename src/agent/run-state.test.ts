import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENTRY, type Message, NO_USAGE, type TranscriptEntry, textOf } from '#domain';
import { recoveryEntries, runStateOf } from './run-state.ts';

const place = (i: number) => ({ id: `e${i}`, parentId: null, timestamp: '2026-01-01T00:00:00.000Z' });

/** `u:run` a person's message of that run, `a:text+c1` an answer, `>c1` the start of a call, `=c1` its result. */
const branch = (script: string): TranscriptEntry[] =>
  script.split(' ').map((word, i): TranscriptEntry => {
    if (word[0] === '>')
      return { type: 'custom', customType: ENTRY.toolStart, data: { callId: word.slice(1) }, ...place(i) };
    return { type: 'message', message: message(word), ...place(i) };
  });

function message(word: string): Message {
  if (word[0] === 'u') return { role: 'user', content: 'hi', timestamp: 1, runId: word.slice(2) };
  if (word[0] === '=')
    return { role: 'toolResult', toolCallId: word.slice(1), toolName: 't', content: [], isError: false, timestamp: 1 };
  const [text = '', ...calls] = word.slice(2).split('+');
  const content = [
    ...(text ? [{ type: 'text' as const, text }] : []),
    ...calls.map((id) => ({ type: 'toolCall' as const, id, name: 't', arguments: {} })),
  ];
  return {
    role: 'assistant',
    content,
    api: 'x',
    provider: 'x',
    model: 'x',
    usage: NO_USAGE,
    stopReason: 'stop',
    timestamp: 1,
  };
}

const cases = [
  { name: 'nothing of it', script: 'u:other a:x', expect: 'not-started' },
  { name: 'only the question', script: 'u:r', expect: 'under-way 0' },
  { name: 'calls without results', script: 'u:r a:x+c1+c2 >c1', expect: 'under-way 1' },
  { name: 'results without an answer', script: 'u:r a:+c1 >c1 =c1', expect: 'under-way 1' },
  { name: 'answered', script: 'u:r a:x+c1 =c1 a:y', expect: 'ended x,y' },
  { name: 'answered, and another run since', script: 'u:r a:x u:s a:y+c1', expect: 'ended x' },
  { name: 'taken in by a run that answered both', script: 'u:q a:+c1 =c1 u:r a:both', expect: 'ended both' },
];
for (const { name, script, expect } of cases) {
  test(`M-16: run state: ${name}`, () => {
    const state = runStateOf(branch(script), 'r');
    const detail = state.at === 'ended' ? ` ${state.texts.join()}` : state.at === 'under-way' ? ` ${state.turns}` : '';
    assert.equal(state.at + detail, expect);
  });
}

test('M-16: recovery tells what is known of each open call and never more', () => {
  const entries = recoveryEntries(branch('u:r a:+c1+c2+c3 >c1 >c2 =c2'), 5);
  const told = entries.map((e) =>
    e.type === 'message' && e.message.role === 'toolResult'
      ? `${e.message.toolCallId} ${textOf(e.message).split(':')[0]}`
      : e.type,
  );
  assert.deepEqual(told, ['c1 Outcome unknown', 'c3 Not run', 'custom_message']);
});
