import { mkdirSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isRecord } from '#base';
import type { TranscriptEntry, TranscriptHeader } from '#domain';
import { AppendFile, writeFileAtomic } from '#host';

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

export type Damage = {
  readonly file: string;
  /** Lines (or a torn tail) that could not be read. */
  readonly count: number;
  /** Where their bytes are kept. */
  readonly keptIn: string;
};

/**
 * A transcript's bytes: one JSON object a line, header first, append-only, one writer. What cannot be read is set aside beside the file
 * and reported, never thrown away; what can be read stays, in order.
 */
export class TranscriptFile {
  readonly path: string;
  readonly header: TranscriptHeader;
  readonly entries: TranscriptEntry[];
  readonly damage: Damage | undefined;
  #file: AppendFile | undefined;
  #headerWritten: boolean;
  #bytes: number;

  private constructor(path: string, header: TranscriptHeader, loaded: Loaded) {
    this.path = path;
    this.header = header;
    this.entries = loaded.entries;
    this.damage = loaded.damage;
    this.#headerWritten = loaded.exists;
    this.#bytes = loaded.bytes;
  }

  /** Reads the file, or starts one that is written with its first entries. `header` counts only where the file has none. */
  static async open(path: string, header: TranscriptHeader, now: number): Promise<TranscriptFile> {
    const loaded = await load(path, header, now);
    return new TranscriptFile(path, loaded.header ?? header, loaded);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** On disk (as far as a death of this process is concerned) when it returns: one write for all of them. */
  append(entries: readonly TranscriptEntry[]): void {
    this.#file ??= AppendFile.open(this.path, { mode: FILE_MODE });
    let text = this.#headerWritten ? '' : `${JSON.stringify(this.header)}\n`;
    for (const entry of entries) text += `${JSON.stringify(entry)}\n`;
    this.#file.append(text);
    this.#headerWritten = true;
    this.#bytes += text.length;
    this.entries.push(...entries);
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }
}

type Loaded = {
  readonly exists: boolean;
  readonly header: TranscriptHeader | undefined;
  readonly entries: TranscriptEntry[];
  readonly damage: Damage | undefined;
  readonly bytes: number;
};

async function load(path: string, fallback: TranscriptHeader, now: number): Promise<Loaded> {
  // A new session has no file yet: a look costs less than a read that fails.
  if (!statSync(path, { throwIfNoEntry: false })) {
    mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE });
    return { exists: false, header: undefined, entries: [], damage: undefined, bytes: 0 };
  }
  const raw = await readFile(path);
  if (raw.length === 0) return { exists: false, header: undefined, entries: [], damage: undefined, bytes: 0 };
  const { header, entries, bad, goodLines, wholeTail } = readLines(raw);
  if (bad.length === 0 && header !== undefined && wholeTail) {
    return { exists: true, header, entries, damage: undefined, bytes: raw.length };
  }
  const text = `${[header === undefined ? JSON.stringify(fallback) : undefined, ...goodLines].filter((l) => l !== undefined).join('\n')}\n`;
  const damage = bad.length === 0 ? undefined : await setAside(path, bad, now);
  await writeFileAtomic(path, text, { mode: FILE_MODE });
  return { exists: true, header: header ?? fallback, entries, damage, bytes: text.length };
}

function readLines(raw: Buffer) {
  const entries: TranscriptEntry[] = [];
  const goodLines: string[] = [];
  const bad: Buffer[] = [];
  let header: TranscriptHeader | undefined;
  for (let start = 0; start < raw.length; ) {
    const feed = raw.indexOf(10, start);
    const end = feed < 0 ? raw.length : feed;
    const bytes = raw.subarray(start, end);
    start = end + 1;
    if (bytes.length === 0 || (bytes.length === 1 && bytes[0] === 13)) continue;
    const line = bytes.toString('utf8');
    const value = readLine(line);
    if (value === undefined) bad.push(bytes);
    else {
      goodLines.push(line);
      if (value.type === 'session') header ??= value as TranscriptHeader;
      else entries.push(value as TranscriptEntry);
    }
  }
  return { header, entries, bad, goodLines, wholeTail: raw[raw.length - 1] === 10 };
}

function readLine(line: string): TranscriptHeader | TranscriptEntry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || typeof value.type !== 'string' || typeof value.id !== 'string') return undefined;
  if (value.type === 'message' && !(isRecord(value.message) && typeof value.message.role === 'string'))
    return undefined;
  return value as TranscriptHeader | TranscriptEntry;
}

async function setAside(path: string, bad: readonly Buffer[], now: number): Promise<Damage> {
  const stamp = new Date(now).toISOString().replaceAll(':', '-');
  let keptIn = `${path}.damaged.${stamp}`;
  for (let n = 1; await exists(keptIn); n++) keptIn = `${path}.damaged.${stamp}.${n}`;
  await writeFileAtomic(keptIn, Buffer.concat(bad.flatMap((bytes) => [bytes, Buffer.from('\n')])), { mode: FILE_MODE });
  return { file: basename(path), count: bad.length, keptIn };
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
