import { dirname } from 'node:path';
import { GatewayError, isRecord } from '#base';
import type { ConfigPath } from './config-path.ts';
import type { Fault } from './issue.ts';
import { type Json5Source, parseJson5, placeOf, plainValue, SOURCE_BYTES_MAX } from './json5-source.ts';
import { readOwnedFile } from './owned-file.ts';

/** A source and the place in the config where its content stands. */
export type Mount = { readonly path: ConfigPath; readonly source: Json5Source };

export type Expansion = {
  readonly value: unknown;
  /** The root's own value, `$include` as it is written. */
  readonly parsed: unknown;
  readonly faults: readonly Fault[];
  /** The config file first, then what it includes, in the order of reading. */
  readonly mounts: readonly Mount[];
};

const INCLUDE = '$include';
const FILES_MAX = 64;
const DEPTH_MAX = 10;

/**
 * A source's value, every `{$include: "file" | ["file", …]}` replaced by what is in the files. Keys beside `$include` go over it,
 * a later file goes over an earlier one, object by object.
 */
export function expandIncludes(root: Json5Source, folder: string): Expansion {
  const mounts: Mount[] = [{ path: [], source: root }];
  const { value: parsed, faults: first } = plainValue(root.body);
  const faults: Fault[] = [...first];

  const expand = (given: unknown, path: ConfigPath, chain: readonly string[]): unknown => {
    if (Array.isArray(given)) return given.map((item, index) => expand(item, [...path, index], chain));
    if (!isRecord(given)) return given;
    const own = fromEntries(
      Object.entries(given)
        .filter(([key]) => key !== INCLUDE)
        .map(([key, child]) => [key, expand(child, [...path, key], chain)]),
    );
    if (!Object.hasOwn(given, INCLUDE)) return own;
    const names = Array.isArray(given[INCLUDE]) ? given[INCLUDE] : [given[INCLUDE]];
    const parts = names.map((name) => included(name, path, chain));
    if (parts.length === 1 && Object.keys(own).length === 0) return parts[0];
    if (parts.some((part) => part !== undefined && !isRecord(part))) {
      faults.push({ path: [...path, INCLUDE], message: 'has a file that is no object, so nothing can go over it' });
    }
    return [...parts, own].reduce(over, fromEntries([]));
  };

  const included = (name: unknown, path: ConfigPath, chain: readonly string[]): unknown => {
    const at = [...path, INCLUDE];
    const fault = (message: string, next?: string) => {
      faults.push({ path: at, message, ...(next === undefined ? {} : { next }) });
      return undefined;
    };
    if (typeof name !== 'string' || name === '') return fault('must be the name of a file, or a list of names');
    if (chain.length > DEPTH_MAX) return fault(`includes more than ${DEPTH_MAX} files in one another`);
    if (mounts.length > FILES_MAX) return fault(`includes more than ${FILES_MAX} files`);
    try {
      const file = readOwnedFile({ name, from: dirname(chain.at(-1)!), folder, bytesMax: SOURCE_BYTES_MAX });
      if (chain.includes(file.path)) return fault(`includes "${name}" from within itself`);
      const source = parseJson5(file.text, file.path);
      if (!('body' in source)) {
        return fault(`includes ${file.path}, which has a fault at ${source.line}:${source.column}`, source.next);
      }
      const { value: content, faults: inside } = plainValue(source.body);
      mounts.push({ path, source });
      faults.push(...inside.map((inner) => ({ ...inner, path: [...path, ...inner.path] })));
      return expand(content, path, [...chain, file.path]);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return fault(`cannot include: ${error.message}`, error.next);
    }
  };

  return { value: expand(parsed, [], [root.file]), parsed, faults, mounts };
}

/** Where a path of the expanded value was written: the mount that knows most of it, the later one of equals. */
export function locate(
  mounts: readonly Mount[],
  path: ConfigPath,
  what: 'key' | 'value',
): { readonly file: string; readonly line: number; readonly column: number } {
  const [root] = mounts;
  let best = { file: root!.source.file, ...placeOf(root!.source, path, what), depth: -1 };
  for (const { path: prefix, source } of mounts) {
    if (!prefix.every((step, index) => path[index] === step)) continue;
    const place = placeOf(source, path.slice(prefix.length), what);
    // An included file that has nothing of the path says less than the place that includes it.
    const depth = place.found === 0 && prefix.length > 0 ? -1 : prefix.length + place.found;
    if (depth >= best.depth) best = { file: source.file, ...place, depth };
  }
  return { file: best.file, line: best.line, column: best.column };
}

/** `upper` over `lower`: objects key by key, everything else whole. */
function over(lower: unknown, upper: unknown): unknown {
  if (upper === undefined) return lower;
  if (!isRecord(lower) || !isRecord(upper)) return upper;
  const keys = new Set([...Object.keys(lower), ...Object.keys(upper)]);
  return fromEntries(
    [...keys].map((key) => [key, Object.hasOwn(upper, key) ? over(lower[key], upper[key]) : lower[key]]),
  );
}

const fromEntries = (entries: readonly (readonly [string, unknown])[]): Record<string, unknown> =>
  Object.assign(Object.create(null), Object.fromEntries(entries));
