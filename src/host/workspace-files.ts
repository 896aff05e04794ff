import { randomBytes } from 'node:crypto';
import { type BigIntStats, constants, lstatSync, renameSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, realpath, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { GatewayError } from '#base';
import { HeldFolder } from './held-folder.ts';
import { fileFault, isMissing, notFound, tooLarge } from './workspace-faults.ts';
import { nameComponents, refusedName } from './workspace-name.ts';

export type FileFacts = { readonly size: number; readonly modifiedAt: number; readonly isFolder: boolean };

/**
 * The one opener for files that a model names (security model T12): a root and a name in it. What is checked is what is used: names are
 * walked component by component without following links, and bytes go through the descriptor that was checked. Errors of all methods:
 * `FILE_REFUSED`, `FILE_NOT_FOUND`, `FILE_TOO_LARGE`; none tells what a refused file holds.
 */
export interface WorkspaceFiles {
  /** The real path of the root. */
  readonly root: string;
  readBytes(name: string, limits: ReadLimits): Promise<Buffer>;
  /** Whole or not at all; makes missing folders; keeps the mode of a file that is replaced. */
  writeBytes(name: string, data: Uint8Array): Promise<{ /** There was one before. */ readonly replaced: boolean }>;
  /**
   * Replaces a file's bytes by what `change` makes of them. When somebody else changes the file meanwhile, `change` is asked again with
   * the new bytes, so that no change is lost. What `change` throws is thrown, and the file stays.
   */
  updateBytes(name: string, limits: ReadLimits, change: (bytes: Buffer) => Uint8Array): Promise<void>;
  stat(name: string): Promise<FileFacts>;
  /** The absolute path of a folder in the root, for a process to work in. */
  folder(name: string): Promise<string>;
  /** The name as it is within the root, for people and results. */
  relative(name: string): string;
}

export type ReadLimits = { readonly bytesMax: number };

/** @throws {GatewayError} `FILE_NOT_FOUND` when there is no such root */
export async function openWorkspace(root: string): Promise<WorkspaceFiles> {
  try {
    // Both forms are known to models: the one in the config, and what `pwd` says.
    return new Workspace(await realpath(root), resolve(root));
  } catch (error) {
    if (isMissing(error))
      throw new GatewayError('FILE_NOT_FOUND', 'The workspace folder does not exist', { cause: error });
    throw fileFault(error, root);
  }
}

const FILE_MODE = 0o600;
const READ_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const CHUNK_BYTES = 256 * 1024;
/** Each failed attempt means that somebody else's change went in. */
const UPDATE_ATTEMPTS_MAX = 100;

class Workspace implements WorkspaceFiles {
  readonly root: string;
  readonly #roots: readonly string[];

  constructor(root: string, given: string) {
    this.root = root;
    this.#roots = [root, given];
  }

  relative(name: string): string {
    return nameComponents(name, this.#roots).join('/') || '.';
  }

  async readBytes(name: string, limits: ReadLimits): Promise<Buffer> {
    return await this.#inFolderOf(
      name,
      'keep',
      async (folder, last) => (await readIn(folder, last, name, limits)).bytes,
    );
  }

  async writeBytes(name: string, data: Uint8Array): Promise<{ readonly replaced: boolean }> {
    return await this.#inFolderOf(name, 'make', async (folder, last) => {
      const existing = await existingFile(folder, last, name);
      await replaceIn(folder, last, name, { data, mode: existing?.mode, isCurrent: () => true });
      return { replaced: existing !== undefined };
    });
  }

  async updateBytes(name: string, limits: ReadLimits, change: (bytes: Buffer) => Uint8Array): Promise<void> {
    await this.#inFolderOf(name, 'keep', async (folder, last) => {
      for (let attempt = 0; attempt < UPDATE_ATTEMPTS_MAX; attempt++) {
        const { bytes, version, mode } = await readIn(folder, last, name, limits);
        const data = change(bytes);
        const isCurrent = () => {
          const now = lstatSync(folder.child(last), { bigint: true, throwIfNoEntry: false });
          return now !== undefined && versionOf(now) === version;
        };
        if (await replaceIn(folder, last, name, { data, mode, isCurrent })) return;
      }
      throw refusedName(name, 'others change it all the time');
    });
  }

  async stat(name: string): Promise<FileFacts> {
    if (nameComponents(name, this.#roots).length === 0) return factsOf(await lstat(this.root));
    return await this.#inFolderOf(name, 'keep', async (folder, last) => {
      const facts = await lstat(folder.child(last)).catch(ignoreMissing);
      if (!facts) throw await notFound(name, folder.place, last);
      if (facts.isSymbolicLink()) throw refusedName(name, 'it is a link');
      return factsOf(facts);
    });
  }

  async folder(name: string): Promise<string> {
    const components = nameComponents(name, this.#roots);
    return await this.#inFolder(components, name, 'keep', async (folder) => {
      if (!folder.isInPlace()) throw refusedName(name, 'it was exchanged meanwhile');
      return folder.path;
    });
  }

  async #inFolderOf<T>(
    name: string,
    missing: 'make' | 'keep',
    action: (folder: HeldFolder, last: string) => Promise<T>,
  ): Promise<T> {
    const components = nameComponents(name, this.#roots);
    const last = components.at(-1);
    if (last === undefined) throw refusedName(name, 'it is the workspace itself and no file');
    return await this.#inFolder(components.slice(0, -1), name, missing, (folder) => action(folder, last));
  }

  /** Walks to a folder, holding one at a time, and lets go of it after `action`. */
  async #inFolder<T>(
    components: readonly string[],
    name: string,
    missing: 'make' | 'keep',
    action: (folder: HeldFolder) => Promise<T>,
  ): Promise<T> {
    let folder: HeldFolder | undefined;
    try {
      folder = await HeldFolder.open(this.root);
      for (const component of components) {
        const next = await enter(folder, component, name, missing);
        await folder.close();
        folder = next;
      }
      return await action(folder);
    } catch (error) {
      throw fileFault(error, name);
    } finally {
      await folder?.close();
    }
  }
}

