// The exec policy as it is wired, with real files and real processes: a canary shows what ran.
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { systemClock } from '#base';
import { loadConfig, statePaths } from '#config';
import type { ExecVerdict } from '#contract';
import { type Approval, type ApprovalDecision, agentId, resolveSessionKey } from '#domain';
import { childEnvironment, Processes } from '#host';
import { type ApprovalDesk, approvalDesk } from '../../src/app/approval-desk.ts';

const MAIN = agentId('main');

describe('the exec policy over real files', () => {
  let root: string;
  let workspace: string;
  let canary: string;
  let desk: ApprovalDesk;
  let processes: Processes;
  let env: NodeJS.ProcessEnv;

  beforeEach(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), 'reins-exec-')));
    workspace = join(root, 'state', 'workspace');
    canary = join(root, 'canary');
    mkdirSync(workspace, { recursive: true });
    env = { HOME: root, REINS_STATE_DIR: join(root, 'state'), PATH: process.env['PATH'] };
    processes = new Processes();
  });
  afterEach(async () => {
    await processes.closeAll();
    rmSync(root, { recursive: true, force: true });
  });

  function open(exec: Readonly<Record<string, unknown>>, allow: readonly string[]): void {
    const paths = statePaths(env);
    writeFileSync(paths.configFile, JSON.stringify({ tools: { exec } }), { mode: 0o600 });
    const file = { version: 1, agents: { main: { allowlist: allow.map((pattern) => ({ pattern })) } } };
    writeFileSync(paths.execApprovalsFile, JSON.stringify(file), { mode: 0o600 });
    const { config } = loadConfig({ stateDir: paths.stateDir, env });
    desk = approvalDesk({
      env,
      paths,
      config: () => config,
      clock: systemClock,
      workspaceOf: () => workspace,
      audit: () => {},
    });
  }

  const authorise = (command: string) =>
    desk.gate.authorise(
      {
        ...{ command, cwd: workspace, env: {}, agent: MAIN, sessionKey: resolveSessionKey('notes', MAIN) },
        ...{ runId: 'run', callId: 'call', owner: true },
      },
      new AbortController().signal,
    );

  /** The output of what is allowed, or the reason of what is not. */
  async function run(verdict: ExecVerdict): Promise<string> {
    if (!verdict.allowed) return `refused: ${verdict.reason}`;
    const running = processes.start(verdict.plan, {
      cwd: workspace,
      env: childEnvironment(env),
      charactersMax: 10_000,
    });
    await running.ended;
    return running.output.text();
  }

  /** Asks, does `meanwhile` once the question stands, and answers. */
  async function approve(command: string, decision: ApprovalDecision, meanwhile: (asked: Approval) => void = () => {}) {
    const question = Promise.withResolvers<Approval>();
    const leave = desk.approvals.subscribe((approval) => approval.decision === undefined && question.resolve(approval));
    const verdict = authorise(command);
    const asked = await question.promise;
    leave();
    meanwhile(asked);
    desk.approvals.resolve(asked.id, decision, 'anna');
    return { asked, said: await run(await verdict) };
  }

  const script = (name: string, text: string) => {
    writeFileSync(join(workspace, name), text);
    chmodSync(join(workspace, name), 0o755);
    return join(workspace, name);
  };

  test('K-01: what is refused does not run, what is listed does', async () => {
    open({ mode: 'allowlist' }, ['echo', 'cat']);
    script('echo', `#!/bin/sh\ntouch ${canary}\n`);
    script('file.txt', 'from the file\n');
    const refused = [
      `echo a && touch ${canary}`,
      `echo a; touch ${canary}`,
      `echo a & touch ${canary}`,
      `echo a\ntouch ${canary}`,
      `echo "require('fs').writeFileSync('${canary}','')" | node`,
      `echo $(touch ${canary})`,
      `echo \`touch ${canary}\``,
      `cat <(touch ${canary})`,
      `echo a > ${canary}`,
      `env touch ${canary}`,
      `sh -c 'touch ${canary}'`,
      `echo ${canary} | xargs touch`,
      './echo',
      `${workspace}/echo`,
    ];
    for (const command of refused) assert.match(await run(await authorise(command)), /^refused: ./, command);
    assert.equal(await run(await authorise('echo a')), 'a\n');
    assert.equal(await run(await authorise('cat file.txt')), 'from the file\n');
    assert.equal(await run(await authorise('echo "a && b"')), 'a && b\n');
    assert.equal(existsSync(canary), false);
    assert.equal(desk.approvals.list().length, 0, 'nobody was asked');
  });

  test('K-01: with asking on, one shell approved does not approve the next', async () => {
    open({ mode: 'ask' }, ['echo', 'cat']);
    const { asked } = await approve(`sh -c 'whoami'`, 'allow-once');
    assert.deepEqual(asked.allowedDecisions, ['allow-once', 'deny']);
    const again = await approve(`sh -c 'touch ${canary}'`, 'deny');
    assert.equal(again.said, 'refused: a person refused it');
    assert.equal(existsSync(canary), false);
  });

  test('allow-always is kept in the file and runs without a shell from then on', async () => {
    open({ mode: 'ask' }, []);
    const first = await approve('touch kept', 'allow-always');
    assert.equal(first.said, '');
    rmSync(join(workspace, 'kept'));
    const verdict = await authorise('touch kept');
    assert.ok(verdict.allowed && verdict.by === 'allowlist' && verdict.plan.kind === 'argv');
    await run(verdict);
    assert.ok(existsSync(join(workspace, 'kept')));
    const { agents } = JSON.parse(readFileSync(statePaths(env).execApprovalsFile, 'utf8'));
    assert.equal(agents.main.allowlist.length, 1);
  });

  for (const command of ['sh s.sh', './s.sh', 'sh ./s.sh > out.txt']) {
    test(`B32: ${command}: other bytes of the same size and time are refused, and the approval is used up`, async () => {
      open({ mode: 'ask' }, []);
      const path = script('s.sh', `#!/bin/sh\necho was${'x'.repeat(canary.length)}\n`);
      const { atime, mtime, size } = statSync(path);
      const { asked, said } = await approve(command, 'allow-once', () => {
        writeFileSync(path, `#!/bin/sh\ntouch ${canary}\n`.padEnd(size, '#'));
        utimesSync(path, atime, mtime);
      });
      assert.equal(statSync(path).size, size);
      assert.match(said, /^refused: .*changed/);
      assert.equal(existsSync(canary), false);
      assert.throws(() => desk.approvals.resolve(asked.id, 'allow-once', 'anna'), {
        code: 'APPROVAL_ALREADY_RESOLVED',
      });
    });
  }

  test('B32: an unchanged script runs once, and a second use of the id is refused', async () => {
    open({ mode: 'ask' }, []);
    script('s.sh', '#!/bin/sh\necho ran >> count\ncat count\n');
    const { asked, said } = await approve('sh s.sh', 'allow-once');
    assert.equal(said, 'ran\n');
    assert.throws(() => desk.approvals.resolve(asked.id, 'allow-once', 'anna'), { code: 'APPROVAL_ALREADY_RESOLVED' });
    assert.equal(readFileSync(join(workspace, 'count'), 'utf8'), 'ran\n');
  });

  test('a damaged exec-approvals.json refuses everything and stays as it is', async () => {
    open({ mode: 'full' }, []);
    const { execApprovalsFile } = statePaths(env);
    writeFileSync(execApprovalsFile, '{"version":1,');
    assert.match(await run(await authorise('echo a')), /^refused: exec-approvals\.json cannot be read/);
    assert.equal(readFileSync(execApprovalsFile, 'utf8'), '{"version":1,');
  });
});
