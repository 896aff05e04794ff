// Goal: whatever name a model gives, bytes outside the workspace are neither read nor changed. Method: a workspace and, beside it, an
// outside with a canary; links, hard links and special files between the two; known tricks as a table, and random names built from the
// pieces of such tricks. Every refusal has its twin that works.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { isGatewayError } from '#base';
import { openWorkspace } from './index.ts';

const CANARY = 'CANARY-7f3a';
const LIMITS = { bytesMax: 10_000 };
const place = realpathSync(mkdtempSync(join(tmpdir(), 'host-workspace-')));
after(() => rmSync(place, { recursive: true, force: true }));

let count = 0;
async function made() {
  const base = join(place, `w${++count}`);
  const root = join(base, 'agent');
  const out = join(base, 'agent-evil');
  mkdirSync(join(root, 'sub', 'deep'), { recursive: true });
  mkdirSync(out);
  writeFileSync(join(out, 'secret'), CANARY);
  writeFileSync(join(root, 'notes.txt'), 'inside');
  writeFileSync(join(root, 'sub', 'a.txt'), 'inside a');
  symlinkSync(join(out, 'secret'), join(root, 'link'));
  symlinkSync(join(out, 'new.txt'), join(root, 'dangling'));
  symlinkSync(out, join(root, 'sub', 'outfolder'));
  symlinkSync(join(root, 'notes.txt'), join(root, 'inlink'));
  linkSync(join(out, 'secret'), join(root, 'hard'));
  return { base, root, out, files: await openWorkspace(root) };
}

const refusedWith = (pattern: RegExp) => (error: unknown) => {
  assert.ok(isGatewayError(error, 'FILE_REFUSED'), String(error));
  assert.match(error.message, pattern);
  assert.doesNotMatch(`${error.message}${error.next}${JSON.stringify(error.detail)}`, /CANARY|root:/);
  return true;
};

type Case = {
  readonly case: string;
  readonly name: string | ((w: { root: string; out: string; base: string }) => string);
  readonly why: RegExp;
};
const OUTSIDE: readonly Case[] = [
  { case: 'B23', name: '../../../../../../etc/passwd', why: /"\.\."/ },
  { case: 'B23', name: '/etc/passwd', why: /outside the workspace/ },
  { case: 'B23', name: '@/etc/passwd', why: /outside the workspace/ },
  { case: 'B23', name: '~/.ssh/id', why: /outside the workspace/ },
  { case: 'B23', name: '@~/.ssh/id', why: /outside the workspace/ },
  { case: 'B23', name: '/proc/self/environ', why: /not a place for files/ },
  { case: 'B23', name: '/dev/stdin', why: /not a place for files/ },
  { case: 'B23', name: 'sub/../../agent-evil/secret', why: /"\.\."/ },
  { case: 'B23', name: ({ root }) => `${root}/../agent-evil/secret`, why: /"\.\."/ },
  { case: 'B23', name: '..\\agent-evil\\secret', why: /single slashes/ },
  { case: 'B23', name: 'C:/secret', why: /no drive/ },
  { case: 'B23', name: '//server/share/secret', why: /single slashes/ },
  { case: 'B23', name: 'notes.txt\0.png', why: /NUL/ },
  { case: 'B23', name: 'x'.repeat(5_000), why: /too long/ },
  { case: 'B23', name: 'x'.repeat(300), why: /too long/ },
  { case: 'B24', name: ({ out }) => `${out}/secret`, why: /outside the workspace/ },
  { case: 'B24', name: ({ root }) => `${root}-evil/secret`, why: /outside the workspace/ },
  { case: 'B25', name: 'link', why: /link/ },
  { case: 'B25', name: 'inlink', why: /link/ },
  { case: 'B25', name: 'dangling', why: /link/ },
  { case: 'B25', name: 'sub/outfolder/secret', why: /a link is in the way/ },
  { case: 'B25', name: 'sub/outfolder/new/deeper.txt', why: /a link is in the way/ },
  { case: 'B26', name: 'hard', why: /hard links/ },
  { case: 'B23', name: 'sub', why: /folder/ },
  { case: 'B23', name: '', why: /workspace itself/ },
  { case: 'B23', name: '.', why: /workspace itself/ },
  { case: 'B23', name: 'notes.txt/below', why: /not a folder/ },
];
for (const { case: id, name, why } of OUTSIDE) {
  const shown = typeof name === 'string' ? JSON.stringify(name.slice(0, 40)) : name.toString().slice(0, 60);
  test(`${id}: ${shown} is neither read nor written nor changed`, async () => {
    const world = await made();
    const given = typeof name === 'string' ? name : name(world);
    const before = readdirSync(world.out);
    await assert.rejects(world.files.readBytes(given, LIMITS), refusedWith(why));
    await assert.rejects(world.files.writeBytes(given, Buffer.from('x')), refusedWith(why));
    await assert.rejects(
      world.files.updateBytes(given, LIMITS, () => Buffer.from('x')),
      refusedWith(why),
    );
    assert.equal(readFileSync(join(world.out, 'secret'), 'utf8'), CANARY);
    assert.deepEqual(readdirSync(world.out), before);
    assert.equal(existsSync(join(world.out, 'new.txt')), false);
  });
}

