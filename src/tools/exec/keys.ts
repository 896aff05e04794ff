/**
 * What pressing a key comes to where there is a pipe and no terminal: bytes to write, or what the terminal would have done itself.
 * Enter is a line feed, because nothing on the way turns a carriage return into one.
 */
export type KeyPress =
  | { readonly bytes: Uint8Array }
  | { readonly signal: 'SIGINT' | 'SIGQUIT' }
  | { readonly isEndOfInput: true };

const KEYS: Readonly<Record<string, string>> = {
  enter: '\n',
  return: '\n',
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

export const KEY_NAMES =
  'Enter, Tab, Escape, Space, Backspace, Delete, Up, Down, Left, Right, Home, End, PageUp, PageDown, C-c, C-d, M-x, or one character';

/** For a key by its usual name (`Enter`, `Up`, `C-c`, `M-x`, one character); undefined for one that does not exist. */
export function keyPress(name: string): KeyPress | undefined {
  const known = Object.hasOwn(KEYS, name.toLowerCase()) ? KEYS[name.toLowerCase()] : undefined;
  if (known !== undefined) return typed(known);
  const [, modifier, key] = /^([CM])-(.)$/iu.exec(name) ?? [];
  if (modifier === undefined || key === undefined) return [...name].length === 1 ? typed(name) : undefined;
  if (modifier.toLowerCase() === 'm') return typed(`\u001b${key}`);
  return controlKey(key.toUpperCase());
}

function controlKey(key: string): KeyPress | undefined {
  if (key === 'C') return { signal: 'SIGINT' };
  if (key === '\\') return { signal: 'SIGQUIT' };
  if (key === 'D') return { isEndOfInput: true };
  const code = key.charCodeAt(0);
  return code >= 0x40 && code <= 0x5f ? typed(String.fromCharCode(code - 0x40)) : undefined;
}

const typed = (text: string): KeyPress => ({ bytes: Buffer.from(text) });
