/** What every vendor takes as the id of a call. */
const GOOD_ID = /^[A-Za-z0-9_-]{1,40}$/;

/**
 * Ids of calls as they may go to any vendor: one vendor's ids are not always another's, and a session may change its model. The same
 * call and its result get the same id, and different calls never do.
 */
export class CallIds {
  readonly #known = new Map<string, string>();
  readonly #taken = new Set<string>();

  of(id: string): string {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const base = GOOD_ID.test(id) ? id : id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 32) || 'call';
    const unique = uniqueAmong(this.#taken, base);
    this.#known.set(id, unique);
    return unique;
  }
}

/** `base`, or `base` with a number when it is taken already. Takes it. */
export function uniqueAmong(taken: Set<string>, base: string): string {
  let unique = base;
  for (let n = 2; taken.has(unique); n++) unique = `${base}_${n}`;
  taken.add(unique);
  return unique;
}
