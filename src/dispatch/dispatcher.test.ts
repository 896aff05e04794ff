// The dispatcher with a real database and real transcripts; only the model is scripted.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import * as Type from 'typebox';
import { isGatewayError } from '#base';
import type { Channel, Delivery, ModelEvent, ModelRequest, Tool } from '#contract';
import {
  type AgentId,
  answerText,
  DEFAULT_AGENT,
  type Envelope,
  type RunNotice,
  resolveSessionKey,
  textOf,
} from '#domain';
import { Models } from '#models';
import { Sessions } from '#sessions';
import { type Database, openDatabase } from '#store';
import { ManualClock } from '#world';
import { Dispatcher, type DispatcherOptions } from './dispatcher.ts';

type Reply = ModelEvent[] | ((request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>);

const usage = { input: 10, output: 2, cacheRead: 0, cacheWrite: 0 };
const say = (text: string): ModelEvent[] => [
  { type: 'finish', content: [{ type: 'text', text }], stopReason: 'stop', usage },
];
const call = (id: string, name: string): ModelEvent[] => [
  { type: 'finish', content: [{ type: 'toolCall', id, name, arguments: {} }], stopReason: 'toolUse', usage },
];
const hang = (gate: Promise<unknown>, then: ModelEvent[]) =>
  async function* (_request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent> {
    if (!signal.aborted)
      await Promise.race([
        gate,
        new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
      ]);
    if (signal.aborted) yield { type: 'failure', failure: { code: 'RUN_ABORTED', message: 'stopped' } };
    else yield* then;
  };

/** A tool that is done when the gate opens. */
const waitFor = (gate: Promise<unknown>): Tool => ({
  name: 'wait',
  label: 'wait',
  description: 'waits',
  parameters: Type.Object({}),
  effect: 'reads',
  execute: () => gate.then(() => ({ content: [] })),
});

type World = {
  readonly dispatcher: Dispatcher;
  readonly sessions: Sessions;
  readonly database: Database;
  readonly requests: ModelRequest[];
  readonly notices: RunNotice[];
  readonly clock: ManualClock;
  readonly audit: Record<string, unknown>[];
  send(text: string, more?: Partial<Envelope>): ReturnType<Dispatcher['submit']>;
  /** What the last user message of a request says. */
  asked(n: number): string;
  close(): Promise<void>;
  /** Lets go of everything as a crash would: nothing is finished, nothing is told. */
  crash(): Promise<void>;
};

async function world(
  folder: string,
  reply: (request: ModelRequest, n: number) => Reply,
  more: Partial<DispatcherOptions> & { readonly tool?: Tool } = {},
): Promise<World> {
  const clock = new ManualClock();
  const requests: ModelRequest[] = [];
  const notices: RunNotice[] = [];
  const audit: Record<string, unknown>[] = [];
  const database = await openDatabase(join(folder, 'reins.sqlite'));
  const sessions = new Sessions({
    database,
    clock,
    folderOf: (agent) => join(folder, 'agents', agent, 'sessions'),
    workspaceOf: () => folder,
    resetRule: () => ({ mode: 'none' }),
    onDamage: () => assert.fail('nothing is damaged'),
  });
  const models = new Models({
    env: {},
    providers: () => ({ world: { baseUrl: 'http://world', models: [{ id: 'm' }] } }),
    aliases: () => ({}),
    ollama: () => undefined,
  });
  const dead = new AbortController();
  const { tool, ...options } = more;
  const dispatcher = new Dispatcher({
    database,
    sessions,
    models,
    clock,
    lanes: { runningMax: 4, waitingMax: 3, waitingTotalMax: 10 },
    settings: (agent: AgentId) =>
      agent !== DEFAULT_AGENT
        ? undefined
        : {
            agent,
            name: 'Main',
            workspace: folder,
            thinking: 'off',
            exchanges: 50,
            limits: { turns: 8, identicalTurns: 4 },
            bound: { tokensMax: 1_000, truncationMessage: 'cut' },
            timeoutMs: 60_000,
            systemExtra: '',
            toolsFor: (tools) => tools,
          },
    provider: () =>
      Promise.resolve({
        api: 'openai-completions',
        async *stream(request: ModelRequest, signal: AbortSignal) {
          const n = requests.push(request) - 1;
          const chosen = reply(request, n);
          if (typeof chosen === 'function') yield* chosen(request, signal);
          else yield* chosen;
          if (dead.signal.aborted) await new Promise(() => {});
        },
      }),
    tools: () => Promise.resolve(tool ? [tool] : []),
    execGate: { authorise: () => Promise.resolve({ allowed: false, reason: 'no' }) },
    workspaceTexts: () => Promise.resolve([]),
    zone: 'UTC',
    channel: () => undefined,
    queueMode: () => 'steer',
    resetTriggers: () => ['/new', '/reset'],
    idempotencyWindowMs: () => 30 * 60_000,
    digest: (text) => createHash('sha256').update(text).digest('hex'),
    log: (level, message, fields) => level === 'error' && assert.fail(`${message} ${JSON.stringify(fields)}`),
    audit: (record) => audit.push(record),
    ...options,
  });
  dispatcher.subscribe((notice) => notices.push(notice));
  await dispatcher.start();
  let count = 0;
  return {
    dispatcher,
    sessions,
    database,
    requests,
    notices,
    clock,
    audit,
    send: (text, extra = {}) =>
      dispatcher.submit({
        idempotencyKey: `k${++count}`,
        channel: 'webchat',
        surface: 'webchat',
        chatType: 'direct',
        sender: { id: 'operator', owner: true },
        sessionKey: resolveSessionKey('main'),
        agent: DEFAULT_AGENT,
        text,
        images: [],
        receivedAt: clock.now(),
        ...extra,
      }),
    asked: (n) => {
      const last = requests[n]?.messages.findLast((m) => m.role === 'user');
      return last ? textOf(last).replace(/^\[.*?\] /, '') : '';
    },
    async close() {
      await dispatcher.close();
      await sessions.close();
      await database.destroy();
    },
    async crash() {
      dead.abort();
      await sessions.close();
      await database.destroy();
    },
  };
}

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reins-dispatch-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const turns = () => new Promise((resolve) => setTimeout(resolve, 0));
async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 2_000 && !condition(); i++) await turns();
  assert.ok(condition(), 'it never came');
}

