/** The name in `known` that `given` most likely meant, or undefined if none is close. */
export function nearestName(given: string, known: Iterable<string>): string | undefined {
  const wanted = given.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(given.length / 3)) + 1;
  for (const name of known) {
    const distance = editDistance(wanted, name.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [name, distance];
  }
  return best;
}

/** Optimal string alignment distance; gives up early with `limit` when it cannot be below it. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let previous: number[] = [];
  let current = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(current[j]! + 1, next[j - 1]! + 1, current[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, previous[j - 2]! + 1);
      next.push(cost);
    }
    [previous, current] = [current, next];
  }
  return current[b.length]!;
}
