// read, write and edit over a real workspace with an outside beside it.
import assert from 'node:assert/strict';
import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isGatewayError } from '#base';
import { CANARY, textOf, type Workbench, workbench } from './workbench.ts';

function onBench(
  name: string,
  action: (bench: Workbench, put: (file: string, data: string | Uint8Array) => void) => Promise<void>,
): void {
  test(name, async () => {
    const bench = await workbench();
    try {
      await action(bench, (file, data) => writeFileSync(join(bench.workspace, file), data));
    } finally {
      await bench.close();
    }
  });
}

const contentOf = (bench: Workbench, file: string) => readFileSync(join(bench.workspace, file), 'utf8');

/** Refused with a reason, and with nothing of what is outside in it. */
async function assertRefused(call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(isGatewayError(error, 'FILE_REFUSED'), String(error));
    assert.doesNotMatch(error.message, /CANARY|root:/);
    return true;
  });
}

onBench(
  'B23: read of a file outside, by a climbing or an absolute path, is refused; one inside is read',
  async (bench, put) => {
    await assertRefused(bench.call('read', { path: '../../../../../../etc/passwd' }));
    await assertRefused(bench.call('read', { path: '/etc/passwd' }));
    put('ok.txt', 'fine');
    assert.equal(textOf(await bench.call('read', { path: join(bench.workspace, 'ok.txt') })), 'fine');
  },
);

onBench(
  'B24: read of a neighbour whose name begins like the workspace is refused; one inside is read',
  async (bench) => {
    await assertRefused(bench.call('read', { path: join(bench.outside, 'secret') }));
    mkdirSync(join(bench.workspace, 'agent-evil'));
    writeFileSync(join(bench.workspace, 'agent-evil', 'secret'), 'ours');
    assert.equal(textOf(await bench.call('read', { path: 'agent-evil/secret' })), 'ours');
  },
);

onBench(
  'B25: write through a dangling link is refused and makes nothing outside; a plain new name is written',
  async (bench) => {
    symlinkSync(join(bench.outside, 'new.txt'), join(bench.workspace, 'l'));
    await assertRefused(bench.call('write', { path: 'l', content: 'x' }));
    await assertRefused(bench.call('edit', { path: 'l', oldText: 'a', newText: 'x' }));
    assert.deepEqual(readdirSync(bench.outside), ['secret']);
    await bench.call('write', { path: 'm', content: 'x' });
    assert.equal(contentOf(bench, 'm'), 'x');
  },
);

onBench(
  'B26: edit and read of a second name of an outside file are refused; a file with one name is changed and read',
  async (bench, put) => {
    linkSync(join(bench.outside, 'secret'), join(bench.workspace, 'h'));
    await assertRefused(bench.call('edit', { path: 'h', edits: [{ oldText: CANARY, newText: 'x' }] }));
    await assertRefused(bench.call('read', { path: 'h' }));
    await assertRefused(bench.call('write', { path: 'h', content: 'x' }));
    assert.equal(readFileSync(join(bench.outside, 'secret'), 'utf8'), CANARY);
    put('one', 'only here');
    await bench.call('edit', { path: 'one', edits: [{ oldText: 'only', newText: 'just' }] });
    assert.equal(textOf(await bench.call('read', { path: 'one' })), 'just here');
  },
);

const TEN = Array.from({ length: 10 }, (_, i) => `line ${i + 1}`).join('\n');
const PAGES = [
  { name: 'a whole file', text: 'a\nb\n', args: {}, shown: 'a\nb' },
  { name: 'a file without a last line end', text: 'a\nb', args: {}, shown: 'a\nb' },
  {
    name: 'a page',
    text: TEN,
    args: { offset: 3, limit: 2 },
    shown: 'line 3\nline 4\n(6 more lines. Go on with offset 5.)',
  },
  { name: 'the last page', text: TEN, args: { offset: 10, limit: 2 }, shown: 'line 10' },
  {
    name: 'from the first line when asked for line 0',
    text: 'a\nb',
    args: { offset: 0, limit: 1 },
    shown: 'a\n(1 more line. Go on with offset 2.)',
  },
  {
    name: 'behind the end',
    text: 'a\n',
    args: { offset: 9 },
    shown: '(The file has 1 line; there is none from line 9 on.)',
  },
  { name: 'an empty file', text: '', args: {}, shown: '(The file is empty.)' },
  { name: 'a file of one empty line', text: '\n', args: {}, shown: '' },
  { name: 'a byte order mark', text: '\ufeffa\r\nb', args: {}, shown: 'a\r\nb' },
] as const;
for (const { name, text, args, shown } of PAGES) {
  onBench(`read: ${name}`, async (bench, put) => {
    put('f', text);
    assert.equal(textOf(await bench.call('read', { path: 'f', ...args })), shown);
  });
}

onBench('read: following the offsets shows every line once, however long the file', async (bench, put) => {
  const lines = Array.from({ length: 7_000 }, (_, i) => `${i} ${'x'.repeat(i % 90)}`);
  put('long', `${lines.join('\n')}\n`);
  const seen: string[] = [];
  for (let offset: number | undefined = 1; offset !== undefined; ) {
    const text: string = textOf(await bench.call('read', { path: 'long', offset }));
    assert.ok(text.length < 51_000);
    const [note, next] = /\n\(\d+ more lines?\. Go on with offset (\d+)\.\)$/.exec(text) ?? [];
    seen.push(...text.slice(0, text.length - (note?.length ?? 0)).split('\n'));
    offset = next === undefined ? undefined : Number(next);
  }
  assert.deepEqual(seen, lines);
});

