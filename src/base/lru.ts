/** A map with a bound: the entry used longest ago leaves first. For every table that outside data can grow. */
export class LruMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #max: number;

  constructor(options: { readonly max: number }) {
    this.#max = options.max;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#max) {
      const [oldest] = this.#entries.keys();
      this.#entries.delete(oldest as K);
    }
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  values(): IterableIterator<V> {
    return this.#entries.values();
  }
}
