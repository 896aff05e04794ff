import { StringDecoder } from 'node:string_decoder';
import { cutAtCharacter } from '#base';

/**
 * What a process printed, within a bound: the beginning and the end are kept, and how much between them was dropped. Bytes become text
 * across chunk borders, so that no character breaks.
 */
export class OutputBuffer {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #decoders = new Map<string, StringDecoder>();
  #head = '';
  #headIsFull = false;
  #tail = '';
  #dropped = 0;
  #total = 0;

  /** @param options.charactersMax kept at most; a third of it from the beginning */
  constructor(options: { readonly charactersMax: number }) {
    this.#headMax = Math.floor(options.charactersMax / 3);
    this.#tailMax = options.charactersMax - this.#headMax;
  }

  /** Characters (UTF-16 units) seen so far, dropped ones too. */
  get total(): number {
    return this.#total;
  }

  /** @param stream each stream has its own unfinished character */
  push(stream: string, bytes: Uint8Array): string {
    let decoder = this.#decoders.get(stream);
    if (!decoder) {
      decoder = new StringDecoder('utf8');
      this.#decoders.set(stream, decoder);
    }
    const text = decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    this.#add(text);
    return text;
  }

  /** The streams have ended: half a character that waits for its rest becomes U+FFFD. */
  end(): void {
    for (const decoder of this.#decoders.values()) this.#add(decoder.end());
    this.#decoders.clear();
  }

  text(): string {
    return this.since(0);
  }

  /** What came after the first `position` characters, as far as it is kept. */
  since(position: number): string {
    const head = this.#head.slice(position);
    const tailStart = this.#head.length + this.#dropped;
    if (position >= tailStart) return this.#tail.slice(position - tailStart);
    if (this.#dropped === 0) return head + this.#tail;
    const gap = tailStart - Math.max(position, this.#head.length);
    return `${head}\n[… ${gap} characters left out …]\n${this.#tail}`;
  }

  /** The newest `charactersMax` characters. */
  latest(charactersMax: number): string {
    const text = this.#head.length + this.#tail.length <= charactersMax ? this.text() : this.#tail;
    const start = Math.max(0, text.length - charactersMax);
    return text.slice(isLowSurrogate(text, start) ? start + 1 : start);
  }

  #add(text: string): void {
    this.#total += text.length;
    let rest = text;
    if (!this.#headIsFull) {
      const kept = cutAtCharacter(text, this.#headMax - this.#head.length);
      this.#head += kept;
      rest = text.slice(kept.length);
      this.#headIsFull = rest !== '';
    }
    this.#tail += rest;
    if (this.#tail.length <= this.#tailMax) return;
    let from = this.#tail.length - this.#tailMax;
    if (isLowSurrogate(this.#tail, from)) from++;
    this.#dropped += from;
    this.#tail = this.#tail.slice(from);
  }
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
