import { shortId } from '#base';
import type { Message, NewEntry, TranscriptEntry } from '#domain';
import type { Damage, TranscriptFile } from '#store';

/**
 * The append-only record of one session. Entries form a tree; the branch that counts runs from the newest entry back through its
 * parents. Where a parent was lost to damage, the entry before it in the file takes its place.
 */
export class Transcript {
  readonly sessionId: string;
  readonly damage: Damage | undefined;
  readonly #file: TranscriptFile;
  readonly #ids: Set<string>;
  readonly #branch: TranscriptEntry[];
  #messages: number;

  constructor(file: TranscriptFile) {
    this.#file = file;
    this.sessionId = file.header.id;
    this.damage = file.damage;
    this.#ids = new Set(file.entries.map((entry) => entry.id));
    this.#branch = activeBranch(file.entries);
    this.#messages = this.#branch.reduce((count, entry) => (entry.type === 'message' ? count + 1 : count), 0);
  }

  /** The active branch, oldest first. The same array all the time: read it at once, do not keep it. */
  get branch(): readonly TranscriptEntry[] {
    return this.#branch;
  }

  /** How many messages the active branch has; the newest message's `seq`. */
  get messageCount(): number {
    return this.#messages;
  }

  get path(): string {
    return this.#file.path;
  }

  get bytes(): number {
    return this.#file.bytes;
  }

  /** Gives the entries id, parent and time, and returns when they are written. */
  append(now: number, ...entries: readonly NewEntry[]): readonly TranscriptEntry[] {
    const timestamp = new Date(now).toISOString();
    const placed: TranscriptEntry[] = [];
    let parentId = this.#branch.at(-1)?.id ?? null;
    for (const entry of entries) {
      const id = this.#freshId();
      // The public format has type, id and parent in front; readers with a limit see them even when they cut the line.
      const { type, ...rest } = entry;
      placed.push({ type, id, parentId, timestamp, ...rest } as TranscriptEntry);
      parentId = id;
    }
    this.#file.append(placed);
    for (const entry of placed) {
      this.#branch.push(entry);
      if (entry.type === 'message') this.#messages++;
    }
    return placed;
  }

  /** The newest `limit` messages with their place (from 1), oldest first. */
  history(limit: number): readonly { readonly entryId: string; readonly seq: number; readonly message: Message }[] {
    const found: { entryId: string; seq: number; message: Message }[] = [];
    let seq = this.#messages;
    for (let i = this.#branch.length - 1; i >= 0 && found.length < limit; i--) {
      const entry = this.#branch[i]!;
      if (entry.type === 'message') found.push({ entryId: entry.id, seq: seq--, message: entry.message });
    }
    return found.reverse();
  }

  close(): void {
    this.#file.close();
  }

  #freshId(): string {
    for (;;) {
      const id = shortId();
      if (!this.#ids.has(id)) {
        this.#ids.add(id);
        return id;
      }
    }
  }
}

function activeBranch(entries: readonly TranscriptEntry[]): TranscriptEntry[] {
  const places = new Map<string, number>();
  let inLine = true;
  entries.forEach((entry, place) => {
    places.set(entry.id, place);
    inLine &&= entry.parentId === (entries[place - 1]?.id ?? null);
  });
  if (inLine) return [...entries];
  const branch: TranscriptEntry[] = [];
  for (let place = entries.length - 1; place >= 0; ) {
    const entry = entries[place]!;
    branch.push(entry);
    if (entry.parentId === null || entry.parentId === undefined) break;
    const parent = places.get(entry.parentId);
    // A parent must stand before its child: anything else is damage, and would make the walk endless.
    place = parent !== undefined && parent < place ? parent : place - 1;
  }
  return branch.reverse();
}
