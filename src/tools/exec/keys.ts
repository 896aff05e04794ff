const KEYS: Readonly<Record<string, string>> = {
  enter: '\r',
  return: '\r',
  tab: '\t',
  escape: '\u001b',
  esc: '\u001b',
  space: ' ',
  backspace: '\u007f',
  bspace: '\u007f',
  delete: '\u001b[3~',
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  home: '\u001b[H',
  end: '\u001b[F',
  pageup: '\u001b[5~',
  pagedown: '\u001b[6~',
};

/** What a terminal sends for a key by its usual name (`Enter`, `Up`, `C-c`, `M-x`, one character), or undefined. */
export function keyBytes(name: string): string | undefined {
  const plain = KEYS[name.toLowerCase()];
  if (plain !== undefined) return plain;
  const [, modifier, key] = /^([CM])-(.)$/i.exec(name) ?? [];
  if (modifier?.toLowerCase() === 'm') return `\u001b${key}`;
  if (modifier !== undefined && key !== undefined) {
    const code = key.toUpperCase().charCodeAt(0);
    return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : undefined;
  }
  return [...name].length === 1 ? name : undefined;
}
