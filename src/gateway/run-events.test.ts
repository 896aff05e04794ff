// What listeners are told of a run, and that what nobody hears is not made.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NO_USAGE, type RunEvent, type RunResult, type SessionKey } from '#domain';
import { ManualClock } from '#world';
import { type Audience, type Broadcaster, RunEvents } from './run-events.ts';
import { RunFeed } from './run-feed.ts';

const KEY = 'agent:main:main' as SessionKey;
type Told = { readonly event: string; readonly payload: Record<string, unknown> };

function listen(options: { readonly hears?: (to: Audience) => boolean; readonly fault?: Error } = {}) {
  const { hears = () => true, fault } = options;
  const clock = new ManualClock();
  const told: Told[] = [];
  const logged: string[] = [];
  let rows = 0;
  const out: Broadcaster = {
    hears,
    broadcast: (event, payload, to) => void (hears(to) && told.push({ event, payload: payload as Told['payload'] })),
  };
  const feed = new RunFeed({ clock });
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void logged.push(message) };
  const session = async () => {
    rows++;
    if (fault) throw fault;
    return { key: KEY, sessionId: 's' };
  };
  const events = new RunEvents({ out, feed, clock, log, session });
  let seq = 0;
  const take = (event: RunEvent, runId = 'r') => events.take({ runId, sessionKey: KEY, seq: ++seq, event });
  return { clock, told, logged, feed, events, take, rows: () => rows };
}

const start: RunEvent = { type: 'run-start', at: 1, resumed: false };
const turn = (number: number): RunEvent => ({ type: 'turn-start', turn: number, provider: 'p', model: 'm' });
const text = (piece: string): RunEvent => ({ type: 'text-delta', turn: 1, text: piece });
const retry: RunEvent = { type: 'turn-retry', turn: 1, reason: 'MODEL_STREAM_CUT' };
const end = (more: Partial<RunResult> = {}): RunEvent => ({
  type: 'run-end',
  at: 9,
  result: { outcome: 'answered', texts: [], usage: NO_USAGE, provider: 'p', model: 'm', turns: 1, ...more },
});
const textOf = ({ payload }: Told) =>
  (payload['message'] as { content: { text: string }[] } | undefined)?.content[0]?.text ?? '';

test('M-12: chat deltas carry the whole text, at most ten a second, and the last one comes before the end', async () => {
  const { clock, told, take } = listen();
  take(start);
  take(turn(1));
  for (const piece of ['a', 'b', 'c']) take(text(piece));
  await clock.advance(100);
  take(text('d'));
  await clock.advance(10_000);
  take(text('e'));
  take(end());
  const chat = told
    .filter(({ event }) => event === 'chat')
    .map((one) => [one.payload['state'], textOf(one), one.payload['deltaText'], one.payload['agentId']]);
  assert.deepEqual(chat, [
    ['delta', 'a', 'a', 'main'],
    ['delta', 'abc', 'bc', 'main'],
    ['delta', 'abcd', 'd', 'main'],
    ['delta', 'abcde', 'e', 'main'],
    ['delta', 'abcde', '', 'main'],
    ['final', 'abcde', undefined, 'main'],
  ]);
});

test('M-12: small deltas leave as one, and never after what came behind them', () => {
  const { told, take } = listen();
  take(start);
  take(turn(1));
  for (const piece of ['Let', ' me', ' look.']) take(text(piece));
  const call = { id: 'c', name: 'read', arguments: {} };
  take({ type: 'tool-start', turn: 1, call, at: 2 });
  const agent = told
    .filter(({ event }) => event === 'agent')
    .map(({ payload }) => [payload['stream'], payload['data']]);
  assert.deepEqual(agent.slice(1, 4), [
    ['assistant', { text: 'Let', delta: 'Let' }],
    ['assistant', { text: 'Let me look.', delta: ' me look.' }],
    ['tool', { phase: 'start', name: 'read', toolCallId: 'c', args: {} }],
  ]);
});

