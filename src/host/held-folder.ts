import { constants, existsSync, lstatSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from './workspace-faults.ts';

const OPEN_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const FOLDER_MODE = 0o700;

/** Why a component cannot be entered. `link`: a symbolic link, also one that leads nowhere. */
export type EntryFault = 'missing' | 'link' | 'not-a-folder' | 'other-disk' | 'exchanged';

/**
 * A folder held open. On Linux names are looked up from the held folder itself and not from its path, so that exchanging a part of the
 * path for a link between check and use leads nowhere else. Elsewhere paths are used and the folder's identity is checked again after.
 */
export class HeldFolder {
  /** As people write it. */
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #device: number;
  readonly #inode: number;
  readonly #place: string;

  private constructor(path: string, handle: FileHandle, facts: { readonly dev: number; readonly ino: number }) {
    this.path = path;
    this.#handle = handle;
    this.#device = facts.dev;
    this.#inode = facts.ino;
    const held = `/proc/self/fd/${handle.fd}`;
    this.#place = process.platform === 'linux' && existsSync(held) ? held : path;
  }

  /** @throws what the system says when there is no such folder */
  static async open(path: string): Promise<HeldFolder> {
    return await HeldFolder.#open(path, path);
  }

  static async #open(place: string, path: string): Promise<HeldFolder> {
    const handle = await open(place, OPEN_FOLDER);
    try {
      return new HeldFolder(path, handle, await handle.stat());
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  get device(): number {
    return this.#device;
  }

  /** Where to look up the folder itself. */
  get place(): string {
    return this.#place;
  }

  /** Where to look up `name` in it. `name` is one component. */
  child(name: string): string {
    return join(this.#place, name);
  }

  /** The folder `name` in it, without following links, on the same disk. */
  async enter(name: string): Promise<HeldFolder | EntryFault> {
    const place = this.child(name);
    const facts = await lstat(place).catch(ignoreMissing);
    if (!facts) return 'missing';
    if (facts.isSymbolicLink()) return 'link';
    if (!facts.isDirectory()) return 'not-a-folder';
    const folder = await HeldFolder.#open(place, join(this.path, name));
    const fault =
      folder.#device !== this.#device ? 'other-disk' : folder.#inode !== facts.ino ? 'exchanged' : undefined;
    if (fault === undefined) return folder;
    await folder.close();
    return fault;
  }

  /** Makes the folder `name` in it, for its owner alone; one that is there already stays. */
  async make(name: string): Promise<void> {
    await mkdir(this.child(name), { mode: FOLDER_MODE }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }

  /** Whether its path still leads to it. Synchronous, so that nothing of this process comes between the answer and what follows. */
  isInPlace(): boolean {
    const facts = lstatSync(this.path, { throwIfNoEntry: false });
    return facts?.ino === this.#inode && facts.dev === this.#device;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

const ignoreMissing = (error: unknown): undefined => {
  if (!isMissing(error)) throw error;
};
