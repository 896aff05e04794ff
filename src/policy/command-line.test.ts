import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseCommandLine } from './command-line.ts';

/** `[a b | c]` for a line of one pipeline, with what joins them; `miss` for anything else. */
function play(line: string): string {
  const parsed = parseCommandLine(line);
  if (!parsed.ok) return 'miss';
  const joins = { always: ';', 'after-success': '&&', 'after-failure': '||' };
  return parsed.pipelines
    .map(({ commands, when }, i) => {
      const words = commands.map((argv) => argv.map((word) => `<${word}>`).join('')).join('|');
      return (i === 0 ? '' : joins[when]) + words;
    })
    .join('');
}

const read = [
  { line: 'echo a', expect: '<echo><a>' },
  { line: '  echo   a  ', expect: '<echo><a>' },
  { line: 'echo "a && b"', expect: '<echo><a && b>' },
  { line: `echo 'a $HOME \`x\` \\ "q" ! #'`, expect: '<echo><a $HOME `x` \\ "q" ! #>' },
  { line: `echo a"b c"'d'e`, expect: '<echo><ab cde>' },
  { line: `echo "" ''`, expect: '<echo><><>' },
  { line: 'cat f | sort -u|head -n 3', expect: '<cat><f>|<sort><-u>|<head><-n><3>' },
  { line: 'a && b || c; d;', expect: '<a>&&<b>||<c>;<d>' },
  { line: 'a&&b', expect: '<a>&&<b>' },
  { line: 'ls --color=never /tmp/x_y-z.txt a@b +1 50% ^ x:y,z', expect: null },
  { line: 'echo ünïcode 日本語 😀', expect: '<echo><ünïcode><日本語><😀>' },
  { line: 'echo a=b', expect: '<echo><a=b>' },
];
for (const { line, expect } of read) {
  test(`T8 read: ${line}`, () =>
    expect === null ? assert.notEqual(play(line), 'miss') : assert.equal(play(line), expect));
}

const missed: readonly { readonly why: string; readonly lines: readonly string[] }[] = [
  {
    why: 'expansion',
    lines: ['echo $HOME', 'echo "$HOME"', 'echo $(id)', 'echo "$(id)"', 'echo `id`', 'echo "`id`"', "echo $'a'"],
  },
  {
    why: 'redirection',
    lines: ['echo a > p', 'cat < p', 'cat <(id)', 'cat <<E', 'echo a >> p', 'echo 2>&1', 'echo a>|p'],
  },
  { why: 'background', lines: ['echo a & id', 'echo a &', 'a |& b', 'a &&& b', '& a'] },
  { why: 'groups and braces', lines: ['(id)', '{ id; }', 'echo {a,b}', 'f() { id; }'] },
  { why: 'comment and history', lines: ['ls # x', 'echo !!', 'echo "a!b"', '! true'] },
  { why: 'globs and home', lines: ['ls *', 'ls a?', 'ls [ab]', 'ls ]', 'ls ~', 'ls ~root'] },
  { why: 'backslash', lines: ['echo \\a', 'echo "a\\"b"', 'echo "a\\b"', 'echo a\\\nb', 'echo "ok $\\\n(touch p)"'] },
  {
    why: 'B28: an end of line inside quotes',
    lines: ['echo "a\nb"', "echo 'a\nb'", 'echo a\ntouch p', 'echo a\rtouch p', 'echo a\0b'],
  },
  {
    why: 'B33: what nobody would see',
    lines: [
      '\u0007',
      '\t',
      '\u001b[2J',
      '\u007f',
      '\u0085',
      '\u00a0',
      '\u00ad',
      '\u034f',
      '\u061c',
      '\u115f',
      '\u200b',
      '\u200e',
    ]
      .concat([
        '\u2028',
        '\u202e',
        '\u2066',
        '\u2800',
        '\u3000',
        '\u3164',
        '\ufe0f',
        '\ufeff',
        '\u{e0041}',
        '\u{e0100}',
        '\ud800',
      ])
      .flatMap((hidden) => [`echo a${hidden}b`, `echo "a${hidden}b"`, `echo 'a${hidden}b'`]),
  },
  { why: 'open quotes', lines: ['echo "a', "echo 'a", `echo "a'`] },
  {
    why: 'missing commands',
    lines: ['', '   ', ';', 'a;;', '; a', '| a', 'a |', 'a | | b', 'a &&', '&& a', 'a || ;', '""', "'' a"],
  },
  { why: 'variables', lines: ['A=b c', 'A=b', 'PATH+=x c', 'a && B=c d', `'A'=b c`] },
  {
    why: "words of the shell's grammar",
    lines: ['if true; then id; fi', 'while a; do b; done', 'for x', 'a && case', 'time ls'],
  },
  { why: 'too much', lines: [`echo ${'a'.repeat(8_192)}`, `echo ${'a '.repeat(1_000)}`, 'a;'.repeat(1_001)] },
];
for (const { why, lines } of missed) {
  test(`T8 miss: ${why}`, () => {
    for (const line of lines) assert.equal(play(line), 'miss', JSON.stringify(line.slice(0, 60)));
  });
}

