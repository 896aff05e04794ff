import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '#base';
import type { ModelRequest } from '#contract';
import { asFailure } from './failure.ts';

const NOW = Date.UTC(2026, 10, 30, 12);
const KEY = 'sk-test-0123456789abcdef';
const who = {
  model: { provider: 'vendor', id: 'big-model' },
  access: { baseUrl: 'https://name:secret@api.vendor.test/v1?key=hidden', apiKey: KEY },
} as unknown as Pick<ModelRequest, 'model' | 'access'>;

/** An error as the SDK throws it for an HTTP answer. */
const http = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  Object.assign(new Error('Bad Request'), {
    name: 'AI_APICallError',
    statusCode: status,
    responseBody: typeof body === 'string' ? body : JSON.stringify(body),
    responseHeaders: headers,
    // What was sent is at hand in the SDK's error and must never be taken for the provider's words.
    requestBodyValues: { messages: [{ role: 'user', content: 'context overflow: prompt is too long' }] },
  });
const said = (status: number, message: string, more: object = {}, headers = {}) =>
  http(status, { error: { message, type: 'invalid_request_error', ...more } }, headers);

const overflows: readonly (readonly [string, unknown])[] = [
  ['prompt is too long', said(400, 'prompt is too long: 70001 tokens > 64000 maximum')],
  ['the code', said(400, 'no', { code: 'context_length_exceeded' })],
  ['the context window', said(400, 'input exceeds the context window')],
  ['input token count', said(400, 'input token count (70001) exceeds the maximum')],
  ['maximum prompt length', said(400, 'maximum prompt length is 64000')],
  ['reduce the length', said(400, 'reduce the length of the messages')],
  ['maximum context length', said(400, 'maximum context length is 64000 tokens')],
  ['available context size', said(400, 'exceeds the available context size')],
  ['greater than', said(400, 'greater than the context length')],
  ['the limit of a number', said(400, 'exceeds the limit of 64000')],
  ['window exceeds limit', said(400, 'context window exceeds limit')],
  ['too large for model', said(400, 'too large for model with 64000 maximum context length')],
  ['input is too long', said(400, 'Input is too long for requested model')],
  ['413 without a word', http(413, '')],
  ['wrapped in a 503', said(503, '{"error":{"message":"exceeds the model\'s maximum context length of 64000"}}')],
  [
    'wrapped in an object',
    http(503, { error: { error: { message: "exceeds the model's maximum context length of 64000" } } }),
  ],
  ['Chinese', said(400, '上下文过长')],
  ['limit with max_tokens', said(400, 'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000')],
  ['a range', said(400, 'Range of input length should be [1, 129024]')],
  ['plain text', http(400, 'prompt is too long')],
];
for (const [name, error] of overflows) {
  test(`E-01: overflow: ${name}`, () => assert.equal(asFailure(error, who, NOW).code, 'MODEL_CONTEXT_OVERFLOW'));
}

const others: readonly (readonly [string, unknown, string])[] = [
  ['429 too many tokens', said(429, 'Too many tokens, please wait'), 'MODEL_RATE_LIMITED'],
  ['429 per minute', said(429, 'tokens per minute limit'), 'MODEL_RATE_LIMITED'],
  ['max_tokens', said(400, 'max_tokens is too large'), 'MODEL_REQUEST_INVALID'],
  ['an image', said(400, 'image exceeds 5 MB maximum'), 'MODEL_REQUEST_INVALID'],
  ['a 500', said(500, 'internal error'), 'MODEL_OVERLOADED'],
  [
    'an echo of the person',
    http(422, { detail: [{ msg: 'bad field', input: 'prompt is too long' }] }),
    'MODEL_REQUEST_INVALID',
  ],
  ['a count of images', said(400, 'number of images exceeds the limit of 1000'), 'MODEL_REQUEST_INVALID'],
  ['a size', said(400, 'body exceeds the limit of 1048576 bytes'), 'MODEL_REQUEST_INVALID'],
];
for (const [name, error, code] of others) {
  test(`E-01: no overflow: ${name}`, () => assert.equal(asFailure(error, who, NOW).code, code));
}

const network = (code: string) =>
  Object.assign(new Error('Cannot connect to API'), { cause: Object.assign(new Error('x'), { code }) });
