// What an allow-listed line is taken for must be what a shell would take it for, or an approval shows one thing and another runs. So real
// shells read generated lines, and their words and their order of commands are compared with ours.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { childEnvironment, Processes, resolveExecutable } from '#host';
import { matchAllowlist, parseCommandLine } from '#policy';

const SHELLS = ['/bin/sh', '/bin/bash'].filter((shell) => existsSync(shell));
const ENVIRONMENT = { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', HOME: '/home/anna', A: 'expanded' };

let folder: string;
before(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'reins-equal-')));
});
after(() => rmSync(folder, { recursive: true, force: true }));

const printable = Array.from({ length: 0x5f }, (_, i) => String.fromCharCode(0x20 + i));
const pieces = fc.constantFrom(
  ...printable,
  ...[' ', ' ', "'", "'", '"', '"', 'é', '日', '😀', '--', 'A', '$A', '~', '/*'],
);
const anyWords = fc.array(pieces, { minLength: 1, maxLength: 16 }).map((parts) => parts.join(''));

for (const shell of SHELLS) {
  test(`T8: ${shell} reads the same words`, () => {
    const lines: { readonly line: string; readonly words: readonly string[] }[] = [];
    for (const text of fc.sample(anyWords, { numRuns: 40_000, seed: 8 })) {
      const parsed = parseCommandLine(`x ${text}`);
      if (!parsed.ok || parsed.pipelines.length !== 1 || parsed.pipelines[0]!.commands.length !== 1) continue;
      lines.push({ line: text.replace(/;\s*$/, ''), words: parsed.pipelines[0]!.commands[0]!.slice(1) });
    }
    assert.ok(lines.length > 1_000, `only ${lines.length} lines were read, so this says little`);
    // One shell for all: after each line's words an empty record.
    const script = lines.map(({ line }) => `printf '<%s>' ${line}; printf '\\n'`).join('\n');
    const { status, stdout, stderr } = spawnSync(shell, ['-s'], {
      input: script,
      cwd: folder,
      env: ENVIRONMENT,
      encoding: 'utf8',
    });
    assert.deepEqual([status, stderr], [0, '']);
    const got = stdout.split('\n');
    for (const [i, { line, words }] of lines.entries()) {
      const expected = words.length === 0 ? '<>' : words.map((word) => `<${word}>`).join('');
      assert.equal(got[i], expected, JSON.stringify(line));
    }
  });
}

const command = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('true', 'false') },
  { weight: 3, arbitrary: fc.constantFrom('a', 'b c', '"d  e"', "'f'").map((word) => `echo ${word}`) },
);
const pipeline = fc.oneof(
  { weight: 3, arbitrary: command },
  { weight: 1, arbitrary: command.map((left) => `${left} | cat`) },
  { weight: 1, arbitrary: fc.tuple(command, command).map(([left, right]) => `${left} | ${right}`) },
);
const anyLine = fc
  .tuple(
    pipeline,
    fc.array(fc.tuple(fc.constantFrom('&&', '||', ';', ' ; ', ' && '), pipeline), { maxLength: 5 }),
    fc.constantFrom('', ';'),
  )
  .map(([first, more, end]) => `${first}${more.map(([operator, next]) => `${operator}${next}`).join('')}${end}`);

test('T8: a listed line does without a shell what it does in one', async () => {
  const processes = new Processes();
  const env = childEnvironment(ENVIRONMENT);
  const ports = {
    resolve: (name: string, cwd: string) => resolveExecutable(name, ENVIRONMENT.PATH, cwd),
    isAgentWritable: (path: string) => path.startsWith(folder),
    argvDigest: (argv: readonly string[]) => JSON.stringify(argv),
  };
  const lines = fc.sample(anyLine, { numRuns: 40, seed: 8 });
  const script = lines.map((line) => `( ${line} ); printf '=%s\\n\\0' $?`).join('\n');
  const shell = spawnSync('/bin/sh', ['-s'], { input: script, cwd: folder, env, encoding: 'utf8' });
  const expected = shell.stdout.split('\0').slice(0, -1);
  assert.equal(expected.length, lines.length);
  try {
    const entries = ['true', 'false', 'echo', 'cat'].map((pattern) => ({ pattern }));
    for (const [i, line] of lines.entries()) {
      const answer = await matchAllowlist(parseCommandLine(line), entries, folder, ports);
      assert.ok(answer.allowed, line);
      const running = processes.start(answer.plan, { cwd: folder, env, charactersMax: 10_000 });
      const { code } = await running.ended;
      assert.equal(`${running.output.text()}=${code}\n`, expected[i], line);
    }
  } finally {
    await processes.closeAll();
  }
});
