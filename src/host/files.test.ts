import assert from 'node:assert/strict';
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isGatewayError } from '#base';
import { AppendFile, ensurePrivateFolder, writeFileAtomic, writeFileAtomicSync } from './index.ts';

const place = mkdtempSync(join(tmpdir(), 'host-files-'));
after(() => rmSync(place, { recursive: true, force: true }));

const modeOf = (path: string) => statSync(path).mode & 0o777;

const writers = {
  writeFileAtomic,
  writeFileAtomicSync: async (...args: Parameters<typeof writeFileAtomicSync>) => writeFileAtomicSync(...args),
};
for (const [name, write] of Object.entries(writers)) {
  test(`${name}: the new bytes take the place of the old ones, private to us, with nothing left beside`, async () => {
    const folder = mkdtempSync(join(place, 'atomic-'));
    const path = join(folder, 'a.json');
    writeFileSync(path, 'old', { mode: 0o644 });
    await write(path, 'new ü');
    assert.equal(readFileSync(path, 'utf8'), 'new ü');
    assert.equal(modeOf(path), 0o600);
    await write(path, new Uint8Array([0, 255]), { mode: 0o640 });
    assert.deepEqual([...readFileSync(path)], [0, 255]);
    assert.equal(modeOf(path), 0o640);
    assert.deepEqual(readdirSync(folder), ['a.json']);
  });

  test(`${name}: when it cannot be done the old state stays, with nothing left beside`, async () => {
    const folder = mkdtempSync(join(place, 'atomic-'));
    mkdirSync(join(folder, 'taken', 'inside'), { recursive: true });
    await assert.rejects(write(join(folder, 'taken'), 'x'));
    assert.deepEqual(readdirSync(folder), ['taken']);
    await assert.rejects(write(join(folder, 'none', 'a'), 'x'), { code: 'ENOENT' });
  });
}

test('an append file keeps what was there, counts bytes, and closes once', () => {
  const path = join(place, 'log.jsonl');
  writeFileSync(path, 'one\n', { mode: 0o644 });
  const file = AppendFile.open(path);
  assert.equal(file.size, 4);
  file.append('zwölf\n');
  assert.equal(file.size, 11);
  assert.equal(readFileSync(path, 'utf8'), 'one\nzwölf\n');
  assert.equal(modeOf(path), 0o600, 'a file that others could read is closed to them');
  file.close();
  const other = AppendFile.open(join(place, 'other'));
  file.close();
  other.append('still open');
  other.close();
  assert.throws(() => file.append('x'));
});

test('an append that fails says so and is not counted', () => {
  // The device that is always full is the one place where a write can be made to fail.
  const full = AppendFile.open('/dev/full');
  assert.throws(() => full.append('x'), { code: 'ENOSPC' });
  assert.equal(full.size, 0);
  full.close();
});

test('a private folder is made, and one that was open to others is closed to them', () => {
  const path = join(place, 'state', 'deep');
  ensurePrivateFolder(path);
  assert.equal(modeOf(path), 0o700);
  mkdirSync(join(place, 'open'), { mode: 0o755 });
  ensurePrivateFolder(join(place, 'open'));
  assert.equal(modeOf(join(place, 'open')), 0o700);
  symlinkSync(path, join(place, 'linked'));
  ensurePrivateFolder(join(place, 'linked'));
});

test('a folder that cannot be the state folder is refused in one line that says what to do', () => {
  writeFileSync(join(place, 'file'), '');
  for (const path of [join(place, 'file'), join(place, 'file', 'below')]) {
    assert.throws(
      () => ensurePrivateFolder(path),
      (error) =>
        isGatewayError(error, 'STATE_UNWRITABLE') &&
        error.message.includes(path) &&
        !error.message.includes('\n') &&
        error.next !== undefined,
    );
  }
});

if (process.getuid?.() === 0) {
  test('a folder of another user is refused, for root too', () => {
    const path = join(place, 'theirs');
    mkdirSync(path);
    chownSync(path, 12_345, 12_345);
    assert.throws(
      () => ensurePrivateFolder(path),
      (error) => isGatewayError(error, 'STATE_UNWRITABLE') && /belongs to another user/.test(error.message),
    );
    assert.equal(statSync(path).uid, 12_345);
  });
}
