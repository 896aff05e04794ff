import { StringDecoder } from 'node:string_decoder';

/**
 * What a process printed, within a bound: the beginning and the end are kept, and how much between them was dropped. Bytes become text
 * across chunk borders, so that no character breaks.
 */
export class OutputBuffer {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #decoders = new Map<string, StringDecoder>();
  #head = '';
  #tail = '';
  #dropped = 0;
  #total = 0;

  /** @param options.charactersMax kept at most; a third of it from the beginning */
  constructor(options: { readonly charactersMax: number }) {
    this.#headMax = Math.floor(options.charactersMax / 3);
    this.#tailMax = options.charactersMax - this.#headMax;
  }

  /** Characters seen so far, dropped ones too. */
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

  end(): void {
    for (const decoder of this.#decoders.values()) this.#add(decoder.end());
    this.#decoders.clear();
  }

  text(): string {
    if (this.#dropped === 0) return this.#head + this.#tail;
    return `${this.#head}\n[… ${this.#dropped} characters left out …]\n${this.#tail}`;
  }

  #add(text: string): void {
    this.#total += text.length;
    const room = this.#headMax - this.#head.length;
    if (room > 0 && this.#tail === '') {
      this.#head += text.slice(0, room);
      this.#tail += text.slice(room);
    } else this.#tail += text;
    if (this.#tail.length > this.#tailMax) this.#cutTail();
  }

  #cutTail(): void {
    let from = this.#tail.length - this.#tailMax;
    const first = this.#tail.charCodeAt(from);
    if (first >= 0xdc00 && first <= 0xdfff) from++;
    this.#dropped += from;
    this.#tail = this.#tail.slice(from);
  }
}
