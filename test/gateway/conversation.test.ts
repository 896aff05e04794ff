// A client's life after hello: sending, following, stopping, coming back, deciding; and what its scopes keep from it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/index.ts';
import type { RunEvent, SessionKey } from '../../src/domain/index.ts';
import { assistantMessage, type Frame, MAIN, openStage, type Stage, start, text, turn, userMessage } from './stage.ts';

const READER = { scopes: ['operator.read'] };

/** A record inside a frame's payload. */
const inner = (frame: Frame | undefined, name: string) => (frame?.payload?.[name] ?? {}) as Record<string, unknown>;
const present = (payload: Frame['payload']) => (payload?.['presence'] as unknown[] | undefined)?.length;

/** Stores a message and tells of it, as the dispatcher does. */
function stored(stage: Stage, message: Parameters<Stage['sessions']['store']>[1]): RunEvent {
  const { entryId, seq } = stage.sessions.store(MAIN, message);
  return { type: 'message', entryId, seq, message };
}

test('M-12: one chat turn with a tool, in the public order', async (t) => {
  const stage = await openStage(t);
  await stage.sessions.create(MAIN, { agent: 'main' as never });
  const peer = await stage.client({ caps: ['tool-events'] });
  await peer.call('sessions.subscribe');
  await peer.call('sessions.messages.subscribe', { key: 'main' });
  await peer.settled();
  const from = peer.frames.length;
  const call = { id: 'c1', name: 'read', arguments: { path: 'a' } };
  const tell = (...events: readonly RunEvent[]) => stage.dispatch.tell(MAIN, 'k1', ...events);
  stage.dispatch.onSubmit = () => {
    tell(start, stored(stage, userMessage('[Mon 2026-11-30 23:50 UTC] hi')), turn(1), text('Looking.'));
    tell(stored(stage, assistantMessage('Looking.')), { type: 'tool-start', turn: 1, call, at: 2 });
    const content = [{ type: 'text', text: 'found' }] as const;
    tell({ type: 'tool-end', turn: 1, call, outcome: 'ok', content, startedAt: 2, at: 3 }, turn(2), text('Done.'));
    tell(stored(stage, assistantMessage('Done.')));
    stage.dispatch.end(MAIN, 'k1', { texts: ['Looking.', 'Done.'] });
  };
  const ack = await peer.call('chat.send', { sessionKey: 'main', message: 'hi', idempotencyKey: 'k1' });
  assert.deepEqual(ack, { runId: 'k1', status: 'started' });
  await peer.until(({ event, payload }) => event === 'chat' && payload?.['state'] === 'final');
  await peer.settled();
  const seen = peer.frames.slice(from).flatMap(({ type, event, payload, seq }) => {
    if (type === 'res') return payload?.['status'] === 'started' ? ['res started'] : [];
    if (event === 'health' || event === 'presence') return [];
    const data = payload?.['data'] as { phase?: string } | undefined;
    const what = payload?.['state'] ?? payload?.['stream'] ?? payload?.['phase'] ?? '';
    return [`${event} ${what}${data?.phase ? `:${data.phase}` : ''}${seq === undefined ? '' : ' #'}`];
  });
  const rows = /^(sessions\.changed|session\.message|session\.tool)/;
  assert.deepEqual(
    seen.filter((line) => !rows.test(line)),
    [
      'res started',
      ...['agent lifecycle:start #', 'agent assistant #', 'chat delta #', 'agent tool:start', 'agent item:start #'],
      ...['agent tool:result', 'agent item:end #', 'agent assistant #', 'agent lifecycle:end #'],
      ...['chat delta #', 'chat final #'],
    ],
  );
  assert.deepEqual(seen.filter((line) => rows.test(line)).sort(), [
    ...[
      'session.message ',
      'session.message ',
      'session.message ',
      'session.tool tool:result',
      'session.tool tool:start',
    ],
    ...['sessions.changed end', 'sessions.changed start'],
  ]);
  const [first] = peer.events('session.message');
  assert.equal(inner(first, 'message')['content'], 'hi', 'the stamp is for the model');
  assert.equal(inner(first, 'session')['key'], MAIN);
  const numbers = peer.frames.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
  assert.deepEqual(
    numbers,
    Array.from(numbers, (_, i) => i + 1),
    'numbered from 1, without a gap',
  );
  const [envelope] = stage.dispatch.submitted;
  assert.deepEqual(envelope?.sender, { id: 'operator', owner: true });
  assert.deepEqual([envelope?.channel, envelope?.sessionKey, envelope?.agent], ['cli', MAIN, 'main']);
});

