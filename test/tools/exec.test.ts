// exec and process over real processes. Time is a clock that the test moves; what a process does is awaited, never slept for.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isGatewayError } from '#base';
import { ManualClock } from '#world';
import { CANARY, textOf, type Workbench, workbench } from './workbench.ts';

type Options = Parameters<typeof workbench>[0];
type OnBench = (bench: Workbench, clock: ManualClock) => Promise<void>;

/** With a manual clock: nothing yields, times out or expires unless the test says so. */
function onBench(name: string, action: OnBench, options: Options = {}): void {
  test(name, async () => {
    const clock = new ManualClock();
    const bench = await workbench({ clock, ...options });
    try {
      await action(bench, clock);
    } finally {
      const closed = bench.close();
      await clock.advance(2_000);
      await closed;
    }
  });
}

const PATIENCE_MS = 20_000;

/** Waits for what must come. The limit is only there to make a defect a failure with a place instead of a test that hangs. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const limit = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    assert.ok(Date.now() < limit, `never came: ${condition}`);
    await new Promise(setImmediate);
  }
}

/** A command left running, and the id that exec gave it. */
async function background(bench: Workbench, clock: ManualClock, command: string, session?: string): Promise<string> {
  let isSettled = false;
  const call = bench
    .call('exec', { command, background: true }, session === undefined ? {} : { session })
    .finally(() => {
      isSettled = true;
    });
  await until(async () => {
    await clock.advance(0);
    return isSettled;
  });
  const text = textOf(await call);
  const [, id] = /process ([0-9a-f]{8})/.exec(text) ?? [];
  assert.ok(id, text);
  return id;
}

/** Polls until what the process said, with its state behind it, fits; or until it has ended. Gives back both. */
async function pollFor(bench: Workbench, sessionId: string, pattern: RegExp): Promise<string> {
  let said = '';
  let state = '';
  await until(async () => {
    const text = textOf(await bench.call('process', { action: 'poll', sessionId }));
    const place = text.lastIndexOf('(');
    state = text.slice(place);
    if (!text.startsWith('(nothing new)')) said += text.slice(0, place);
    return pattern.test(said + state) || state !== '(running)';
  });
  return said + state;
}

/** Waits until the process has said it, however much of that was seen before. */
const seenInLog = (bench: Workbench, sessionId: string, pattern: RegExp): Promise<void> =>
  until(async () => pattern.test(textOf(await bench.call('process', { action: 'log', sessionId }))));

onBench('exec gives back output and, where it is not 0, the exit code', async (bench) => {
  assert.equal(
    textOf(await bench.call('exec', { command: 'echo hi; echo err >&2' }))
      .split('\n')
      .sort()
      .join(),
    ',err,hi',
  );
  const failed = await bench.call('exec', { command: 'printf oops; exit 3' });
  assert.equal(failed.outcome, 'failed');
  assert.equal(textOf(failed), 'oops\n(ended with exit code 3)');
  assert.equal((failed.details as { exitCode: number }).exitCode, 3);
  assert.match(textOf(await bench.call('exec', { command: 'kill -9 $$' })), /^\(ended by SIGKILL\)$/);
  assert.equal(textOf(await bench.call('exec', { command: 'true' })), '(no output)');
});

onBench('exec runs in a folder of the workspace and nowhere else', async (bench) => {
  mkdirSync(join(bench.workspace, 'sub'));
  symlinkSync(bench.outside, join(bench.workspace, 'out'));
  for (const [workdir, folder] of [
    [undefined, '.'],
    ['sub', 'sub'],
    [join(bench.workspace, 'sub'), 'sub'],
  ] as const) {
    const result = await bench.call('exec', { command: 'pwd', ...(workdir === undefined ? {} : { workdir }) });
    assert.equal(textOf(result).trim(), realpathSync(join(bench.workspace, folder)));
  }
  const asked = bench.asked.length;
  for (const workdir of ['out', '..', '/', bench.outside, '~']) {
    await assert.rejects(bench.call('exec', { command: 'pwd', workdir }), { code: 'FILE_REFUSED' }, workdir);
  }
  await assert.rejects(bench.call('exec', { command: 'pwd', workdir: 'sup' }), { code: 'FILE_NOT_FOUND' });
  assert.equal(bench.asked.length, asked, 'what cannot be is not asked');
});

