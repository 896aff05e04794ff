import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ManualClock } from '#world';
import { Processes, type RunningProcess, resolveExecutable, type SpawnOptions, type SpawnPlan } from './index.ts';

const place = realpathSync(mkdtempSync(join(tmpdir(), 'host-processes-')));
const processes = new Processes();
after(async () => {
  await processes.closeAll();
  rmSync(place, { recursive: true, force: true });
});

const PATH = '/usr/bin:/bin';
const shell = (command: string): SpawnPlan => ({ kind: 'shell', command });

/** `false || echo a; echo b | tr b c` as a plan; words are split at spaces. */
async function line(text: string): Promise<SpawnPlan> {
  const whens = { '&&': 'after-success', '||': 'after-failure', ';': 'always' } as const;
  const parts = text.split(/ (&&|\|\||;) /);
  const pipelines = [];
  for (let i = 0; i < parts.length; i += 2) {
    const steps = [];
    for (const command of parts[i]!.split(' | ')) {
      const argv = command.split(' ');
      steps.push({ argv, file: (await resolveExecutable(argv[0]!, PATH, place)) ?? argv[0]! });
    }
    pipelines.push({ steps, when: i === 0 ? ('always' as const) : whens[parts[i - 1] as keyof typeof whens] });
  }
  return { kind: 'argv', pipelines };
}

const start = (plan: SpawnPlan, options: Partial<SpawnOptions> = {}, door = processes): RunningProcess =>
  door.start(plan, { cwd: place, env: { PATH }, charactersMax: 200_000, ...options });

/** The process in whose output a line fits, as soon as it is there. */
function startAndSee(command: string, pattern: RegExp, options: Partial<SpawnOptions> = {}, door = processes) {
  return new Promise<{ running: RunningProcess; seen: RegExpExecArray }>((resolve) => {
    const running = start(
      shell(command),
      {
        ...options,
        onOutput: () => {
          const seen = pattern.exec(running.output.text());
          if (seen) resolve({ running, seen });
        },
      },
      door,
    );
  });
}

/** False for one that has ended and only waits to be noticed: in a container nobody may do so. */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z');
}

const LINES = [
  { line: 'echo one', code: 0, output: 'one\n' },
  { line: 'true && echo yes', code: 0, output: 'yes\n' },
  { line: 'false && echo no', code: 1, output: '' },
  { line: 'false || echo yes', code: 0, output: 'yes\n' },
  { line: 'true || echo no', code: 0, output: '' },
  { line: 'false ; echo on', code: 0, output: 'on\n' },
  { line: 'false && echo no || echo yes', code: 0, output: 'yes\n' },
  { line: 'true || echo no && echo yes', code: 0, output: 'yes\n' },
  { line: 'echo abc | tr a-c x-z | rev', code: 0, output: 'zyx\n' },
  { line: 'false | true', code: 0, output: '' },
  { line: 'true | false', code: 1, output: '' },
  { line: 'echo $HOME * ~ ;x', code: 0, output: '$HOME * ~ ;x\n' },
  { line: 'cat none | wc -c', code: 0, output: /none: No such file[\s\S]*\n0\n$/ },
  { line: './absent a', code: 127, output: /^\.\/absent: could not be started \(ENOENT\)\n$/ },
  { line: 'yes | ./absent', code: 127, output: /absent: could not be started/ },
  { line: './absent | wc -c', code: 0, output: /absent: could not be started[\s\S]*0\n$/ },
];
for (const { line: text, code, output } of LINES) {
  test(`argv: ${text}`, async () => {
    const running = start(await line(text));
    const end = await running.ended;
    assert.equal(end.code, code);
    assert.equal(running.isRunning, false);
    if (typeof output === 'string') assert.equal(running.output.text(), output);
    else assert.match(running.output.text(), output);
  });
}

test('argv: a writer ends when its reader has ended, and megabytes pass between two children unchanged', async () => {
  const first = start(await line('yes | head -n 1'));
  assert.equal((await first.ended).code, 0);
  assert.match(first.output.text(), /^y$/m);
  const many = start(await line('head -c 8000000 /dev/zero | wc -c'));
  await many.ended;
  assert.equal(many.output.text(), '8000000\n');
});

test('argv: an argument that no system takes is an end with code 127, not an exception', async () => {
  const running = start({
    kind: 'argv',
    pipelines: [{ when: 'always', steps: [{ file: '/bin/echo', argv: ['echo', 'a\0b'] }] }],
  });
  assert.deepEqual(await running.ended, { code: 127, signal: null, leftovers: false });
  assert.match(running.output.text(), /^echo: could not be started/);
});

test('the environment is the one that was given, and nothing of this process', async () => {
  const running = start(await line('env'), { env: { PATH, ONLY: 'this' } });
  await running.ended;
  assert.deepEqual(running.output.text().trim().split('\n').sort(), ['ONLY=this', `PATH=${PATH}`]);
});

