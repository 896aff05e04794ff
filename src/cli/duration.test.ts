import assert from 'node:assert/strict';
import { test } from 'node:test';
import { durationText } from './duration.ts';

const cases: readonly [number, string][] = [
  [-5, '0 s'],
  [999, '0 s'],
  [61_000, '1 min 1 s'],
  [3_600_000, '1 h'],
  [3_605_000, '1 h'],
  [93_784_000, '1 d 2 h'],
];
for (const [milliseconds, expect] of cases) {
  test(`${milliseconds} ms reads ${expect}`, () => assert.equal(durationText(milliseconds), expect));
}
