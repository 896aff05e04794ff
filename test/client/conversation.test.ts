// Streams and histories as scripts; what a person would see of them as one line per item.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Conversation,
  type ConversationItem,
  ConversationView,
  emptyConversation,
  type HistoryMessage,
  itemsOf,
  runUnderWay,
  withAgentEvent,
  withHistory,
  withMessage,
  withNotice,
  withRunEnd,
  withSent,
  withSentStatus,
} from '#client';

const KEY = 'agent:main:main';
const USAGE = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 15, cost: { total: 0.5 } };
let counter = 0;

type Step = (now: Conversation) => Conversation;

const place = () => ({ id: `e${++counter}`, seq: counter });
const user = (content: string, at = 100, runId?: string): HistoryMessage =>
  ({ role: 'user', content, timestamp: at, ...(runId ? { runId } : {}), __openclaw: place() }) as HistoryMessage;
const assistant = (text: string, calls: readonly string[] = [], more: object = {}): HistoryMessage =>
  ({
    role: 'assistant',
    content: [
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...calls.map((id) => ({ type: 'toolCall', id, name: 'exec', arguments: { command: id } })),
    ],
    provider: 'acme',
    model: 'large',
    usage: USAGE,
    stopReason: 'stop',
    timestamp: 110,
    __openclaw: place(),
    ...more,
  }) as unknown as HistoryMessage;
const result = (toolCallId: string, text: string, isError = false): HistoryMessage =>
  ({
    role: 'toolResult',
    toolCallId,
    toolName: 'exec',
    content: [{ type: 'text', text }],
    isError,
    timestamp: 120,
    __openclaw: place(),
  }) as unknown as HistoryMessage;

const history =
  (...messages: HistoryMessage[]): Step =>
  (now) =>
    withHistory(now, { sessionId: 's1', messages });
const stored =
  (message: HistoryMessage): Step =>
  (now) =>
    withMessage(now, message);
const sent =
  (runId: string, text: string, at = 100): Step =>
  (now) =>
    withSent(now, { runId, text, at, status: 'sending' });
const accepted =
  (runId: string): Step =>
  (now) =>
    withSentStatus(now, runId, 'accepted');
const event =
  (runId: string, seq: number, stream: string, data: Record<string, unknown>): Step =>
  (now) =>
    withAgentEvent(now, { runId, sessionKey: KEY, seq, stream, data, ts: 105 });
const starts = (runId: string, seq = 1) => event(runId, seq, 'lifecycle', { phase: 'start' });
const says = (runId: string, seq: number, text: string, delta = text) =>
  event(runId, seq, 'assistant', { text, delta });
const ends =
  (runId: string, outcome: 'answered' | 'aborted' | 'failed' = 'answered'): Step =>
  (now) =>
    withRunEnd(now, {
      runId,
      outcome,
      at: 130,
      ...(outcome === 'failed' ? { failure: { message: 'no model', next: 'add one' } } : {}),
    });

function line(item: ConversationItem): string {
  if (item.kind === 'person') return `person(${item.status}) ${item.text}`;
  if (item.kind === 'notice') return `notice ${item.text}`;
  const parts = item.parts.map((part) => {
    if (part.kind === 'tool') return `[${part.name} ${part.status}${part.output === '' ? '' : ` ${part.output}`}]`;
    return part.kind === 'thinking' ? `(${part.text})` : part.text;
  });
  const failure = item.failure ? ` !${item.failure.message}` : '';
  return `answer(${item.outcome}) ${parts.join(' ')}${failure}`;
}

const play = (...steps: Step[]): Conversation => steps.reduce((now, step) => step(now), emptyConversation(KEY));
const show = (...steps: Step[]): string[] => itemsOf(play(...steps)).map(line);

