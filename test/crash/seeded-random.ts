/** Numbers that look random and are the same for the same seed (xorshift, 32 bits). */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    // The generator stays at zero once there; an odd factor spreads small seeds over all bits.
    this.#state = Math.imul(seed, 0x9e3779b1) | 0 || 1;
  }

  /** From 0 up to, not including, `limit`. */
  below(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return ((this.#state >>> 0) / 2 ** 32) * limit;
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.below(values.length))]!;
  }
}
