import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Message, NO_USAGE, type TranscriptEntry, toolCallsOf } from '#domain';
import { ContextMemory, deriveContext, pairToolCalls } from './derive-context.ts';

const WIDE = { exchanges: 1_000, tokens: 1_000_000 };

/** A branch in shorthand: `u:hi` a person, `a:text` an answer, `a:text+c1+c2` an answer with calls, `r:c1` a result, `n:note` a gateway note. */
function branch(script: string): TranscriptEntry[] {
  return script.split(' ').map((word, i) => {
    const [kind, rest = ''] = word.split(':');
    const place = { id: `e${i}`, parentId: i === 0 ? null : `e${i - 1}`, timestamp: '2026-01-01T00:00:00.000Z' };
    if (kind === 'n') return { type: 'custom_message', customType: 'note', content: rest, display: false, ...place };
    if (kind === 's')
      return { type: 'compaction', summary: rest, firstKeptEntryId: `e${i + 1}`, tokensBefore: 1, ...place };
    return { type: 'message', message: messageOf(kind ?? '', rest), ...place };
  });
}

function messageOf(kind: string, rest: string): Message {
  if (kind === 'u') return { role: 'user', content: [{ type: 'text', text: rest }], timestamp: 1 };
  if (kind === 'r')
    return {
      role: 'toolResult',
      toolCallId: rest,
      toolName: 't',
      content: [{ type: 'text', text: `result ${rest}` }],
      isError: false,
      timestamp: 1,
    };
  const [text = '', ...calls] = rest.split('+');
  return {
    role: 'assistant',
    content: [
      ...(text === '' ? [] : [{ type: 'text' as const, text }]),
      ...calls.map((id) => ({ type: 'toolCall' as const, id, name: 't', arguments: {} })),
    ],
    api: 'x',
    provider: 'x',
    model: 'x',
    usage: NO_USAGE,
    stopReason: kind === 'e' ? 'error' : calls.length > 0 ? 'toolUse' : 'stop',
    timestamp: 1,
  };
}

function shorthand(messages: readonly Message[]): string {
  return messages
    .map((m) => {
      if (m.role === 'toolResult') return `r:${m.toolCallId}${m.isError ? '!' : ''}`;
      const text =
        typeof m.content === 'string' ? m.content : m.content.map((b) => (b.type === 'text' ? b.text : '')).join('');
      const calls = m.role === 'assistant' ? toolCallsOf(m).map((c) => `+${c.id}`) : [];
      return `${m.role[0]}:${text}${calls.join('')}`;
    })
    .join(' ');
}

const derive = (script: string, rule = WIDE) =>
  shorthand(deriveContext(branch(script), rule, new ContextMemory()).messages);

const cases = [
  { name: 'a plain talk stays as it is', script: 'u:hi a:hello u:bye a:ciao', expect: 'u:hi a:hello u:bye a:ciao' },
  {
    name: 'results come in call order',
    script: 'u:go a:x+c1+c2 r:c2 r:c1 a:done',
    expect: 'u:go a:x+c1+c2 r:c1 r:c2 a:done',
  },
  {
    name: 'a call without a result gets an honest one',
    script: 'u:go a:x+c1 u:hello',
    expect: 'u:go a:x+c1 r:c1! u:hello',
  },
  { name: 'a result without a call goes', script: 'u:go r:c9 a:done', expect: 'u:go a:done' },
  {
    name: 'a repeated id becomes unique',
    script: 'u:go a:+c1 r:c1 a:+c1 r:c1 a:done',
    expect: 'u:go a:+c1 r:c1 a:+c1_2 r:c1_2 a:done',
  },
  { name: 'a failed response never happened', script: 'u:go e: u:again a:done', expect: 'u:go u:again a:done' },
  { name: 'an answer without its question goes', script: 'a:lost u:hi a:hello', expect: 'u:hi a:hello' },
  {
    name: 'a gateway note belongs to its exchange',
    script: 'u:go a:+c1 r:c1 n:note a:done',
    expect: 'u:go a:+c1 r:c1 u:note a:done',
  },
  {
    name: 'a compaction stands for what was before',
    script: 'u:old a:old s:sum u:new a:new',
    expect: 'u:Summary of the conversation so far:\n\nsum u:new a:new',
  },
];
for (const { name, script, expect } of cases)
  test(`M-15: context: ${name}`, () => assert.equal(derive(script), expect));