onBench(
  'exec asks the gate with exactly what will run, and runs the plan that it got',
  async (bench) => {
    const result = await bench.call(
      'exec',
      { command: 'echo  raw', env: { A: '1' } },
      { owner: false, session: 'notes' },
    );
    assert.equal(textOf(result), 'planned $A\n');
    assert.deepEqual(
      bench.asked.map(({ command, cwd, env, owner, sessionKey }) => ({ command, cwd, env, owner, sessionKey })),
      [{ command: 'echo  raw', cwd: bench.workspace, env: { A: '1' }, owner: false, sessionKey: 'agent:main:notes' }],
    );
  },
  {
    verdict: () => ({
      allowed: true,
      by: 'allowlist',
      plan: {
        kind: 'argv',
        pipelines: [{ when: 'always', steps: [{ argv: ['echo', 'planned', '$A'], file: '/bin/echo' }] }],
      },
    }),
  },
);

onBench(
  'exec that is not allowed runs nothing and says why',
  async (bench) => {
    const result = await bench.call('exec', { command: 'touch made' });
    assert.equal(result.outcome, 'denied');
    assert.equal(textOf(result), 'Not run: because of a rule');
    assert.equal(existsSync(join(bench.workspace, 'made')), false);
  },
  { verdict: () => ({ allowed: false, reason: 'because of a rule' }) },
);

const B31 = [
  { BASH_ENV: '/x/e.sh' },
  { Ld_Preload: 'x' },
  { PATH: '/x' },
  { 'A=B': 'x' },
  { NODE_OPTIONS: '--require /x/r.cjs' },
];
for (const env of B31) {
  const [name = ''] = Object.keys(env);
  onBench(`B31: exec with the variable ${name} is refused by name before anyone is asked`, async (bench) => {
    await assert.rejects(
      bench.call('exec', { command: 'ls', env: { OK: '1', ...env } }),
      (error) => isGatewayError(error, 'ENV_REFUSED') && error.message.includes(`"${name}"`),
    );
    assert.equal(bench.asked.length, 0);
    assert.equal(bench.processes.count, 0);
  });
}

onBench('B31 control: an ordinary variable reaches the command, and no key of the gateway does', async (bench) => {
  const text = textOf(await bench.call('exec', { command: 'env', env: { GREETING: 'hello' } }));
  assert.match(text, /^GREETING=hello$/m);
  assert.match(text, /^LANG=C\.UTF-8$/m);
  assert.doesNotMatch(text, new RegExp(CANARY));
});

const STRICTER = [
  { args: { security: 'deny' }, reason: /asks for security/ },
  { args: { elevated: true }, reason: /no elevated mode/ },
  { args: { pty: true }, reason: /no terminal/ },
  { args: { host: 'sandbox' }, reason: /no sandbox/ },
  { args: { host: 'node' }, reason: /no other machines/ },
  { args: { node: 'phone' }, reason: /no other machines/ },
  { args: { host: 'elsewhere' }, reason: /"elsewhere" is not known/ },
];
for (const { args, reason } of STRICTER) {
  onBench(`exec ${JSON.stringify(args)} is denied with the reason, not done in another way`, async (bench) => {
    const result = await bench.call('exec', { command: 'touch made', ...args });
    assert.equal(result.outcome, 'denied');
    assert.match(textOf(result), reason);
    assert.equal(bench.asked.length, 0);
    assert.equal(existsSync(join(bench.workspace, 'made')), false);
  });
}

onBench(
  'exec: the model cannot make the gate less strict',
  async (bench) => {
    for (const args of [
      { security: 'full' },
      { ask: 'off' },
      { host: 'gateway' },
      { host: 'auto', elevated: false, pty: false },
    ]) {
      assert.equal((await bench.call('exec', { command: 'true', ...args })).outcome, 'denied');
    }
    assert.equal(bench.asked.length, 4);
  },
  { verdict: () => ({ allowed: false, reason: 'no' }) },
);

onBench('exec: nothing waits for input that nobody gives', async (bench) => {
  assert.equal(textOf(await bench.call('exec', { command: 'cat; echo done' })), 'done\n');
});