test('M-5: a repeated key runs nothing and gets the first answer, also after a restart', async (t) => {
  const folder = await folderFor(t);
  const first = await world(folder, (_r, n) => say(`answer ${n}`));
  const one = await first.send('hello', { idempotencyKey: 'same' });
  assert.equal(one.status, 'started');
  assert.equal(answerText(await one.finished), 'answer 0');
  const two = await first.send('hello', { idempotencyKey: 'same' });
  assert.equal(two.status, 'done');
  assert.equal(answerText(await two.finished), 'answer 0');
  await first.close();
  const second = await world(folder, () => assert.fail('nothing may run'));
  const three = await second.send('hello', { idempotencyKey: 'same' });
  assert.equal(three.status, 'done');
  assert.equal(answerText(await three.finished), 'answer 0');
  assert.equal((await second.dispatcher.wait('same', 10))?.outcome, 'answered');
  await second.close();
});

test('M-5: the same key for another text is refused; in another session it is another message', async (t) => {
  const w = await world(await folderFor(t), () => say('ok'));
  await (await w.send('hello', { idempotencyKey: 'k' })).finished;
  await assert.rejects(w.send('other', { idempotencyKey: 'k' }), (e) => isGatewayError(e, 'IDEMPOTENCY_CONFLICT'));
  assert.equal(
    (await w.send('hello', { idempotencyKey: 'k', sessionKey: resolveSessionKey('notes') })).status,
    'started',
  );
  await w.close();
});

test('M-5: two at once with one key are one run', async (t) => {
  const w = await world(await folderFor(t), () => say('ok'));
  const both = await Promise.all([w.send('hello', { idempotencyKey: 'k' }), w.send('hello', { idempotencyKey: 'k' })]);
  assert.deepEqual(
    both.map((s) => s.status),
    ['started', 'in_flight'],
  );
  await Promise.all(both.map((s) => s.finished));
  assert.equal(w.requests.length, 1);
  await w.close();
});

