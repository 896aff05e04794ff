import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Provider } from '#contract';
import { ManualClock, type ModelServer, type Reply, startModelServer } from '#world';
import {
  answerOf,
  call,
  callsIn,
  type FamilyUnderTest,
  failureOf,
  finished,
  play,
  profileOf,
  requestOf,
  result,
  textIn,
  user,
} from './play.ts';
import { sampled } from './seeded.ts';

const TRICKY = 'naïve 😀 漢字 — "quoted"\n\tend';
const IMAGE = { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' } as const;

/** What every provider that speaks over the network must do. Each family runs all of it against the scripted server. */
export function providerConformance(family: FamilyUnderTest): void {
  const named = (what: string) => `M-23: ${family.name}: ${what}`;

  test(named('streams text chunk by chunk and finishes with all of it'), async () => {
    await using world = await startModelServer({ strict: 'strict' });
    world.script([{ text: ['Hel', 'lo ', TRICKY], usage: { prompt: 120, output: 9, cacheRead: 100 } }]);
    const played = await play(await family.make(), requestOf(family, world));
    assert.equal(played.text, `Hello ${TRICKY}`);
    const end = finished(played);
    assert.equal(textIn(played), played.text);
    assert.equal(end.stopReason, 'stop');
    assert.deepEqual(end.usage, { input: 20, output: 9, cacheRead: 100, cacheWrite: 0 });
    assert.equal(end.responseId, 'response-1');
    assert.ok(played.events.filter((event) => event.type === 'text-delta').length >= 3);
    assert.equal(world.requests[0]?.system, 'You are helpful.');
    assert.deepEqual(world.requests[0]?.toolNames, ['write']);
  });

  test(named('text is passed on while the response is still coming'), async () => {
    await using world = await startModelServer();
    const gate = Promise.withResolvers<void>();
    world.script([
      { text: ['first', 'second'], pauses: [{ afterEvents: firstTextEvent(family), until: gate.promise }] },
    ]);
    const stream = (await family.make())
      .stream(requestOf(family, world), new AbortController().signal)
      [Symbol.asyncIterator]();
    const first = await stream.next();
    assert.deepEqual(first.value, { type: 'text-delta', text: 'first' });
    gate.resolve();
    const second = await stream.next();
    assert.deepEqual(second.value, { type: 'text-delta', text: 'second' });
    await stream.return?.();
  });

  test(named('thinking comes apart from text, keeps its signature and goes back with it'), async () => {
    await using world = await startModelServer({ strict: 'strict' });
    const withCall = { thinking: ['let me ', 'see'], thinkingSignature: 'sig-1', text: 'Doing it.' };
    const write = { name: 'write', id: 'w1', arguments: { path: 'a', content: 'b' }, signature: 'sig-2' };
    world.script([{ ...withCall, toolCalls: [write] }, { text: 'done' }]);
    const request = requestOf(family, world, { thinking: 'medium' });
    const first = await play(await family.make(), request);
    assert.equal(first.thinking, 'let me see');
    const { content } = finished(first);
    assert.deepEqual(
      content.map((block) => block.type),
      ['thinking', 'text', 'toolCall'],
    );
    const messages = [user('go'), answerOf(family, content), result('w1', 'write', 'ok')];
    await play(await family.make(), { ...request, messages });
    const sent = world.requests[1]!;
    assert.equal(sent.turns.find((turn) => turn.role === 'assistant')?.thinking, 'let me see');
    if (family.api !== 'openai-completions') assert.match(sent.bodyText, /sig-1/);
    if (family.api === 'google-generative-ai') assert.match(sent.bodyText, /sig-2/);
  });

  test(named("another model's thinking and signatures stay behind"), async () => {
    await using world = await startModelServer({ strict: 'strict' });
    const content = [
      { type: 'thinking' as const, thinking: 'secret thought', thinkingSignature: 'foreign-1' },
      { type: 'text' as const, text: 'said', textSignature: 'foreign-2' },
      { ...call('x:1|y', 'write', { path: 'a', content: 'b' }), thoughtSignature: 'foreign-3' },
    ];
    const messages = [
      user('go'),
      answerOf(family, content, { provider: 'elsewhere', api: 'other-api' }),
      result('x:1|y', 'write', 'ok'),
    ];
    finished(await play(await family.make(), requestOf(family, world, { messages, thinking: 'medium' })));
    const body = world.requests[0]!.bodyText;
    assert.doesNotMatch(body, /secret thought|foreign-/);
    assert.match(body, /said/);
    const id = world.requests[0]!.turns.flatMap((turn) => turn.calls)[0]!.id;
    assert.match(id, /^[A-Za-z0-9_-]+$/, 'ids of other vendors are made fit');
  });

  test(named('one call and parallel calls arrive whole and in order, ids unique'), async () => {
    await using world = await startModelServer();
    const write = { name: 'write', arguments: { path: 'a', content: TRICKY } };
    world.script([
      { text: 'ok', toolCalls: [{ ...write, id: 'same', pieceLength: 3 }] },
      {
        toolCalls: [
          { ...write, id: 'same' },
          { ...write, id: 'same', name: 'read' },
          { ...write, id: 'other' },
        ],
      },
    ]);
    const one = await play(await family.make(), requestOf(family, world));
    assert.deepEqual(callsIn(one), [call('same', 'write', write.arguments)]);
    assert.equal(finished(one).stopReason, 'toolUse');
    const three = await play(await family.make(), requestOf(family, world));
    assert.deepEqual(
      callsIn(three).map((c) => c.name),
      ['write', 'read', 'write'],
    );
    assert.equal(new Set(callsIn(three).map((c) => c.id)).size, 3);
    for (const each of callsIn(three)) assert.deepEqual(each.arguments, write.arguments);
  });

  test(named('a call without arguments is {}'), async () => {
    await using world = await startModelServer();
    world.script([{ toolCalls: [{ name: 'write', id: 'e1', arguments: '' }] }]);
    assert.deepEqual(callsIn(await play(await family.make(), requestOf(family, world))), [call('e1', 'write', {})]);
  });

  test(named('results go back directly after their calls, errors and images too'), async () => {
    await using world = await startModelServer({ strict: 'strict' });
    const content = [
      { type: 'text' as const, text: 'both' },
      call('c1', 'read', {}),
      call('c2', 'exec', { command: 'ls' }),
    ];
    const messages = [
      user([{ type: 'text', text: 'look' }, IMAGE]),
      answerOf(family, content, { stopReason: 'toolUse' }),
      result('c1', 'read', 'picture', { content: [{ type: 'text', text: 'picture' }, IMAGE] }),
      result('c2', 'exec', 'denied by policy', { isError: true }),
      user('and now?'),
    ];
    finished(await play(await family.make(), requestOf(family, world, { messages })));
    const { turns, bodyText } = world.requests[0]!;
    assert.deepEqual(
      turns.flatMap((turn) => turn.calls.map((c) => c.id)),
      ['c1', 'c2'],
    );
    assert.deepEqual(
      turns.flatMap((turn) => turn.results.map((r) => r.id)),
      ['c1', 'c2'],
    );
    assert.equal(bodyText.split(IMAGE.data).length - 1, 2, 'both images are sent');
    assert.match(bodyText, /denied by policy/);
  });

  test(named('a model that reads text only is told of images and sent none'), async () => {
    await using world = await startModelServer({ strict: 'strict' });
    const model = profileOf(family, { input: ['text'] });
    finished(await play(await family.make(), requestOf(family, world, { model, messages: [user([IMAGE])] })));
    assert.doesNotMatch(world.requests[0]!.bodyText, /iVBORw0KGgo/);
    assert.match(world.requests[0]!.userText, /cannot see/);
  });

  test(named('the same conversation gives the same bytes, and a longer one begins with them'), async () => {
    await using world = await startModelServer({ strict: 'strict' });
    const messages = [user('one'), answerOf(family, [{ type: 'text', text: 'two' }]), user('three')];
    const provider = await family.make();
    await play(provider, requestOf(family, world, { messages }));
    await play(await family.make(), requestOf(family, world, { messages }));
    assert.equal(world.requests[0]!.bodyText, world.requests[1]!.bodyText);
    await play(
      provider,
      requestOf(family, world, {
        messages: [...messages, answerOf(family, [{ type: 'text', text: 'four' }]), user('five')],
      }),
    );
    assert.deepEqual(world.requests[2]!.turns.slice(0, 3), world.requests[0]!.turns);
  });

  test(named('every prefix of a stream ends once, and never with a call that was cut'), async () => {
    await using world = await startModelServer();
    const reply: Reply = {
      text: ['Writing ', TRICKY],
      thinking: 'hm',
      toolCalls: [
        { name: 'write', id: 'p1', arguments: { path: 'a.txt', content: TRICKY }, pieceLength: 5 },
        { name: 'write', id: 'p2', arguments: { path: 'b.txt', content: 'plain' }, pieceLength: 5 },
      ],
    };
    const wanted = [
      { path: 'a.txt', content: TRICKY },
      { path: 'b.txt', content: 'plain' },
    ];
    const { bytes, provider } = await wholeBody(family, world, reply);
    for (const endAt of sampled(bytes, 90, 7)) {
      const how: Reply = endAt % 3 === 0 ? { resetAt: endAt } : { endAt };
      world.script([{ ...reply, ...how }]);
      const played = await play(provider, requestOf(family, world));
      assert.doesNotMatch(played.text, /\ufffd/, `cut at ${endAt}`);
      if (played.end.type === 'finish') {
        assert.deepEqual(
          callsIn(played).map((c) => c.arguments),
          wanted,
          `cut at ${endAt}`,
        );
        assert.equal(played.end.stopReason, 'toolUse');
      } else assert.equal(played.end.failure.code, 'MODEL_STREAM_CUT', `cut at ${endAt}`);
    }
  });

  test(named('C-01: writes that cut characters and events anywhere change nothing'), async () => {
    await using world = await startModelServer();
    const reply: Reply = {
      text: TRICKY,
      toolCalls: [{ name: 'write', id: 'u1', arguments: { path: 'ü', content: TRICKY } }],
    };
    const { bytes, provider } = await wholeBody(family, world, reply);
    for (const seed of [1, 2, 3, 4]) {
      world.script([{ ...reply, cutAt: sampled(bytes, 60, seed), commentsBefore: [1, 2] }]);
      const played = await play(provider, requestOf(family, world));
      assert.equal(played.text, TRICKY);
      assert.deepEqual(callsIn(played), [call('u1', 'write', { path: 'ü', content: TRICKY })]);
    }
    world.script([{ ...reply, cutAt: Array.from({ length: bytes }, (_, i) => i) }]);
    assert.equal((await play(provider, requestOf(family, world))).text, TRICKY, 'one byte at a time');
  });

  test(named('D-01: text without an end is a cut stream, not an answer'), async () => {
    await using world = await startModelServer();
    world.script([{ text: 'The answer is', finish: null, done: 'omit' }]);
    const played = await play(await family.make(), requestOf(family, world));
    assert.equal(failureOf(played).code, 'MODEL_STREAM_CUT');
    assert.equal(played.text, 'The answer is');
  });

  test(named('the length limit ends with `length`, and with nothing of a call it cut'), async () => {
    await using world = await startModelServer();
    world.script([{ text: 'long', finish: 'length' }]);
    const text = finished(await play(await family.make(), requestOf(family, world)));
    assert.equal(text.stopReason, 'length');
    assert.equal(text.cutCalls, undefined);
    if (family.api === 'google-generative-ai') return; // Gemini sends a call in one piece or not at all.
    world.script([{ toolCalls: [{ name: 'write', arguments: '{"path":"a","cont' }], finish: 'length' }]);
    const cut = finished(await play(await family.make(), requestOf(family, world)));
    assert.deepEqual([cut.stopReason, cut.content, cut.cutCalls], ['length', [], 1]);
    world.script([{ toolCalls: [{ name: 'write', arguments: '' }], finish: 'length' }]);
    const bare = finished(await play(await family.make(), requestOf(family, world)));
    assert.deepEqual([bare.stopReason, bare.content, bare.cutCalls], ['length', [], 1]);
  });

  test(named('arguments that are no JSON are never a call'), async () => {
    await using world = await startModelServer();
    if (family.api === 'google-generative-ai') world.script([{ finish: 'MALFORMED_FUNCTION_CALL' }]);
    else world.script([{ toolCalls: [{ name: 'write', arguments: '{"path": oops}' }] }]);
    assert.equal(failureOf(await play(await family.make(), requestOf(family, world))).code, 'MODEL_STREAM_CUT');
  });

  test(named('a refusal is said to be one'), async () => {
    await using world = await startModelServer();
    world.script([{ finish: 'filtered' }]);
    assert.equal(failureOf(await play(await family.make(), requestOf(family, world))).code, 'MODEL_REFUSED');
  });

  test(named('E-01: a window exceeded in the end of a stream is an overflow'), async () => {
    await using world = await startModelServer();
    world.script([{ finish: 'model_context_window_exceeded' }]);
    assert.equal(failureOf(await play(await family.make(), requestOf(family, world))).code, 'MODEL_CONTEXT_OVERFLOW');
  });

  const errors: readonly (readonly [string, Reply, object])[] = [
    ['401', { error: { status: 401, message: 'bad key key-for-tests' } }, { code: 'MODEL_AUTH', status: 401 }],
    ['402', { error: { status: 402, message: 'pay' } }, { code: 'MODEL_BILLING', status: 402 }],
    ['404', { error: { status: 404, message: 'no model' } }, { code: 'MODEL_NOT_FOUND', status: 404 }],
    ['408', { error: { status: 408, message: 'slow' } }, { code: 'MODEL_TIMEOUT', status: 408 }],
    ['413 empty', { http: { status: 413 } }, { code: 'MODEL_CONTEXT_OVERFLOW', status: 413 }],
    [
      '429',
      { error: { status: 429, message: 'slow down', headers: { 'retry-after': '2' } } },
      { code: 'MODEL_RATE_LIMITED', status: 429, retryAfterMs: 2_000 },
    ],
    ['500', { error: { status: 500, message: 'internal error' } }, { code: 'MODEL_OVERLOADED', status: 500 }],
    ['529', { error: { status: 529, message: 'overloaded' } }, { code: 'MODEL_OVERLOADED', status: 529 }],
    [
      'an HTML page',
      { http: { status: 502, body: '<html>bad gateway</html>' } },
      { code: 'MODEL_OVERLOADED', status: 502 },
    ],
    ['400', { error: { status: 400, message: 'invalid message 3' } }, { code: 'MODEL_REQUEST_INVALID', status: 400 }],
  ];
  for (const [name, reply, expected] of errors) {
    test(named(`M-33: error ${name} is told apart, asked once, and without the key`), async () => {
      await using world = await startModelServer();
      world.script([reply]);
      const { message, ...facts } = failureOf(await play(await family.make(), requestOf(family, world)));
      assert.deepEqual(facts, expected);
      assert.equal(world.count, 1, 'the SDK does not retry by itself');
      assert.doesNotMatch(message, /key-for-tests|[{}<]/);
    });
  }

  test(named('nobody at the address is unreachable'), async () => {
    const world = await startModelServer();
    const request = requestOf(family, world);
    await world.close();
    const { code, message } = failureOf(await play(await family.make(), request));
    assert.equal(code, 'MODEL_UNREACHABLE');
    assert.match(message, /127\.0\.0\.1/);
  });

  const waits: readonly (readonly [string, Reply])[] = [
    ['before the first byte', { hang: 'before-headers' }],
    ['in the middle', { text: 'half', finish: null, done: 'omit', hang: 'before-end' }],
  ];
  for (const [when, reply] of waits) {
    test(named(`M-8: an abort ${when} ends at once with RUN_ABORTED`), async () => {
      await using world = await startModelServer();
      world.script([reply]);
      const stop = new AbortController();
      const playing = play(await family.make(), requestOf(family, world), stop.signal);
      await world.arrived(1);
      stop.abort(new Error('enough'));
      assert.equal(failureOf(await playing).code, 'RUN_ABORTED');
    });

    test(named(`a provider that falls silent ${when} is given up: MODEL_TIMEOUT`), async () => {
      await using world = await startModelServer();
      world.script([reply]);
      const clock = new ManualClock();
      const playing = play(await family.make({ clock, idleTimeoutMs: 120_000 }), requestOf(family, world));
      await world.arrived(1);
      await clock.advance(120_000);
      assert.equal(failureOf(await playing).code, 'MODEL_TIMEOUT');
      assert.equal(clock.waiting, 0, 'no timer is left');
    });
  }

  test(named('an answer leaves no timer behind'), async () => {
    await using world = await startModelServer();
    const clock = new ManualClock();
    finished(await play(await family.make({ clock }), requestOf(family, world)));
    assert.equal(clock.waiting, 0);
  });

  test(named('an abort does not wait for a fetch or a body that does not heed it'), async () => {
    for (const deaf of ['fetch', 'body'] as const) {
      const stop = new AbortController();
      const asked = Promise.withResolvers<void>();
      const never: typeof fetch = async () => {
        asked.resolve();
        if (deaf === 'fetch') return await new Promise<never>(() => {});
        return new Response(new ReadableStream(), { headers: { 'content-type': 'text/event-stream' } });
      };
      const request = requestOf(family, { url: 'http://model.test' });
      const playing = play(await family.make({ fetch: never }), request, stop.signal);
      await asked.promise;
      await new Promise(setImmediate);
      stop.abort();
      assert.equal(failureOf(await playing).code, 'RUN_ABORTED');
    }
  });

  test(named('M-15: ids that become alike when made fit stay different'), async () => {
    await using world = await startModelServer({ strict: 'strict' });
    const content = [call('a:b', 'read', {}), call('a|b', 'read', {}), call('a_b', 'read', {})];
    const results = ['a:b', 'a|b', 'a_b'].map((id) => result(id, 'read', id));
    const messages = [user('go'), answerOf(family, content), ...results];
    finished(await play(await family.make(), requestOf(family, world, { messages })));
    const { turns } = world.requests[0]!;
    const sent = turns.flatMap((turn) => turn.calls.map((c) => c.id));
    assert.equal(new Set(sent).size, 3);
    assert.deepEqual(
      turns.flatMap((turn) => turn.results.map((r) => r.id)),
      sent,
    );
  });

  test(named('an abort before the start asks nobody'), async () => {
    await using world = await startModelServer();
    const played = await play(await family.make(), requestOf(family, world), AbortSignal.abort());
    assert.equal(failureOf(played).code, 'RUN_ABORTED');
    assert.equal(world.count, 0);
  });

  test(named('a body without end is bounded'), async () => {
    await using world = await startModelServer();
    world.script([{ text: Array.from({ length: 200 }, () => 'x'.repeat(1_000)) }]);
    const provider = await family.make({ responseBytesMax: 50_000 });
    assert.equal(failureOf(await play(provider, requestOf(family, world))).code, 'MODEL_REQUEST_INVALID');
  });

  test(named('the fetch that it is given is the one it uses, and its refusals are told'), async () => {
    const asked: string[] = [];
    const refuse: typeof fetch = async (input) => {
      asked.push(String(input));
      throw new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) });
    };
    const request = requestOf(family, { url: 'http://model.test' });
    assert.equal(failureOf(await play(await family.make({ fetch: refuse }), request)).code, 'MODEL_UNREACHABLE');
    assert.equal(asked.length, 1);
    assert.match(asked[0]!, /^http:\/\/model\.test\/v1/);
  });
}

/** How many events of the stream are sent before and with the first text. */
const firstTextEvent = (family: FamilyUnderTest): number =>
  ({ 'openai-completions': 2, 'anthropic-messages': 4, 'google-generative-ai': 1, offline: 0 })[family.api];

/** Plays the reply uncut and tells how many bytes its body has. */
async function wholeBody(
  family: FamilyUnderTest,
  world: ModelServer,
  reply: Reply,
): Promise<{ readonly bytes: number; readonly provider: Provider }> {
  let bytes = 0;
  const counting: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const body = await response.arrayBuffer();
    bytes = body.byteLength;
    return new Response(body, { status: response.status, headers: response.headers });
  };
  world.script([reply]);
  finished(await play(await family.make({ fetch: counting }), requestOf(family, world)));
  return { bytes, provider: await family.make() };
}
