/** Numbers from 0 (inclusive) to 1 that are the same in every run: mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `count` different whole numbers below `limit`, sorted, always with the first and the last few. */
export function sampled(limit: number, count: number, seed: number): readonly number[] {
  const random = seeded(seed);
  const chosen = new Set([0, 1, 2, limit - 3, limit - 2, limit - 1].filter((n) => n >= 0 && n < limit));
  while (chosen.size < Math.min(count, limit)) chosen.add(Math.floor(random() * limit));
  return [...chosen].sort((a, b) => a - b);
}
