import { accessSync, chmodSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { GatewayError, messageOf } from '#base';

const MODE = 0o700;

/**
 * Makes sure that a folder exists, is ours, is writable and that nobody else can look into it. A link to such a folder is as good:
 * what counts is the folder that it leads to.
 * @throws {GatewayError} `STATE_UNWRITABLE` in one line, with what to do
 */
export function ensurePrivateFolder(path: string): void {
  try {
    makeFolder(resolve(path));
    const found = statSync(path);
    if (!found.isDirectory()) throw new Error('it is not a folder');
    // Also for root: files of another user's gateway would become root's, and that gateway could not read them again.
    const owner = process.getuid?.();
    if (owner !== undefined && found.uid !== owner) throw new Error('it belongs to another user');
    if ((found.mode & 0o077) !== 0) chmodSync(path, MODE);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new GatewayError('STATE_UNWRITABLE', `The folder ${path} cannot be used: ${reasonOf(cause)}`, {
      next: 'Make it yours and writable, or choose another one with REINS_STATE_DIR.',
      cause,
    });
  }
}

/**
 * One folder after the other: Node's own way of making parents never ends where a folder is there and takes no entries, as in /proc.
 */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  try {
    mkdirSync(path, { mode: MODE });
  } catch (error) {
    // Another process may have made it in the same moment.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EPERM: 'no permission',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
  EEXIST: 'it is not a folder',
  ENOENT: 'it cannot be made there',
  ENOTDIR: 'a part of the path is not a folder',
};

function reasonOf(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  return (code === undefined ? undefined : REASONS[code]) ?? messageOf(cause);
}
