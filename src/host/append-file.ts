import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import type { FileMode } from './atomic-file.ts';

/**
 * A file that only grows, with one writer. `append` returns when the bytes are with the operating system: from then on the death of
 * this process cannot lose them (the death of the machine can).
 */
export class AppendFile {
  readonly #descriptor: number;
  #size: number;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.#size = fstatSync(descriptor).size;
  }

  static open(path: string, { mode = 0o600 }: FileMode = {}): AppendFile {
    return new AppendFile(openSync(path, 'a', mode));
  }

  /** Bytes in the file. */
  get size(): number {
    return this.#size;
  }

  /** One write for the whole text, so that a crash can at most cut its end. */
  append(text: string): void {
    const bytes = Buffer.from(text);
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#descriptor, bytes, done);
    this.#size += bytes.length;
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}
