import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isGatewayError } from '#base';
import { resolveSessionKey } from '#domain';
import { type LaneItem, Lanes } from './lanes.ts';

type Held = LaneItem & { readonly end: (failed: boolean) => void };

/**
 * Plays a script: each word is a session's name and a number; `!` after it makes that run fail. All are put in at once, then the runs
 * that are under way are ended one after the other. `+` a run started, `-` it ended, `!` it failed.
 */
async function play(script: string, runningMax = 8): Promise<string> {
  const lanes = new Lanes({ runningMax, waitingMax: 8, waitingTotalMax: 100 });
  const told: string[] = [];
  const running: Held[] = [];
  for (const word of script.split(' ')) {
    const name = word.replace('!', '');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const item: Held = {
      id: name,
      start: () => {
        told.push(`+${name}`);
        running.push(item);
        return promise;
      },
      end: (failed) => (failed ? reject(new Error(name)) : resolve()),
    };
    lanes.put(resolveSessionKey(name.replace(/\d/g, '')), item);
  }
  const failing = new Set(script.split(' ').flatMap((word) => (word.endsWith('!') ? [word.slice(0, -1)] : [])));
  for (let item = running.shift(); item; item = running.shift()) {
    const failed = failing.has(item.id);
    told.push(`${failed ? '!' : '-'}${item.id}`);
    item.end(failed);
    await new Promise(setImmediate);
  }
  assert.equal(lanes.running, 0);
  assert.equal(lanes.waiting, 0);
  return told.join(' ');
}

const cases = [
  {
    name: 'one session runs in order',
    script: 'anna1 anna2 anna3',
    expect: '+anna1 -anna1 +anna2 -anna2 +anna3 -anna3',
  },
  { name: 'two sessions overlap', script: 'anna1 ben1', expect: '+anna1 +ben1 -anna1 -ben1' },
  { name: 'a failed run frees the lane', script: 'anna1! anna2', expect: '+anna1 !anna1 +anna2 -anna2' },
  {
    name: 'sessions wait for a place in turn',
    script: 'anna1 ben1 carl1 anna2',
    max: 1,
    expect: '+anna1 -anna1 +ben1 -ben1 +carl1 -carl1 +anna2 -anna2',
  },
  {
    name: 'the cap holds over all sessions',
    script: 'anna1 ben1 carl1',
    max: 2,
    expect: '+anna1 +ben1 -anna1 +carl1 -ben1 -carl1',
  },
];
for (const { name, script, max, expect } of cases) {
  test(`M-8: lanes: ${name}`, async () => assert.equal(await play(script, max), expect));
}

test('M-8: lanes: a full lane and a full gateway refuse, each with its own code', () => {
  const lanes = new Lanes({ runningMax: 1, waitingMax: 2, waitingTotalMax: 3 });
  const never = (id: string): LaneItem => ({ id, start: () => new Promise(() => {}) });
  const anna = resolveSessionKey('anna');
  const ben = resolveSessionKey('ben');
  for (const id of ['1', '2', '3']) {
    lanes.assertRoom(anna);
    lanes.put(anna, never(id));
  }
  assert.throws(
    () => lanes.assertRoom(anna),
    (error) => isGatewayError(error, 'LANE_FULL') && error.retryable,
  );
  lanes.put(ben, never('4'));
  assert.throws(
    () => lanes.assertRoom(ben),
    (error) => isGatewayError(error, 'GATEWAY_BUSY') && error.retryable,
  );
});

test('M-8: lanes: waiting items can be taken out, the one under way cannot', () => {
  const lanes = new Lanes({ runningMax: 4, waitingMax: 8, waitingTotalMax: 8 });
  const key = resolveSessionKey('anna');
  for (const id of ['1', '2', '3']) lanes.put(key, { id, start: () => new Promise(() => {}) });
  assert.equal(lanes.current(key)?.id, '1');
  assert.deepEqual(
    lanes.takeWaiting(key, (item) => item.id !== '2').map((item) => item.id),
    ['3'],
  );
  assert.equal(lanes.waiting, 1);
});