const cases: { name: string; steps: Step[]; expect: string[] }[] = [
  {
    name: 'a stored run with a tool call is one answer',
    steps: [history(user('hi'), assistant('Let me look.', ['c1']), result('c1', 'out'), assistant('Done.'))],
    expect: ['person(sent) hi', 'answer(answered) Let me look. [exec ok out] Done.'],
  },
  {
    name: 'the time stamp in front of a person’s words is not shown',
    steps: [history(user('[Tue 2026-12-01 00:06 UTC] hi'))],
    expect: ['person(sent) hi'],
  },
  {
    name: 'a message is shown at once, and its run below it',
    steps: [
      history(),
      sent('r1', 'hi'),
      accepted('r1'),
      starts('r1'),
      says('r1', 2, 'Hel'),
      says('r1', 3, 'Hello', 'lo'),
    ],
    expect: ['person(sent) hi', 'answer(running) Hello'],
  },
  {
    name: 'a delta without the whole text continues it',
    steps: [
      history(),
      starts('r1'),
      event('r1', 2, 'assistant', { delta: 'a' }),
      event('r1', 3, 'assistant', { delta: 'b' }),
    ],
    expect: ['answer(running) ab'],
  },
  {
    name: 'a stored message takes the place of the sent and the streamed one',
    steps: [
      ...[history(), sent('r1', 'hi'), starts('r1'), stored(user('hi', 101, 'r1')), says('r1', 2, 'Hello')],
      stored(assistant('Hello')),
    ],
    expect: ['person(sent) hi', 'answer(running) Hello'],
  },
  {
    name: 'text restarts after a tool call',
    steps: [
      ...[history(), sent('r1', 'hi'), starts('r1'), stored(user('hi', 101, 'r1')), says('r1', 2, 'Looking.')],
      ...[
        stored(assistant('Looking.', ['c1'])),
        event('r1', 3, 'tool', { phase: 'start', name: 'exec', toolCallId: 'c1', args: {} }),
      ],
      ...[
        event('r1', 4, 'tool', {
          phase: 'result',
          name: 'exec',
          toolCallId: 'c1',
          isError: true,
          result: { content: [{ type: 'text', text: 'no' }] },
        }),
      ],
      ...[stored(result('c1', 'no', true)), says('r1', 5, 'It failed.')],
    ],
    expect: ['person(sent) hi', 'answer(running) Looking. [exec failed no] It failed.'],
  },
  {
    name: 'tool events alone, as from a gateway that stores at the end',
    steps: [
      ...[history(user('hi', 100, 'r1')), starts('r1'), says('r1', 2, 'Looking.')],
      event('r1', 3, 'tool', { phase: 'start', name: 'exec', toolCallId: 'c1', args: { command: 'c1' } }),
      event('r1', 4, 'tool', {
        phase: 'update',
        name: 'exec',
        toolCallId: 'c1',
        partialResult: { content: [{ type: 'text', text: '50 %' }] },
      }),
    ],
    expect: ['person(sent) hi', 'answer(running) Looking. [exec running 50 %]'],
  },
  {
    name: 'a denied call says so, also after its result was stored',
    steps: [
      ...[history(user('hi', 100, 'r1')), starts('r1'), stored(assistant('', ['c1']))],
      event('r1', 2, 'tool', { phase: 'start', name: 'exec', toolCallId: 'c1', args: {} }),
      event('r1', 3, 'tool', {
        phase: 'result',
        name: 'exec',
        toolCallId: 'c1',
        isError: true,
        outcome: 'denied',
        result: { content: [] },
      }),
      stored(result('c1', 'not allowed', true)),
    ],
    expect: ['person(sent) hi', 'answer(running) [exec denied not allowed]'],
  },
  {
    name: 'M-01: after a reconnect the history and the run under way join without loss or repeat',
    steps: [
      ...[history(user('hi', 100, 'r1')), starts('r1'), says('r1', 2, 'one ')],
      (now) =>
        withHistory(now, {
          sessionId: 's1',
          messages: [user('hi', 100, 'r1')],
          activeRun: { runId: 'r1', startedAt: 100, text: 'one two three ', seq: 4 },
        }),
      ...[says('r1', 4, 'one two three ', 'three '), says('r1', 5, 'one two three four', 'four')],
    ],
    expect: ['person(sent) hi', 'answer(running) one two three four'],
  },
  {
    name: 'events that came before the history’s answer and are newer than it are kept',
    steps: [
      ...[history(user('hi', 100, 'r1')), starts('r1'), says('r1', 5, 'one two')],
      (now) =>
        withHistory(now, {
          sessionId: 's1',
          messages: [user('hi', 100, 'r1')],
          activeRun: { runId: 'r1', startedAt: 100, text: 'one', seq: 3 },
        }),
    ],
    expect: ['person(sent) hi', 'answer(running) one two'],
  },
  {
    name: 'a message while a run is under way waits below it, and its own empty run does not end the other',
    steps: [
      ...[
        history(user('hi', 100, 'r1')),
        starts('r1'),
        says('r1', 2, 'Work'),
        sent('r2', 'and this', 106),
        accepted('r2'),
      ],
      ...[starts('r2'), ends('r2'), says('r1', 3, 'Working', 'ing')],
    ],
    expect: ['person(sent) hi', 'answer(running) Working', 'person(waiting) and this'],
  },
  {
    name: 'a message that was put into the run splits the answer where it was taken in',
    steps: [
      ...[
        history(user('hi', 100, 'r1')),
        starts('r1'),
        sent('r2', 'and this', 106),
        accepted('r2'),
        stored(assistant('A', ['c1'])),
      ],
      ...[stored(result('c1', 'x')), stored(user('and this', 107)), says('r1', 2, 'B')],
    ],
    expect: ['person(sent) hi', 'answer(answered) A [exec ok x]', 'person(sent) and this', 'answer(running) B'],
  },
  {
    name: 'an answer that broke off and is asked for again starts anew',
    steps: [
      ...[history(user('hi', 100, 'r1')), starts('r1'), event('r1', 2, 'thinking', { text: 'hm', delta: 'hm' })],
      ...[
        says('r1', 3, 'Hal'),
        event('r1', 4, 'assistant', { text: '', delta: '', replace: true }),
        says('r1', 5, 'Whole'),
      ],
    ],
    expect: ['person(sent) hi', 'answer(running) Whole'],
  },
  {
    name: 'a stopped run keeps what it said',
    steps: [history(user('hi', 100, 'r1')), starts('r1'), says('r1', 2, 'Half'), ends('r1', 'aborted')],
    expect: ['person(sent) hi', 'answer(aborted) Half'],
  },
  {
    name: 'a run that failed before a word says why and what to do',
    steps: [history(), sent('r1', 'hi'), starts('r1'), ends('r1', 'failed'), history()],
    expect: ['person(sent) hi', 'answer(failed)  !no model'],
  },
  {
    name: 'a stored failure is shown once, with the next step that only the event told',
    steps: [
      ...[history(user('hi', 100, 'r1')), starts('r1'), ends('r1', 'failed')],
      history(user('hi', 100, 'r1'), assistant('', [], { stopReason: 'error', errorMessage: 'stored' })),
    ],
    expect: ['person(sent) hi', 'answer(failed)  !no model'],
  },
  {
    name: 'a command and the gateway’s answer to it stay, though no transcript holds them',
    steps: [
      ...[
        history(user('hi', 90, 'r1'), assistant('Hello')),
        sent('r2', '/status', 200),
        accepted('r2'),
        starts('r2'),
        ends('r2'),
      ],
      ...([
        (now) => withNotice(now, 'r2', 'All well', 201),
        history(user('hi', 90, 'r1'), assistant('Hello')),
      ] as Step[]),
    ],
    expect: ['person(sent) hi', 'answer(answered) Hello', 'person(sent) /status', 'notice All well'],
  },
  {
    name: 'a new transcript shows only the command that asked for it',
    steps: [
      ...[history(user('hi', 90, 'r1'), assistant('Hello')), sent('r2', '/new', 200)],
      ...([
        (now) => withNotice(now, 'r2', 'New session', 201),
        (now) => withHistory(now, { sessionId: 's2', messages: [] }),
      ] as Step[]),
    ],
    expect: ['person(sent) /new', 'notice New session'],
  },
  {
    name: 'a message that could not be sent stays, with the reason',
    steps: [history(), sent('r1', 'hi'), (now) => withSentStatus(now, 'r1', 'failed', { message: 'gone' })],
    expect: ['person(failed) hi'],
  },
  {
    name: 'a message stored before the history was read is not counted twice',
    steps: [stored(user('early')), history(user('early'))],
    expect: ['person(sent) early'],
  },
  {
    name: 'the same words sent twice are two messages',
    steps: [history(user('ok', 100, 'r1')), sent('r2', 'ok', 50_000)],
    expect: ['person(sent) ok', 'person(sending) ok'],
  },
];

