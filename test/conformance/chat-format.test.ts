// Cases of the chat format alone, and the world server itself, checked with a client that is not ours.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { startModelServer } from '#world';
import { OPENAI_CHAT } from './families.ts';
import {
  answerOf,
  call,
  callsIn,
  failureOf,
  finished,
  play,
  profileOf,
  requestOf,
  result,
  textIn,
  user,
} from './play.ts';

const NOTE = 'naïve 😀 漢\n';

/** The bytes of one call whose later deltas say "" for id and name, in pieces of three characters, with a comment between. */
function emptyStringBody(): Buffer {
  const event = (toolCall: object | undefined, finish: string | null = null) => {
    const delta = toolCall === undefined ? {} : { tool_calls: [toolCall] };
    return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  };
  const characters = Array.from(JSON.stringify({ path: 'note.txt', content: NOTE }));
  const pieces = Array.from({ length: Math.ceil(characters.length / 3) }, (_, i) => characters.slice(i * 3, i * 3 + 3));
  const events = [
    event({ index: 0, id: 'call_a', type: 'function', function: { name: 'write', arguments: '' } }),
    ': keepalive\n\n',
    ...pieces.map((p) => event({ index: 0, id: '', function: { name: '', arguments: p.join('') } })),
    event(undefined, 'tool_calls'),
    'data: [DONE]\n\n',
  ];
  return Buffer.from(events.join(''));
}

test('C-01: empty ids and names, writes that cut characters, a comment: one call, the exact bytes', async () => {
  await using world = await startModelServer({ strict: 'strict' });
  const body = emptyStringBody();
  const inside = (character: string, bytes: number) => body.indexOf(Buffer.from(character)) + bytes;
  const newline = body.indexOf('\n\n', inside('漢', 3)) + 1;
  const edges = [0, inside('😀', 2), inside('漢', 1), newline, body.length].sort((a, b) => a - b);
  world.script([{ raw: edges.slice(1).map((to, i) => body.subarray(edges[i], to)) }]);
  const provider = await OPENAI_CHAT.make();
  const played = await play(provider, requestOf(OPENAI_CHAT, world));
  const args = { path: 'note.txt', content: NOTE };
  assert.deepEqual(callsIn(played), [call('call_a', 'write', args)]);
  assert.equal(Buffer.from(NOTE).toString('hex'), '6e61c3af766520f09f988020e6bca20a');

  // The second turn: what is sent back parses to the same object, and a call whose arguments are only "" is {}.
  world.script([{ toolCalls: [{ id: 'call_b', name: 'list', arguments: '' }] }]);
  const messages = [
    user('go'),
    answerOf(OPENAI_CHAT, finished(played).content),
    result('call_a', 'write', 'ok'),
    user('go again'),
  ];
  const again = await play(provider, requestOf(OPENAI_CHAT, world, { messages }));
  const [sent] = world.requests[1]!.turns.flatMap((turn) => turn.calls);
  assert.equal(sent?.id, 'call_a');
  assert.deepEqual(JSON.parse(sent?.argumentsText ?? ''), args);
  assert.deepEqual(callsIn(again), [call('call_b', 'list', {})]);
  assert.doesNotMatch(world.requests[1]!.bodyText, /\ufffd/);
});

test('D-01: a) a body without [DONE] that had its finish reason is an answer', async () => {
  await using world = await startModelServer();
  world.script([{ text: 'whole', done: 'omit' }]);
  const played = await play(await OPENAI_CHAT.make(), requestOf(OPENAI_CHAT, world));
  assert.equal(finished(played).stopReason, 'stop');
  assert.equal(textIn(played), 'whole');
});

test('D-01: c) a body that ends inside the arguments is cut, and so is one that is reset there', async () => {
  await using world = await startModelServer();
  const toolCalls = [{ name: 'write', arguments: '{"path":"a","content":"ha' }];
  world.script([
    { toolCalls, finish: null, done: 'omit' },
    { toolCalls, finish: null, done: 'omit', resetAt: 400 },
  ]);
  for (const _ of [1, 2]) {
    const failure = failureOf(await play(await OPENAI_CHAT.make(), requestOf(OPENAI_CHAT, world)));
    assert.equal(failure.code, 'MODEL_STREAM_CUT');
  }
});