onBench('exec: what a command leaves behind is ended, and the model is told', async (bench) => {
  const result = await bench.call('exec', { command: 'sleep 60 & echo started' });
  assert.match(textOf(result), /^started\n\(It left processes behind; they were ended\./);
  assert.equal(bench.processes.count, 0);
});

onBench('exec: a long command goes on after yieldMs and is found by process', async (bench, clock) => {
  const call = bench.call('exec', { command: 'echo begun; exec sleep 60', yieldMs: 5_000 });
  await until(() => bench.processes.count === 1 && clock.waiting >= 3);
  await clock.advance(4_999);
  assert.equal(bench.shown.at(-1), 'begun\n', 'what there is was shown meanwhile');
  await clock.advance(1);
  const result = await call;
  const { sessionId } = result.details as { sessionId: string };
  assert.match(textOf(result), new RegExp(`^begun\\nStill running as process ${sessionId}\\.`));
  assert.equal(textOf(await bench.call('process', { action: 'poll', sessionId })), '(nothing new)\n(running)');
  assert.match(
    textOf(await bench.call('process', { action: 'list' })),
    new RegExp(`^${sessionId}  running  5 s  echo begun`),
  );
});

onBench('exec: a command over its time is ended, hard if it must be, and counts as failed', async (bench, clock) => {
  const call = bench.call('exec', {
    command: 'trap "" TERM; echo up; while :; do sleep 1; done',
    timeout: 60,
    yieldMs: 120_000,
  });
  await until(() => clock.waiting >= 3);
  await clock.advance(60_000);
  await clock.advance(2_000);
  const result = await call;
  assert.equal(result.outcome, 'failed');
  assert.match(textOf(result), /^up\n\(ended by its time limit of 60 s\)/);
});

onBench('exec: progress is throttled and bounded', async (bench, clock) => {
  const call = bench.call('exec', { command: 'seq 1 100000' });
  await call;
  assert.equal(bench.shown.join(), '', 'no time has passed');
  const long = bench.call('exec', { command: 'seq 1 100000; exec sleep 60' });
  await until(() => clock.waiting >= 3);
  await clock.advance(250);
  assert.equal(bench.shown.filter((text) => text.length <= 8_000).length, 1);
  await clock.advance(10_000);
  await long;
});

onBench('exec: when the run is aborted the whole group is ended', async (bench) => {
  const abort = new AbortController();
  const call = bench.call('exec', { command: 'sleep 60 & sleep 60' }, { signal: abort.signal });
  await until(() => bench.processes.count === 1);
  abort.abort(new Error('stopped by a person'));
  await assert.rejects(call, /stopped by a person/);
  assert.equal(bench.processes.count, 0);
  assert.equal(textOf(await bench.call('process', { action: 'list' })), 'No processes in this session.');
});

onBench('exec: a session may not run commands without end, and others still may', async (bench, clock) => {
  for (let i = 0; i < 16; i++) await background(bench, clock, 'exec sleep 60');
  await assert.rejects(bench.call('exec', { command: 'true' }), { code: 'PROCESS_FAILED' });
  assert.equal(textOf(await bench.call('exec', { command: 'echo fine' }, { session: 'notes' })), 'fine\n');
});

onBench('process: a session sees its own processes and no others', async (bench, clock) => {
  const id = await background(bench, clock, 'exec sleep 60', 'notes');
  for (const action of ['poll', 'log', 'write', 'kill', 'remove', 'clear']) {
    await assert.rejects(
      bench.call('process', { action, sessionId: id, data: 'x' }),
      { code: 'PROCESS_UNKNOWN' },
      action,
    );
  }
  assert.equal(textOf(await bench.call('process', { action: 'list' })), 'No processes in this session.');
  assert.match(textOf(await bench.call('process', { action: 'list' }, { session: 'notes' })), new RegExp(id));
  await assert.rejects(
    bench.call('process', { action: 'poll', sessionId: `${id.slice(1)}0` }, { session: 'notes' }),
    new RegExp(`there is ${id}`),
  );
});

onBench(
  'process: write, submit, paste and keys reach the command, and its answers are polled once',
  async (bench, clock) => {
    const sessionId = await background(bench, clock, 'while read -r line; do echo "<$line>"; done; echo over');
    const feed = (args: object) => bench.call('process', { sessionId, ...args });
    await feed({ action: 'write', data: 'one\n' });
    assert.match(await pollFor(bench, sessionId, /<one>/), /^<one>\n\(running\)$/);
    await feed({ action: 'submit', text: 'two' });
    await feed({ action: 'paste', text: 'three', bracketed: true });
    await feed({ action: 'send-keys', keys: ['Enter', 'x', 'Tab'], hex: ['c3', 'BC', '0a'] });
    const said = await pollFor(bench, sessionId, /<x/);
    assert.ok(
      said.includes('<two>') && said.includes('<\u001b[200~three\u001b[201~>') && said.includes('<x\tü>'),
      said,
    );
    assert.doesNotMatch(said, /<one>/);
    await feed({ action: 'write', data: '', eof: true });
    assert.match(await pollFor(bench, sessionId, /exit code/), /over\n\(ended with exit code 0\)$/);
    const late = await feed({ action: 'write', data: 'x' });
    assert.equal(late.outcome, 'failed');
    assert.match(textOf(late), /takes no input any more/);
  },
);

onBench('process: C-c interrupts, C-d ends the input, an unknown key is named', async (bench, clock) => {
  const first = await background(bench, clock, 'exec sleep 60');
  await bench.call('process', { action: 'send-keys', sessionId: first, keys: ['C-c'] });
  assert.match(await pollFor(bench, first, /ended/), /\(ended by SIGINT\)/);
  const second = await background(bench, clock, 'cat; echo end');
  const unknown = await bench.call('process', { action: 'send-keys', sessionId: second, keys: ['Hyper-q'] });
  assert.equal(unknown.outcome, 'failed');
  assert.match(textOf(unknown), /"Hyper-q" is not known/);
  await bench.call('process', { action: 'send-keys', sessionId: second, literal: 'text', keys: ['C-d'] });
  assert.match(await pollFor(bench, second, /exit code/), /^text\n?end\n\(ended/);
});

onBench('process: poll waits for the end as long as it is told, and stops with its run', async (bench, clock) => {
  const sessionId = await background(bench, clock, 'read x; echo "$x"; exit 4');
  const poll = bench.call('process', { action: 'poll', sessionId, timeout: 30_000 });
  await bench.call('process', { action: 'submit', sessionId, text: 'hi' });
  const result = await poll;
  assert.equal(textOf(result), 'hi\n(ended with exit code 4)');
  assert.equal(result.outcome, 'failed');
  const other = await background(bench, clock, 'exec sleep 60');
  const abort = new AbortController();
  const waiting = bench.call(
    'process',
    { action: 'poll', sessionId: other, timeout: 30_000 },
    { signal: abort.signal },
  );
  abort.abort(new Error('stopped'));
  await assert.rejects(waiting, /stopped/);
  const timed = bench.call('process', { action: 'poll', sessionId: other, timeout: 1_000 });
  await clock.advance(1_000);
  assert.equal(textOf(await timed), '(nothing new)\n(running)');
});

onBench('process: log shows the last lines, or those from a line on', async (bench, clock) => {
  const sessionId = await background(bench, clock, 'seq 1 500; exec sleep 60');
  await seenInLog(bench, sessionId, /^500$/m);
  const log = async (args: object) => textOf(await bench.call('process', { action: 'log', sessionId, ...args }));
  assert.equal(await log({ limit: 2 }), '499\n500\n(lines 499 to 500 of 500; running)');
  assert.equal(await log({ offset: 3, limit: 1 }), '3\n(lines 3 to 3 of 500; running)');
  assert.equal(await log({ offset: 900 }), '(there are 500 lines; running)');
  assert.equal((await log({})).split('\n').length, 201);
});

onBench('process: kill ends hard what does not end by itself; remove and clear forget', async (bench, clock) => {
  const sessionId = await background(bench, clock, 'trap "" TERM; echo up; while :; do sleep 1; done');
  await seenInLog(bench, sessionId, /up/);
  assert.match(textOf(await bench.call('process', { action: 'clear', sessionId })), /is running/);
  const kill = bench.call('process', { action: 'kill', sessionId });
  await clock.advance(2_000);
  assert.equal(textOf(await kill), `Ended process ${sessionId}.`);
  assert.match(
    textOf(await bench.call('process', { action: 'kill', sessionId })),
    /had already ended \(ended by SIGKILL\)/,
  );
  assert.equal(textOf(await bench.call('process', { action: 'clear' })), 'Forgot 1 ended process.');
  const other = await background(bench, clock, 'exec sleep 60');
  assert.equal(textOf(await bench.call('process', { action: 'remove', sessionId: other })), `Forgot process ${other}.`);
  assert.equal(bench.processes.count, 0);
  assert.equal(textOf(await bench.call('process', { action: 'list' })), 'No processes in this session.');
});

onBench('process: what has ended is forgotten after half an hour', async (bench, clock) => {
  const sessionId = await background(bench, clock, 'exit 0');
  await pollFor(bench, sessionId, /exit code/);
  await clock.advance(30 * 60_000);
  assert.match(textOf(await bench.call('process', { action: 'list' })), new RegExp(sessionId));
  await clock.advance(1);
  await assert.rejects(bench.call('process', { action: 'log', sessionId }), { code: 'PROCESS_UNKNOWN' });
});

onBench('process: each action but list and clear says that it needs a process', async (bench) => {
  for (const action of ['poll', 'log', 'write', 'send-keys', 'submit', 'paste', 'kill', 'remove']) {
    const result = await bench.call('process', { action });
    assert.equal(result.outcome, 'failed');
    assert.match(textOf(result), new RegExp(`^${action} needs sessionId`));
  }
});