async function enter(
  folder: HeldFolder,
  component: string,
  name: string,
  missing: 'make' | 'keep',
): Promise<HeldFolder> {
  let entered = await folder.enter(component);
  if (entered === 'missing' && missing === 'make') {
    await folder.make(component);
    entered = await folder.enter(component);
  }
  switch (entered) {
    case 'missing':
      throw await notFound(name, folder.place, component);
    case 'link':
      throw refusedName(name, 'a link is in the way');
    case 'not-a-folder':
      throw refusedName(name, 'a part of it is not a folder');
    case 'other-disk':
      throw refusedName(name, 'another disk is in the way');
    case 'exchanged':
      throw refusedName(name, 'a part of it was exchanged meanwhile');
    default:
      return entered;
  }
}

/** The regular file `last` as it is now, or undefined where there is none. */
async function existingFile(folder: HeldFolder, last: string, name: string): Promise<Stats | undefined> {
  const facts = await lstat(folder.child(last)).catch(ignoreMissing);
  if (facts) assertOrdinary(facts, folder, name);
  return facts;
}

type ReadFile = { readonly bytes: Buffer; readonly version: string; readonly mode: number };

async function readIn(folder: HeldFolder, last: string, name: string, { bytesMax }: ReadLimits): Promise<ReadFile> {
  // Looked at before it is opened: merely opening a device can have effects.
  const before = await existingFile(folder, last, name);
  if (!before) throw await notFound(name, folder.place, last);
  // Without NONBLOCK, opening a FIFO that took its place would wait for a writer for ever.
  const file = await open(folder.child(last), READ_FILE);
  try {
    const facts = await file.stat({ bigint: true });
    assertOrdinary(facts, folder, name);
    if (facts.size > bytesMax) throw tooLarge(name, Number(facts.size), bytesMax);
    const bytes = await readAll(file, bytesMax);
    if (bytes.length > bytesMax) throw tooLarge(name, bytes.length, bytesMax);
    return { bytes, version: versionOf(facts), mode: Number(facts.mode) };
  } finally {
    await file.close();
  }
}

type Replacement = { readonly data: Uint8Array; readonly mode: number | undefined; isCurrent(): boolean };

/** Puts the data beside the file and then in its place; false, and nothing changed, when the file is not the current one any more. */
async function replaceIn(folder: HeldFolder, last: string, name: string, replacement: Replacement): Promise<boolean> {
  const beside = folder.child(`.${randomBytes(8).toString('hex')}.tmp`);
  const file = await open(beside, NEW_FILE, FILE_MODE);
  try {
    try {
      await file.chmod(replacement.mode === undefined ? FILE_MODE : replacement.mode & 0o777);
      await file.writeFile(replacement.data);
    } finally {
      await file.close();
    }
    // From here to the rename nothing waits: no other call of this process can come between.
    if (!folder.isInPlace()) throw refusedName(name, 'its folder was exchanged meanwhile');
    const isCurrent = replacement.isCurrent();
    if (isCurrent) renameSync(beside, folder.child(last));
    else await rm(beside, { force: true });
    return isCurrent;
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

function assertOrdinary(facts: Stats | BigIntStats, folder: HeldFolder, name: string): void {
  if (facts.isSymbolicLink()) throw refusedName(name, 'it is a link');
  if (facts.isDirectory()) throw refusedName(name, 'it is a folder');
  if (!facts.isFile()) throw refusedName(name, 'it is not a regular file');
  // A second name may lie outside the workspace: through this one its bytes would be read or changed. A file that was replaced after it
  // was opened has no name any more, and did have its place here.
  if (Number(facts.nlink) > 1) throw refusedName(name, 'it has more than one name (hard links)');
  if (Number(facts.dev) !== folder.device) throw refusedName(name, 'it is on another disk');
}

/** Reads to the end, at most one byte over the limit: a file may grow while it is read. */
async function readAll(file: FileHandle, bytesMax: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let total = 0;
  while (total <= bytesMax) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytesMax + 1 - total)), 0);
    if (bytesRead === 0) break;
    parts.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
  }
  return Buffer.concat(parts);
}

/** Differs when the file is another one or was written to. */
const versionOf = (facts: BigIntStats): string =>
  [facts.dev, facts.ino, facts.size, facts.mtimeNs, facts.ctimeNs].join(':');

const factsOf = (facts: Stats): FileFacts => ({
  size: facts.size,
  modifiedAt: facts.mtimeMs,
  isFolder: facts.isDirectory(),
});

const ignoreMissing = (error: unknown): undefined => {
  if (!isMissing(error)) throw error;
};
