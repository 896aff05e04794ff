// `bin/reins` in a made-up checkout: which Node it becomes, which program it loads, and what it says when it cannot.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseSync } from 'oxc-parser';

const bin = join(import.meta.dirname, '..', 'bin');

/** Says who runs it, so that a test can see which program and which Node were chosen. */
const program = (name: string) => `
export async function main(argv) {
  if (argv[0] === 'wait') {
    process.on('SIGTERM', () => { console.log('got SIGTERM'); process.exit(7); });
    console.log('waiting ' + process.pid);
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  }
  console.log(JSON.stringify({ program: '${name}', node: process.version, argv, ppid: process.ppid, pid: process.pid }));
  return Number(argv[1] ?? 0);
}`;

type Checkout = { readonly root: string; readonly shims: string };

function checkout(t: TestContext): Checkout {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reins launcher ')));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const folder of ['src/cli', 'dist', 'shims', 'node_modules/node/bin'])
    mkdirSync(join(root, folder), { recursive: true });
  cpSync(bin, join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'package.json'), '{\n  "name": "reins",\n  "version": "3.2.1",\n  "type": "module"\n}\n');
  writeFileSync(join(root, 'src/cli/index.ts'), program('source'));
  writeFileSync(join(root, 'dist/cli.js'), program('bundle'));
  writeFileSync(join(root, 'dist/stamp.json'), '{}');
  setTime(root, 'dist/stamp.json', 60_000);
  return { root, shims: join(root, 'shims') };
}

function setTime(root: string, file: string, agoMs: number): void {
  const at = new Date(Date.now() + agoMs);
  utimesSync(join(root, file), at, at);
}

const ownNode = ({ root }: Checkout) => symlinkSync(process.execPath, join(root, 'node_modules/node/bin/node'));

/** A `node` for PATH that is this one but says it is `version`. */
function oldNode({ shims }: Checkout, version: string): string {
  const preload = join(shims, 'version.cjs');
  writeFileSync(
    preload,
    `if (!process.env.REINS_LAUNCHED_BY_OLD_NODE) {
      Object.defineProperty(process.versions, 'node', { value: '${version}' });
      Object.defineProperty(process, 'version', { value: 'v${version}' });
    }`,
  );
  const shim = join(shims, 'node');
  writeFileSync(shim, `#!/bin/sh\nexec '${process.execPath}' --require '${preload}' "$@"\n`);
  chmodSync(shim, 0o755);
  return shim;
}

type Outcome = { readonly code: number | null; readonly out: string; readonly err: string };

function run(file: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { env: { HOME: '/nonexistent', ...env }, ...(cwd === undefined ? {} : { cwd }) },
      (error, out, err) => resolve({ code: error ? ((error.code as unknown as number | null) ?? null) : 0, out, err }),
    );
  });
}

const nodeFolder = dirname(process.execPath);
const WITHOUT_NODE = { PATH: '/nonexistent' };
/** For `readlink`; whatever Node is there, the checkout's own goes before it. */
const SYSTEM = { PATH: '/usr/bin:/bin' };

test('the launcher answers --version without Node, from package.json', async (t) => {
  const { root } = checkout(t);
  for (const flag of ['--version', '-v', '-V']) {
    assert.deepEqual(await run('/bin/sh', [join(root, 'bin/reins'), flag], {}), { code: 0, out: '3.2.1\n', err: '' });
    assert.equal((await run(process.execPath, [join(root, 'bin/reins'), flag], {})).out, '3.2.1\n');
  }
});

test('the launcher becomes Node: one process, arguments and exit code as they are', async (t) => {
  const place = checkout(t);
  ownNode(place);
  const child = spawn(join(place.root, 'bin/reins'), ['status', '4', 'two words', "it's", '*'], { env: WITHOUT_NODE });
  let out = '';
  child.stdout.on('data', (part) => (out += part));
  const [code] = await once(child, 'close');
  const said = JSON.parse(out);
  assert.equal(code, 4);
  assert.equal(said.pid, child.pid, 'the shell must be gone');
  assert.deepEqual(said.argv, ['status', '4', 'two words', "it's", '*']);
});

const LINKS: readonly { readonly name: string; readonly make: (place: Checkout) => string; readonly cwd?: string }[] = [
  { name: 'an absolute link', make: ({ root, shims }) => link(join(root, 'bin/reins'), join(shims, 'reins')) },
  { name: 'a relative link', make: ({ shims }) => link('../bin/reins', join(shims, 'reins')) },
  {
    name: 'a link to a link',
    make: ({ root, shims }) =>
      link('./first', link(join(root, 'bin/reins'), join(shims, 'first')) && join(shims, 'second')),
  },
];

function link(target: string, path: string): string {
  symlinkSync(target, path);
  return path;
}

for (const { name, make } of LINKS) {
  test(`the launcher finds its checkout through ${name}`, async (t) => {
    const place = checkout(t);
    ownNode(place);
    const path = make(place);
    assert.equal(JSON.parse((await run(path, [], SYSTEM)).out).program, 'bundle');
    assert.equal((await run(path, ['-v'], SYSTEM)).out, '3.2.1\n');
    assert.equal(
      (await run('/bin/sh', [path.slice(place.shims.length + 1), '-v'], SYSTEM, place.shims)).out,
      '3.2.1\n',
    );
  });
}

test("the checkout's own Node goes before the one in PATH", async (t) => {
  const place = checkout(t);
  ownNode(place);
  oldNode(place, '18.19.0');
  const { out } = await run(join(place.root, 'bin/reins'), [], { PATH: `${place.shims}:/usr/bin:/bin` });
  assert.equal(JSON.parse(out).node, process.version);
});

