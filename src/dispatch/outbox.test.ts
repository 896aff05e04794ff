// The outbox with a real database, whose table is taken away while it works.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { GatewayError } from '#base';
import type { Channel, Delivery } from '#contract';
import { resolveSessionKey } from '#domain';
import { openDatabase } from '#store';
import { ManualClock } from '#world';
import { Outbox } from './outbox.ts';

const answer = (id: string): Delivery => ({
  id,
  runId: id,
  channel: 'world',
  to: 'anna',
  sessionKey: resolveSessionKey('main'),
  text: id,
});

async function outboxWith(t: TestContext, deliver: Channel['deliver']) {
  const folder = await mkdtemp(join(tmpdir(), 'reins-outbox-'));
  const database = await openDatabase(join(folder, 'reins.sqlite'));
  t.after(async () => {
    await database.destroy();
    await rm(folder, { recursive: true, force: true });
  });
  const clock = new ManualClock();
  const dead: string[] = [];
  const unrecorded: unknown[] = [];
  const outbox = new Outbox({
    database,
    clock,
    channel: () => ({ id: 'world', deliver }),
    onDeadLetter: (delivery) => dead.push(delivery.id),
    onUnrecorded: (error) => unrecorded.push(error),
  });
  const statuses = async () =>
    Object.fromEntries(
      (await database.selectFrom('outbox').select(['id', 'status']).execute()).map((row) => [row.id, row.status]),
    );
  /** Lets time go by until it is so. */
  const until = async (event: Promise<unknown>) => {
    let isSo = false;
    void event.then(() => {
      isSo = true;
    });
    while (!isSo) await clock.advance(1_000);
  };
  return { outbox, database, clock, dead, unrecorded, statuses, until };
}

/** A delivery that fails once, one that is gone, and one more, of the same session. */
function flaky() {
  const delivered: string[] = [];
  const all = Promise.withResolvers<void>();
  let failures = 1;
  const deliver: Channel['deliver'] = async (delivery) => {
    if (delivery.id === 'gone') throw new GatewayError('DELIVERY_GONE', 'no such chat');
    if (failures-- > 0) throw new Error('the far side is down');
    delivered.push(delivery.id);
    if (delivery.id === 'last') all.resolve();
  };
  return { delivered, all: all.promise, deliver };
}

test('M-16: what is delivered, given up and accepted is on disk when the outbox is closed', async (t) => {
  const { delivered, all, deliver } = flaky();
  const w = await outboxWith(t, deliver);
  for (const id of ['first', 'gone', 'last']) {
    await w.outbox.promise(answer(id), w.database);
    w.outbox.send(answer(id));
  }
  await w.until(all);
  await w.outbox.close();
  assert.deepEqual(delivered, ['first', 'last']);
  assert.deepEqual(w.dead, ['gone']);
  assert.deepEqual(w.unrecorded, []);
  assert.deepEqual(await w.statuses(), { first: 'accepted', gone: 'gone', last: 'accepted' });
});

test('M-16: a disk that takes no record stops no delivery; it is told, and receipts are written once the disk is back', async (t) => {
  const { delivered, all, deliver } = flaky();
  const w = await outboxWith(t, deliver);
  for (const id of ['first', 'gone', 'last']) await w.outbox.promise(answer(id), w.database);
  await w.database.schema.alterTable('outbox').renameTo('away').execute();
  for (const id of ['first', 'gone', 'last']) w.outbox.send(answer(id));
  await w.until(all);
  assert.deepEqual(delivered, ['first', 'last']);
  assert.deepEqual(w.dead, ['gone']);
  assert.ok(w.unrecorded.length >= 2, 'the retry and the end of one');
  await w.database.schema.alterTable('away').renameTo('outbox').execute();
  await w.clock.advance(60_000);
  await w.outbox.close();
  assert.deepEqual(await w.statuses(), { first: 'accepted', gone: 'pending', last: 'accepted' });
});