test('M-12: tool events are for those that asked for them, and others see no gap', async (t) => {
  const stage = await openStage(t);
  const [plain, rich] = [await stage.client(), await stage.client({ caps: ['tool-events'] })];
  const call = { id: 'c', name: 'read', arguments: {} };
  stage.dispatch.tell(MAIN, 'r', start, { type: 'tool-start', turn: 1, call, at: 1 }, text('x'));
  await Promise.all([plain.settled(), rich.settled()]);
  const streams = (peer: typeof plain) => peer.events('agent').map(({ payload }) => payload?.['stream']);
  assert.deepEqual(streams(plain), ['lifecycle', 'item', 'assistant']);
  assert.deepEqual(streams(rich), ['lifecycle', 'tool', 'item', 'assistant']);
  const seqs = plain.frames.flatMap(({ seq }) => seq ?? []);
  assert.deepEqual(
    seqs,
    Array.from(seqs, (_, i) => i + 1),
  );
  assert.deepEqual(plain.events('session.tool'), []);
});

test('M-5: the same key while it runs, and after; another text under it is refused', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  const send = () => peer.call('chat.send', { sessionKey: 'main', message: 'hi', idempotencyKey: 'k' });
  assert.equal((await send())['status'], 'started');
  assert.equal((await send())['status'], 'in_flight');
  stage.dispatch.end(MAIN, 'k', { texts: ['a'] });
  assert.equal((await send())['status'], 'ok');
  assert.equal(stage.dispatch.submitted.length, 1);
  stage.dispatch.refusal = new GatewayError('IDEMPOTENCY_CONFLICT', 'used for another message', {
    next: 'Use a new key.',
  });
  const { error } = await peer.request('chat.send', { sessionKey: 'main', message: 'no', idempotencyKey: 'k' });
  assert.deepEqual([error?.code, error?.details?.['code']], ['INVALID_REQUEST', 'IDEMPOTENCY_CONFLICT']);
});

test('M-8: a full lane is said as such, and that trying again helps', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  stage.dispatch.refusal = new GatewayError('LANE_FULL', 'Too many wait', { next: 'Wait.' });
  const { error } = await peer.request('agent', { message: 'hi', idempotencyKey: 'k' });
  assert.deepEqual(error, {
    ...{ code: 'UNAVAILABLE', message: 'Too many wait', retryable: true },
    details: { code: 'LANE_FULL', next: 'Wait.' },
  });
});

test('M-58: agent answers twice with one id: accepted, then the result', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  stage.dispatch.onSubmit = ({ idempotencyKey }) =>
    stage.dispatch.end(MAIN, idempotencyKey, { texts: ['one', 'two'], turns: 2 });
  peer.send({ type: 'req', id: 'run-1', method: 'agent', params: { message: 'go', idempotencyKey: 'run-1' } });
  const last = await peer.until(({ id, payload }) => id === 'run-1' && payload?.['status'] === 'ok');
  const [first] = peer.frames.filter(({ id }) => id === 'run-1');
  assert.deepEqual([first?.payload?.['runId'], first?.payload?.['status']], ['run-1', 'accepted']);
  assert.equal(last.payload?.['summary'], 'completed');
  assert.deepEqual(inner(last, 'result')['payloads'], [
    { text: 'one', mediaUrl: null },
    { text: 'two', mediaUrl: null },
  ]);
});

test('M-58: agent of a run that fails answers a second time with why', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  stage.dispatch.onSubmit = ({ idempotencyKey }) =>
    stage.dispatch.end(MAIN, idempotencyKey, { outcome: 'failed', error: { code: 'MODEL_AUTH', message: 'No key' } });
  peer.send({ type: 'req', id: 'r', method: 'agent', params: { message: 'go', idempotencyKey: 'r' } });
  const { error, payload } = await peer.until(({ id, ok }) => id === 'r' && ok === false);
  assert.deepEqual([error?.code, error?.message, payload?.['status']], ['UNAVAILABLE', 'No key', 'error']);
});

test('M-8: /stop as text answers like chat.abort and runs nothing', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  const stop = () => peer.call('chat.send', { sessionKey: 'main', message: ' /stop ', idempotencyKey: 'x' });
  assert.deepEqual(await stop(), { ok: true, aborted: false, runIds: [] });
  await peer.call('chat.send', { sessionKey: 'main', message: 'long', idempotencyKey: 'k' });
  assert.deepEqual(await stop(), { ok: true, aborted: true, runIds: ['k'] });
  assert.equal(stage.dispatch.submitted.length, 1);
  const waited = await peer.call('agent.wait', { runId: 'k' });
  assert.deepEqual([waited['status'], waited['error'], waited['stopReason']], ['error', 'aborted', 'rpc']);
});