test('M-5: after the window an answer is forgotten and the key is free', async (t) => {
  const w = await world(await folderFor(t), (_r, n) => say(`answer ${n}`));
  await (await w.send('hello', { idempotencyKey: 'k' })).finished;
  await w.clock.advance(36 * 60_000);
  for (let i = 0; i < 20; i++) await turns();
  const again = await w.send('hello', { idempotencyKey: 'k' });
  assert.equal(again.status, 'started');
  assert.equal(answerText(await again.finished), 'answer 1');
  await w.close();
});

test('M-1: sessions of one agent share nothing', async (t) => {
  const w = await world(await folderFor(t), (r) => say(`I know ${r.messages.length} messages`));
  const anna = resolveSessionKey('anna');
  await (await w.send('one', { sessionKey: anna })).finished;
  await (await w.send('two', { sessionKey: anna })).finished;
  const ben = await (await w.send('three', { sessionKey: resolveSessionKey('ben') })).finished;
  assert.equal(answerText(ben), 'I know 1 messages');
  await w.close();
});

test('M-8: steer: a message that arrives during a run is answered by it', async (t) => {
  const gate = Promise.withResolvers<void>();
  const w = await world(await folderFor(t), (_r, n) => (n === 0 ? call('c1', 'wait') : say('both')), {
    tool: waitFor(gate.promise),
  });
  const one = await w.send('first');
  await until(() => w.notices.some((notice) => notice.event.type === 'tool-start'));
  const two = await w.send('second');
  gate.resolve();
  assert.equal(answerText(await one.finished), 'both');
  assert.equal(answerText(await two.finished), 'both');
  assert.equal(w.requests.length, 2);
  assert.match(w.asked(1), /second/);
  assert.equal((await w.send('second', { idempotencyKey: two.runId })).status, 'done');
  await w.close();
});

test('M-8: followup: it waits and is answered by a run of its own; interrupt stops what runs', async (t) => {
  const gate = Promise.withResolvers<void>();
  const w = await world(
    await folderFor(t),
    (_r, n) => (n === 0 ? hang(gate.promise, say('one')) : say(`answer ${n}`)),
    { queueMode: () => 'followup' },
  );
  const one = await w.send('first');
  await until(() => w.requests.length === 1);
  const two = await w.send('second');
  const three = await w.send('third', { queue: 'interrupt' });
  assert.equal((await one.finished).outcome, 'aborted');
  assert.equal((await two.finished).outcome, 'aborted');
  assert.match(answerText(await three.finished), /answer/);
  await w.close();
});

test('M-8: a full lane refuses before anything is recorded', async (t) => {
  const gate = Promise.withResolvers<void>();
  const w = await world(await folderFor(t), (_r, n) => (n === 0 ? hang(gate.promise, say('one')) : say('more')), {
    queueMode: () => 'followup',
  });
  const accepted = [];
  for (let i = 0; i < 4; i++) accepted.push(await w.send(`message ${i}`));
  await assert.rejects(w.send('one too many'), (e) => isGatewayError(e, 'LANE_FULL'));
  gate.resolve();
  for (const submission of accepted) assert.equal((await submission.finished).outcome, 'answered');
  assert.equal((await w.database.selectFrom('inbox').selectAll().execute()).length, 4);
  await w.close();
});

test('M-8: /stop stops at once, wait times out, an abort answers who waits', async (t) => {
  const w = await world(await folderFor(t), (_r, n) => (n === 0 ? hang(new Promise(() => {}), []) : say('ok')));
  const one = await w.send('long');
  await until(() => w.requests.length === 1);
  const waiting = w.dispatcher.wait(one.runId, 1_000);
  await w.clock.advance(1_500);
  assert.equal(await waiting, undefined);
  const stop = await w.send('/stop');
  assert.equal((await one.finished).outcome, 'aborted');
  assert.equal(answerText(await stop.finished), 'Stopped.');
  assert.equal(answerText(await (await w.send('/stop')).finished), 'Nothing is running.');
  await w.close();
});

test('M-7: /new starts over, keeps the old transcript on disk, and the model no longer sees it', async (t) => {
  const w = await world(await folderFor(t), (r) => say(`${r.messages.length}`));
  await (await w.send('one')).finished;
  const before = await w.sessions.get(resolveSessionKey('main'));
  assert.match(answerText(await (await w.send('/new')).finished), /New session/);
  assert.equal(answerText(await (await w.send('two')).finished), '1');
  const after = await w.sessions.get(resolveSessionKey('main'));
  assert.notEqual(after?.sessionId, before?.sessionId);
  await w.close();
});

