// C0 and C1 controls, DEL, bidi controls, zero-width, tag and other invisible or non-ASCII space characters (T9, T18).
const INVISIBLE =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00a0\u00ad\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufeff\uffa0\ufff9-\ufffb\u2800]|\u034f|[\u17b4\u17b5]|[\ufe00-\ufe0f]|[\u{e0000}-\u{e007f}]|[\u{e0100}-\u{e01ef}]|\p{Surrogate}/gu;

/** Shows every character that a terminal, log or person could misread as `\u{…}`. Line feeds stay; see {@link printableLine}. */
export function printable(text: string): string {
  return text.replace(INVISIBLE, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

/** As {@link printable}, on one line and at most `lengthMax` UTF-16 units, cut between characters. */
export function printableLine(text: string, lengthMax = 2_000): string {
  const line = printable(text).replaceAll('\n', '\\u{a}');
  return line.length <= lengthMax ? line : `${cutAtCharacter(line, lengthMax - 1)}…`;
}

/** The first `length` UTF-16 units, one fewer where that would split a surrogate pair. */
export function cutAtCharacter(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