for (const { name, steps, expect } of cases)
  test(`conversation: ${name}`, () => assert.deepEqual(show(...steps), expect));

test('conversation: an item keeps its key when it becomes a stored one', () => {
  const live = play(history(), sent('r1', 'hi'), starts('r1'), says('r1', 2, 'Hello'));
  const whole = [live, withHistory(live, { sessionId: 's1', messages: [user('hi', 101, 'r1'), assistant('Hello')] })];
  assert.deepEqual(...(whole.map((now) => itemsOf(now).map(({ key }) => key)) as [string[], string[]]));
});

test('conversation: the usage of an answer is the sum of its responses', () => {
  const now = play(history(user('hi'), assistant('a', ['c1']), result('c1', 'x'), assistant('b')));
  const answer = itemsOf(now).at(-1);
  assert.ok(answer?.kind === 'answer');
  assert.deepEqual([answer.usage?.totalTokens, answer.usage?.cost.total], [30, 1]);
});

test('conversation: items of stored messages stay the same objects while words stream, and no two share a key', () => {
  const view = new ConversationView();
  const before = play(
    history(user('a', 90, 'r0'), assistant('A'), user('b', 100, 'r0')),
    starts('r1'),
    says('r1', 2, 'x'),
  );
  const [first, second] = [view.items(before), view.items(says('r1', 3, 'xy', 'y')(before))];
  assert.deepEqual(
    second.map((item, index) => item === first[index]),
    [true, true, true, false],
  );
  assert.equal(new Set(second.map(({ key }) => key)).size, second.length);
});

test('conversation: only a run that has not ended can be stopped', () => {
  const running = play(history(), starts('r1'));
  assert.equal(runUnderWay(running)?.runId, 'r1');
  assert.equal(runUnderWay(ends('r1')(running)), undefined);
});
