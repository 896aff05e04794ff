/**
 * Whether `text` fits `pattern`, in which `*` stands for any characters (none of them `barrier`, where one is given) and everything else
 * for itself. One pass over the parts between the stars, each taken where it first occurs: an earlier star that took more would leave
 * the later ones less, so there is never a reason to go back (security model T23).
 */
export function fitsGlob(pattern: string, text: string, barrier?: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  if (!text.startsWith(first)) return false;
  const last = parts.pop();
  if (last === undefined) return text === first;
  let at = first.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0 || crosses(text, at, found, barrier)) return false;
    at = found + part.length;
  }
  const end = text.length - last.length;
  return end >= at && text.endsWith(last) && !crosses(text, at, end, barrier);
}

function crosses(text: string, from: number, to: number, barrier: string | undefined): boolean {
  if (barrier === undefined) return false;
  const found = text.indexOf(barrier, from);
  return found >= 0 && found < to;
}