test('M-7: other words can start a session over; what is no trigger goes to the model', async (t) => {
  const w = await world(await folderFor(t), (r) => say(`${r.messages.length}`), {
    resetTriggers: () => ['Start over'],
  });
  assert.equal(answerText(await (await w.send('/new')).finished), '1');
  assert.match(answerText(await (await w.send('start over ')).finished), /New session/);
  assert.equal(answerText(await (await w.send('hello')).finished), '1');
  await w.close();
});

test('M-5: resends of an answered key stop nothing, take no room, and all get the answer', async (t) => {
  const w = await world(await folderFor(t), (_r, n) =>
    n === 1 ? hang(new Promise(() => {}), []) : say(`answer ${n}`),
  );
  await (await w.send('first', { idempotencyKey: 'k1' })).finished;
  await (await w.send('/stop', { idempotencyKey: 'stop1' })).finished;
  const long = await w.send('long', { idempotencyKey: 'k2', queue: 'followup' });
  await until(() => w.requests.length === 2);
  assert.equal((await w.send('/stop', { idempotencyKey: 'stop1' })).status, 'done');
  const again = await Promise.all(Array.from({ length: 12 }, () => w.send('first', { idempotencyKey: 'k1' })));
  assert.deepEqual([...new Set(again.map((s) => s.status))], ['done']);
  for (const { finished } of again) assert.equal(answerText(await finished), 'answer 0');
  assert.equal(w.dispatcher.load().waiting, 0);
  assert.equal(w.dispatcher.activeRun(resolveSessionKey('main')), long.runId, 'the long run still runs');
  w.dispatcher.abort(resolveSessionKey('main'));
  await long.finished;
  await w.close();
});

test('M-8: a message that is stopped before it began is over at once, and the run before it goes on', async (t) => {
  const gate = Promise.withResolvers<void>();
  const w = await world(await folderFor(t), (_r, n) => (n === 0 ? hang(gate.promise, say('one')) : say('more')));
  const one = await w.send('first', { queue: 'followup' });
  await until(() => w.requests.length === 1);
  const two = await w.send('second', { queue: 'followup', idempotencyKey: 'k2' });
  assert.deepEqual(w.dispatcher.abort(resolveSessionKey('main'), 'k2'), ['k2']);
  assert.equal((await two.finished).outcome, 'aborted');
  gate.resolve();
  assert.equal(answerText(await one.finished), 'one');
  assert.equal(w.requests.length, 1);
  assert.equal((await w.send('second', { idempotencyKey: 'k2' })).status, 'done', 'and stays over');
  await w.close();
});

test('M-10: a time that the message asked for counts while a person is waited for; the agent’s own does not', async (t) => {
  const asks: Tool = {
    name: 'asks',
    label: 'a',
    description: 'a',
    parameters: Type.Object({}),
    effect: 'writes-when-allowed',
    execute: async (_args, { ports, signal }) => {
      const { allowed } = await ports.exec.authorise({} as never, signal);
      return { content: [{ type: 'text', text: String(allowed) }] };
    },
  };
  const person = Promise.withResolvers<void>();
  const waiting = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
  const execGate = {
    authorise: async (_request: unknown, signal: AbortSignal) => {
      await Promise.race([person.promise, waiting(signal)]);
      return { allowed: false as const, reason: 'no' };
    },
  };
  const w = await world(
    await folderFor(t),
    (r) => (r.messages.at(-1)?.role === 'toolResult' ? say('done') : call('c1', 'asks')),
    { tool: asks, execGate },
  );
  const asked = await w.send('quick', { options: { timeoutMs: 3_000 } });
  const patient = await w.send('slow', { sessionKey: resolveSessionKey('other') });
  await until(() => w.notices.filter((notice) => notice.event.type === 'tool-start').length === 2);
  await w.clock.advance(120_000);
  assert.equal((await asked.finished).error?.code, 'RUN_TIMEOUT');
  person.resolve();
  assert.equal(answerText(await patient.finished), 'done');
  await w.close();
});