const codes: readonly (readonly [string, unknown, string])[] = [
  ['401', said(401, 'Incorrect API key provided'), 'MODEL_AUTH'],
  ['403', said(403, 'not allowed here'), 'MODEL_AUTH'],
  ["Gemini's bad key is a 400", said(400, 'API key not valid. Please pass a valid API key.'), 'MODEL_AUTH'],
  ['402', said(402, 'Insufficient Balance'), 'MODEL_BILLING'],
  [
    "Anthropic's empty account is a 400",
    said(400, 'Your credit balance is too low to access the API'),
    'MODEL_BILLING',
  ],
  ["OpenAI's is a 429", said(429, 'You exceeded your current quota', { code: 'insufficient_quota' }), 'MODEL_BILLING'],
  [
    "Gemini's free tier speaks of billing and comes back",
    said(429, 'You exceeded your current quota, please check your plan and billing details. Please retry in 34s.'),
    'MODEL_RATE_LIMITED',
  ],
  ['404', said(404, 'x'), 'MODEL_NOT_FOUND'],
  ['an unknown model as 400', said(400, 'The model `x` does not exist'), 'MODEL_NOT_FOUND'],
  ['Ollama', said(404, 'model "x" not found, try pulling it first'), 'MODEL_NOT_FOUND'],
  ['408', said(408, 'x'), 'MODEL_TIMEOUT'],
  ['504', http(504, '<html>'), 'MODEL_TIMEOUT'],
  ['503', said(503, 'x'), 'MODEL_OVERLOADED'],
  ['529', said(529, 'x'), 'MODEL_OVERLOADED'],
  ['policy', said(400, 'x', { code: 'content_policy_violation' }), 'MODEL_REFUSED'],
  ['refused connection', network('ECONNREFUSED'), 'MODEL_UNREACHABLE'],
  ['no such host', network('ENOTFOUND'), 'MODEL_UNREACHABLE'],
  ['no headers in time', network('UND_ERR_HEADERS_TIMEOUT'), 'MODEL_TIMEOUT'],
  ['a timeout signal', new DOMException('late', 'TimeoutError'), 'MODEL_TIMEOUT'],
  ['a body that broke', Object.assign(network('UND_ERR_SOCKET'), { statusCode: 200 }), 'MODEL_STREAM_CUT'],
  [
    'our own refusal',
    new Error('x', { cause: new GatewayError('ENV_REFUSED', 'private address') }),
    'MODEL_UNREACHABLE',
  ],
  ['in a stream: overloaded', { type: 'overloaded_error', message: 'Overloaded' }, 'MODEL_OVERLOADED'],
  ['in a stream: rate', { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'x' }, 'MODEL_RATE_LIMITED'],
  ['nothing known', undefined, 'MODEL_STREAM_CUT'],
];
for (const [name, error, code] of codes) {
  test(`M-33: ${name} → ${code}`, () => assert.equal(asFailure(error, who, NOW).code, code));
}

const waits: readonly (readonly [string, unknown, number | undefined])[] = [
  ['seconds', said(429, 'x', {}, { 'retry-after': '2' }), 2_000],
  ['fractions', said(429, 'x', {}, { 'retry-after': '0.25' }), 250],
  ['milliseconds win', said(429, 'x', {}, { 'retry-after': '2', 'retry-after-ms': '1500' }), 1_500],
  ['a date', said(429, 'x', {}, { 'retry-after': new Date(NOW + 90_000).toUTCString() }), 90_000],
  ['a date gone by', said(429, 'x', {}, { 'retry-after': new Date(NOW - 90_000).toUTCString() }), 0],
  ["Gemini's detail", said(429, 'x', { details: [{ '@type': 'RetryInfo', retryDelay: '34s' }] }), 34_000],
  ['hours', said(429, 'x', {}, { 'retry-after': '7200' }), 7_200_000],
  ['overload', said(529, 'x', {}, { 'retry-after': '5' }), 5_000],
  ['none', said(429, 'x'), undefined],
  ['nonsense', said(429, 'x', {}, { 'retry-after': 'soon' }), undefined],
];
for (const [name, error, expected] of waits) {
  test(`C-03: wait: ${name}`, () => assert.equal(asFailure(error, who, NOW).retryAfterMs, expected));
}

test('M-33: a message is for a person: no JSON, no key, no address with a secret', () => {
  const errors = [
    ...[...overflows, ...others, ...codes].map(([, error]) => error),
    said(400, `the key ${KEY} and Bearer abc.def are wrong for https://x.test/?key=topsecretvalue`),
    http(400, { error: { message: `{"nested": "${KEY}"}` } }),
  ];
  for (const error of errors) {
    const { message } = asFailure(error, who, NOW);
    assert.doesNotMatch(message, /[{}<>\n]|sk-test|secret|hidden|abc\.def/, message);
    assert.ok(message.length > 10 && message.length < 400, message);
  }
});

test('C-03: what the provider said of a bad request is passed on', () => {
  assert.equal(
    asFailure(said(400, 'invalid message 3'), who, NOW).message,
    'vendor did not accept the request (status 400): invalid message 3',
  );
});
