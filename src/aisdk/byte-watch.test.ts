import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '#world';
import { ByteWatch } from './byte-watch.ts';

function watching(limits: { readonly idleMs: number; readonly bytesMax: number }) {
  const clock = new ManualClock();
  const watch = new ByteWatch(clock, limits);
  const body = new TransformStream<Uint8Array, Uint8Array>();
  const reader = watch.watched(new Response(body.readable)).body!.getReader();
  const writer = body.writable.getWriter();
  const drip = async (bytes: number) => {
    writer.write(new Uint8Array(bytes));
    await reader.read();
  };
  return { clock, watch, drip };
}

test('M-23: every byte is a sign of life, and silence is given up after the limit', async () => {
  const { clock, watch, drip } = watching({ idleMs: 1_000, bytesMax: 100 });
  for (let i = 0; i < 5; i++) {
    await clock.advance(900);
    await drip(1);
    assert.equal(watch.signal.aborted, false);
  }
  await clock.advance(999);
  assert.equal(watch.signal.aborted, false);
  await clock.advance(1);
  assert.deepEqual([watch.signal.aborted, watch.verdict], [true, 'idle']);
});

test('M-23: a body over its bound is given up, one at its bound is not', async () => {
  const { watch, drip } = watching({ idleMs: 1_000, bytesMax: 100 });
  await drip(100);
  assert.equal(watch.signal.aborted, false);
  await drip(1);
  assert.deepEqual([watch.signal.aborted, watch.verdict], [true, 'too-large']);
});