test('M-7: what is said after /new belongs to the new session', async (t) => {
  const gate = Promise.withResolvers<void>();
  const w = await world(await folderFor(t), (_r, n) => (n === 0 ? call('c1', 'wait') : say(`answer ${n}`)), {
    tool: waitFor(gate.promise),
  });
  const one = await w.send('before');
  await until(() => w.notices.some((notice) => notice.event.type === 'tool-start'));
  const fresh = await w.send('/new');
  const two = await w.send('after');
  gate.resolve();
  for (const { finished } of [one, fresh, two]) assert.equal((await finished).outcome, 'answered');
  const { messages } = await w.sessions.history(resolveSessionKey('main'), { limit: 9 });
  assert.match(textOf(messages[0]!.message), /after$/);
  assert.equal(messages.length, 2);
  await w.close();
});

test('M-16: a run whose session was reset meanwhile ends in its own transcript, also over a crash', async (t) => {
  const folder = await folderFor(t);
  let runs = 0;
  const once: Tool = {
    name: 'once',
    label: 'o',
    description: 'o',
    parameters: Type.Object({}),
    effect: 'writes',
    execute: () => {
      runs++;
      return Promise.resolve({ content: [{ type: 'text', text: 'did it' }] });
    },
  };
  const key = resolveSessionKey('work');
  const first = await world(folder, (_r, n) => (n === 0 ? call('c1', 'once') : hang(new Promise(() => {}), [])), {
    tool: once,
  });
  await first.send('go', { idempotencyKey: 'k', sessionKey: key });
  await until(() => first.requests.length === 2);
  await first.sessions.reset(key);
  await first.crash();
  const second = await world(folder, () => say('done'), { tool: once });
  assert.equal(answerText((await second.dispatcher.wait('k', 5_000))!), 'done');
  assert.equal(runs, 1, 'its tool was not run again');
  assert.deepEqual((await second.sessions.history(key, { limit: 9 })).messages, [], 'the new session is empty');
  assert.equal((await second.sessions.get(key))?.inputTokens, 0);
  assert.equal(await second.sessions.delete(key), true);
  await second.close();
});

test('M-7: a search takes its text as it is', async (t) => {
  const w = await world(await folderFor(t), () => say('ok'));
  for (const name of ['my_notes', 'my-notes', '100%'])
    await (await w.send('hi', { sessionKey: resolveSessionKey(name) })).finished;
  const found = async (search: string) =>
    (await w.sessions.list({ limit: 9, search })).rows.map((row) => row.key.split(':')[2]).sort();
  assert.deepEqual(await found('my_'), ['my_notes']);
  assert.deepEqual(await found('%'), ['100%']);
  assert.deepEqual(await found('MY'), ['my-notes', 'my_notes']);
  await w.close();
});

test('M-14: usage, audit and session row tell what a run cost', async (t) => {
  const w = await world(await folderFor(t), () => say('ok'));
  await (await w.send('hello')).finished;
  const [row] = await w.database.selectFrom('usage').selectAll().execute();
  assert.equal(row?.input, 10);
  assert.equal(row?.outcome, 'answered');
  assert.equal(w.audit[0]?.['outcome'], 'answered');
  assert.doesNotMatch(JSON.stringify(w.audit), /hello/, 'the audit log holds no message text');
  const session = await w.sessions.get(resolveSessionKey('main'));
  assert.equal(session?.status, 'done');
  assert.equal(session?.outputTokens, 2);
  await w.close();
});

test('M-16: a crash during the answer: the next start asks again and answers once', async (t) => {
  const folder = await folderFor(t);
  const first = await world(folder, () => hang(new Promise(() => {}), []));
  await first.send('hello', { idempotencyKey: 'k' });
  await until(() => first.requests.length === 1);
  await first.crash();
  const second = await world(folder, () => say('late'));
  const again = await second.send('hello', { idempotencyKey: 'k' });
  assert.notEqual(again.status, 'started');
  assert.equal(answerText(await again.finished), 'late');
  const { messages } = await second.sessions.history(resolveSessionKey('main'), { limit: 10 });
  assert.deepEqual(
    messages.map((m) => m.message.role),
    ['user', 'assistant'],
  );
  await second.close();
});

