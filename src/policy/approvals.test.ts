import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '#base';
import { type Approval, type ApprovalDecision, agentId, resolveSessionKey } from '#domain';
import { ManualClock } from '#world';
import { type ApprovalQuestion, Approvals } from './approvals.ts';

const EXPIRY_MS = 30 * 60_000;
const ANNA = agentId('anna');

const question = (
  session: string,
  allowedDecisions: readonly ApprovalDecision[] = ['allow-once', 'deny'],
): ApprovalQuestion => ({
  runId: 'run-1',
  callId: 'call-1',
  sessionKey: resolveSessionKey(session, ANNA),
  agent: ANNA,
  command: 'touch x',
  cwd: '/w',
  reason: 'not listed',
  allowedDecisions,
});

function desk() {
  const clock = new ManualClock();
  const approvals = new Approvals({ clock, expiryMs: () => EXPIRY_MS });
  const seen: Approval[] = [];
  approvals.subscribe((approval) => seen.push(approval));
  const run = new AbortController();
  const ask = (session = 'notes', decisions?: readonly ApprovalDecision[]) =>
    approvals.ask(question(session, decisions), run.signal);
  return { clock, approvals, seen, run, ask };
}

/** What a promise has come to once everything due has had its turn. */
const soon = <T>(promise: Promise<T>): Promise<T | 'waits'> =>
  Promise.race([promise, new Promise<'waits'>((resolve) => setImmediate(() => resolve('waits')))]);

const codeOf = (action: () => unknown): string => {
  try {
    action();
    return 'none';
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error.code;
  }
};

test('T9: a question waits, is told of, and ends with the answer', async () => {
  const { approvals, seen, ask, clock } = desk();
  const asked = ask();
  const [waiting] = approvals.list();
  assert.ok(waiting);
  assert.equal(waiting.expiresAt - waiting.createdAt, EXPIRY_MS);
  assert.deepEqual(approvals.get(waiting.id), waiting);
  assert.equal(waiting.decision, undefined);
  approvals.resolve(waiting.id, 'allow-once', 'anna on a phone');
  const { decision, resolvedBy, resolvedAt } = (await asked)!;
  assert.deepEqual(
    { decision, resolvedBy, resolvedAt },
    { decision: 'allow-once', resolvedBy: 'anna on a phone', resolvedAt: clock.now() },
  );
  assert.deepEqual(
    seen.map((approval) => approval.decision ?? 'asked'),
    ['asked', 'allow-once'],
  );
  assert.equal(approvals.list().length, 0);
  assert.equal(clock.waiting, 0, 'its timer is gone with it');
});

test('B32: an answer counts once; a second use of the id is refused', async () => {
  const { approvals, ask } = desk();
  const asked = ask();
  const id = approvals.list()[0]!.id;
  approvals.resolve(id, 'deny', 'a');
  assert.equal(
    codeOf(() => approvals.resolve(id, 'allow-once', 'b')),
    'APPROVAL_ALREADY_RESOLVED',
  );
  assert.equal((await asked)?.decision, 'deny');
  assert.equal(approvals.get(id)?.decision, 'deny');
  assert.equal(
    codeOf(() => approvals.resolve('no-such-id', 'deny', 'b')),
    'APPROVAL_NOT_FOUND',
  );
});

test('T9: only what was offered counts', async () => {
  const { approvals, ask } = desk();
  const asked = ask('notes', ['allow-once', 'deny']);
  const id = approvals.list()[0]!.id;
  assert.equal(
    codeOf(() => approvals.resolve(id, 'allow-always', 'a')),
    'REQUEST_INVALID',
  );
  assert.equal(approvals.list().length, 1, 'it still waits');
  approvals.resolve(id, 'allow-once', 'a');
  assert.equal((await asked)?.decision, 'allow-once');
});

test('§5: after 30 minutes it has expired, and an answer comes too late', async () => {
  const { approvals, ask, clock } = desk();
  const asked = ask();
  const id = approvals.list()[0]!.id;
  await clock.advance(EXPIRY_MS - 1);
  assert.equal(approvals.list().length, 1);
  await clock.advance(1);
  const ended = await soon(asked);
  assert.equal(ended !== 'waits' && ended?.decision, 'expired');
  assert.equal(
    codeOf(() => approvals.resolve(id, 'allow-once', 'a')),
    'APPROVAL_ALREADY_RESOLVED',
  );
});

test('a question ends with its run, and nobody can answer it any more', async () => {
  const { approvals, ask, run, seen, clock } = desk();
  const asked = ask();
  const id = approvals.list()[0]!.id;
  run.abort(new Error('stopped'));
  const ended = await soon(asked);
  assert.equal(ended !== 'waits' && ended?.decision, 'expired');
  assert.equal(seen.at(-1)?.resolvedBy, 'the run ended');
  assert.equal(
    codeOf(() => approvals.resolve(id, 'allow-once', 'a')),
    'APPROVAL_ALREADY_RESOLVED',
  );
  assert.equal(clock.waiting, 0);
  await assert.rejects(ask(), /stopped/);
});

test('T21: eight wait in a session and 64 in all; a place is free again after an answer', async () => {
  const { approvals, ask } = desk();
  const all: Promise<Approval | undefined>[] = [];
  for (let session = 0; session < 8; session++) for (let i = 0; i < 8; i++) all.push(ask(`s${session}`));
  assert.equal(approvals.list().length, 64);
  assert.equal(approvals.list(resolveSessionKey('s3', ANNA)).length, 8);
  assert.equal(await soon(ask('another')), undefined);
  approvals.resolve(approvals.list(resolveSessionKey('s3', ANNA))[0]!.id, 'deny', 'a');
  assert.equal(await soon(ask('s4')), undefined, 'that session is full');
  all.push(ask('another'));
  assert.equal(approvals.list().length, 64);
  for (const { id } of approvals.list()) approvals.resolve(id, 'deny', 'a');
  assert.equal((await Promise.all(all)).filter((approval) => approval?.decision === 'deny').length, 65);
});

test('T21: of those answered the newest 256 are still known', async () => {
  const { approvals, ask } = desk();
  const ids: string[] = [];
  for (let i = 0; i < 257; i++) {
    const asked = ask();
    const { id } = approvals.list()[0]!;
    ids.push(id);
    approvals.resolve(id, 'deny', 'a');
    await asked;
  }
  assert.equal(approvals.get(ids[0]!), undefined);
  assert.equal(approvals.get(ids[1]!)?.decision, 'deny');
});

test('who unsubscribed hears nothing more', async () => {
  const { approvals, ask } = desk();
  const heard: string[] = [];
  const leave = approvals.subscribe(({ id }) => heard.push(id));
  leave();
  const asked = ask();
  approvals.resolve(approvals.list()[0]!.id, 'deny', 'a');
  await asked;
  assert.deepEqual(heard, []);
});

test('a question that could not be told to anyone holds no place', async () => {
  const { approvals, ask, clock } = desk();
  approvals.subscribe(() => assert.fail('a broken listener'));
  await assert.rejects(ask(), /broken listener/);
  assert.equal(approvals.list().length + clock.waiting, 0);
});
