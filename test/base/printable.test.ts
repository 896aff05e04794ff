import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutAtCharacter, printable, printableLine } from '#base';

const cases = [
  { given: 'plain text, naïve 漢字 😀', shown: 'plain text, naïve 漢字 😀' },
  { given: 'a\rrm\u202etxt.sh\u200b', shown: 'a\\u{d}rm\\u{202e}txt.sh\\u{200b}' },
  { given: '\u001b]0;owned\u0007', shown: '\\u{1b}]0;owned\\u{7}' },
  { given: 'x\u00a0y\u2800z\u034f', shown: 'x\\u{a0}y\\u{2800}z\\u{34f}' },
  { given: 'tag\u{e0041}\u{e0101}', shown: 'tag\\u{e0041}\\u{e0101}' },
  { given: 'half \ud83d', shown: 'half \\u{d83d}' },
  { given: 'two\nlines', shown: 'two\nlines' },
];
for (const { given, shown } of cases)
  test(`B33: printable shows ${JSON.stringify(shown)}`, () => assert.equal(printable(given), shown));

test('M-14: one line is one line, cut between characters', () => {
  assert.equal(printableLine('a\nb'), 'a\\u{a}b');
  assert.equal(cutAtCharacter('ab😀', 3), 'ab');
  assert.equal(printableLine('x'.repeat(20), 10), `${'x'.repeat(9)}…`);
});
