import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isGatewayError } from '#base';
import { applyEdits, type Edit } from './apply-edits.ts';
import { unifiedDiff } from './unified-diff.ts';

const edits = (...pairs: readonly (readonly [string, string])[]): readonly Edit[] =>
  pairs.map(([oldText, newText]) => ({ oldText, newText }));

const GOOD = [
  { name: 'one passage', text: 'a b c', edits: edits(['b', 'B']), result: 'a B c' },
  {
    name: 'several, in any order, each against the text as it was',
    text: 'one two',
    edits: edits(['two', 'one'], ['one', 'two']),
    result: 'two one',
  },
  { name: 'neighbours that touch', text: 'ab', edits: edits(['a', '1'], ['b', '2']), result: '12' },
  { name: 'removal', text: 'a\nb\nc\n', edits: edits(['b\n', '']), result: 'a\nc\n' },
  {
    name: 'CRLF stays, though the edit has LF',
    text: 'a\r\nb\r\nc\r\n',
    edits: edits(['a\nb', 'x\ny\nz']),
    result: 'x\r\ny\r\nz\r\nc\r\n',
  },
  { name: 'mixed line ends stay as they are', text: 'a\r\nb\nc', edits: edits(['b\nc', 'B\nC']), result: 'a\r\nB\nC' },
  {
    name: 'text that looks like a replacement pattern is text',
    text: 'price',
    edits: edits(['price', '$& $1 $$']),
    result: '$& $1 $$',
  },
];
for (const { name, text, edits: given, result } of GOOD) {
  test(`edits: ${name}`, () => assert.equal(applyEdits(text, given).text, result));
}

const BAD = [
  {
    name: 'a passage that is not there',
    text: 'a',
    edits: edits(['a', 'b'], ['x', 'y']),
    message: /^Edit 2: its oldText is not in the file\. Nothing was changed/,
  },
  {
    name: 'with the nearest line',
    text: 'x\n  foo( 1 )\n',
    edits: edits(['foo(1)', '']),
    message: /line 2 is near: " {2}foo\( 1 \)"/,
  },
  {
    name: 'with the line of the same beginning',
    text: 'a\nconst thing = makeIt(1);\n',
    edits: edits(['const thing = makeIt(2);', '']),
    message: /line 2 is near/,
  },
  {
    name: 'a passage that is there twice',
    text: 'x\ny\nx\n',
    edits: edits(['x', 'z']),
    message: /^Edit 1: its oldText is 2 times in the file \(lines 1, 3\)/,
  },
  { name: 'a passage that overlaps itself', text: 'aaa', edits: edits(['aa', 'b']), message: /2 times/ },
  { name: 'overlapping edits', text: 'abc', edits: edits(['bc', 'x'], ['ab', 'y']), message: /^Edits 2 and 1 overlap/ },
  { name: 'the same edit twice', text: 'abc', edits: edits(['b', 'x'], ['b', 'x']), message: /overlap/ },
  { name: 'an empty passage', text: 'abc', edits: edits(['', 'x']), message: /empty oldText/ },
  { name: 'no change', text: 'abc', edits: edits(['b', 'b']), message: /change nothing/ },
];
for (const { name, text, edits: given, message } of BAD) {
  test(`edits refused: ${name}`, () => {
    assert.throws(
      () => applyEdits(text, given),
      (error) => isGatewayError(error, 'EDIT_MISMATCH') && message.test(error.message),
    );
  });
}

/** A text, and edits of some of its parts, which are made unmistakable by a number. */
const scenario = fc
  .array(
    fc.record({
      words: fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\n', 'ü', '😀'), maxLength: 8 }),
      newText: fc.option(fc.string({ unit: fc.constantFrom('x', '\n', '$'), maxLength: 8 })),
    }),
    { minLength: 1, maxLength: 14 },
  )
  .map((parts) => {
    const numbered = parts.map(({ words, newText }, i) => ({ oldText: `<${i}>${words}`, newText }));
    const expected = numbered.map(({ oldText, newText }) => newText ?? oldText).join('');
    const given = numbered.flatMap(({ oldText, newText }) => (newText === null ? [] : [{ oldText, newText }]));
    return { text: numbered.map(({ oldText }) => oldText).join(''), given, expected };
  })
  .filter(({ given, text, expected }) => given.length > 0 && text !== expected)
  // An oldText whose words are empty is the beginning of none other, but `<1>` is not in `<11>`: the numbers end with `>`.
  .chain((made) =>
    fc.shuffledSubarray(made.given, { minLength: made.given.length }).map((given) => ({ ...made, given })),
  );

test('edits: whatever is unmistakable and apart is replaced, in any order, and nothing else', () => {
  fc.assert(fc.property(scenario, ({ text, given, expected }) => assert.equal(applyEdits(text, given).text, expected)));
});

test('edits: the diff turns the old text into the new one', () => {
  fc.assert(
    fc.property(scenario, ({ text, given }) => {
      const edited = applyEdits(text, given);
      assert.deepEqual(patched(text, unifiedDiff('f', text, edited.replacements)), linesOf(edited.text));
    }),
    { numRuns: 500 },
  );
});

test('the diff is in the usual form', () => {
  const text = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join('');
  const { replacements } = applyEdits(text, edits(['line 2\n', ''], ['line 19', 'nineteen\nand more']));
  assert.equal(
    unifiedDiff('a/b.txt', text, replacements),
    '--- a/b.txt\n+++ a/b.txt\n@@ -1,5 +1,4 @@\n line 1\n-line 2\n line 3\n line 4\n line 5\n' +
      '@@ -16,5 +15,6 @@\n line 16\n line 17\n line 18\n-line 19\n+nineteen\n+and more\n line 20\n',
  );
});

test('the diff of a huge change is bounded', () => {
  const { replacements } = applyEdits('a', edits(['a', 'x\n'.repeat(1_000_000)]));
  assert.ok(unifiedDiff('f', 'a', replacements).length < 25_000);
});

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** Applies a unified diff strictly: every context and removed line must be where the diff says. */
function patched(text: string, diff: string): string[] {
  const old = linesOf(text);
  const result: string[] = [];
  let at = 0;
  for (const line of diff.split('\n').slice(2)) {
    const [, start, count] = /^@@ -(\d+),(\d+) /.exec(line) ?? [];
    if (start !== undefined) {
      const from = count === '0' ? Number(start) : Number(start) - 1;
      result.push(...old.slice(at, from));
      at = from;
    } else if (line.startsWith('+')) result.push(line.slice(1));
    else if (line !== '') {
      assert.equal(old[at++], line.slice(1), diff);
      if (line.startsWith(' ')) result.push(line.slice(1));
    }
  }
  return [...result, ...old.slice(at)];
}
