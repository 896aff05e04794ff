import { isRecord } from '#base';

export type WireError = {
  readonly code: 'INVALID_REQUEST' | 'NOT_PAIRED' | 'UNAVAILABLE' | 'AGENT_TIMEOUT' | 'APPROVAL_NOT_FOUND';
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
};

export type RequestFrame = {
  readonly type: 'req';
  readonly id: string;
  readonly method: string;
  readonly params?: unknown;
};
export type ResponseFrame =
  | { readonly type: 'res'; readonly id: unknown; readonly ok: true; readonly payload: unknown }
  | {
      readonly type: 'res';
      readonly id: unknown;
      readonly ok: false;
      readonly error: WireError;
      readonly payload?: unknown;
    };
export type EventFrame = {
  readonly type: 'event';
  readonly event: string;
  readonly payload?: unknown;
  readonly seq?: number;
};

const ID_CHARACTERS_MAX = 256;
const METHOD_CHARACTERS_MAX = 128;

/** A request frame, or why it is none; `id` is what it gave, so that even a wrong frame can be answered. */
export function readRequest(
  value: unknown,
): { readonly frame: RequestFrame } | { readonly id: unknown; readonly fault: string } {
  if (!isRecord(value)) return { id: null, fault: 'at root: must be object' };
  const { type, id, method, params } = value;
  const fault = (text: string) => ({ id: id ?? null, fault: text });
  if (type !== 'req') return fault('at /type: must be equal to constant');
  if (typeof id !== 'string' || id === '' || id.length > ID_CHARACTERS_MAX) return fault('at /id: must be string');
  if (typeof method !== 'string' || method === '' || method.length > METHOD_CHARACTERS_MAX)
    return fault('at /method: must be string');
  const extra = Object.keys(value).find((key) => !['type', 'id', 'method', 'params'].includes(key));
  if (extra !== undefined) return fault(`at root: unexpected property '${extra}'`);
  return { frame: { type, id, method, ...(params === undefined ? {} : { params }) } };
}