test('M-12: thinking and text are two streams in their order', () => {
  const { told, take } = listen();
  take(start);
  take({ type: 'thinking-delta', turn: 1, text: 'hm' });
  take({ type: 'thinking-delta', turn: 1, text: ', yes' });
  take(text('A'));
  take(end());
  const data = told
    .filter(({ event, payload }) => event === 'agent' && payload['stream'] !== 'lifecycle')
    .map(({ payload }) => [payload['stream'], (payload['data'] as { delta: string }).delta]);
  assert.deepEqual(data, [
    ['thinking', 'hm'],
    ['thinking', ', yes'],
    ['assistant', 'A'],
  ]);
});

test('M-12: a long answer does not cost the square of its length', async () => {
  const { clock, told, take } = listen();
  take(start);
  for (let i = 0; i < 20_000; i++) {
    take(text('word '));
    if (i % 10 === 0) await clock.advance(10);
  }
  take(end());
  const said = told.reduce((sum, { payload }) => sum + JSON.stringify(payload).length, 0);
  // 100,000 characters, in 20,000 pieces of 50,000 on average, would be a thousand million.
  assert.ok(said < 30_000_000, `${said}`);
});

const failures: readonly [result: Partial<RunResult>, chat: readonly unknown[], lifecycle: string][] = [
  [{ outcome: 'aborted' }, ['aborted', 'half', 'rpc', undefined], 'end'],
  [
    { outcome: 'failed', error: { code: 'MODEL_RATE_LIMITED', message: 'Too many', next: 'Wait.' } },
    ['error', 'half', undefined, 'rate_limit'],
    'error',
  ],
];
for (const [result, chat, lifecycle] of failures) {
  test(`M-12: a run that is ${result.outcome} ends chat and agent events with what it had said`, () => {
    const { told, take } = listen();
    for (const event of [start, turn(1), text('half'), end(result)]) take(event);
    const last = told.findLast(({ event }) => event === 'chat')!;
    const { state, stopReason, errorKind } = last.payload;
    assert.deepEqual([state, textOf(last), stopReason, errorKind], chat);
    const agent = told.findLast(({ event }) => event === 'agent')?.payload['data'] as { phase: string };
    assert.equal(agent.phase, lifecycle);
  });
}

test('M-16: a run that began before anybody listened is told like any other', () => {
  const { told, take, feed } = listen();
  take(turn(2));
  take(text('going on'));
  assert.equal(feed.ofSession(KEY)?.text, 'going on');
  assert.deepEqual(told.filter(({ event }) => event === 'chat').map(textOf), ['going on']);
  take(end());
  assert.equal(feed.ofSession(KEY), undefined);
});

test('M-12: what nobody hears costs no look-up and no payload, and leaves nothing behind', async () => {
  const { told, take, rows, clock } = listen({ hears: () => false });
  for (const event of [start, turn(1), text('x'), end()]) take(event);
  await clock.advance(1_000);
  assert.deepEqual([told.length, rows(), clock.waiting], [0, 0, 0]);
});

test('M-12: after the end of a run no timer of it is left', async () => {
  const { take, clock } = listen();
  for (const event of [start, turn(1), text('x'), text('y'), end()]) take(event);
  assert.equal(clock.waiting, 0);
});

test('T21: a row that cannot be read costs one event, not the gateway', async () => {
  const { told, take, logged } = listen({ fault: new Error('disk') });
  take(start);
  await new Promise(setImmediate);
  assert.deepEqual(
    told.map(({ event }) => event),
    ['agent'],
  );
  assert.equal(logged.length, 1);
});

test('M-12: property: the parts of chat, put together, are the answer', async () => {
  const step = fc.oneof(
    fc.string({ minLength: 1, maxLength: 5 }).map(text),
    fc.constant(retry),
    fc.constant(turn(2)),
    fc.integer({ min: 1, max: 150 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { clock, told, take, feed } = listen();
      take(start);
      for (const each of steps) {
        if (typeof each === 'number') await clock.advance(each);
        else take(each);
      }
      const answer = feed.ofSession(KEY)?.runText ?? '';
      take(end());
      const chat = told.filter(({ event }) => event === 'chat');
      const parts = chat
        .filter(({ payload }) => payload['state'] === 'delta')
        .reduce((whole, { payload }) => (payload['replace'] ? '' : whole) + String(payload['deltaText']), '');
      if (answer !== '') assert.equal(parts, answer);
      assert.equal(textOf(chat.at(-1)!), answer);
    }),
    { numRuns: 60 },
  );
});