test('M-17: the window keeps the newest exchanges and moves in steps', () => {
  const talk = (n: number) => Array.from({ length: n }, (_, i) => `u:q${i} a:a${i}`).join(' ');
  const starts = [3, 4, 5, 6, 7, 8, 9].map((n) => derive(talk(n), { exchanges: 4, tokens: 1e6 }).split(' ')[0]);
  // Never fewer than four, never more than six, and the start changes once in three.
  assert.deepEqual(starts, ['u:q0', 'u:q0', 'u:q0', 'u:q0', 'u:q3', 'u:q3', 'u:q3']);
});

test('M-22: one exchange larger than the window loses its oldest turns, not its question', () => {
  const long = 'word'.repeat(400);
  const script = `u:go a:+c1 r:c1 a:${long}+c2 r:c2 a:${long}+c3 r:c3 a:last`;
  const kept = derive(script, { exchanges: 10, tokens: 300 });
  assert.ok(kept.startsWith('u:go '), kept);
  assert.ok(kept.endsWith('a:last'), kept);
  assert.ok(!kept.includes('+c1'), kept);
});

test('M-9: what was sent before is sent again byte for byte while the window stands', () => {
  const memory = new ContextMemory();
  const entries = branch(Array.from({ length: 30 }, (_, i) => `u:q${i} a:x+c${i} r:c${i} a:a${i}`).join(' '));
  let before = '';
  let broken = 0;
  for (let n = 1; n <= entries.length; n += 4) {
    const now = JSON.stringify(
      deriveContext(entries.slice(0, n), { exchanges: 10, tokens: 1e6 }, memory).messages,
    ).slice(0, -1);
    if (!now.startsWith(before)) broken++;
    before = now;
  }
  assert.ok(broken <= 4, `the prefix broke ${broken} times in 30 exchanges`);
});

test('M-15: property: every sequence comes out paired, in order and without repeated ids', () => {
  const word = fc.constantFrom(
    'u:hi',
    'a:text',
    'a:+c1',
    'a:t+c1+c2',
    'a:+c2+c2',
    'r:c1',
    'r:c2',
    'r:c3',
    'n:note',
    'e:',
    'a:',
  );
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 200 }), (words, tokens) => {
      const { messages } = deriveContext(branch(words.join(' ')), { exchanges: 3, tokens }, new ContextMemory());
      assert.ok(messages.length === 0 || messages[0]!.role === 'user');
      const ids = new Set<string>();
      for (let i = 0; i < messages.length; i++) {
        const message = messages[i]!;
        if (message.role !== 'assistant') continue;
        toolCallsOf(message).forEach((call, n) => {
          assert.ok(!ids.has(call.id), `id ${call.id} twice`);
          ids.add(call.id);
          const result = messages[i + 1 + n];
          assert.equal(result?.role === 'toolResult' && result.toolCallId, call.id);
        });
      }
      assert.equal(messages.filter((m) => m.role === 'toolResult').length, ids.size);
      assert.deepEqual(pairToolCalls(messages), messages, 'pairing twice changes nothing');
    }),
  );
});

test('M-17: property: a branch that grows is read on, with the same outcome as if it were read anew', () => {
  const word = fc.constantFrom('u:hi', 'a:text', 'a:+c1', 'r:c1', 'n:note', 'e:', 's:sum');
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 30 }), fc.integer({ min: 5, max: 60 }), (words, tokens) => {
      const rule = { exchanges: 3, tokens };
      const memory = new ContextMemory();
      const whole = branch(words.join(' '));
      const growing: TranscriptEntry[] = [];
      for (const entry of whole) {
        growing.push(entry);
        const read = deriveContext(growing, rule, memory);
        assert.deepEqual(read, deriveContext([...growing], rule, new ContextMemory()));
      }
    }),
  );
});
