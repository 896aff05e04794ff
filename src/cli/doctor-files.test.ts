import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { checkFiles } from './doctor-files.ts';

type Tree = Readonly<Record<string, number>>;

/** A state folder whose files have the given modes; a name that ends with `/` is a folder. */
function stateFolder(t: TestContext, tree: Tree): string {
  const home = mkdtempSync(join(tmpdir(), 'reins-doctor-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const folder = join(home, 'state');
  mkdirSync(folder, { mode: 0o700 });
  for (const [name, mode] of Object.entries(tree)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (name.endsWith('/')) mkdirSync(path, { recursive: true });
    else writeFileSync(path, 'x');
    chmodSync(path, mode);
  }
  return folder;
}

const check = (stateDir: string, mend: 'yes' | 'no' = 'no', uid = process.getuid!()) =>
  checkFiles({ stateDir, configFile: join(stateDir, 'reins.json'), tokenFile: join(stateDir, 'token'), mend, uid });

const cases: readonly { name: string; tree: Tree; expect: readonly string[] }[] = [
  { name: 'a closed folder', tree: { 'reins.json': 0o600, token: 0o600, 'agents/main/': 0o700 }, expect: [] },
  { name: 'a readable folder', tree: { './': 0o755 }, expect: ['warn fs.state_dir.perms_readable'] },
  { name: 'a writable folder', tree: { './': 0o777 }, expect: ['critical fs.state_dir.perms_writable'] },
  { name: 'a readable config', tree: { 'reins.json': 0o644 }, expect: ['critical fs.config.perms_readable'] },
  { name: 'a writable config', tree: { 'reins.json': 0o666 }, expect: ['critical fs.config.perms_writable'] },
  { name: 'a readable token', tree: { token: 0o604 }, expect: ['critical fs.token.perms_readable'] },
  {
    name: 'readable files inside are told together',
    tree: { 'agents/main/a.jsonl': 0o644, 'agents/main/b.jsonl': 0o640 },
    expect: ['warn fs.state.perms_readable'],
  },
  { name: 'writable files inside', tree: { 'agents/main/a.jsonl': 0o662 }, expect: ['warn fs.state.perms_writable'] },
  { name: "a workspace's files are the person's own", tree: { 'workspace/notes.md': 0o644 }, expect: [] },
];

for (const { name, tree, expect } of cases) {
  test(`M-62: doctor on ${name}, and after --fix nothing is left`, async (t) => {
    const folder = stateFolder(t, tree);
    const told = (findings: Awaited<ReturnType<typeof check>>) => findings.map((f) => `${f.severity} ${f.checkId}`);
    assert.deepEqual(told(await check(folder)), expect);
    const mended = await check(folder, 'yes');
    assert.ok(mended.every((finding) => finding.fixed));
    assert.deepEqual(told(await check(folder)), []);
  });
}

test("M-62: --fix takes only others' rights away", async (t) => {
  const folder = stateFolder(t, { 'hooks/run.sh': 0o755, 'old.jsonl': 0o444 });
  await check(folder, 'yes');
  assert.equal(statSync(join(folder, 'hooks/run.sh')).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, 'old.jsonl')).mode & 0o777, 0o400);
});

test('M-62: files of another user are critical, and doctor does not touch them', async (t) => {
  const folder = stateFolder(t, { token: 0o644 });
  const findings = await check(folder, 'yes', process.getuid!() + 1);
  assert.deepEqual(
    findings.map((finding) => `${finding.severity} ${finding.checkId} ${finding.fixed ?? 'not fixed'}`),
    ['critical fs.state_dir.owner not fixed', 'critical fs.state.owner not fixed'],
  );
  assert.equal(statSync(join(folder, 'token')).mode & 0o777, 0o644);
});

test('M-62: a link is named and never followed', async (t) => {
  const folder = stateFolder(t, { token: 0o600 });
  const outside = join(dirname(folder), 'outside');
  writeFileSync(outside, 'x');
  chmodSync(outside, 0o644);
  symlinkSync(outside, join(folder, 'link'));
  symlinkSync(folder, join(dirname(folder), 'second'));
  assert.deepEqual(await check(folder, 'yes'), []);
  assert.equal(statSync(outside).mode & 0o777, 0o644);
  const [finding] = await check(join(dirname(folder), 'second'));
  assert.equal(finding?.checkId, 'fs.state_dir.symlink');
});

test('M-62: a state folder that does not exist yet is no fault', async () => {
  const [finding] = await check('/nonexistent/state');
  assert.equal(finding?.severity, 'info');
});
