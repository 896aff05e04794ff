/**
 * Whether `text` fits `pattern`, in which `*` stands for any characters (none of them `barrier`, where one is given) and everything else
 * for itself. Linear: at most one place to come back to.
 */
export function fitsGlob(pattern: string, text: string, barrier?: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.length && pattern[p] === text[t]) {
      p++;
      t++;
    } else if (star >= 0 && text[resume] !== barrier) {
      p = star + 1;
      t = ++resume;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