test('M-16: a client that comes back finds what was stored and what is being said', async (t) => {
  const stage = await openStage(t);
  const first = await stage.client();
  await first.call('chat.send', { sessionKey: 'main', message: 'hi', idempotencyKey: 'k' });
  const tell = (...events: readonly RunEvent[]) => stage.dispatch.tell(MAIN, 'k', ...events);
  tell(start, stored(stage, userMessage('hi')), turn(1), text('Looking.'));
  tell(stored(stage, assistantMessage('Looking.')), turn(2));
  first.socket.terminate();
  tell({ type: 'thinking-delta', turn: 2, text: 'hm' }, text('The ans', 2));
  const second = await stage.client();
  const { messages, activeRun } = await second.call('chat.history', { sessionKey: 'main' });
  assert.deepEqual(
    (messages as { role: string; __openclaw: unknown }[]).map(({ role, __openclaw }) => [role, __openclaw]),
    [
      ['user', { id: 'e1', seq: 1 }],
      ['assistant', { id: 'e2', seq: 2 }],
    ],
  );
  const { runId, text: said, thinking } = activeRun as Record<string, unknown>;
  assert.deepEqual([runId, said, thinking], ['k', 'The ans', 'hm']);
  tell(text('wer', 2));
  await stage.clock.advance(100);
  await second.settled();
  const data = second.events('agent').map(({ payload }) => payload?.['data']);
  // What was held back is told before the history is, so that the next part begins where the history ends.
  assert.deepEqual(data, [
    { text: 'The ans', delta: 'The ans' },
    { text: 'The answer', delta: 'wer' },
  ]);
});

test('M-16: a message stored while the history is read is in it, not in a gap', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  stage.dispatch.tell(MAIN, 'k', start, turn(1), text('Whole answer'));
  stage.sessions.whileReading = () => {
    stage.sessions.whileReading = () => undefined;
    stage.dispatch.tell(MAIN, 'k', stored(stage, assistantMessage('Whole answer')));
  };
  const { messages, activeRun } = await peer.call('chat.history', { sessionKey: 'main' });
  assert.equal((messages as unknown[]).length, 1);
  assert.equal((activeRun as { text: string }).text, '');
});

test('M-39: a question is heard by those who may decide; the answer is recorded with who gave it', async (t) => {
  const stage = await openStage(t);
  const [decider, reader] = [await stage.client(), await stage.client(READER)];
  stage.approvals.ask('a1', 'rm -r x');
  const asked = await decider.until(({ event }) => event === 'exec.approval.requested');
  assert.equal(inner(asked, 'request')['command'], 'rm -r x');
  const waiting = decider.request('exec.approval.waitDecision', { id: 'a1' });
  await decider.settled();
  assert.match(
    (await reader.request('exec.approval.resolve', { id: 'a1', decision: 'deny' })).error?.message ?? '',
    /^missing scope: operator\.approvals$/,
  );
  assert.deepEqual(await decider.call('exec.approval.resolve', { id: 'a1', decision: 'allow-once' }), { ok: true });
  assert.equal((await waiting).payload?.['decision'], 'allow-once');
  const resolved = await decider.until(({ event }) => event === 'exec.approval.resolved');
  assert.equal(resolved.payload?.['resolvedBy'], 'gateway-client/backend');
  const again = await decider.request('exec.approval.resolve', { id: 'a1', decision: 'deny' });
  assert.equal(again.error?.details?.['reason'], 'APPROVAL_NOT_FOUND');
  await reader.settled();
  assert.deepEqual(reader.events('exec.approval.requested', 'exec.approval.resolved'), []);
});

test('T21: who waits for a decision and goes leaves no listener behind', async (t) => {
  const stage = await openStage(t);
  const listening = stage.approvals.listening;
  const [gone, stays] = [await stage.client(), await stage.client()];
  stage.approvals.ask('a1', 'ls');
  gone.send({ type: 'req', id: 'w', method: 'exec.approval.waitDecision', params: { id: 'a1' } });
  await gone.settled();
  assert.equal(stage.approvals.listening, listening + 1);
  gone.socket.terminate();
  await stays.until(
    ({ event, payload }) => event === 'presence' && present(payload) === 2 && stage.approvals.listening === listening,
  );
  assert.equal(stage.approvals.listening, listening);
});