test('B23, B24, B25, B26 controls: ordinary names are read, however they are written', async () => {
  const { files, root } = await made();
  for (const name of ['notes.txt', '@notes.txt', './notes.txt', `${root}/notes.txt`, 'notes.txt/']) {
    assert.equal((await files.readBytes(name, LIMITS)).toString(), 'inside', name);
  }
  assert.equal((await files.readBytes('sub//a.txt', LIMITS)).toString(), 'inside a');
  assert.equal(files.relative(`${root}/sub/a.txt`), 'sub/a.txt');
  assert.equal(files.relative('.'), '.');
});

test('a root that is given through a link is known by both its names', async () => {
  const { base, root } = await made();
  symlinkSync(root, join(base, 'alias'));
  const files = await openWorkspace(join(base, 'alias'));
  assert.equal(files.root, root);
  for (const start of [root, join(base, 'alias')]) {
    assert.equal((await files.readBytes(`${start}/notes.txt`, LIMITS)).toString(), 'inside');
  }
  await assert.rejects(openWorkspace(join(base, 'none')), { code: 'FILE_NOT_FOUND' });
});

test('a home inside the workspace can be reached by ~', async () => {
  const files = await openWorkspace(homedir());
  assert.equal(files.relative('~/x/y'), 'x/y');
  assert.equal(files.relative('~'), '.');
  assert.equal(files.relative('~x'), '~x');
});

test('B23: random names built from the pieces of tricks reach nothing outside', async () => {
  const { files, root, out } = await made();
  const piece = fc.constantFrom(
    ...[
      '..',
      '.',
      '',
      '~',
      '@',
      'sub',
      'deep',
      'link',
      'dangling',
      'inlink',
      'outfolder',
      'hard',
      'secret',
      'notes.txt',
    ],
    ...[
      'new',
      '\\',
      '\0',
      'C:',
      '%2e%2e',
      '．．',
      'agent',
      'agent-evil',
      'etc',
      'passwd',
      'proc',
      'self',
      'root',
      ' ',
      'a\n',
    ],
    ...[root, out, `${out}/secret`, `${root}/sub`, '/etc/passwd'],
  );
  const name = fc.array(piece, { minLength: 1, maxLength: 7 }).map((pieces) => pieces.join('/'));
  await fc.assert(
    fc.asyncProperty(name, fc.boolean(), async (given, writes) => {
      try {
        if (writes) await files.writeBytes(given, Buffer.from('written'));
        else assert.match((await files.readBytes(given, LIMITS)).toString(), /^(inside|inside a|written)$/);
      } catch (error) {
        if (!isGatewayError(error, 'FILE_REFUSED', 'FILE_NOT_FOUND')) throw error;
        assert.doesNotMatch(error.message, /CANARY|root:/);
      }
    }),
    { numRuns: 1_000 },
  );
  assert.deepEqual(readdirSync(out), ['secret']);
  assert.equal(readFileSync(join(out, 'secret'), 'utf8'), CANARY);
  assert.deepEqual(readdirSync(join(root, '..')).sort(), ['agent', 'agent-evil']);
});

test('a folder that is exchanged for a link while files are written and read leads nowhere else', async () => {
  const { files, root, out } = await made();
  mkdirSync(join(root, 'swap'));
  writeFileSync(join(root, 'swap', 'secret'), 'inside');
  let isOver = false;
  const swap = join(root, 'swap');
  const exchange = (async () => {
    while (!isOver) {
      renameSync(swap, join(root, 'kept'));
      await new Promise(setImmediate);
      symlinkSync(out, swap);
      await new Promise(setImmediate);
      rmSync(swap);
      renameSync(join(root, 'kept'), swap);
      await new Promise(setImmediate);
    }
  })();
  const outcomes = new Set<string>();
  for (let i = 0; i < 150; i++) {
    await files.readBytes('swap/secret', LIMITS).then(
      (bytes) => outcomes.add(bytes.toString()),
      (error) => outcomes.add(error.code),
    );
    await files
      .updateBytes('swap/secret', LIMITS, () => Buffer.from('inside'))
      .then(
        () => outcomes.add('written'),
        (error) => outcomes.add(error.code),
      );
  }
  isOver = true;
  await exchange;
  assert.ok(!outcomes.has(CANARY));
  assert.deepEqual(readdirSync(out), ['secret']);
  assert.equal(readFileSync(join(out, 'secret'), 'utf8'), CANARY);
  for (const outcome of outcomes) assert.match(outcome, /^(inside|written|FILE_REFUSED|FILE_NOT_FOUND)$/);
});

