import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { GatewayError, printableLine } from '#base';

const NAME_BYTES_MAX = 4_096;
const SHOWN_CHARACTERS_MAX = 300;
const NOT_FILES = new Set(['proc', 'dev', 'sys']);

/**
 * A name that a model gives, as components below a root; refuses whatever could mean another place (security model T12). Pure: says
 * nothing of what is on the disk. `@` in front and `~` are understood, and absolute names that begin with one of `roots`.
 * @throws {GatewayError} `FILE_REFUSED`
 */
export function nameComponents(given: string, roots: readonly string[]): readonly string[] {
  if (given.includes('\0')) throw refusedName(given, 'it holds a NUL');
  if (Buffer.byteLength(given) > NAME_BYTES_MAX) throw refusedName(given, 'it is too long');
  let name = given.startsWith('@') ? given.slice(1) : given;
  if (name === '~' || name.startsWith('~/')) name = join(homedir(), name.slice(1));
  if (name.includes('\\') || /^[a-z]:/i.test(name) || name.startsWith('//'))
    throw refusedName(given, 'write it with single slashes and no drive');
  const components = partsOf(name);
  if (components.includes('..')) throw refusedName(given, 'it leaves its folder with ".."');
  if (!isAbsolute(name)) return components;
  if (NOT_FILES.has(components[0] ?? '')) throw refusedName(given, 'it is not a place for files');
  for (const root of roots) {
    // By component: `/w/agent-evil` begins with the text `/w/agent` and is not in it.
    const start = partsOf(root);
    if (start.every((part, i) => components[i] === part)) return components.slice(start.length);
  }
  throw refusedName(given, 'it is outside the workspace');
}

const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/** A refusal of `name` that never tells what is there. */
export function refusedName(name: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('FILE_REFUSED', `"${shownName(name)}" is refused: ${why}`, {
    next: 'Use a path inside the workspace.',
    ...(cause === undefined ? {} : { cause }),
  });
}

export const shownName = (name: string): string => printableLine(name, SHOWN_CHARACTERS_MAX);
