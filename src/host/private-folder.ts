import { accessSync, chmodSync, constants, mkdirSync, statSync } from 'node:fs';
import { GatewayError, messageOf } from '#base';

const MODE = 0o700;

/**
 * Makes sure that a folder exists, is ours, is writable and that nobody else can look into it. A link to such a folder is as good:
 * what counts is the folder that it leads to.
 * @throws {GatewayError} `STATE_UNWRITABLE` in one line, with what to do
 */
export function ensurePrivateFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: MODE });
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

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EPERM: 'no permission',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
  EEXIST: 'it is not a folder',
  ENOTDIR: 'a part of the path is not a folder',
};

function reasonOf(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  return (code === undefined ? undefined : REASONS[code]) ?? messageOf(cause);
}
