import { type GatewayError, isGatewayError, isRecord } from '#base';

/** What can be known of an error that the SDK threw or put into its stream, whatever its class. */
export type ProviderError = {
  /** The HTTP status, or the one that the provider's own error type stands for. */
  readonly status: number | undefined;
  /** The provider's words: messages, codes and types, joined by line feeds. Never an echo of the request. */
  readonly text: string;
  /** The best single sentence of them. */
  readonly sentence: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** System and network codes of the error and its causes, such as `ECONNREFUSED`. */
  readonly networkCodes: readonly string[];
  /** A refusal of our own, for instance by the guarded fetch. */
  readonly own: GatewayError | undefined;
  readonly timedOut: boolean;
  /** The body was good until it could no longer be read. */
  readonly responseBegan: boolean;
};

const TEXT_MAX = 4_000;
const WORDS_MAX = 24;
const DEPTH_MAX = 6;
/** Keys under which providers put their words. Others may hold a copy of what they were sent. */
const WORD_KEYS = [
  'message',
  'msg',
  'detail',
  'reason',
  'code',
  'type',
  'status',
  'title',
  'error_description',
] as const;
const INNER_KEYS = ['error', 'errors', 'detail', 'details', 'cause', 'metadata', 'raw', 'data', 'innererror'] as const;

export function readProviderError(error: unknown): ProviderError {
  const chain = causesOf(error);
  const call = chain.find((e) => isRecord(e) && (typeof e['statusCode'] === 'number' || 'responseBody' in e));
  const source = isRecord(call) ? call : isRecord(error) ? error : {};
  const words = wordsOf(source, error);
  const status = typeof source['statusCode'] === 'number' ? source['statusCode'] : statusOfType(words);
  return {
    status: status === 200 ? undefined : status,
    text: words.join('\n').slice(0, TEXT_MAX),
    sentence: words.find((word) => /\s/.test(word) || /[^\x20-\x7e]/.test(word)) ?? words[0] ?? '',
    headers: isRecord(source['responseHeaders']) ? (source['responseHeaders'] as Record<string, string>) : {},
    networkCodes: chain.flatMap((e) => (isRecord(e) && typeof e['code'] === 'string' ? [e['code']] : [])),
    own: chain.find((e) => isGatewayError(e)),
    timedOut: chain.some((e) => isRecord(e) && e['name'] === 'TimeoutError'),
    responseBegan: status === 200,
  };
}

function causesOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let e = error; e !== undefined && e !== null && chain.length < DEPTH_MAX; ) {
    chain.push(e);
    e = typeof e === 'object' && 'cause' in e ? e.cause : undefined;
  }
  return chain;
}

function wordsOf(source: Readonly<Record<string, unknown>>, error: unknown): readonly string[] {
  const words: string[] = [];
  const body = source['responseBody'];
  if (typeof body === 'string') {
    if (body.trim() !== '') collect(parsed(body) ?? body.slice(0, 2_000), words, 0);
  } else if (error instanceof Error && error.name.includes('JSONParse')) {
    // The SDK quotes the event that it could not read, and that may be the model's own words.
    words.push('JSON parsing failed');
  } else if (error instanceof Error && isRecord(source['value'])) {
    // The SDK could not read an event: what the event says is more than the SDK's report on it.
    collect(source['value'], words, 0);
  } else collect(isRecord(source['data']) && !('message' in source) ? source['data'] : source, words, 0);
  return words;
}

function collect(value: unknown, words: string[], depth: number): void {
  if (words.length >= WORDS_MAX || depth > DEPTH_MAX) return;
  if (typeof value === 'string') {
    const inner = /^\s*[[{]/.test(value) ? parsed(value) : undefined;
    if (inner !== undefined) collect(inner, words, depth + 1);
    else if (value.trim() !== '') words.push(value.trim().slice(0, TEXT_MAX));
  } else if (Array.isArray(value)) {
    for (const item of value.slice(0, 5)) if (typeof item === 'object') collect(item, words, depth + 1);
  } else if (isRecord(value) || value instanceof Error) {
    const fields = value as Readonly<Record<string, unknown>>;
    for (const key of WORD_KEYS) {
      const word = fields[key];
      if (typeof word === 'string') collect(word, words, depth + 1);
      else if (typeof word === 'number') words.push(String(word));
    }
    for (const key of INNER_KEYS) {
      const inner = fields[key];
      if (typeof inner === 'object' || (typeof inner === 'string' && key !== 'detail'))
        collect(inner, words, depth + 1);
    }
  }
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    // Not JSON: an HTML page of a proxy, or plain words.
    return undefined;
  }
}

/** Inside a stream there is no status line; the error's type says the same. */
const TYPE_STATUS: Readonly<Record<string, number>> = {
  authentication_error: 401,
  invalid_api_key: 401,
  UNAUTHENTICATED: 401,
  billing_error: 402,
  insufficient_quota: 402,
  permission_error: 403,
  PERMISSION_DENIED: 403,
  not_found_error: 404,
  model_not_found: 404,
  NOT_FOUND: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  RESOURCE_EXHAUSTED: 429,
  invalid_request_error: 400,
  INVALID_ARGUMENT: 400,
  api_error: 500,
  server_error: 500,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  service_unavailable: 503,
  overloaded_error: 529,
  overloaded: 529,
};

function statusOfType(words: readonly string[]): number | undefined {
  for (const word of words) {
    if (Object.hasOwn(TYPE_STATUS, word)) return TYPE_STATUS[word];
    if (/^[45]\d\d$/.test(word)) return Number(word);
  }
  return undefined;
}
