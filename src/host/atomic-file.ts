import { randomBytes } from 'node:crypto';
import { closeSync, fchmodSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';

export type FileMode = { /** Permission bits; default 0600. */ readonly mode?: number };

/** Puts `data` at `path` whole or not at all: a new file beside it takes its place by rename. A crash leaves the old bytes. */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  { mode = 0o600 }: FileMode = {},
): Promise<void> {
  const beside = besideOf(path);
  try {
    const file = await open(beside, 'wx', mode);
    try {
      await file.chmod(mode);
      await file.writeFile(data);
    } finally {
      await file.close();
    }
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

/** As {@link writeFileAtomic}, for code that may not wait. */
export function writeFileAtomicSync(path: string, data: string | Uint8Array, { mode = 0o600 }: FileMode = {}): void {
  const beside = besideOf(path);
  try {
    const file = openSync(beside, 'wx', mode);
    try {
      fchmodSync(file, mode);
      const bytes = typeof data === 'string' ? Buffer.from(data) : data;
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
    } finally {
      closeSync(file);
    }
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

const besideOf = (path: string): string => `${path}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`;
