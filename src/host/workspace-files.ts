import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, sep } from 'node:path';
import { GatewayError, nearestName } from '#base';

export type FileFacts = { readonly size: number; readonly modifiedAt: number; readonly isFolder: boolean };

/**
 * The one opener for files that a model names (security model T12): a root and a name in it. What is checked is what is used: names are
 * walked component by component without following links, and bytes go through the descriptor that was checked.
 */
export interface WorkspaceFiles {
  /** The real path of the root. */
  readonly root: string;
  /** @throws {GatewayError} `FILE_REFUSED`, `FILE_NOT_FOUND`, `FILE_TOO_LARGE` */
  readBytes(name: string, limits: { readonly bytesMax: number }): Promise<Buffer>;
  /** Whole or not at all; makes missing folders; keeps the mode of a file that is replaced. @returns whether there was one before */
  writeBytes(name: string, data: Uint8Array): Promise<{ readonly replaced: boolean }>;
  stat(name: string): Promise<FileFacts>;
  /** The absolute path of a folder in the root, for a process to work in. */
  folder(name: string): Promise<string>;
  /** The name as it is within the root, for people and results. */
  relative(name: string): string;
}

export async function openWorkspace(root: string): Promise<WorkspaceFiles> {
  return new Workspace(await realpath(root));
}

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const NAME_BYTES_MAX = 4_096;
const FORBIDDEN_ROOTS = ['/proc', '/dev', '/sys'];

class Workspace implements WorkspaceFiles {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  relative(name: string): string {
    return this.#components(name).join('/') || '.';
  }

  async readBytes(name: string, { bytesMax }: { readonly bytesMax: number }): Promise<Buffer> {
    const path = await this.#walk(name);
    const file = await this.#openExisting(path, name);
    try {
      const facts = await file.stat();
      assertRegular(facts, name);
      if (facts.size > bytesMax) throw tooLarge(name, facts.size, bytesMax);
      const bytes = await readAll(file, bytesMax);
      if (bytes.length > bytesMax) throw tooLarge(name, bytes.length, bytesMax);
      return bytes;
    } finally {
      await file.close();
    }
  }

  async writeBytes(name: string, data: Uint8Array): Promise<{ readonly replaced: boolean }> {
    const components = this.#components(name);
    const last = components.at(-1);
    if (last === undefined) throw refused(name, 'it names the workspace itself');
    const folder = await this.#makeFolders(components.slice(0, -1), name);
    const path = join(folder, last);
    const existing = await lstat(path).catch(ignoreMissing);
    if (existing) {
      if (existing.isSymbolicLink()) throw refused(name, 'it is a link');
      assertRegular(existing, name);
    }
    const before = await lstat(folder);
    const beside = join(folder, `.${randomBytes(8).toString('hex')}.tmp`);
    const file = await open(
      beside,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      FILE_MODE,
    );
    try {
      try {
        await file.chmod(existing ? existing.mode & 0o777 : FILE_MODE);
        await file.writeFile(data);
      } finally {
        await file.close();
      }
      const after = await lstat(folder);
      if (after.ino !== before.ino || after.dev !== before.dev)
        throw refused(name, 'its folder was exchanged meanwhile');
      await rename(beside, path);
    } catch (error) {
      await rm(beside, { force: true });
      throw error;
    }
    return { replaced: existing !== undefined };
  }

