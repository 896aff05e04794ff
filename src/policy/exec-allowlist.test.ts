import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCommandLine } from './command-line.ts';
import { type AllowEntry, type AllowlistPorts, entryFor, matchAllowlist } from './exec-allowlist.ts';

const WORKSPACE = '/home/anna/workspace';
/** A machine of names: what the search path finds, and what paths really are. */
const FOUND: Readonly<Record<string, string>> = {
  echo: '/usr/bin/echo',
  cat: '/usr/bin/cat',
  touch: '/usr/bin/touch',
  sort: '/usr/bin/sort',
  env: '/usr/bin/env',
  sh: '/usr/bin/dash',
  node: '/usr/bin/node',
  xargs: '/usr/bin/xargs',
  cd: '/usr/bin/cd',
  plainly: '/usr/bin/bash',
  watch: '/opt/chrono/run',
  pack: `${WORKSPACE}/bin/pack`,
  '/usr/bin/cat': '/usr/bin/cat',
  '/usr/bin/link-to-echo': '/usr/bin/echo',
  [`${WORKSPACE}/./echo`]: `${WORKSPACE}/echo`,
  [`${WORKSPACE}/out`]: '/usr/bin/touch',
};
const ports: AllowlistPorts = {
  resolve: async (name, cwd) => FOUND[name.includes('/') && !name.startsWith('/') ? `${cwd}/${name}` : name],
  isAgentWritable: (path) => path.startsWith(`${WORKSPACE}/`),
  argvDigest: (argv) => JSON.stringify(argv),
};
const ask = async (line: string, allow: readonly (string | AllowEntry)[]) => {
  const entries = allow.map((entry) => (typeof entry === 'string' ? { pattern: entry } : entry));
  return await matchAllowlist(parseCommandLine(line), entries, WORKSPACE, ports);
};
const verdict = async (line: string, allow: readonly (string | AllowEntry)[]) =>
  (await ask(line, allow)).allowed ? 'runs' : 'miss';

const table: readonly {
  readonly row: string;
  readonly allow: readonly (string | AllowEntry)[];
  readonly miss: readonly string[];
  readonly runs: readonly string[];
}[] = [
  { row: 'B28', allow: ['echo'], miss: ['echo "ok $\\\n(touch /out/p)"'], runs: ['echo "ok"'] },
  {
    row: 'B29',
    allow: ['env', 'echo'],
    miss: [
      `env -S 'sh -c "touch /out/p"'`,
      'env FOO=1 sh -c "touch /out/p"',
      'echo ok && touch /out/p',
      'echo x | sh',
      'env',
    ],
    runs: ['echo ok && echo two'],
  },
  {
    row: 'B30',
    allow: [],
    miss: [
      'sort --compress-prog=/out/x.sh -S 1b',
      'sort -o /out/p',
      'sort --files0-f=/out/secret',
      'sort /home/anna/.profile',
      'sort',
    ],
    runs: [],
  },
  {
    row: 'T8: a listed sort',
    allow: ['sort'],
    miss: [
      'sort --compress-program=/out/x.sh',
      'sort --compress-prog=x',
      'sort --com x',
      'sort "--compress-program" x',
    ],
    runs: ['sort', 'sort -u --reverse f'],
  },
  {
    row: 'K-01',
    allow: ['echo', 'cat'],
    miss: [
      'echo a && touch P',
      'echo a; touch P',
      'echo a & touch P',
      'echo a\ntouch P',
      `echo "require('fs').writeFileSync('P','')" | node`,
      'echo $(touch P)',
      'echo `touch P`',
      'cat <(touch P)',
      'echo a > P',
      'env touch P',
      `sh -c 'touch P'`,
      'echo P | xargs touch',
      './echo',
      './echo a',
    ],
    runs: ['echo a', 'cat file.txt', 'echo "a && b"'],
  },
  {
    row: 'T8: dispatchers never match as themselves, by any name they have',
    allow: [
      'env',
      'sh',
      'plainly',
      '/usr/bin/*',
      '/usr/bin/dash',
      'node',
      'xargs',
      'watch',
      '/opt/chrono/*',
      { pattern: '/usr/bin/dash', argvHash: '["sh","x"]' },
    ],
    miss: ['env', 'sh x', '/usr/bin/dash x', 'plainly x', 'node x.js', 'xargs touch', 'watch x'],
    runs: ['echo a', 'touch x'],
  },
  {
    row: 'T8: a bare name is the search path only',
    allow: ['echo', 'touch', 'cat'],
    miss: ['./echo a', '/usr/bin/link-to-echo a', '/usr/bin/cat f', './out P'],
    runs: ['echo a'],
  },
  {
    row: 'T8: a path is the real path, in its own case',
    allow: ['/usr/bin/CAT', '/usr/bin/e*', '/usr/*'],
    miss: ['cat x', 'touch x'],
    runs: ['echo a', '/usr/bin/link-to-echo a'],
  },
  {
    row: 'T8: nothing that an agent could have written',
    allow: ['pack', '/home/anna/workspace/*', '/home/anna/workspace/bin/*'],
    miss: ['pack', './echo'],
    runs: [],
  },
  {
    row: 'T8: what only a shell knows',
    allow: ['cd', 'echo'],
    miss: ['cd /', 'cd sub && echo a', 'source x', 'eval x', 'export A'],
    runs: ['echo cd'],
  },
  {
    row: 'T9: an entry with a digest is for those words alone',
    allow: [{ pattern: '/usr/bin/touch', argvHash: '["touch","a"]' }],
    miss: ['touch', 'touch b', 'touch a b', '/usr/bin/touch a', 'touch a && touch b'],
    runs: ['touch a', `touch 'a'`, 'touch a && touch a'],
  },
  { row: 'no wildcard in a bare name', allow: ['*', 'ec*'], miss: ['echo a'], runs: [] },
];
for (const { row, allow, miss, runs } of table) {
  describe(row, () => {
    for (const line of miss)
      test(`misses: ${JSON.stringify(line)}`, async () => assert.equal(await verdict(line, allow), 'miss'));
    for (const line of runs)
      test(`runs: ${JSON.stringify(line)}`, async () => assert.equal(await verdict(line, allow), 'runs'));
  });
}

