import { statSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE_FILES } from '#agent';
import { LruMap } from '#base';
import { openWorkspace, type WorkspaceFiles } from '#host';

const FILE_BYTES_MAX = 256 * 1024;
const FILES_MAX = 512;

type Known = { readonly stamp: string; readonly text: string };

/**
 * The workspace files that a prompt shows. Read through the same opener as a tool's, and again only when a file has changed: a turn
 * looks at six names and reads nothing.
 */
export class WorkspaceTexts {
  readonly #known = new LruMap<string, Known>({ max: FILES_MAX });
  readonly #open = new LruMap<string, WorkspaceFiles>({ max: FILES_MAX });

  async of(workspace: string): Promise<readonly { readonly name: string; readonly text: string }[]> {
    const found = await Promise.all(
      WORKSPACE_FILES.map(async (name) => ({ name, text: await this.#text(workspace, name) })),
    );
    return found.filter(
      (file): file is { name: (typeof WORKSPACE_FILES)[number]; text: string } => file.text !== undefined,
    );
  }

  async #text(workspace: string, name: string): Promise<string | undefined> {
    const path = join(workspace, name);
    // Six names a turn, mostly missing: a look that is no error costs microseconds.
    const facts = statSync(path, { throwIfNoEntry: false });
    if (!facts) return undefined;
    const stamp = `${facts.ino}:${facts.size}:${facts.mtimeMs}`;
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return known.text;
    const text = await this.#read(workspace, name);
    if (text !== undefined) this.#known.set(path, { stamp, text });
    return text;
  }

  /** Undefined for what the opener refuses: a link or a folder by such a name says nothing to a model. */
  async #read(workspace: string, name: string): Promise<string | undefined> {
    let files = this.#open.get(workspace);
    if (!files) {
      files = await openWorkspace(workspace);
      this.#open.set(workspace, files);
    }
    return await files.readBytes(name, { bytesMax: FILE_BYTES_MAX }).then(
      (bytes) => bytes.toString('utf8'),
      () => undefined,
    );
  }
}
