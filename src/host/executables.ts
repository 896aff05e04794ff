import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

/**
 * The real path of what `name` would run by the search path, or undefined. A name with a slash is a path from `cwd`. Empty and relative
 * parts of the search path do not count: they would find programs in whatever folder a call happens to work in.
 */
export async function resolveExecutable(name: string, searchPath: string, cwd: string): Promise<string | undefined> {
  if (name === '' || name.includes('\0')) return undefined;
  const candidates = name.includes('/')
    ? [isAbsolute(name) ? name : join(cwd, name)]
    : searchPath.split(delimiter).flatMap((folder) => (isAbsolute(folder) ? [join(folder, name)] : []));
  for (const candidate of candidates) {
    const found = await executableAt(candidate);
    if (found) return found;
  }
  return undefined;
}

async function executableAt(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    const real = await realpath(path);
    return (await stat(real)).isFile() ? real : undefined;
  } catch {
    // Not there or not ours to run: look on.
    return undefined;
  }
}