test('a miss says why', () => {
  const reasons = ['echo $A', 'echo "$A"', 'a\nb', 'echo "', 'A=b c'].map((line) => {
    const parsed = parseCommandLine(line);
    return parsed.ok ? 'read' : parsed.reason;
  });
  assert.deepEqual(reasons, [
    'it holds "$" outside quotes',
    'it holds "$" in double quotes',
    'it holds the character U+000A',
    'the quote " is not closed',
    'it sets a variable before a command',
  ]);
});

describe('for any line', () => {
  const plain = fc.constantFrom(...['a', 'Z', '-', '/', '=', ' ', 'é', '😀', '|', '||', '&&', ';']);
  const quotes = fc.constantFrom('"', "'");
  const odd = fc.constantFrom(
    ...['&', '$', '`', '<', '>', '(', ')', '{', '}', '#', '!', '*', '?', '[', ']', '~', '\\'],
    ...['\n', '\r', '\t', '\0', '\u00a0', '\u200b', '\u202e', '\u2028', '\ud83d'],
  );
  // Mostly what is read, so that many lines are, and something odd here and there, in quotes and out of them.
  const pieces = fc.oneof(
    { weight: 12, arbitrary: plain },
    { weight: 4, arbitrary: quotes },
    { weight: 1, arbitrary: odd },
  );
  const anyLine = fc.array(pieces, { maxLength: 24 }).map((parts) => parts.join(''));

  test('T8: nothing forbidden stands outside single quotes, and nothing that a shell expands in double quotes', () => {
    let read = 0;
    fc.assert(
      fc.property(anyLine, (line) => {
        if (!parseCommandLine(line).ok) return;
        read++;
        // Taken apart once more, by rules of the test's own: quotes cannot nest and nothing escapes one.
        const parts = line.match(/'[^']*'|"[^"]*"|[^'"]+/g) ?? [];
        assert.equal(parts.join(''), line);
        for (const part of parts) {
          assert.doesNotMatch(part, /[\0-\x1f\x7f\u00a0\u200b\u202e\u2028]/);
          assert.ok(part.isWellFormed());
          if (part.startsWith("'")) continue;
          assert.doesNotMatch(part, /[$`\\!]/);
          if (part.startsWith('"')) continue;
          assert.doesNotMatch(part.replaceAll('&&', ''), /[<>(){}#*?[\]~&]/);
        }
      }),
      { numRuns: 20_000, seed: 28 },
    );
    assert.ok(read > 2_000, `only ${read} lines were read, so this says little`);
  });

  test('T8: quoting any visible text gives that text back as one word', () => {
    const visible = fc
      .array(pieces, { maxLength: 12 })
      .map((parts) => parts.join('').replaceAll(/[\0-\x1f\x7f\u00a0\u200b\u202e\u2028\ud83d']/g, ''));
    fc.assert(
      fc.property(visible, (text) => {
        const line = `echo '${text.isWellFormed() ? text : ''}'`;
        const parsed = parseCommandLine(line);
        assert.ok(parsed.ok, line);
        assert.deepEqual(parsed.pipelines, [{ commands: [['echo', text.isWellFormed() ? text : '']], when: 'always' }]);
      }),
      { numRuns: 2_000, seed: 29 },
    );
  });
});

const longest = [
  { unit: 'a', expect: '1 command, 1 word' },
  { unit: "'a'", expect: '1 command, 1 word' },
  { unit: '""a', expect: '1 command, 1 word' },
  { unit: '        a', expect: '1 command, 910 words' },
  { unit: 'a        |', expect: 'miss' },
  { unit: 'abcdefgh;', expect: '910 commands, 910 words' },
  { unit: '"', expect: 'miss' },
  { unit: "' ", expect: 'miss' },
  { unit: '\\', expect: 'miss' },
];
for (const { unit, expect } of longest) {
  test(`T23: as many ${JSON.stringify(unit)} as fit`, () => {
    const line = unit.repeat(Math.floor(8_192 / unit.length));
    const parsed = parseCommandLine(line);
    const commands = parsed.ok ? parsed.pipelines.flatMap((pipeline) => pipeline.commands) : [];
    const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`;
    const words = commands.flat().length;
    assert.equal(parsed.ok ? `${count(commands.length, 'command')}, ${count(words, 'word')}` : 'miss', expect);
  });
}
