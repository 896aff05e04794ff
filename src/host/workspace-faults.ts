import { opendir } from 'node:fs/promises';
import { GatewayError, isGatewayError, nearestName } from '#base';
import { refusedName, shownName } from './workspace-name.ts';

const NAMES_LOOKED_AT_MAX = 1_000;

/** What the system says, in words that help and do not tell where things are. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EPERM: 'no permission',
  ELOOP: 'a link is in the way',
  ENOTDIR: 'a part of it is not a folder',
  EISDIR: 'it is a folder',
  ENAMETOOLONG: 'a part of it is too long',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the disk is read-only',
  EMFILE: 'too many files are open',
};

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** What to throw for `error`: a system error becomes a refusal of `name`, anything else stays as it is. */
export function fileFault(error: unknown, name: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (isGatewayError(error) || code === undefined || syscall === undefined) return error;
  return refusedName(name, REASONS[code] ?? `it cannot be used (${code})`, error);
}

export function tooLarge(name: string, size: number, max: number): GatewayError {
  return new GatewayError(
    'FILE_TOO_LARGE',
    `"${shownName(name)}" has ${size} bytes; at most ${max} can be read whole`,
    {
      next: 'Read a part of it with a command such as head, tail or grep.',
    },
  );
}

/** @param folder where `missing`, a component of `name`, was looked for */
export async function notFound(name: string, folder: string, missing: string): Promise<GatewayError> {
  const near = nearestName(missing, await namesIn(folder));
  const hint = near === undefined ? '' : `; there is "${shownName(near)}"`;
  return new GatewayError('FILE_NOT_FOUND', `"${shownName(name)}" does not exist${hint}`, {
    next: 'Look at the names in its folder.',
  });
}

async function namesIn(folder: string): Promise<readonly string[]> {
  const names: string[] = [];
  try {
    for await (const { name } of await opendir(folder)) {
      if (names.push(name) >= NAMES_LOOKED_AT_MAX) break;
    }
  } catch {
    // The hint is a courtesy: without it the answer is still right.
    return [];
  }
  return names;
}
