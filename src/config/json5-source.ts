import { parse, type ValueNode } from '@humanwhocodes/momoa';
import { type ConfigPath, FORBIDDEN_KEYS } from './config-path.ts';
import type { Fault } from './issue.ts';

export type Place = { readonly line: number; readonly column: number };

/** One file's text, read as JSON5. */
export type Json5Source = { readonly file: string; readonly text: string; readonly body: ValueNode };

export type SyntaxFault = Place & { readonly message: string; readonly next: string };

/** Limits for one file (security model T22). */
export const SOURCE_BYTES_MAX = 1024 * 1024;
const DEPTH_MAX = 64;
const KEYS_MAX = 20_000;

/** Reads the text, or says where it stops being JSON5. No word of the text is in the message. */
export function parseJson5(text: string, file: string): Json5Source | SyntaxFault {
  const start = { line: 1, column: 1 };
  if (text.trim() === '') {
    return {
      ...start,
      message: 'the file is empty',
      next: 'Write {} for a config without settings, or delete the file.',
    };
  }
  if (opensDeeperThan(DEPTH_MAX, text)) {
    return { ...start, message: `nested deeper than ${DEPTH_MAX} levels`, next: 'Write it with fewer levels.' };
  }
  try {
    return { file, text, body: parse(text, { mode: 'json5', ranges: true, tokens: true }).body };
  } catch (error) {
    const at = error as Partial<Place> & { readonly name?: string };
    return {
      line: at.line ?? 1,
      column: at.column ?? 1,
      message: syntaxMessage(error),
      next: 'Look there for a missing or doubled comma, quote or bracket.',
    };
  }
}

/**
 * The plain value of a source. Objects have no prototype, so that no name from outside finds anything inherited.
 * Keys that stand twice, could reach a prototype, or are too many are faults; so are NaN and Infinity.
 */
export function plainValue(body: ValueNode): { readonly value: unknown; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  let keys = 0;
  const visit = (node: ValueNode, path: ConfigPath): unknown => {
    switch (node.type) {
      case 'Array':
        return node.elements.map((element, index) => visit(element.value, [...path, index]));
      case 'Object': {
        const object: Record<string, unknown> = Object.create(null);
        for (const member of node.members) {
          const key = member.name.type === 'Identifier' ? member.name.name : member.name.value;
          const at = [...path, key];
          if (FORBIDDEN_KEYS.has(key)) faults.push({ path: at, atKey: true, message: 'is a key that is not allowed' });
          else if (Object.hasOwn(object, key)) {
            faults.push({ path: at, atKey: true, message: 'stands here twice', next: 'Keep one of the two.' });
          } else if (++keys <= KEYS_MAX) object[key] = visit(member.value, at);
        }
        return object;
      }
      case 'NaN':
      case 'Infinity':
        faults.push({ path, message: 'must be a number that can be written in JSON' });
        return null;
      case 'Null':
        return null;
      default:
        return node.value;
    }
  };
  const value = visit(body, []);
  if (keys > KEYS_MAX) faults.push({ path: [], message: `the file has more than ${KEYS_MAX} keys` });
  return { value, faults };
}

/**
 * Where a path is in a source: its value, or its key; of a key that stands twice, the last. When it is not there, the deepest part
 * of it that is. @returns also how many steps were found
 */
export function placeOf(
  source: Json5Source,
  path: ConfigPath,
  what: 'key' | 'value',
): Place & { readonly found: number } {
  let node: ValueNode = source.body;
  let start = source.body.loc.start;
  let found = 0;
  for (const step of path) {
    if (node.type === 'Object') {
      const member = node.members.findLast(
        ({ name }) => (name.type === 'Identifier' ? name.name : name.value) === String(step),
      );
      if (!member) break;
      node = member.value;
      start = what === 'key' && found + 1 === path.length ? member.name.loc.start : node.loc.start;
    } else if (node.type === 'Array' && typeof step === 'number') {
      const element = node.elements[step];
      if (!element) break;
      node = element.value;
      start = node.loc.start;
    } else break;
    found++;
  }
  return { line: start.line, column: start.column, found };
}

/** Whether brackets open deeper than that. Text in quotes and comments counts too, which only matters far past any real config. */
function opensDeeperThan(depthMax: number, text: string): boolean {
  let depth = 0;
  for (const [bracket] of text.matchAll(
    /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\/\/[^\n]*|\/\*[\s\S]*?\*\/|[[\]{}]/g,
  )) {
    if (bracket === '[' || bracket === '{') {
      if (++depth > depthMax) return true;
    } else if (bracket === ']' || bracket === '}') depth--;
  }
  return false;
}

// The parser's own messages quote the text, which may be part of a secret, and name its token types.
function syntaxMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  const token = /^Unexpected token (\w+) found/.exec(message)?.[1];
  if (/^Unexpected end of input/.test(message)) return 'the file ends in the middle of a value';
  if (token !== undefined) return `a ${TOKEN_NAMES[token] ?? 'value'} is not expected here`;
  return 'not valid JSON5 here';
}

const TOKEN_NAMES: Readonly<Record<string, string>> = {
  Comma: 'comma',
  Colon: 'colon',
  LBrace: '{',
  RBrace: '}',
  LBracket: '[',
  RBracket: ']',
  String: 'text',
  Number: 'number',
  Identifier: 'word without quotes',
  Boolean: 'true or false',
  Null: 'null',
};
