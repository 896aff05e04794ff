import { type MemberNode, parse, type Token, type ValueNode } from '@humanwhocodes/momoa';
import { GatewayError, isRecord } from '#base';
import { type ConfigPath, FORBIDDEN_KEYS, formatConfigPath, parseConfigPath } from './config-path.ts';
import { parseJson5 } from './json5-source.ts';
import { REDACTED } from './redact.ts';

/** A value that JSON can hold. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

type ContainerNode = Extract<ValueNode, { readonly type: 'Object' | 'Array' }>;
type Range = readonly [number, number];
type Document = { readonly text: string; readonly body: ValueNode; readonly tokens: readonly Token[] };

const PLAIN_KEY = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
// Words that the parser does not take as keys without quotes.
const KEYWORDS = new Set(['null', 'true', 'false', 'Infinity', 'NaN']);
const LINE_LENGTH = 100;

/**
 * The text with the value at the path, and every other byte as it was: comments, order, quotes, blank lines. Objects on the way are
 * made; an index one past the end of a list adds to it.
 * @throws {GatewayError} `REQUEST_INVALID` when the path leads through something that is no object or list;
 *   `CONFIG_UNREADABLE` when the text is not JSON5
 */
export function setConfigValue(text: string, at: string | ConfigPath, value: JsonValue): string {
  const path = typeof at === 'string' ? parseConfigPath(at) : at;
  refuseKeys(path, value);
  const document = documentOf(text.trim() === '' ? '{}\n' : text);
  const { node, found } = follow(document.body, path);
  if (found === path.length) return splice(document.text, rangeOf(node), written(document, rangeOf(node)[0], value));
  const nested = path.slice(found + 1).reduceRight<JsonValue>((inner, step) => wrapped(step, inner, path), value);
  return inserted(document, node, path, found, nested);
}

/** The text without the key or entry at the path, and every other byte as it was. The same text when it is not there. */
export function unsetConfigValue(text: string, at: string | ConfigPath): string {
  const path = typeof at === 'string' ? parseConfigPath(at) : at;
  if (text.trim() === '') return text;
  const document = documentOf(text);
  const { node, found } = follow(document.body, path.slice(0, -1));
  const step = path.at(-1)!;
  if (found !== path.length - 1) return text;
  if (node.type === 'Object') {
    const member = memberOf(node, step);
    return member ? removed(document, rangeOf(member)) : text;
  }
  const element = node.type === 'Array' && typeof step === 'number' ? node.elements[step] : undefined;
  return element ? removed(document, rangeOf(element.value)) : text;
}

/**
 * The text after a merge patch (RFC 7396): objects go key by key, null removes, everything else replaces.
 * The placeholder of a hidden secret in the patch leaves what is there.
 */
export function patchConfigText(text: string, patch: unknown): string {
  if (!isRecord(patch)) throw new GatewayError('REQUEST_INVALID', 'A config patch must be an object');
  const apply = (before: string, part: Record<string, unknown>, path: ConfigPath): string =>
    Object.entries(part).reduce((current, [key, value]) => {
      const at = [...path, key];
      if (value === REDACTED) return current;
      if (value === null) return unsetConfigValue(current, at);
      if (!isRecord(value)) return setConfigValue(current, at, value as JsonValue);
      const there = current.trim() === '' ? undefined : follow(documentOf(current).body, at);
      const isObject = there !== undefined && there.found === at.length && there.node.type === 'Object';
      return apply(isObject ? current : setConfigValue(current, at, {}), value, at);
    }, before);
  return apply(text, patch, []);
}

/** What is at a path of a value, or undefined. Never looks at anything inherited. */
export function getConfigValue(value: unknown, at: string | ConfigPath): unknown {
  const path = typeof at === 'string' ? parseConfigPath(at) : at;
  return path.reduce<unknown>((node, step) => {
    if (Array.isArray(node)) return typeof step === 'number' ? node[step] : undefined;
    return isRecord(node) && Object.hasOwn(node, step) ? node[String(step)] : undefined;
  }, value);
}

function documentOf(text: string): Document {
  const source = parseJson5(text, 'the config');
  if (!('body' in source)) {
    throw new GatewayError(
      'CONFIG_UNREADABLE',
      `The config cannot be edited: ${source.line}:${source.column} ${source.message}`,
      {
        next: source.next,
      },
    );
  }
  const { body, tokens = [] } = parse(text, { mode: 'json5', ranges: true, tokens: true });
  return { text, body, tokens };
}

