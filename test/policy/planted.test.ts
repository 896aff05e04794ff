// Programs that an agent could have put in the way never match, whatever the allow-list says.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { approvalDesk } from '../../src/app/approval-desk.ts';
import { systemClock } from '../../src/base/index.ts';
import { loadConfig, statePaths } from '../../src/config/index.ts';
import { DEFAULT_AGENT, resolveSessionKey } from '../../src/domain/index.ts';

function desk(t: TestContext, pathFolders: (workspace: string) => string) {
  const stateDir = mkdtempSync(join(tmpdir(), 'reins-planted-'));
  t.after(() => rmSync(stateDir, { recursive: true }));
  const real = join(stateDir, 'real-workspace');
  mkdirSync(real);
  const workspace = join(stateDir, 'workspace');
  symlinkSync(real, workspace);
  writeFileSync(join(real, 'ls'), '#!/bin/sh\ntouch planted\n');
  chmodSync(join(real, 'ls'), 0o755);
  writeFileSync(join(stateDir, 'reins.json'), '{tools: {exec: {mode: "allowlist"}}}');
  const allowlist = [{ pattern: 'ls' }, { pattern: `${realpathSync(real)}/*` }];
  writeFileSync(join(stateDir, 'exec-approvals.json'), JSON.stringify({ version: 1, agents: { main: { allowlist } } }));
  const env = { HOME: stateDir, REINS_STATE_DIR: stateDir, PATH: pathFolders(workspace) };
  const { config } = loadConfig({ stateDir, env });
  const { gate } = approvalDesk({
    env,
    paths: statePaths(env),
    config: () => config,
    clock: systemClock,
    workspaceOf: () => workspace,
    audit: () => undefined,
  });
  const ask = (command: string) =>
    gate.authorise(
      {
        command,
        cwd: real,
        env: {},
        agent: DEFAULT_AGENT,
        sessionKey: resolveSessionKey('main'),
        runId: 'r',
        callId: 'c',
        owner: true,
      },
      AbortSignal.timeout(5_000),
    );
  return { ask };
}

test('K-01: a program planted in a workspace behind a link does not match its path', async (t) => {
  const { ask } = desk(t, () => '/usr/bin:/bin');
  assert.equal((await ask('./ls')).allowed, false);
  const fine = await ask('ls');
  assert.ok(
    fine.allowed && fine.plan.kind === 'argv' && fine.plan.pipelines[0]?.steps[0]?.file.startsWith('/usr/'),
    'the real one does',
  );
});

test('K-01: a workspace on the search path finds no programs', async (t) => {
  const { ask } = desk(t, (workspace) => `${workspace}:/usr/bin:/bin`);
  const verdict = await ask('ls');
  assert.ok(verdict.allowed && verdict.plan.kind === 'argv');
  assert.ok(verdict.plan.pipelines[0]?.steps[0]?.file.startsWith('/usr/'), JSON.stringify(verdict.plan));
});
