import { closeSync, fchmodSync, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import type { FileMode } from './atomic-file.ts';

/**
 * A file that only grows, with one writer. `append` returns when the bytes are with the operating system: from then on the death of
 * this process cannot lose them (the death of the machine can).
 */
export class AppendFile {
  readonly #descriptor: number;
  #size: number;
  #isOpen = true;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.#size = fstatSync(descriptor).size;
  }

  /** Opens or makes the file; one that is there already and open to more than `mode` says is closed to them. */
  static open(path: string, { mode = 0o600 }: FileMode = {}): AppendFile {
    const descriptor = openSync(path, 'a', mode);
    try {
      const facts = fstatSync(descriptor);
      // A device is not ours to close to others.
      if (facts.isFile() && (facts.mode & 0o777 & ~mode) !== 0) fchmodSync(descriptor, mode);
      return new AppendFile(descriptor);
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }

  /** Bytes in the file. */
  get size(): number {
    return this.#size;
  }

  /**
   * One write for the whole text, so that a crash can at most cut its end.
   * @throws what the system says, e.g. that the disk is full; then nothing of the text is in the file
   */
  append(text: string): void {
    const bytes = Buffer.from(text);
    let done = 0;
    try {
      while (done < bytes.length) done += writeSync(this.#descriptor, bytes, done);
    } catch (error) {
      // What follows a torn line would be glued to it and be lost with it.
      if (done > 0) ftruncateSync(this.#descriptor, this.#size);
      throw error;
    }
    this.#size += bytes.length;
  }

  close(): void {
    // The number of a closed descriptor is given to another file: a second close would close that one.
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.#descriptor);
  }
}