/** As far as the path leads. */
function follow(body: ValueNode, path: ConfigPath): { readonly node: ValueNode; readonly found: number } {
  let node = body;
  let found = 0;
  for (const step of path) {
    const next: ValueNode | undefined =
      node.type === 'Object'
        ? memberOf(node, step)?.value
        : node.type === 'Array' && typeof step === 'number'
          ? node.elements[step]?.value
          : undefined;
    if (next === undefined) break;
    node = next;
    found++;
  }
  return { node, found };
}

function memberOf(
  node: Extract<ValueNode, { readonly type: 'Object' }>,
  step: string | number,
): MemberNode | undefined {
  return node.members.find(({ name }) => (name.type === 'Identifier' ? name.name : name.value) === String(step));
}

function wrapped(step: string | number, inner: JsonValue, path: ConfigPath): JsonValue {
  if (typeof step === 'string') return { [step]: inner };
  if (step === 0) return [inner];
  throw unfit(path, 'starts a list that has no entries before it');
}

/** Puts a new key or entry behind the last one of its container, written the way its neighbours are. */
function inserted(document: Document, node: ValueNode, path: ConfigPath, found: number, value: JsonValue): string {
  const step = path[found]!;
  if (node.type === 'Array') {
    if (step !== node.elements.length) throw unfit(path, 'is not the next entry of its list');
  } else if (node.type !== 'Object' || typeof step !== 'string') {
    throw unfit(path, `leads through ${formatConfigPath(path.slice(0, found)) || 'the top'}, which has no such parts`);
  }
  const container = node as ContainerNode;
  const { text } = document;
  const [start, end] = rangeOf(container);
  // The parser gives an entry of a list no range of its own: its value's is the same.
  const children = container.type === 'Object' ? container.members : container.elements.map(({ value }) => value);
  const last = children.at(-1);
  const inside = document.tokens.filter((token) => rangeOf(token)[0] > start && rangeOf(token)[1] < end);
  const before = inside.at(-1);
  const contentEnd = before ? rangeOf(before)[1] : start + 1;
  const hasTrailingComma = last !== undefined && commaAfter(document, rangeOf(last)[1], end) !== undefined;
  const isMultiline = text.slice(start, end).includes('\n') || (children.length === 0 && container === document.body);
  const indent = isMultiline ? indentOf(text, children[0] ? rangeOf(children[0])[0] : undefined, start) : '';
  const key = container.type === 'Object' ? `${keyText(document, container, String(step))}: ` : '';
  const item = `${key}${format(value, styleOf(document, indent))}`;
  const newline = newlineOf(text);
  // `{}` becomes `{ a: 1 }`.
  const pad = !isMultiline && container.type === 'Object' && end - start === 2 ? ' ' : '';
  const lead = isMultiline ? `${newline}${indent}` : before || text[contentEnd] === ' ' ? ' ' : pad;
  const tail = hasTrailingComma ? ',' : pad;
  const closes = isMultiline && !text.slice(contentEnd, end - 1).includes('\n');
  const closing = closes ? `${newline}${lineIndentAt(text, start)}` : '';
  const withItem = `${text.slice(0, contentEnd)}${lead}${item}${tail}${closing}${text.slice(contentEnd)}`;
  if (last === undefined || hasTrailingComma) return withItem;
  const [, lastEnd] = rangeOf(last);
  return `${withItem.slice(0, lastEnd)},${withItem.slice(lastEnd)}`;
}

/** Takes out a key or entry with one comma, and its line when nothing else is on it. */
function removed(document: Document, [start, end]: Range): string {
  const { text, tokens } = document;
  const after = commaAfter(document, end, text.length);
  if (after) {
    const [commaStart, commaEnd] = rangeOf(after);
    // What stands between the value and its comma can only be blanks and comments; the comments stay.
    const kept = text.slice(end, commaStart).trim() === '' ? '' : text.slice(end, commaStart);
    return withoutPiece(text, start, commaEnd, kept);
  }
  const before = tokens.findLast((token) => rangeOf(token)[1] <= start && !token.type.endsWith('Comment'));
  const result = withoutPiece(text, start, end, '');
  // The comma before is now the last one: allowed in JSON5, but the text may be plain JSON.
  return before?.type === 'Comma' ? splice(result, rangeOf(before), '') : result;
}

