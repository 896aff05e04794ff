import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readRequest } from '#protocol';

const cases: readonly [value: unknown, id: unknown, fault: string][] = [
  [{ type: 'req', id: 5 }, 5, "must have required property 'method'; at /id: must be string"],
  [{ type: 'event', id: 'a', method: 'health' }, 'a', 'at /type: must be equal to constant'],
  [{ type: 'req', id: '', method: 'health' }, '', 'at /id: must not have fewer than 1 characters'],
  [
    { type: 'req', id: 'x'.repeat(300), method: 'health' },
    'x'.repeat(256),
    'at /id: must not have more than 256 characters',
  ],
  [{ type: 'req', id: { a: 1 }, method: 'health' }, null, 'at /id: must be string'],
  [{ type: 'req', id: 'a', method: 'health', seq: 1 }, 'a', "at root: unexpected property 'seq'"],
  [[], null, 'at root: must be object'],
  ['connect', null, 'at root: must be object'],
];
for (const [value, id, fault] of cases)
  test(`M-58: a wrong frame says what is wrong with it: ${fault}`, () =>
    assert.deepEqual(readRequest(value), { id, fault }));

test('M-58: a request frame is read, its params untouched and optional', () => {
  const params = { anything: ['at', 'all'] };
  assert.deepEqual(readRequest({ type: 'req', id: 'a', method: 'm', params }), {
    frame: { type: 'req', id: 'a', method: 'm', params },
  });
  assert.deepEqual(readRequest({ type: 'req', id: 'a', method: 'm' }), {
    frame: { type: 'req', id: 'a', method: 'm' },
  });
});

test('M-58: property: whatever is read, it is a frame or a fault with an id that can be sent back', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const read = readRequest(value);
      if ('fault' in read) assert.ok(read.fault !== '' && JSON.stringify({ id: read.id }).length < 2_000);
      else assert.equal(read.frame.type, 'req');
    }),
  );
});
