import { GatewayError } from './errors.ts';

export type JsonLimits = { readonly depthMax?: number; readonly keysMax?: number };

const FORBIDDEN_KEYS = new Set(['__proto__', 'prototype', 'constructor']);

/**
 * The one reader for JSON that came from outside (security model T22). The size is bounded by whoever read the bytes.
 * @throws {GatewayError} `JSON_INVALID` with the parser's message, or when it is too deep, has too many keys, or names a key that
 *   could reach a prototype.
 */
export function parseJson(text: string, limits: JsonLimits = {}): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new GatewayError('JSON_INVALID', cause instanceof Error ? cause.message : 'not valid JSON', { cause });
  }
  const fault = jsonFault(value, limits);
  if (fault) throw new GatewayError('JSON_INVALID', fault);
  return value;
}

/** Why a parsed value must be refused, or undefined when it may be used. Iterative, so depth cannot overflow the stack. */
export function jsonFault(value: unknown, { depthMax = 64, keysMax = 100_000 }: JsonLimits = {}): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const pending: { node: object; depth: number }[] = [{ node: value, depth: 1 }];
  let keys = 0;
  for (let item = pending.pop(); item; item = pending.pop()) {
    if (item.depth > depthMax) return `nested deeper than ${depthMax} levels`;
    for (const key of Object.keys(item.node)) {
      if (FORBIDDEN_KEYS.has(key)) return `the key "${key}" is not allowed`;
      if (++keys > keysMax) return `more than ${keysMax} keys`;
      const child = (item.node as Record<string, unknown>)[key];
      if (typeof child === 'object' && child !== null) pending.push({ node: child, depth: item.depth + 1 });
    }
  }
  return undefined;
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