test('shell: exit codes, signals, the folder and both streams', async () => {
  for (const [command, code, signal] of [
    ['exit 3', 3, null],
    ['kill -9 $$', null, 'SIGKILL'],
    ['nonesuch-program', 127, null],
  ] as const) {
    const end = await start(shell(command)).ended;
    assert.deepEqual([end.code, end.signal], [code, signal], command);
  }
  const running = start(shell('pwd; echo err >&2'));
  await running.ended;
  assert.deepEqual(running.output.text().trim().split('\n').sort(), [place, 'err'].sort());
  const nowhere = start(shell('true'), { cwd: join(place, 'none') });
  assert.equal((await nowhere.ended).code, 127);
});

test('all output of a process is there when it has ended, within the bound', async () => {
  const running = start(shell('seq 1 200000'), { charactersMax: 3_000 });
  await running.ended;
  assert.equal(running.output.total, 1_288_895);
  assert.match(running.output.text(), /^1\n2\n[\s\S]*characters left out[\s\S]*200000\n$/);
});

test('characters are whole although they come in pieces', async () => {
  const running = start(shell("printf '\\342'; sleep 0.05; printf '\\202\\254'"));
  await running.ended;
  assert.equal(running.output.text(), '€');
});

test('without input there is nothing to read; with input it is fed until its end', async () => {
  const silent = start(shell('cat; echo end'));
  await silent.ended;
  assert.equal(silent.output.text(), 'end\n');
  assert.equal(silent.write(Buffer.from('x')), 'closed');
  const fed = start(shell('cat; echo end'), { input: 'open' });
  assert.equal(fed.write(Buffer.from('hello\n')), 'written');
  fed.endInput();
  await fed.ended;
  assert.equal(fed.output.text(), 'hello\nend\n');
  assert.equal(fed.write(Buffer.from('x')), 'closed');
});

test('input that a process does not read is bounded', async () => {
  const running = start(shell('exec sleep 60'), { input: 'open' });
  const outcomes = Array.from({ length: 30 }, () => running.write(Buffer.alloc(100_000)));
  assert.equal(outcomes[0], 'written');
  assert.equal(outcomes.at(-1), 'full');
  running.kill('SIGKILL');
  assert.equal((await running.ended).signal, 'SIGKILL');
});

test('T25: a kill ends the whole group, and what a command leaves behind is ended with it', async () => {
  const { running, seen } = await startAndSee('sleep 60 & echo child $!; wait', /child (\d+)/);
  running.kill();
  assert.equal((await running.ended).signal, 'SIGTERM');
  assert.equal(isAlive(Number(seen[1])), false);
  const left = start(shell('sleep 60 & echo child $!'));
  assert.deepEqual(await left.ended, { code: 0, signal: null, leftovers: true });
  assert.equal(isAlive(Number(/child (\d+)/.exec(left.output.text())?.[1])), false);
  left.kill('SIGKILL');
});

test('T25: what ignores a gentle signal among the leftovers is ended hard', async () => {
  const left = start(
    shell('(trap "" TERM; echo child $(exec sh -c "echo \\$PPID"); while :; do sleep 1; done) & sleep 0.2'),
  );
  assert.equal((await left.ended).leftovers, true);
  assert.equal(isAlive(Number(/child (\d+)/.exec(left.output.text())?.[1])), false);
});

test('after a kill no further pipeline starts; after an interrupt that ended one, neither', async () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const running = start(await line('sleep 60 ; echo no'));
    running.kill(signal);
    assert.equal((await running.ended).signal, signal);
    assert.equal(running.output.text(), '');
  }
});

test('closing the door ends everything, hard where it must be, and starts nothing more', async () => {
  const clock = new ManualClock();
  const door = new Processes({ clock });
  const { running: gentle } = await startAndSee('echo up; exec sleep 60', /up/, {}, door);
  const { running: stubborn } = await startAndSee('trap "" TERM; echo up; while :; do sleep 60; done', /up/, {}, door);
  assert.equal(door.count, 2);
  const closed = door.closeAll();
  assert.equal((await gentle.ended).signal, 'SIGTERM');
  assert.equal(stubborn.isRunning, true);
  await clock.advance(2_000);
  await closed;
  assert.equal((await stubborn.ended).signal, 'SIGKILL');
  assert.equal(door.count, 0);
  assert.throws(() => start(shell('true'), {}, door), { code: 'GATEWAY_STOPPING' });
});

test('a program is found as the search path says, by its real path', async () => {
  const bin = join(place, 'bin');
  mkdirSync(bin);
  mkdirSync(join(bin, 'folder'));
  writeFileSync(join(bin, 'tool'), '#!/bin/sh\n');
  chmodSync(join(bin, 'tool'), 0o755);
  writeFileSync(join(bin, 'plain'), '');
  symlinkSync('tool', join(bin, 'alias'));
  const search = `:.:relative:${place}/none:${bin}:${PATH}`;
  assert.equal(await resolveExecutable('tool', search, place), join(bin, 'tool'));
  assert.equal(await resolveExecutable('alias', search, place), join(bin, 'tool'));
  assert.equal(await resolveExecutable('./bin/tool', '', place), join(bin, 'tool'));
  for (const name of ['plain', 'folder', '', 'tool\0', 'bin/none'])
    assert.equal(await resolveExecutable(name, search, place), undefined, name);
  assert.equal(
    await resolveExecutable('tool', `::.:${PATH}`, bin),
    undefined,
    'the folder of a call is no part of the search path',
  );
});