test('without its own Node the launcher takes the one in PATH', async (t) => {
  const place = checkout(t);
  const { out } = await run(join(place.root, 'bin/reins'), [], { PATH: `${nodeFolder}:/usr/bin:/bin` });
  assert.equal(JSON.parse(out).program, 'bundle');
});

test('without any Node the launcher says in one line what to install', async (t) => {
  const place = checkout(t);
  const { code, out, err } = await run(join(place.root, 'bin/reins'), ['status'], WITHOUT_NODE);
  assert.equal(code, 1);
  assert.equal(out, '');
  assert.match(err, /^✗ .*Node 24 or newer.* — install it .*\n$/);
});

test("an old Node hands over to the checkout's own: arguments, exit code and signals pass", async (t) => {
  const place = checkout(t);
  ownNode(place);
  const old = oldNode(place, '20.20.2');
  const result = await run(old, [join(place.root, 'bin/reins'), 'status', '3'], {});
  assert.equal(result.code, 3, result.err);
  assert.deepEqual(JSON.parse(result.out).argv, ['status', '3']);

  const child = spawn(old, [join(place.root, 'bin/reins'), 'wait'], { env: { HOME: '/nonexistent' } });
  let out = '';
  child.stdout.on('data', (part) => {
    if (out === '') child.kill('SIGTERM');
    out += part;
  });
  const [code] = await once(child, 'close');
  assert.match(out, /^waiting \d+\ngot SIGTERM\n$/);
  assert.equal(code, 7);
});

test('an old Node without another one says in one line what to do', async (t) => {
  const place = checkout(t);
  const { code, out, err } = await run(oldNode(place, '12.22.0'), [join(place.root, 'bin/reins'), 'status'], {});
  assert.equal(code, 1);
  assert.equal(out, '');
  assert.match(err, /^✗ Reins needs Node 24 or newer and this is v12\.22\.0 — .*npm ci.*\n$/);
});

test('the launcher parses on Node 12', () => {
  const text = readFileSync(join(bin, 'reins'), 'utf8');
  const { program: syntax, errors } = parseSync('reins.cjs', text, { sourceType: 'commonjs' });
  assert.deepEqual(errors, []);
  const NEWER =
    /"(ChainExpression|PrivateIdentifier|PropertyDefinition|StaticBlock|ImportAttribute|AwaitExpression)"|"operator":"(\?\?|\?\?=|\|\|=|&&=)"|"param":null/;
  assert.doesNotMatch(JSON.stringify(syntax), NEWER);
});

const FRESHNESS: readonly {
  readonly name: string;
  readonly change: (root: string) => void;
  readonly program: string;
}[] = [
  { name: 'nothing changed since the build', change: () => undefined, program: 'bundle' },
  { name: 'a source file is newer', change: (root) => setTime(root, 'src/cli/index.ts', 120_000), program: 'source' },
  { name: 'a folder changed: a file is gone', change: (root) => setTime(root, 'src/cli', 120_000), program: 'source' },
  { name: 'package.json is newer', change: (root) => setTime(root, 'package.json', 120_000), program: 'source' },
  {
    name: 'only a test is newer',
    change: (root) => {
      writeFileSync(join(root, 'src/cli/x.test.ts'), '');
      setTime(root, 'src/cli/x.test.ts', 120_000);
    },
    program: 'bundle',
  },
  { name: 'the build did not finish', change: (root) => rmSync(join(root, 'dist/stamp.json')), program: 'source' },
  {
    name: 'an installed package has no sources',
    change: (root) => rmSync(join(root, 'src'), { recursive: true }),
    program: 'bundle',
  },
];

for (const { name, change, program: expected } of FRESHNESS) {
  test(`the launcher loads the ${expected} when ${name}`, async (t) => {
    const place = checkout(t);
    ownNode(place);
    change(place.root);
    const { out, err } = await run(join(place.root, 'bin/reins'), [], WITHOUT_NODE);
    assert.equal(JSON.parse(out || '{}').program, expected, err);
  });
}

test('a copy without a program says so', async (t) => {
  const place = checkout(t);
  ownNode(place);
  rmSync(join(place.root, 'dist'), { recursive: true });
  rmSync(join(place.root, 'src'), { recursive: true });
  const { code, err } = await run(join(place.root, 'bin/reins'), ['status'], WITHOUT_NODE);
  assert.equal(code, 1);
  assert.match(err, /^✗ this copy of Reins has no program in it: .* — install it again\n$/);
});

test('compiled code is kept beside the program when only its owner can write there, else in the cache folder', async (t) => {
  const place = checkout(t);
  ownNode(place);
  const cache = join(place.root, 'cache');
  await run(join(place.root, 'bin/reins'), [], { ...WITHOUT_NODE, XDG_CACHE_HOME: cache });
  assert.ok(existsSync(join(place.root, 'dist/.cache/reins')));
  assert.ok(!existsSync(cache));

  rmSync(join(place.root, 'dist/.cache'), { recursive: true });
  chmodSync(join(place.root, 'dist'), 0o777);
  await run(join(place.root, 'bin/reins'), [], { ...WITHOUT_NODE, XDG_CACHE_HOME: cache });
  assert.ok(!existsSync(join(place.root, 'dist/.cache')), 'anyone could put code there');
  assert.ok(existsSync(join(cache, 'reins/compiled')));
});
