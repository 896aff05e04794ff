import { isRecord, printableLine } from '#base';

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
  /** Counts the connection's broadcast events from 1; absent on what only subscribers get. */
  readonly seq?: number;
  /** On `presence` and `health`; each number only grows. */
  readonly stateVersion?: { readonly presence: number; readonly health: number };
};

const ID_CHARACTERS_MAX = 256;
const METHOD_CHARACTERS_MAX = 128;
const EXTRAS_NAMED_MAX = 8;

const FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'method', 'params']);

/** A request frame, or why it is none; `id` is what it gave, so that even a wrong frame can be answered. */
export function readRequest(
  value: unknown,
): { readonly frame: RequestFrame } | { readonly id: unknown; readonly fault: string } {
  if (!isRecord(value)) return { id: null, fault: 'at root: must be object' };
  const { type, id, method, params } = value;
  const missing = ['type', 'id', 'method'].filter((name) => value[name] === undefined);
  const extra = Object.keys(value).filter((name) => !FIELDS.has(name));
  const faults = [
    ...missing.map((name) => `must have required property '${name}'`),
    ...extra.slice(0, EXTRAS_NAMED_MAX).map((name) => `at root: unexpected property '${printableLine(name, 64)}'`),
    ...(type === undefined || type === 'req' ? [] : ['at /type: must be equal to constant']),
    ...fieldFault('id', id, ID_CHARACTERS_MAX),
    ...fieldFault('method', method, METHOD_CHARACTERS_MAX),
  ];
  if (faults.length > 0) return { id: answerableId(id), fault: faults.join('; ') };
  return {
    frame: { type: 'req', id: id as string, method: method as string, ...(params === undefined ? {} : { params }) },
  };
}

function fieldFault(name: string, value: unknown, charactersMax: number): readonly string[] {
  if (value === undefined) return [];
  if (typeof value !== 'string') return [`at /${name}: must be string`];
  if (value === '') return [`at /${name}: must not have fewer than 1 characters`];
  return value.length <= charactersMax ? [] : [`at /${name}: must not have more than ${charactersMax} characters`];
}

/** The id comes back as it was given where it is one value; anything larger is not worth carrying back. */
function answerableId(id: unknown): unknown {
  if (typeof id === 'string') return id.slice(0, ID_CHARACTERS_MAX);
  return typeof id === 'number' || typeof id === 'boolean' ? id : null;
}
