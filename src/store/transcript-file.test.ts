import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { TranscriptEntry } from '#domain';
import { TranscriptFile } from './transcript-file.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reins-transcript-'));
});
afterEach(() => rm(folder, { recursive: true }));

const NOW = Date.UTC(2026, 10, 30);
const header = { type: 'session', version: 3, id: 's1', timestamp: '2026-11-30T00:00:00.000Z', cwd: '/w' } as const;
const entry = (n: number): TranscriptEntry => ({
  type: 'message',
  id: `e${n}`,
  parentId: n === 1 ? null : `e${n - 1}`,
  timestamp: '2026-11-30T00:00:00.000Z',
  message: { role: 'user', content: `message ${n}`, timestamp: n },
});
const all = Array.from({ length: 50 }, (_, i) => entry(i + 1));

async function written(): Promise<string> {
  const path = join(folder, 's1.jsonl');
  const file = await TranscriptFile.open(path, header, NOW);
  file.append(all);
  file.close();
  return path;
}

const lines = (text: string) => text.split('\n');
const damages = [
  { name: 'a: last line cut in half', harm: (t: string) => t.slice(0, -60), lost: [50], count: 1 },
  { name: 'b: 1,728 zero bytes appended', harm: (t: string) => t + '\0'.repeat(1728), lost: [], count: 1 },
  {
    name: 'c: first line cut',
    harm: (t: string) => `${lines(t)[0]?.slice(20)}\n${lines(t).slice(1).join('\n')}`,
    lost: [],
    count: 1,
  },
  {
    name: 'd: line 20 replaced',
    harm: (t: string) => lines(t).toSpliced(19, 1, '{"x').join('\n'),
    lost: [19],
    count: 1,
  },
  {
    name: 'e: a line that is JSON but no entry',
    harm: (t: string) => `${t}42\n{"type":"message","id":"x"}\n`,
    lost: [],
    count: 2,
  },
  {
    name: 'f: invalid UTF-8 inside a line',
    harm: (t: string) => Buffer.concat([Buffer.from(t), Buffer.from([0xff, 0xfe, 0x0a])]),
    lost: [],
    count: 1,
  },
];
for (const { name, harm, lost, count } of damages) {
  test(`P-01: ${name}: intact entries stay in order, the damage is kept aside and reported once`, async () => {
    const path = await written();
    const before = await readFile(path, 'utf8');
    await writeFile(path, harm(before));
    const file = await TranscriptFile.open(path, header, NOW);
    assert.deepEqual(
      file.entries.map((e) => e.id),
      all.map((e) => e.id).filter((id) => !(lost as readonly number[]).includes(Number(id.slice(1)))),
    );
    assert.equal(file.damage?.count, count);
    assert.equal(file.header.id, 's1');
    const kept = await readFile(file.damage!.keptIn);
    assert.ok(kept.length > 1);
    file.append([{ ...entry(51), parentId: file.entries.at(-1)!.id }]);
    file.close();
    const again = await TranscriptFile.open(path, header, NOW);
    assert.equal(again.damage, undefined, 'a second start finds nothing damaged');
    assert.equal(again.entries.length, file.entries.length);
    assert.equal(again.entries.at(-1)?.id, 'e51');
    assert.equal((await readdir(folder)).filter((n) => n.includes('.damaged.')).length, 1);
  });
}

test('P-01: a whole last line without its line feed is intact', async () => {
  const path = await written();
  await writeFile(path, (await readFile(path, 'utf8')).trimEnd());
  const file = await TranscriptFile.open(path, header, NOW);
  assert.equal(file.entries.length, 50);
  assert.equal(file.damage, undefined);
  file.append([entry(51)]);
  file.close();
  assert.equal((await TranscriptFile.open(path, header, NOW)).entries.length, 51);
});

test('M-14: a transcript is private, starts with its header and is written only when there is something to keep', async () => {
  const path = join(folder, 'deeper', 's2.jsonl');
  const file = await TranscriptFile.open(path, { ...header, id: 's2' }, NOW);
  await assert.rejects(readFile(path), { code: 'ENOENT' });
  file.append([entry(1)]);
  file.close();
  const [first, second] = lines(await readFile(path, 'utf8')).map((line) => (line ? JSON.parse(line) : undefined));
  assert.deepEqual(first, { ...header, id: 's2' });
  assert.equal(second.id, 'e1');
});