test('what runs is what was parsed: words and real paths, and when', async () => {
  assert.deepEqual(await ask(`echo "a b" | cat || cat /x`, ['echo', 'cat']), {
    allowed: true,
    plan: {
      kind: 'argv',
      pipelines: [
        {
          when: 'always',
          steps: [
            { argv: ['echo', 'a b'], file: '/usr/bin/echo' },
            { argv: ['cat'], file: '/usr/bin/cat' },
          ],
        },
        { when: 'after-failure', steps: [{ argv: ['cat', '/x'], file: '/usr/bin/cat' }] },
      ],
    },
  });
});

const twins = [
  { what: 'a program', there: 'touch x', absent: 'tooch x' },
  { what: 'a path', there: './echo x', absent: './ecko x' },
  { what: 'an operand', there: 'sort /home/anna/.profile', absent: 'sort /home/anna/.profilx' },
  { what: 'a program behind a listed one', there: '/usr/bin/cat f && nope', absent: '/usr/bin/cet f && nope' },
];
for (const { what, there, absent } of twins) {
  test(`B30: the same answer whether or not ${what} exists`, async () => {
    const reason = async (line: string) => {
      const answer = await ask(line, ['/usr/bin/c*']);
      assert.ok(!answer.allowed);
      return answer.reason.replaceAll(/"[^"]*"/g, '""');
    };
    assert.equal(await reason(there), await reason(absent));
  });
}

test('a reason shows a name escaped and cut', async () => {
  const answer = await ask(`'${'x'.repeat(500)}'`, []);
  assert.ok(!answer.allowed && answer.reason.length < 150, 'the name is cut');
});

const names: readonly { readonly line: string; readonly kept: boolean }[] = [
  { line: 'touch a', kept: true },
  { line: 'sort --reverse', kept: true },
  { line: 'sort --compress-prog=x', kept: false },
  { line: 'env touch a', kept: false },
  { line: 'plainly -c x', kept: false },
  { line: './echo', kept: false },
  { line: 'cd x', kept: false },
  { line: 'nowhere', kept: false },
];
for (const { line, kept } of names) {
  test(`K-01: ${line} ${kept ? 'may' : 'may not'} be kept for always`, async () => {
    const parsed = parseCommandLine(line);
    assert.ok(parsed.ok);
    assert.equal((await entryFor(parsed.pipelines[0]!.commands[0]!, WORKSPACE, ports)) !== undefined, kept);
  });
}
