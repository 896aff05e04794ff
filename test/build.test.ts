// The release as `npm run build` makes it, put where an installed package would be: no sources, no node_modules.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';

const root = join(import.meta.dirname, '..');

type Outcome = { readonly code: number; readonly out: string; readonly err: string };

function run(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return new Promise((resolve) => {
    const path = `${dirname(process.execPath)}:${process.env['PATH']}`;
    execFile(file, args, { env: { PATH: path, HOME: '/nonexistent', ...env } }, (error, out, err) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, out, err }),
    );
  });
}

describe('an installed package', () => {
  let folder: string;
  const reins = (...args: string[]) =>
    run(join(folder, 'bin/reins'), args, { REINS_STATE_DIR: join(folder, 'state'), REINS_GATEWAY_PORT: '9' });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'reins-package-'));
    cpSync(join(root, 'bin'), join(folder, 'bin'), { recursive: true });
    cpSync(join(root, 'package.json'), join(folder, 'package.json'));
    const built = await run(process.execPath, [join(root, 'scripts/build.mjs'), `--into=${join(folder, 'dist')}`]);
    assert.equal(built.code, 0, built.err);
    assert.match(built.out, /^✓ built \d+\.\d+\.\d+: \d+ files, \d+ KB of code, in \d+ ms\n$/);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('says its version, and the stamp has the same', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    assert.equal((await reins('--version')).out, `${version}\n`);
    assert.deepEqual(JSON.parse(readFileSync(join(folder, 'dist/stamp.json'), 'utf8')), { version });
  });

  test('runs commands without any package beside it', async () => {
    const { code, out, err } = await reins('status', '--json');
    assert.equal(err, '');
    assert.deepEqual({ code, said: JSON.parse(out).error.code }, { code: 3, said: 'GATEWAY_UNREACHABLE' });
    assert.equal((await reins('config', 'get', 'gateway.port')).out, '9\n');
  });

  test('has the web chat', () => {
    assert.match(readFileSync(join(folder, 'dist/web/index.html'), 'utf8'), /<script type="module"/);
  });

  test('loads no gateway code for a command that only asks one', () => {
    const reached = loadedBy('cli.js');
    const status = readdirSync(join(folder, 'dist/parts')).find((name) => /^status-.*\.js$/.test(name));
    for (const file of loadedBy(join('parts', status!))) reached.add(file);
    const text = [...reached].map((file) => readFileSync(join(folder, 'dist', file), 'utf8')).join('\n');
    assert.ok(text.includes('sessions.list'), 'this test must look at the right files');
    for (const power of ['node:sqlite', 'node:http"']) assert.ok(!text.includes(power), power);
  });

  /** The files that loading `file` loads with it, without what is loaded later. */
  function loadedBy(file: string, found = new Set<string>()): Set<string> {
    if (found.has(file) || !existsSync(join(folder, 'dist', file))) return found;
    found.add(file);
    const text = readFileSync(join(folder, 'dist', file), 'utf8');
    for (const [, target] of text.matchAll(/(?:\bfrom|\bimport)\s*["'](\.[^"']+)["']/g)) {
      loadedBy(join(dirname(file), target!), found);
    }
    return found;
  }
});

test('the build without its tools: an error by hand, nothing to do for npm', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reins-no-tools-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'scripts'));
  cpSync(join(root, 'scripts/build.mjs'), join(folder, 'scripts/build.mjs'));
  const script = join(folder, 'scripts/build.mjs');
  assert.deepEqual(await run(process.execPath, [script, '--if-tools']), { code: 0, out: '', err: '' });
  const { code, err } = await run(process.execPath, [script]);
  assert.equal(code, 1);
  assert.match(err, /^✗ esbuild and vite are not installed — .*\n$/);
  assert.equal((await run(process.execPath, [script, '--fast'])).code, 1);
});
