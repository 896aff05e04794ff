const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** `93_784_000` → `1 d 2 h`: the two largest units, for people. */
export function durationText(milliseconds: number): string {
  const parts: string[] = [];
  let rest = Math.max(0, milliseconds);
  for (const [name, length] of UNITS) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0 || (name === 's' && parts.length === 0)) parts.push(`${count} ${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}