const scopes: readonly [scopes: readonly string[], method: string, params: unknown, message: RegExp | undefined][] = [
  [[], 'health', {}, undefined],
  [[], 'sessions.list', {}, /^missing scope: operator\.read$/],
  [['operator.read'], 'sessions.list', {}, undefined],
  [['operator.write'], 'sessions.list', {}, undefined],
  [
    ['operator.read'],
    'chat.send',
    { sessionKey: 'main', message: 'x', idempotencyKey: 'k' },
    /^missing scope: operator\.write$/,
  ],
  [['operator.write'], 'sessions.delete', { key: 'x' }, /^missing scope: operator\.admin$/],
  [['operator.write'], 'nope.method', {}, /^missing scope: operator\.admin$/],
  [['operator.write'], '__proto__', {}, /^missing scope: operator\.admin$/],
  [['operator.admin'], 'nope.method', {}, /^unknown method: nope\.method$/],
  [['operator.admin'], 'constructor', {}, /^unknown method: constructor$/],
  [['operator.admin'], 'exec.approval.list', {}, undefined],
  [
    ['operator.admin'],
    'sessions.list',
    { bogus: 1 },
    /^invalid sessions\.list params: at root: unexpected property 'bogus'$/,
  ],
  [
    ['operator.admin'],
    'chat.send',
    { sessionKey: 'main', message: 'x' },
    /^invalid chat\.send params: must have required property 'idempotencyKey'$/,
  ],
  [
    ['operator.admin'],
    'chat.send',
    { sessionKey: 'main', message: ' ', idempotencyKey: 'k' },
    /^message or attachment required$/,
  ],
  [
    ['operator.admin'],
    'chat.send',
    { sessionKey: 'agent:ghost:main', message: 'x', idempotencyKey: 'k' },
    /^Agent "ghost" no longer exists in configuration$/,
  ],
  [
    ['operator.admin'],
    'agent',
    { agentId: 'ghost', message: 'x', idempotencyKey: 'k' },
    /^invalid agent params: unknown agent id "ghost"$/,
  ],
  [
    ['operator.admin'],
    'agent',
    { agentId: 'research', sessionKey: MAIN, message: 'x', idempotencyKey: 'k' },
    /does not match session key agent "main"$/,
  ],
  [['operator.admin'], 'sessions.describe', { key: 'nope' }, /^No session found: nope$/],
  [['operator.admin'], 'sessions.delete', { key: 'main' }, /^Cannot delete the main session \(agent:main:main\)\.$/],
];
for (const [granted, method, params, message] of scopes) {
  test(`T4: [${granted}] ${method} ${JSON.stringify(params)}: ${message?.source ?? 'allowed'}`, async (t) => {
    const stage = await openStage(t);
    const peer = await stage.client({ scopes: granted });
    const { ok, error } = await peer.request(method, params);
    assert.equal(ok, message === undefined, JSON.stringify(error));
    if (message) assert.match(error?.message ?? '', message);
    assert.deepEqual(stage.dispatch.submitted, []);
  });
}

const SERVER_OWNED = ['approved', 'approvalDecision', 'isOwner', 'senderId', 'provenance', 'runId', 'scopes'];
test('T4: what the server owns is refused in params, not ignored', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  for (const name of SERVER_OWNED) {
    const { error } = await peer.request('chat.send', {
      ...{ sessionKey: 'main', message: 'hi', idempotencyKey: 'k' },
      [name]: 'x',
    });
    assert.match(error?.message ?? '', new RegExp(`unexpected property '${name}'`));
  }
  assert.deepEqual(stage.dispatch.submitted, []);
});

test('M-58: a wrong frame is answered and the socket stays', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  peer.send({ type: 'req', id: 5 });
  const { error } = await peer.until(({ id }) => id === 5);
  assert.equal(error?.message, "invalid request frame: must have required property 'method'; at /id: must be string");
  for (const bad of [
    '{',
    '"x"',
    '{"type":"req","id":"p","method":"health","params":{"__proto__":{}}}',
    Buffer.from([1, 2]),
  ])
    peer.send(bad);
  await peer.settled();
  assert.equal(peer.frames.filter(({ id, ok }) => id === null && ok === false).length, 4);
  assert.equal((await peer.request('health')).ok, true, 'params may be absent');
});

test('T21: more than sixty-four requests at once are refused, retryable', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  stage.approvals.ask('a', 'ls');
  for (let i = 0; i < 65; i++)
    peer.send({ type: 'req', id: `w${i}`, method: 'exec.approval.waitDecision', params: { id: 'a' } });
  const { error } = await peer.answer('w64');
  assert.deepEqual([error?.code, error?.retryable], ['UNAVAILABLE', true]);
  stage.approvals.resolve('a', 'deny', 'test');
  assert.equal((await peer.answer('w0')).payload?.['decision'], 'deny');
});

