// What the page keeps in the browser: the token for this tab, drafts for this tab, the theme for this browser. A browser that
// refuses storage (private mode, policy) costs comfort, never the chat.
const TOKEN = 'reins:token';
const SESSION = 'reins:session';
const DRAFTS = 'reins:drafts';
const THEME = 'reins:theme';
const DRAFTS_MAX = 50;

function read(storage: () => Storage, name: string): string | undefined {
  try {
    return storage().getItem(name) ?? undefined;
  } catch (refused) {
    console.debug('storage cannot be read', refused);
    return undefined;
  }
}

function write(storage: () => Storage, name: string, value: string | undefined): void {
  try {
    if (value === undefined) storage().removeItem(name);
    else storage().setItem(name, value);
  } catch (refused) {
    console.debug('storage cannot be written', refused);
  }
}

const tab = () => sessionStorage;
const browser = () => localStorage;

/** The token of this very origin; one that was kept for another is never used (security model T2). */
export function keptToken(): string | undefined {
  const kept = parsed(read(tab, TOKEN));
  return kept?.['origin'] === location.origin && typeof kept['token'] === 'string' ? kept['token'] : undefined;
}

export const keepToken = (token: string | undefined): void =>
  write(tab, TOKEN, token === undefined ? undefined : JSON.stringify({ origin: location.origin, token }));

export const keptSession = (): string | undefined => read(tab, SESSION);
export const keepSession = (key: string): void => write(tab, SESSION, key);

export const keptDraft = (sessionKey: string): string => String(parsed(read(tab, DRAFTS))?.[sessionKey] ?? '');

export function keepDraft(sessionKey: string, text: string): void {
  const { [sessionKey]: _before, ...others } = parsed(read(tab, DRAFTS)) ?? {};
  const entries = Object.entries(text === '' ? others : { ...others, [sessionKey]: text });
  write(tab, DRAFTS, JSON.stringify(Object.fromEntries(entries.slice(-DRAFTS_MAX))));
}

export type Theme = 'system' | 'light' | 'dark';

export function keptTheme(): Theme {
  const theme = read(browser, THEME);
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

export const keepTheme = (theme: Theme): void => write(browser, THEME, theme === 'system' ? undefined : theme);

function parsed(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch (damaged) {
    console.debug('kept value is damaged', damaged);
    return undefined;
  }
}