test('a folder that is exchanged for a link between reading and writing gets nothing written through it', async () => {
  const { files, root, out } = await made();
  mkdirSync(join(root, 'swap'));
  writeFileSync(join(root, 'swap', 'secret'), 'inside');
  const change = () => {
    renameSync(join(root, 'swap'), join(root, 'kept'));
    symlinkSync(out, join(root, 'swap'));
    return Buffer.from('changed');
  };
  await assert.rejects(files.updateBytes('swap/secret', LIMITS, change), refusedWith(/exchanged meanwhile/));
  assert.deepEqual(readdirSync(out), ['secret']);
  assert.equal(readFileSync(join(out, 'secret'), 'utf8'), CANARY);
  assert.deepEqual(readdirSync(join(root, 'kept')), ['secret']);
  assert.equal(readFileSync(join(root, 'kept', 'secret'), 'utf8'), 'inside');
});

test('what is no regular file is refused without waiting for it', async () => {
  const { files, root } = await made();
  execFileSync('mkfifo', [join(root, 'fifo')]);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(root, 'socket'), resolve));
  for (const name of ['fifo', 'socket']) {
    await assert.rejects(files.readBytes(name, LIMITS), refusedWith(/not a regular file/));
    await assert.rejects(files.writeBytes(name, Buffer.from('x')), refusedWith(/not a regular file/));
  }
  await new Promise((resolve) => server.close(resolve));
});

test('a file over the limit is refused before it is read, with its size', async () => {
  const { files, root } = await made();
  writeFileSync(join(root, 'big'), Buffer.alloc(10_001));
  await assert.rejects(
    files.readBytes('big', LIMITS),
    (error) => isGatewayError(error, 'FILE_TOO_LARGE') && /10001 bytes/.test(error.message),
  );
  writeFileSync(join(root, 'fits'), Buffer.alloc(10_000));
  assert.equal((await files.readBytes('fits', LIMITS)).length, 10_000);
});

test('a name that is not there is answered with the nearest one that is', async () => {
  const { files } = await made();
  await assert.rejects(
    files.readBytes('note.txt', LIMITS),
    (e) => isGatewayError(e, 'FILE_NOT_FOUND') && /does not exist; there is "notes.txt"/.test(e.message),
  );
  await assert.rejects(
    files.readBytes('sup/a.txt', LIMITS),
    (e) => isGatewayError(e, 'FILE_NOT_FOUND') && /there is "sub"/.test(e.message),
  );
  await assert.rejects(
    files.updateBytes('zzz', LIMITS, (b) => b),
    (e) => isGatewayError(e, 'FILE_NOT_FOUND') && !/there is/.test(e.message),
  );
});

test('writing makes private folders and files, keeps the mode of what it replaces, and leaves nothing beside', async () => {
  const { files, root } = await made();
  assert.deepEqual(await files.writeBytes('new/er/file.sh', Buffer.from('1')), { replaced: false });
  assert.equal(statSync(join(root, 'new', 'er')).mode & 0o777, 0o700);
  assert.equal(statSync(join(root, 'new', 'er', 'file.sh')).mode & 0o777, 0o600);
  chmodSync(join(root, 'new', 'er', 'file.sh'), 0o755);
  assert.deepEqual(await files.writeBytes('new/er/file.sh', Buffer.from('2')), { replaced: true });
  assert.equal(statSync(join(root, 'new', 'er', 'file.sh')).mode & 0o777, 0o755);
  assert.deepEqual(readdirSync(join(root, 'new', 'er')), ['file.sh']);
  assert.equal(readFileSync(join(root, 'new', 'er', 'file.sh'), 'utf8'), '2');
});

test('changes at the same time are all made: none undoes another', async () => {
  const { files, root } = await made();
  writeFileSync(join(root, 'list'), '');
  const add = (line: string) =>
    files.updateBytes('list', LIMITS, (bytes) => Buffer.concat([bytes, Buffer.from(`${line}\n`)]));
  const lines = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  await Promise.all(lines.map(add));
  assert.deepEqual(readFileSync(join(root, 'list'), 'utf8').trim().split('\n').sort(), lines.sort());
  assert.deepEqual(
    readdirSync(root).filter((name) => name.endsWith('.tmp')),
    [],
  );
});

test('a change that throws leaves the file as it was', async () => {
  const { files, root } = await made();
  const fault = new Error('not like this');
  await assert.rejects(
    files.updateBytes('notes.txt', LIMITS, () => {
      throw fault;
    }),
    fault,
  );
  assert.equal(readFileSync(join(root, 'notes.txt'), 'utf8'), 'inside');
});

test('facts and folders of the workspace are told, and of nothing else', async () => {
  const { files, root } = await made();
  assert.deepEqual({ ...(await files.stat('notes.txt')), modifiedAt: 0 }, { size: 6, modifiedAt: 0, isFolder: false });
  assert.equal((await files.stat('.')).isFolder, true);
  assert.equal(await files.folder('.'), root);
  assert.equal(await files.folder(`${root}/sub/deep`), join(root, 'sub', 'deep'));
  await assert.rejects(files.stat('link'), refusedWith(/link/));
  await assert.rejects(files.folder('sub/outfolder'), refusedWith(/link/));
  await assert.rejects(files.folder('notes.txt'), refusedWith(/not a folder/));
  await assert.rejects(files.folder('/tmp'), refusedWith(/outside/));
});