test('M-58: sessions from making one to deleting it, each change told to those who asked', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  await peer.call('sessions.subscribe');
  const made = await peer.call('sessions.create', { key: 'notes', label: 'Notes' });
  assert.equal(made['key'], 'agent:main:notes');
  assert.equal((await peer.until(({ event }) => event === 'sessions.changed')).payload?.['reason'], 'create');
  assert.equal((await peer.call('sessions.resolve', { label: 'Notes' }))['key'], 'agent:main:notes');
  const patched = await peer.call('sessions.patch', { key: 'notes', thinkingLevel: 'high', label: 'N' });
  assert.deepEqual([(patched['entry'] as { label: string }).label], ['N']);
  const bad = await peer.request('sessions.patch', { key: 'notes', thinkingLevel: 'huge' });
  assert.match(bad.error?.message ?? '', /^invalid thinkingLevel/);
  assert.equal(
    ((await peer.call('sessions.reset', { key: 'notes' }))['entry'] as { sessionId: string }).sessionId,
    'fresh',
  );
  stage.sessions.store('agent:main:notes' as SessionKey, userMessage('[Mon 2026-11-30 23:50 UTC] first words'));
  const list = await peer.call('sessions.list', { includeDerivedTitles: true });
  assert.equal((list['sessions'] as { derivedTitle: string }[])[0]?.derivedTitle, 'first words');
  const { previews } = await peer.call('sessions.preview', { keys: ['notes', 'nope'] });
  assert.deepEqual(
    (previews as { status: string }[]).map(({ status }) => status),
    ['ok', 'empty'],
  );
  assert.deepEqual(await peer.call('sessions.delete', { key: 'notes' }), {
    ...{ ok: true, key: 'agent:main:notes', deleted: true, archived: [] },
  });
});

test('M-58: what the gateway tells of itself', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  assert.deepEqual((await peer.call('agents.list'))['defaultId'], 'main');
  assert.equal(((await peer.call('models.list'))['models'] as { id: string }[])[0]?.id, 'm');
  assert.deepEqual(((await peer.call('commands.list'))['commands'] as { textAliases: string[] }[])[0]?.textAliases, [
    '/status',
  ]);
  assert.equal((await peer.call('agent.identity.get', { sessionKey: 'agent:research:x' }))['agentId'], 'research');
  assert.doesNotMatch(JSON.stringify(await peer.call('config.get')), /stage-secret/);
  const presence = (await peer.request('system-presence')).payload as unknown as { mode: string }[];
  assert.deepEqual(
    presence.map(({ mode }) => mode),
    ['gateway', 'backend'],
  );
});

test('M-58: clients of a page talk as webchat; ticks come every thirty seconds', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client({
    client: { id: 'openclaw-control-ui', version: '1', platform: 'web', mode: 'webchat' },
  });
  await peer.call('chat.send', { sessionKey: 'main', message: 'hi', idempotencyKey: 'k', deliver: false });
  assert.deepEqual(
    [stage.dispatch.submitted[0]?.channel, stage.dispatch.submitted[0]?.surface],
    ['webchat', 'openclaw-control-ui'],
  );
  await stage.clock.advance(60_000);
  await peer.settled();
  assert.equal(peer.events('tick').length, 2);
});

test('M-58: a gateway that goes down says so, then closes with 1012', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  const waiting = stage.socket();
  await waiting.challenge();
  const closed = stage.gateway.close('stopping');
  assert.deepEqual(await peer.closed, { code: 1012, reason: 'service restart' });
  assert.deepEqual(peer.events('shutdown')[0]?.payload, { reason: 'gateway stopping', restartExpectedMs: null });
  assert.equal((await waiting.closed).code, 1012);
  await closed;
});

test('T21: a client that does not read loses its connection, the others do not notice', async (t) => {
  const stage = await openStage(t);
  const [slow, fast] = [await stage.client(), await stage.client()];
  slow.socket.pause();
  const big = 'x'.repeat(4 * 1024 * 1024);
  const isCut = () => stage.logged.some(({ message }) => /too slow/.test(message));
  for (let i = 0; i < 20 && !isCut(); i++) {
    stage.dispatch.tell(MAIN, `r${i}`, start, turn(1), text(big));
    await fast.until(({ event, payload }) => event === 'chat' && payload?.['runId'] === `r${i}`);
  }
  assert.ok(isCut());
  await fast.until(({ event, payload }) => event === 'presence' && present(payload) === 2);
});
