import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { GatewayError, messageOf } from '#base';

/**
 * Reads a file that the config points to (security model T19): its real path is in `folder`, it is a regular file, ours or root's, and
 * nobody else may write it. Messages name the path and never its content.
 * @param name relative to `from`, or absolute
 * @throws {GatewayError} `FILE_REFUSED`, `FILE_NOT_FOUND`, `FILE_TOO_LARGE`
 */
export function readOwnedFile(options: {
  readonly name: string;
  /** The folder that relative names start from. */
  readonly from: string;
  /** The folder that must hold the file. */
  readonly folder: string;
  readonly bytesMax: number;
}): { readonly path: string; readonly text: string } {
  const { name, from, folder, bytesMax } = options;
  if (name.includes('\0')) throw refused(name.replaceAll('\0', '\\0'), 'has a NUL in its name');
  const path = realPath(resolve(from, name), name);
  if (!isInside(realPath(folder, folder), path)) throw refused(name, `leads out of the folder ${folder}`);
  let descriptor: number;
  try {
    // Without blocking: opening a named pipe must not wait for a writer. Without links: the path was resolved just before.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    throw refused(name, `cannot be opened (${codeOf(cause)})`, cause);
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw refused(name, 'is not a regular file');
    const me = process.getuid?.();
    if (me !== undefined && stat.uid !== me && stat.uid !== 0) throw refused(name, 'belongs to another user');
    if (me !== undefined && (stat.mode & 0o022) !== 0) throw refused(name, 'can be written by others');
    if (stat.size > bytesMax) {
      throw new GatewayError('FILE_TOO_LARGE', `"${name}" is larger than ${bytesMax} bytes`, { detail: { path } });
    }
    return { path, text: readFileSync(descriptor, 'utf8') };
  } finally {
    closeSync(descriptor);
  }
}

/** Containment by path component, never by prefix. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** `ENOENT` and the like, or what was thrown in words. */
export const codeOf = (thrown: unknown): string => (thrown as NodeJS.ErrnoException).code ?? messageOf(thrown);

function realPath(path: string, shown: string): string {
  try {
    return realpathSync.native(path);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ENOTDIR') {
      throw new GatewayError('FILE_NOT_FOUND', `"${shown}" does not exist`, { cause });
    }
    throw refused(shown, `cannot be opened (${codeOf(cause)})`, cause);
  }
}

function refused(name: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('FILE_REFUSED', `"${name}" ${why}`, {
    next: 'Use a regular file in the config folder that belongs to you and that only you can write.',
    ...(cause === undefined ? {} : { cause }),
  });
}