onBench('read: a line that is too long is cut between characters and says so', async (bench, put) => {
  put('f', `x${'😀'.repeat(10_000)}\nnext`);
  const text = textOf(await bench.call('read', { path: 'f' }));
  assert.match(text, /^x(?:😀)+ \[16002 more characters in this line\]\nnext$/u);
});

const PICTURES = [
  { mimeType: 'image/png', bytes: Buffer.from('\x89PNG\r\n\x1a\n\0\0', 'latin1') },
  { mimeType: 'image/jpeg', bytes: Buffer.from('\xff\xd8\xff\xe0\0', 'latin1') },
  { mimeType: 'image/gif', bytes: Buffer.from('GIF89a\0', 'latin1') },
  { mimeType: 'image/webp', bytes: Buffer.from('RIFF\n\0\0\0WEBPVP8 ', 'latin1') },
];
for (const { mimeType, bytes } of PICTURES) {
  onBench(`read: ${mimeType} comes back as an image, whatever its name`, async (bench, put) => {
    put('picture.txt', bytes);
    const { content } = await bench.call('read', { path: 'picture.txt' });
    assert.deepEqual(content[1], { type: 'image', data: bytes.toString('base64'), mimeType });
    assert.match(textOf({ content }), new RegExp(`^picture\\.txt \\(${mimeType}, \\d+ bytes\\)$`));
  });
}

onBench('read: other binary files are told and not shown; a picture over 6 MiB is too large', async (bench, put) => {
  put('a.png', Buffer.from('ELF\0\x01'));
  const result = await bench.call('read', { path: 'a.png' });
  assert.equal(result.outcome, 'failed');
  assert.match(textOf(result), /binary file of 5 bytes/);
  put('big.png', Buffer.concat([PICTURES[0]!.bytes, Buffer.alloc(6 * 1024 * 1024)]));
  await assert.rejects(bench.call('read', { path: 'big.png' }), { code: 'FILE_TOO_LARGE' });
});

onBench('write: says whether it created or replaced, and how many bytes', async (bench) => {
  assert.equal(textOf(await bench.call('write', { path: 'a/b.txt', content: 'ü' })), 'Created a/b.txt (2 bytes).');
  const again = await bench.call('write', { path: '@a/b.txt', content: '' });
  assert.equal(textOf(again), 'Replaced a/b.txt (0 bytes).');
  assert.deepEqual(again.details, { path: 'a/b.txt', bytes: 0, replaced: true });
  assert.equal(contentOf(bench, 'a/b.txt'), '');
});

onBench('edit: byte order mark and CRLF stay; the result has the diff', async (bench, put) => {
  put('f.txt', '\ufeffone\r\ntwo\r\nthree\r\n');
  const result = await bench.call('edit', { path: 'f.txt', edits: [{ oldText: 'one\ntwo', newText: '1\n2' }] });
  assert.equal(contentOf(bench, 'f.txt'), '\ufeff1\r\n2\r\nthree\r\n');
  assert.equal(textOf(result), 'Changed f.txt in 1 place.');
  assert.deepEqual(result.details, {
    path: 'f.txt',
    diff: '--- f.txt\n+++ f.txt\n@@ -1,3 +1,3 @@\n-one\r\n-two\r\n+1\r\n+2\r\n three\r\n',
    firstChangedLine: 1,
  });
});

onBench('edit: one edit that does not fit leaves the file as it was', async (bench, put) => {
  put('f', 'one two');
  const edits = [
    { oldText: 'one', newText: '1' },
    { oldText: 'three', newText: '3' },
  ];
  await assert.rejects(bench.call('edit', { path: 'f', edits }), {
    code: 'EDIT_MISMATCH',
    message: /^Edit 2: .* Nothing was changed/,
  });
  assert.equal(contentOf(bench, 'f'), 'one two');
});

onBench('edit: what is no text is not touched', async (bench, put) => {
  for (const bytes of [Buffer.from([0x61, 0xff, 0x62]), Buffer.from('a\0b')]) {
    put('f', bytes);
    await assert.rejects(bench.call('edit', { path: 'f', oldText: 'a', newText: 'x' }), /not UTF-8 text/);
    assert.deepEqual(readFileSync(join(bench.workspace, 'f')), bytes);
  }
});

onBench('edit: calls of one turn on the same file, at the same time, are all made', async (bench, put) => {
  const names = Array.from({ length: 12 }, (_, i) => `<${i}>`);
  put('f', names.join('\n'));
  await Promise.all(names.map((name) => bench.call('edit', { path: 'f', oldText: name, newText: `done ${name}` })));
  assert.equal(contentOf(bench, 'f'), names.map((name) => `done ${name}`).join('\n'));
});

onBench('a missing file is answered with the nearest name', async (bench, put) => {
  put('README.md', 'x');
  const calls = [
    () => bench.call('read', { path: 'readme.md' }),
    () => bench.call('edit', { path: 'README.mt', oldText: 'x', newText: 'y' }),
  ];
  for (const call of calls) {
    await assert.rejects(call, { code: 'FILE_NOT_FOUND', message: /does not exist; there is "README\.md"$/ });
  }
});
