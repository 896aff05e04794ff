import { GatewayError } from '#base';

/** A place in the config: keys of objects and indexes of lists, from the top. */
export type ConfigPath = readonly (string | number)[];

/** Keys that could reach a prototype (security model T22). */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'prototype', 'constructor']);

const STEPS_MAX = 32;
const PLAIN_KEY = /^[A-Za-z_$][A-Za-z0-9_$-]*$/;
// A plain key, an index in brackets, or any key as a JSON string in brackets.
const STEP = /\[(\d{1,6})\]|\[("(?:[^"\\]|\\.)*")\]|(?:^|\.)([^.[\]"'\s]+)/y;

/**
 * Reads `a.b[0].c`; a key with other characters is written `models.providers["my.server"]`.
 * @throws {GatewayError} `REQUEST_INVALID` for anything else, and for keys that are never allowed
 */
export function parseConfigPath(text: string): ConfigPath {
  const path: (string | number)[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const step = STEP.exec(text);
    if (!step) throw notAPath(text, 'is not a path in the config');
    const [, index, quoted, plain] = step;
    if (index !== undefined) path.push(Number(index));
    else path.push(quoted === undefined ? plain! : unquoted(quoted, text));
  }
  if (path.length === 0) throw notAPath(text, 'names no setting');
  if (path.length > STEPS_MAX) throw notAPath(text, `has more than ${STEPS_MAX} steps`);
  for (const step of path) {
    if (FORBIDDEN_KEYS.has(String(step))) throw notAPath(text, `has the key "${step}", which is not allowed`);
  }
  return path;
}

/** The text that {@link parseConfigPath} reads. */
export function formatConfigPath(path: ConfigPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    if (!PLAIN_KEY.test(step)) return `${text}[${JSON.stringify(step)}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

function unquoted(quoted: string, text: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch (cause) {
    throw notAPath(text, 'has a key in quotes that is not a JSON string', cause);
  }
}

function notAPath(text: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('REQUEST_INVALID', `"${text.slice(0, 200)}" ${why}`, {
    next: 'Write it like gateway.port, agents.list[0].model or models.providers["my.server"].baseUrl.',
    ...(cause === undefined ? {} : { cause }),
  });
}