function withoutPiece(text: string, start: number, end: number, kept: string): string {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const lineEnd = text.indexOf('\n', end);
  const isAlone =
    kept === '' && lineEnd >= 0 && text.slice(lineStart, start).trim() === '' && text.slice(end, lineEnd).trim() === '';
  if (isAlone) return splice(text, [lineStart, lineEnd + 1], '');
  // One blank goes with it, so that none piles up between its neighbours.
  const blank = /^[ \t]/.test(text.slice(end)) && /[\s[{]$/.test(text.slice(0, start)) ? 1 : 0;
  return splice(text, [start, end + blank], kept);
}

/** The comma that follows, with nothing but comments between. */
function commaAfter(document: Document, from: number, to: number): Token | undefined {
  const next = document.tokens.find((token) => rangeOf(token)[0] >= from && !token.type.endsWith('Comment'));
  return next?.type === 'Comma' && rangeOf(next)[1] <= to ? next : undefined;
}

/** A value in the place of another, indented like the line it stands on. */
function written(document: Document, at: number, value: JsonValue): string {
  return format(value, styleOf(document, lineIndentAt(document.text, at)));
}

type Style = {
  readonly indent: string;
  readonly unit: string;
  readonly newline: string;
  readonly keys: 'quoted' | 'plain';
};

const styleOf = (document: Document, indent: string): Style => ({
  indent,
  unit: unitOf(document.text),
  newline: newlineOf(document.text),
  keys: keyStyleOf(document),
});

const newlineOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

function format(value: JsonValue, style: Style): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const [open, close] = isList ? '[]' : '{}';
  const deeper = { ...style, indent: style.indent + style.unit };
  const items = isList
    ? value.map((item: JsonValue) => format(item, deeper))
    : Object.entries(value as Record<string, JsonValue>).map(
        ([key, child]) => `${keyIn(key, style.keys)}: ${format(child, deeper)}`,
      );
  if (items.length === 0) return `${open}${close}`;
  const line = isList ? `[${items.join(', ')}]` : `{ ${items.join(', ')} }`;
  const isFlat = Object.values(value).every(
    (child) => typeof child !== 'object' || Object.keys(child ?? {}).length === 0,
  );
  if (isFlat && line.length <= LINE_LENGTH) return line;
  const { newline } = style;
  return `${open}${newline}${items.map((item) => deeper.indent + item).join(`,${newline}`)}${newline}${style.indent}${close}`;
}

const keyIn = (key: string, style: Style['keys']): string =>
  style === 'plain' && PLAIN_KEY.test(key) && !KEYWORDS.has(key) ? key : JSON.stringify(key);

function keyText(document: Document, node: ContainerNode, key: string): string {
  const first = node.type === 'Object' ? node.members[0] : undefined;
  return keyIn(key, first ? (first.name.type === 'Identifier' ? 'plain' : 'quoted') : keyStyleOf(document));
}

/** How the first key of the document is written; in an empty one, as JSON does. */
function keyStyleOf({ body }: Document): Style['keys'] {
  return body.type === 'Object' && body.members[0]?.name.type === 'Identifier' ? 'plain' : 'quoted';
}

/** The step of indentation that the text uses, two blanks when it shows none. */
const unitOf = (text: string): string => /^([ \t]+)[^\s*]/m.exec(text)?.[1] ?? '  ';

const lineIndentAt = (text: string, at: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at - 1) + 1))![0];

function indentOf(text: string, firstChild: number | undefined, containerStart: number): string {
  const own = lineIndentAt(text, containerStart);
  if (firstChild === undefined || !text.slice(containerStart, firstChild).includes('\n')) return own + unitOf(text);
  return lineIndentAt(text, firstChild);
}

const splice = (text: string, [start, end]: Range, piece: string): string =>
  text.slice(0, start) + piece + text.slice(end);

const rangeOf = (node: { readonly range?: Range | undefined }): Range => node.range!;

function refuseKeys(path: ConfigPath, value: JsonValue): void {
  const visit = (node: JsonValue): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const [key, child] of Object.entries(node)) {
      if (FORBIDDEN_KEYS.has(key)) throw unfit(path, `has the key "${key}", which is not allowed`);
      visit(child as JsonValue);
    }
  };
  for (const step of path) if (FORBIDDEN_KEYS.has(String(step))) throw unfit(path, 'has a key that is not allowed');
  visit(value);
}

function unfit(path: ConfigPath, why: string): GatewayError {
  return new GatewayError('REQUEST_INVALID', `${formatConfigPath(path)} ${why}`, { next: 'Correct the path.' });
}