  async stat(name: string): Promise<FileFacts> {
    const facts = await lstat(await this.#walk(name));
    return { size: facts.size, modifiedAt: facts.mtimeMs, isFolder: facts.isDirectory() };
  }

  async folder(name: string): Promise<string> {
    const path = await this.#walk(name);
    if (!(await lstat(path)).isDirectory()) throw refused(name, 'it is not a folder');
    return path;
  }

  /** The name as components below the root; refuses whatever could mean another place. */
  #components(given: string): readonly string[] {
    if (given.includes('\0')) throw refused(given.replaceAll('\0', '\\0'), 'it holds a NUL');
    if (Buffer.byteLength(given) > NAME_BYTES_MAX) throw refused(`${given.slice(0, 80)}…`, 'it is too long');
    let name = given.startsWith('@') ? given.slice(1) : given;
    if (name === '~' || name.startsWith('~/')) name = join(homedir(), name.slice(1));
    if (name.includes('\\') || /^[a-z]:/i.test(name) || name.startsWith('//'))
      throw refused(given, 'write it with single slashes and no drive');
    if (isAbsolute(name)) {
      const parts = name.split('/').filter((part) => part !== '' && part !== '.');
      const root = this.root.split(sep).filter((part) => part !== '');
      if (FORBIDDEN_ROOTS.some((path) => path.slice(1) === parts[0]) || !root.every((part, i) => parts[i] === part)) {
        throw refused(given, 'it is outside the workspace');
      }
      name = parts.slice(root.length).join('/');
    }
    const components = name.split('/').filter((part) => part !== '' && part !== '.');
    if (components.includes('..')) throw refused(given, 'it leaves its folder with ".."');
    return components;
  }

  /** The path of something that exists, with no link anywhere below the root. */
  async #walk(name: string): Promise<string> {
    let path = this.root;
    const components = this.#components(name);
    for (const [i, component] of components.entries()) {
      const folder = path;
      path = join(path, component);
      const facts = await lstat(path).catch(ignoreMissing);
      if (!facts) throw await notFound(name, folder, component);
      if (facts.isSymbolicLink()) throw refused(name, 'a link is in the way');
      if (i < components.length - 1 && !facts.isDirectory()) throw refused(name, `${component} is not a folder`);
    }
    return path;
  }

  async #makeFolders(components: readonly string[], name: string): Promise<string> {
    let path = this.root;
    for (const component of components) {
      path = join(path, component);
      let facts = await lstat(path).catch(ignoreMissing);
      if (!facts) {
        await mkdir(path, { mode: FOLDER_MODE }).catch(ignoreExisting);
        facts = await lstat(path);
      }
      if (facts.isSymbolicLink()) throw refused(name, 'a link is in the way');
      if (!facts.isDirectory()) throw refused(name, `${component} is not a folder`);
    }
    return path;
  }

  async #openExisting(path: string, name: string): Promise<FileHandle> {
    try {
      // Without NONBLOCK, opening a FIFO would wait for a writer for ever.
      return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') throw await notFound(name, dirname(path), name.split('/').at(-1) ?? name);
      throw refused(
        name,
        code === 'ELOOP' ? 'it is a link' : code === 'EACCES' ? 'no permission' : 'it cannot be opened',
      );
    }
  }
}

function assertRegular(facts: Stats, name: string): void {
  if (facts.isDirectory()) throw refused(name, 'it is a folder');
  if (!facts.isFile()) throw refused(name, 'it is not a regular file');
  // A second name may lie outside the workspace: through this one its bytes would be read or changed.
  if (facts.nlink !== 1) throw refused(name, 'it has more than one name (hard links)');
}

/** Reads to the end, at most one byte over the limit: a file may grow while it is read. */
async function readAll(file: FileHandle, bytesMax: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let total = 0;
  while (total <= bytesMax) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(256 * 1024, bytesMax + 1 - total)), 0);
    if (bytesRead === 0) break;
    parts.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
  }
  return Buffer.concat(parts);
}

function refused(name: string, why: string): GatewayError {
  return new GatewayError('FILE_REFUSED', `"${name}" is refused: ${why}`, { next: 'Use a path inside the workspace.' });
}

function tooLarge(name: string, size: number, max: number): GatewayError {
  return new GatewayError('FILE_TOO_LARGE', `"${name}" has ${size} bytes; at most ${max} can be read`, {
    next: 'Read a part of it with a command such as head, tail or grep.',
  });
}

async function notFound(name: string, folder: string, missing: string): Promise<GatewayError> {
  const names = await readdir(folder).catch(() => []);
  const near = nearestName(missing, names.slice(0, 1_000));
  return new GatewayError(
    'FILE_NOT_FOUND',
    `"${name}" does not exist`,
    near ? { next: `Did you mean "${near}"?` } : {},
  );
}

const ignoreMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
};
const ignoreExisting = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'EEXIST') throw error;
};
