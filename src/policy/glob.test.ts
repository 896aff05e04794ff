import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fitsGlob } from './glob.ts';

const cases = [
  { pattern: '/usr/bin/*', text: '/usr/bin/sort', fits: true },
  { pattern: '/usr/bin/*', text: '/usr/bin/x/sort', fits: false },
  { pattern: '/usr/*/sort', text: '/usr/bin/sort', fits: true },
  { pattern: '/usr/*/sort', text: '/usr/a/b/sort', fits: false },
  { pattern: '*/sort', text: '/usr/bin/sort', fits: false },
  { pattern: '/usr/**/sort', text: '/usr/a/b/sort', fits: false },
  { pattern: '/opt/*-*/x', text: '/opt/a-b-c/x', fits: true },
  { pattern: '/usr/bin/Sort', text: '/usr/bin/sort', fits: false },
  { pattern: '/usr/bin/s?rt', text: '/usr/bin/sort', fits: false },
  { pattern: '/usr/bin/s[o]rt', text: '/usr/bin/sort', fits: false },
  { pattern: '/usr/bin/sor', text: '/usr/bin/sort', fits: false },
  { pattern: '/a*a', text: '/a', fits: false },
  { pattern: '', text: '', fits: true },
  { pattern: '*', text: 'a/b', fits: false },
];
for (const { pattern, text, fits } of cases)
  test(`"${pattern}" ${fits ? 'fits' : 'does not fit'} ${text}`, () =>
    assert.equal(fitsGlob(pattern, text, '/'), fits));

test('without a barrier a star stands for anything', () => assert.ok(fitsGlob('memory_*', 'memory_a/b')));

test('T23: the same answer as trying everything', () => {
  const tried = (pattern: string, text: string): boolean => {
    if (pattern === '') return text === '';
    if (pattern[0] !== '*') return pattern[0] === text[0] && tried(pattern.slice(1), text.slice(1));
    return tried(pattern.slice(1), text) || (text !== '' && text[0] !== '/' && tried(pattern, text.slice(1)));
  };
  const letters = (...all: string[]) => fc.array(fc.constantFrom(...all), { maxLength: 9 }).map((s) => s.join(''));
  fc.assert(
    fc.property(letters('a', 'b', '/', '*', '*'), letters('a', 'b', '/'), (pattern, text) => {
      assert.equal(fitsGlob(pattern, text, '/'), tried(pattern, text));
    }),
    { numRuns: 20_000, seed: 23 },
  );
});