test('M-23: halves of a character in two deltas are put together', async () => {
  await using world = await startModelServer();
  const delta = (content: string) => `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;
  const end = 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
  world.script([{ raw: [delta('a\\ud83d'), delta('\\ude00b'), end] }]);
  const played = await play(await OPENAI_CHAT.make(), requestOf(OPENAI_CHAT, world));
  assert.equal(played.text, 'a😀b');
  assert.ok(played.events.every((event) => !('text' in event) || event.text.isWellFormed()));
});

const inStream: readonly (readonly [string, object, string])[] = [
  ['overloaded', { message: 'The server is overloaded', type: 'server_error', code: 503 }, 'MODEL_OVERLOADED'],
  ['rate limit', { message: 'slow down', type: 'rate_limit_exceeded' }, 'MODEL_RATE_LIMITED'],
  [
    'overflow',
    { message: 'too long', type: 'invalid_request_error', code: 'context_length_exceeded' },
    'MODEL_CONTEXT_OVERFLOW',
  ],
  ['an unknown kind', { oops: true }, 'MODEL_STREAM_CUT'],
];
for (const [name, error, code] of inStream) {
  test(`M-33: an error inside a stream is told apart: ${name}`, async () => {
    await using world = await startModelServer();
    const text = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"par"}}]}\n\n';
    world.script([{ raw: [text, `data: ${JSON.stringify({ error })}\n\n`] }]);
    assert.equal(failureOf(await play(await OPENAI_CHAT.make(), requestOf(OPENAI_CHAT, world))).code, code);
  });
}

test('M-33: an event that cannot be read is a cut stream, even when it quotes words of an overflow', async () => {
  await using world = await startModelServer();
  world.script([{ raw: 'data: {"id":"c","choices":[{"delta":{"content":"prompt is too long\n\n' }]);
  const failure = failureOf(await play(await OPENAI_CHAT.make(), requestOf(OPENAI_CHAT, world)));
  assert.equal(failure.code, 'MODEL_STREAM_CUT');
  assert.doesNotMatch(failure.message, /[{}]/);
});

test('M-13: a thinking level is sent only to a model that reasons', async () => {
  await using world = await startModelServer();
  const provider = await OPENAI_CHAT.make();
  const sent = async (reasoning: boolean, thinking: 'off' | 'minimal' | 'xhigh') => {
    const model = profileOf(OPENAI_CHAT, { reasoning });
    await play(provider, requestOf(OPENAI_CHAT, world, { model, thinking }));
    return world.requests.at(-1)?.body['reasoning_effort'];
  };
  assert.deepEqual(
    [await sent(true, 'off'), await sent(true, 'minimal'), await sent(true, 'xhigh'), await sent(false, 'xhigh')],
    [undefined, 'low', 'high', undefined],
  );
});

test('M-13: reasoning goes back within its exchange and is left out of later ones', async () => {
  await using world = await startModelServer({ strict: 'strict' });
  const thought = { type: 'thinking' as const, thinking: 'so', thinkingSignature: 'reasoning_content' };
  const chain = [user('go'), answerOf(OPENAI_CHAT, [thought, call('c1', 'read', {})]), result('c1', 'read', 'x')];
  const provider = await OPENAI_CHAT.make();
  await play(provider, requestOf(OPENAI_CHAT, world, { messages: chain }));
  await play(provider, requestOf(OPENAI_CHAT, world, { messages: [...chain, user('next')] }));
  const thinking = world.requests.map((r) => r.turns.map((turn) => turn.thinking).join(''));
  assert.deepEqual(thinking, ['so', '']);
});

test('M-23: OpenAI itself gets the limit under its newer name', async () => {
  let body: Record<string, unknown> = {};
  const catching: typeof fetch = async (_input, init) => {
    body = JSON.parse(String(init?.body));
    return new Response('{}', { status: 500 });
  };
  const request = requestOf(OPENAI_CHAT, { url: 'https://api.openai.com' });
  await play(await OPENAI_CHAT.make({ fetch: catching }), request);
  assert.deepEqual([body['max_tokens'], body['max_completion_tokens']], [undefined, 4_000]);
});

test("M-23: the vendor's own client reads the scripted server: streamed, whole, calls, models, errors", async () => {
  await using world = await startModelServer();
  const client = new OpenAI({ baseURL: `${world.url}/v1`, apiKey: 'k', maxRetries: 0 });
  const ask = { model: 'mock', messages: [{ role: 'user' as const, content: 'hi' }] };
  world.script([
    {
      text: ['one ', 'two 😀'],
      toolCalls: [{ id: 'c', name: 'f', arguments: { a: 'ß' }, pieceLength: 2 }],
      cutAt: [300, 301, 555],
    },
    { text: 'whole', usage: { prompt: 7, output: 3 } },
    { error: { status: 429, message: 'slow', headers: { 'retry-after': '1' } } },
  ]);
  const streamed = await client.chat.completions.stream(ask).finalChatCompletion();
  assert.equal(streamed.choices[0]?.message.content, 'one two 😀');
  const [toolCall] = streamed.choices[0]?.message.tool_calls ?? [];
  assert.ok(toolCall?.type === 'function');
  assert.deepEqual(JSON.parse(toolCall.function.arguments), { a: 'ß' });
  const whole = await client.chat.completions.create(ask);
  assert.deepEqual([whole.choices[0]?.message.content, whole.usage?.prompt_tokens], ['whole', 7]);
  await assert.rejects(client.chat.completions.create(ask), OpenAI.RateLimitError);
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  assert.deepEqual(models, ['mock']);
});