test('M-16: a crash during a tool: its outcome is told as unknown and it is not run again', async (t) => {
  const folder = await folderFor(t);
  let runs = 0;
  const stuck: Tool = {
    name: 'stuck',
    label: 's',
    description: 's',
    parameters: Type.Object({}),
    effect: 'writes',
    execute: () => {
      runs++;
      return new Promise(() => {});
    },
  };
  const first = await world(folder, () => call('c1', 'stuck'), { tool: stuck });
  await first.send('hello', { idempotencyKey: 'k' });
  await until(() => runs === 1);
  await first.crash();
  const second = await world(folder, () => say('I checked'), { tool: stuck });
  assert.equal(answerText(await (await second.send('hello', { idempotencyKey: 'k' })).finished), 'I checked');
  assert.equal(runs, 1);
  const told = second.requests[0]?.messages.find((m) => m.role === 'toolResult');
  assert.match(told ? textOf(told) : '', /Outcome unknown/);
  await second.close();
});

test('M-16: a graceful stop suspends what runs; it goes on after the restart', async (t) => {
  const folder = await folderFor(t);
  const first = await world(folder, () => hang(new Promise(() => {}), []));
  const { finished } = await first.send('hello', { idempotencyKey: 'k' });
  await until(() => first.requests.length === 1);
  const closing = first.close();
  await turns();
  await assert.rejects(first.send('more'), (e) => isGatewayError(e, 'GATEWAY_STOPPING'));
  await first.clock.advance(10_000);
  await closing;
  assert.equal((await finished).error?.code, 'GATEWAY_STOPPING');
  const second = await world(folder, () => say('after'));
  assert.equal(answerText((await second.dispatcher.wait('k', 1_000))!), 'after');
  await second.close();
});

test('M-16: an answer promised to a channel is delivered once, also when the first attempts fail and the gateway restarts', async (t) => {
  const folder = await folderFor(t);
  const delivered: Delivery[] = [];
  let down = true;
  const channel: Channel = {
    id: 'wharf',
    async deliver(delivery) {
      if (down) throw new Error('no network');
      delivered.push(delivery);
    },
  };
  const more = { channel: (id: string) => (id === 'wharf' ? channel : undefined) };
  const first = await world(folder, () => say('hello there'), more);
  await (await first.send('hi', { channel: 'wharf' })).finished;
  await first.close();
  assert.equal(delivered.length, 0);
  down = false;
  const second = await world(folder, () => say('unused'), more);
  await until(() => delivered.length === 1);
  assert.equal(delivered[0]?.text, 'hello there');
  await second.close();
  const third = await world(folder, () => say('unused'), more);
  await third.close();
  assert.equal(delivered.length, 1);
});

test('M-10: refused at the door: no text, too much text, an unknown agent', async (t) => {
  const w = await world(await folderFor(t), () => say('ok'));
  await assert.rejects(w.send('  '), (e) => isGatewayError(e, 'MESSAGE_INVALID'));
  await assert.rejects(w.send('x'.repeat(1_000_001)), (e) => isGatewayError(e, 'MESSAGE_TOO_LARGE'));
  await assert.rejects(w.send('hi', { agent: 'nobody' as AgentId }), (e) => isGatewayError(e, 'AGENT_UNKNOWN'));
  await assert.rejects(w.send('hi', { sender: { id: 'stranger', owner: false } }), (e) =>
    isGatewayError(e, 'UNAUTHORIZED'),
  );
  assert.equal(w.requests.length, 0);
  await w.close();
});

test('M-26: a model that nothing provides is said in the conversation, with the next step', async (t) => {
  const w = await world(await folderFor(t), () => say('unused'));
  const result = await (await w.send('hi', { options: { model: 'wrold/m' } })).finished;
  assert.equal(result.error?.code, 'MODEL_NOT_CONFIGURED');
  assert.match(result.error?.message ?? '', /Did you mean world\/m\?/);
  const { messages } = await w.sessions.history(resolveSessionKey('main'), { limit: 10 });
  assert.deepEqual(
    messages.map((m) => m.message.role),
    ['user', 'assistant'],
  );
  await w.close();
});
