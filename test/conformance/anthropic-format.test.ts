// Cases of Anthropic's format alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startModelServer } from '#world';
import { ANTHROPIC } from './families.ts';
import { answerOf, call, failureOf, finished, play, profileOf, requestOf, result, user } from './play.ts';

const chain = [user('go'), answerOf(ANTHROPIC, [call('c1', 'read', {})]), result('c1', 'read', 'x')];

test('M-23: the system text and the newest messages are marked for the cache, four marks at most', async () => {
  await using world = await startModelServer({ strict: 'strict' });
  const messages = [user('one'), answerOf(ANTHROPIC, [{ type: 'text', text: 'two' }]), ...chain, user('more')];
  await play(await ANTHROPIC.make(), requestOf(ANTHROPIC, world, { messages }));
  const { body, bodyText } = world.requests[0]!;
  assert.match(JSON.stringify(body['system']), /cache_control/);
  const marked = (body['messages'] as { content: object[] }[]).map((m) => JSON.stringify(m).includes('cache_control'));
  assert.equal(marked.at(-1), true);
  const marks = bodyText.split('"cache_control"').length - 1;
  assert.ok(marks >= 2 && marks <= 4, `${marks} marks`);
});

test('M-13: a chain of calls that began without thinking goes on without it', async () => {
  await using world = await startModelServer({ strict: 'strict' });
  const provider = await ANTHROPIC.make();
  const thinkingOf = async (messages: typeof chain, changes = {}) => {
    await play(provider, requestOf(ANTHROPIC, world, { messages, thinking: 'high', ...changes }));
    return (world.requests.at(-1)?.body['thinking'] as { type?: string } | undefined)?.type;
  };
  assert.equal(await thinkingOf([user('go')]), 'enabled');
  assert.equal(await thinkingOf(chain), undefined);
  const thought = { type: 'thinking' as const, thinking: 'so', thinkingSignature: 's' };
  const signed = [user('go'), answerOf(ANTHROPIC, [thought, call('c1', 'read', {})]), result('c1', 'read', 'x')];
  assert.equal(await thinkingOf(signed), 'enabled');
  assert.equal(await thinkingOf([user('go')], { model: profileOf(ANTHROPIC, { reasoning: false }) }), undefined);
  assert.equal(await thinkingOf([user('go')], { maxOutputTokens: 1_500 }), undefined, 'no room for it');
});

test('M-13: budget and answer share the limit that was asked for', async () => {
  await using world = await startModelServer();
  const changes = { thinking: 'xhigh' as const, maxOutputTokens: 10_000 };
  await play(await ANTHROPIC.make(), requestOf(ANTHROPIC, world, changes));
  const { body } = world.requests[0]!;
  assert.equal(body['max_tokens'], 10_000);
  assert.deepEqual(body['thinking'], { type: 'enabled', budget_tokens: 5_000 });
});

test('M-15: hidden thinking is kept as it came and goes back as it was', async () => {
  await using world = await startModelServer({ strict: 'strict' });
  const event = (value: { readonly type: string } & Record<string, unknown>) =>
    `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
  const usage = { input_tokens: 5, output_tokens: 1 };
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'x', content: [], usage };
  const use = { type: 'tool_use', id: 'c1', name: 'read', input: {} };
  world.script([
    {
      raw: [
        event({ type: 'message_start', message }),
        event({ type: 'content_block_start', index: 0, content_block: { type: 'redacted_thinking', data: 'HIDDEN' } }),
        event({ type: 'content_block_stop', index: 0 }),
        event({ type: 'content_block_start', index: 1, content_block: use }),
        event({ type: 'content_block_stop', index: 1 }),
        event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }),
        event({ type: 'message_stop' }),
      ],
    },
  ]);
  const provider = await ANTHROPIC.make();
  const request = requestOf(ANTHROPIC, world, { thinking: 'low' });
  const { content } = finished(await play(provider, request));
  assert.deepEqual(content, [
    { type: 'thinking', thinking: '', thinkingSignature: 'HIDDEN', redacted: true },
    call('c1', 'read', {}),
  ]);
  world.script([{ text: 'done' }]);
  const messages = [user('go'), answerOf(ANTHROPIC, content), result('c1', 'read', 'x')];
  await play(provider, { ...request, messages });
  assert.match(world.requests[1]!.bodyText, /\{"type":"redacted_thinking","data":"HIDDEN"\}/);
});

const inStream = [
  ['first', [], 'overloaded_error', 'MODEL_OVERLOADED'],
  ['after text', ['text'], 'overloaded_error', 'MODEL_OVERLOADED'],
  ['rate limit', ['text'], 'rate_limit_error', 'MODEL_RATE_LIMITED'],
] as const;
for (const [name, before, type, code] of inStream) {
  test(`M-33: an error event in a stream is told apart: ${name} → ${code}`, async () => {
    await using world = await startModelServer();
    const message = {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'x',
      content: [],
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const start = [
      `data: ${JSON.stringify({ type: 'message_start', message })}\n\n`,
      'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
      'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"par"}}\n\n',
    ];
    const error = `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type, message: 'sorry' } })}\n\n`;
    world.script([{ raw: [...(before.length > 0 ? start : []), error] }]);
    assert.equal(failureOf(await play(await ANTHROPIC.make(), requestOf(ANTHROPIC, world))).code, code);
  });
}
