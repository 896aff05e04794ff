// The HTTP side: the OpenAI-compatible API on the hot path and off it, guards, limits, and the web chat's files.
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import OpenAI from 'openai';
import { GatewayError } from '../../src/base/index.ts';
import type { RunEvent, SessionKey } from '../../src/domain/index.ts';
import { openStage, SECRET, type Stage, start, text, turn } from './stage.ts';

const USAGE = {
  ...{ input: 10, output: 5, cacheRead: 3, cacheWrite: 2, totalTokens: 20 },
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const retry: RunEvent = { type: 'turn-retry', turn: 1, reason: 'MODEL_STREAM_CUT' };

type Asked = { readonly headers?: Readonly<Record<string, string>>; readonly [body: string]: unknown };
function post(stage: Stage, { headers = {}, ...body }: Asked = {}): Promise<Response> {
  return fetch(`${stage.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'reins', messages: [{ role: 'user', content: 'hi' }], ...body }),
  });
}
const get = (stage: Stage, path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
  fetch(`${stage.url}${path}`, { method, headers });
const bearer = { authorization: `Bearer ${SECRET}` };

/** Runs of this stage say these events, a turn of the event loop between each, and end with the answer. */
function answering(stage: Stage, events: readonly RunEvent[], end: Parameters<Stage['dispatch']['end']>[2]): void {
  stage.dispatch.onSubmit = ({ sessionKey, idempotencyKey }) => {
    const next = (index: number) => {
      const event = events[index];
      if (!event) return stage.dispatch.end(sessionKey, idempotencyKey, { usage: USAGE, ...end });
      stage.dispatch.tell(sessionKey, idempotencyKey, event);
      setImmediate(() => next(index + 1));
    };
    next(0);
  };
}

type Chunk = {
  choices: { delta: { role?: string; content?: string }; finish_reason: string | null }[];
  usage?: object;
};
async function chunksOf(response: Response): Promise<readonly (Chunk | { readonly error: Record<string, unknown> })[]> {
  const lines = (await response.text()).split('\n\n').filter((line) => line.startsWith('data: '));
  assert.equal(lines.at(-1), 'data: [DONE]');
  return lines.slice(0, -1).map((line) => JSON.parse(line.slice('data: '.length)));
}
const contentOf = (chunks: Awaited<ReturnType<typeof chunksOf>>) =>
  chunks.flatMap((chunk) => ('choices' in chunk ? (chunk.choices[0]?.delta.content ?? []) : []));

test('M-58: an answer as a whole: texts joined by a blank line, usage with the cache in it', async (t) => {
  const stage = await openStage(t);
  answering(stage, [start, turn(1), text('Looking.')], { texts: ['Looking.', 'Done.'] });
  const response = await post(stage, { headers: { 'idempotency-key': 'k1' }, max_tokens: 5, tools: [] });
  const body = (await response.json()) as Record<string, unknown>;
  assert.deepEqual(
    { ...body, created: 0 },
    {
      ...{ id: 'chatcmpl_k1', object: 'chat.completion', created: 0, model: 'reins' },
      choices: [{ index: 0, message: { role: 'assistant', content: 'Looking.\n\nDone.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 15, completion_tokens: 5, total_tokens: 20 },
    },
  );
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(response.headers.get('access-control-allow-origin'), null);
});

const streams: readonly {
  readonly name: string;
  readonly events: readonly RunEvent[];
  readonly end: Parameters<Stage['dispatch']['end']>[2];
  readonly pieces: readonly string[];
}[] = [
  {
    name: 'a piece for each delta',
    events: [start, turn(1), text('Hel'), text('lo')],
    end: { texts: ['Hello'] },
    pieces: ['Hel', 'lo'],
  },
  {
    name: 'messages joined by a blank line',
    events: [start, turn(1), text('Looking.'), turn(2), text('Done.', 2)],
    end: { texts: ['Looking.', 'Done.'] },
    pieces: ['Looking.', '\n\nDone.'],
  },
  {
    name: 'an answer that is asked for again goes on where it is the same',
    events: [start, turn(1), text('Hello, '), retry, text('Hello, '), text('world')],
    end: { texts: ['Hello, world'] },
    pieces: ['Hello, ', 'world'],
  },
  { name: 'a run without deltas', events: [start], end: { texts: ['Whole.'] }, pieces: ['Whole.'] },
  { name: 'an empty answer', events: [start], end: { texts: [] }, pieces: [] },
];
for (const { name, events, end, pieces } of streams) {
  test(`M-12: streamed over HTTP: ${name}`, async (t) => {
    const stage = await openStage(t);
    answering(stage, events, end);
    const response = await post(stage, { stream: true, stream_options: { include_usage: true } });
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    const chunks = await chunksOf(response);
    assert.deepEqual(contentOf(chunks), pieces);
    const [first, last, finish] = [chunks[0], chunks.at(-1), chunks.at(-2)] as readonly Chunk[];
    assert.deepEqual(first?.choices[0]?.delta, { role: 'assistant' });
    assert.equal(finish?.choices[0]?.finish_reason, 'stop');
    assert.deepEqual(last?.usage, { prompt_tokens: 15, completion_tokens: 5, total_tokens: 20 });
  });
}

test('M-12: a run that fails in a stream says why, in a chunk that clients show', async (t) => {
  const stage = await openStage(t);
  const error = { code: 'MODEL_AUTH', message: 'The key was refused', next: 'Check the key.' } as const;
  answering(stage, [start, turn(1), text('Half')], { outcome: 'failed', error, texts: ['Half'] });
  const chunks = await chunksOf(await post(stage, { stream: true }));
  const fault = chunks.find((chunk) => 'error' in chunk);
  assert.deepEqual(fault, {
    error: { message: 'The key was refused. Check the key.', type: 'api_error', code: 'MODEL_AUTH' },
  });
  assert.deepEqual(contentOf(chunks), ['Half']);
});

const failures: readonly [
  code: 'MODEL_AUTH' | 'MODEL_OVERLOADED' | 'GATEWAY_STOPPING',
  status: number,
  retry: string | null,
][] = [
  ['MODEL_AUTH', 500, 'false'],
  ['MODEL_OVERLOADED', 500, null],
  ['GATEWAY_STOPPING', 503, null],
];
for (const [code, status, again] of failures) {
  test(`M-58: a run that fails with ${code} is ${status}${again ? ', not to be tried again' : ''}`, async (t) => {
    const stage = await openStage(t);
    answering(stage, [start], { outcome: 'failed', error: { code, message: 'Why' } });
    const response = await post(stage);
    assert.equal(response.status, status);
    assert.equal(response.headers.get('x-should-retry'), again);
    assert.deepEqual(await response.json(), { error: { message: 'Why', type: 'api_error', code } });
  });
}

test('M-58: a message that is not taken is refused before any stream begins', async (t) => {
  const stage = await openStage(t);
  stage.dispatch.refusal = new GatewayError('GATEWAY_BUSY', 'Too much at once', { next: 'Wait.' });
  const response = await post(stage, { stream: true });
  assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '2']);
  assert.equal(((await response.json()) as { error: { code: string } }).error.code, 'GATEWAY_BUSY');
});

test('M-58: the official client, streamed and not, and its list of models', async (t) => {
  const stage = await openStage(t);
  const openai = new OpenAI({ baseURL: `${stage.url}/v1`, apiKey: SECRET, maxRetries: 0 });
  answering(stage, [start, turn(1), text('Hel'), text('lo')], { texts: ['Hello'] });
  const messages = [{ role: 'user' as const, content: 'hi' }];
  const plain = await openai.chat.completions.create({ model: 'openclaw', messages });
  assert.equal(plain.choices[0]?.message.content, 'Hello');
  let streamed = '';
  for await (const chunk of await openai.chat.completions.create({ model: 'reins/research', messages, stream: true }))
    streamed += chunk.choices[0]?.delta.content ?? '';
  assert.equal(streamed, 'Hello');
  assert.equal(stage.dispatch.submitted[1]?.agent, 'research');
  const ids = [];
  for await (const { id } of openai.models.list()) ids.push(id);
  assert.deepEqual(ids, ['reins', 'reins/default', 'reins/main', 'reins/research']);
  await assert.rejects(openai.chat.completions.create({ model: 'gpt-4o', messages }), /400 Invalid `model`/);
});

test('M-16: a caller that leaves stops nothing; the same key finds the answer', async (t) => {
  const stage = await openStage(t);
  const leave = new AbortController();
  const submitted = Promise.withResolvers<SessionKey>();
  stage.dispatch.onSubmit = ({ sessionKey }) => submitted.resolve(sessionKey);
  const ask = (signal?: AbortSignal) =>
    fetch(`${stage.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: JSON.stringify({ model: 'reins', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
      ...(signal ? { signal } : {}),
    });
  const first = ask(leave.signal).then(
    (response) => response.text(),
    () => 'left',
  );
  const key = await submitted.promise;
  leave.abort();
  assert.equal(await first, 'left');
  stage.dispatch.tell(key, 'k', start, turn(1), text('Still'), text(' here'));
  stage.dispatch.end(key, 'k', { texts: ['Still here'] });
  assert.deepEqual(stage.dispatch.aborted, []);
  assert.deepEqual(contentOf(await chunksOf(await ask())), ['Still here']);
  assert.equal(stage.dispatch.submitted.length, 1);
});

const asked: readonly {
  readonly name: string;
  readonly ask: Asked;
  readonly key: string | RegExp;
  readonly more?: Readonly<Record<string, unknown>>;
}[] = [
  { name: 'a session of its own', ask: {}, key: /^agent:main:openai:[0-9a-f-]{36}$/ },
  { name: 'a user', ask: { user: 'Alice' }, key: 'agent:main:openai-user:alice' },
  {
    name: 'a user of another agent',
    ask: { user: 'a', model: 'openclaw/research' },
    key: 'agent:research:openai-user:a',
  },
  { name: 'an alias', ask: { user: 'a', model: 'agent:research' }, key: 'agent:research:openai-user:a' },
  { name: 'another alias', ask: { user: 'a', model: 'openclaw:research' }, key: 'agent:research:openai-user:a' },
  { name: 'the default by name', ask: { user: 'a', model: 'reins/default' }, key: 'agent:main:openai-user:a' },
  {
    name: 'an agent by header',
    ask: { user: 'a', headers: { 'x-reins-agent-id': 'research' } },
    key: 'agent:research:openai-user:a',
  },
  { name: 'a session key as it is given', ask: { headers: { 'x-openclaw-session-key': 'mcp-1' } }, key: 'mcp-1' },
  {
    name: 'our name for it',
    ask: { user: 'a', headers: { 'x-reins-session-key': 'agent:research:x' } },
    key: 'agent:research:x',
  },
  {
    name: 'system, history, model and thinking',
    ask: {
      user: 'a',
      reasoning_effort: 'low',
      headers: { 'x-openclaw-model': 'world/big' },
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'one' },
        { role: 'assistant', content: [{ type: 'text', text: 'two' }] },
        { role: 'tool', content: 'x', tool_call_id: 'c' },
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
      ],
    },
    key: 'agent:main:openai-user:a',
    more: {
      model: 'world/big',
      thinking: 'low',
      extraSystem: 'Be kind.\n\nBe brief.',
      history: [
        { role: 'user', text: 'one' },
        { role: 'assistant', text: 'two' },
      ],
    },
  },
];
for (const { name, ask, key, more = {} } of asked) {
  test(`M-6: the envelope of an HTTP request: ${name}`, async (t) => {
    const stage = await openStage(t);
    answering(stage, [start], { texts: ['ok'] });
    assert.equal((await post(stage, ask)).status, 200);
    const [envelope] = stage.dispatch.submitted;
    if (key instanceof RegExp) assert.match(envelope?.sessionKey ?? '', key);
    else assert.equal(envelope?.sessionKey, key);
    assert.deepEqual([envelope?.text, envelope?.channel, envelope?.options], ['hi', 'http', more]);
    assert.deepEqual(envelope?.sender, { id: 'operator', owner: true });
  });
}

const PIXEL = 'iVBORw0KGgo=';
const image = (url: unknown) => ({
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
});
test('M-34: pictures come in as data, never by address', async (t) => {
  const stage = await openStage(t);
  answering(stage, [start], { texts: ['ok'] });
  assert.equal((await post(stage, image(`data:image/png;base64,${PIXEL}`))).status, 200);
  assert.deepEqual(stage.dispatch.submitted[0]?.images, [{ type: 'image', data: PIXEL, mimeType: 'image/png' }]);
  for (const url of [
    'https://evil.example/a.png',
    'data:text/html;base64,AAAA',
    'data:image/png;base64,%%%',
    'file:///etc/passwd',
    5,
  ]) {
    const response = await post(stage, image(url));
    assert.equal(response.status, 400, String(url));
    assert.match(await response.text(), /data: URL/);
  }
  assert.equal(stage.dispatch.submitted.length, 1);
});

const bodies: readonly [name: string, body: string, message: RegExp][] = [
  ['no JSON', '{', /JSON/],
  ['no object', '[]', /must be a JSON object/],
  ['no messages', '{"model":"reins"}', /^Missing user message in `messages`\.$/],
  ['no message of a user', '{"model":"reins","messages":[]}', /^Missing user message in `messages`\.$/],
  ['a model of a vendor', '{"model":"gpt-4o","messages":[{"role":"user","content":"x"}]}', /^Invalid `model`\. Use/],
  [
    'an agent that is not there',
    '{"model":"reins/ghost","messages":[{"role":"user","content":"x"}]}',
    /no agent "ghost"/,
  ],
  ['B14: __proto__', '{"__proto__":{"isOwner":true},"messages":[]}', /"__proto__" is not allowed/],
  ['B14: constructor', '{"messages":[{"constructor":{"prototype":{"polluted":1}}}]}', /"constructor" is not allowed/],
  ['T22: too deep', `${'['.repeat(70)}${']'.repeat(70)}`, /deeper/],
];
for (const [name, body, message] of bodies) {
  test(`M-58: a body is refused with 400: ${name}`, async (t) => {
    const stage = await openStage(t);
    const headers = { ...bearer, 'content-type': 'application/json' };
    const response = await fetch(`${stage.url}/v1/chat/completions`, { method: 'POST', headers, body });
    const { error } = (await response.json()) as { error: { message: string; type: string } };
    assert.deepEqual([response.status, error.type], [400, 'invalid_request_error']);
    assert.match(error.message, message);
    assert.deepEqual(stage.dispatch.submitted, []);
    assert.equal(({} as Record<string, unknown>)['polluted'] ?? ({} as Record<string, unknown>)['isOwner'], undefined);
  });
}

/** A POST whose body is sent in pieces until the gateway answers. */
function flood(stage: Stage, headers: Readonly<Record<string, string>>): Promise<{ status: number; sent: number }> {
  return new Promise((resolve, reject) => {
    const piece = Buffer.alloc(256 * 1024, 'x');
    let sent = 0;
    let isOver = false;
    const call = request(`${stage.url}/v1/chat/completions`, { method: 'POST', headers }, (response) => {
      isOver = true;
      response.resume();
      resolve({ status: response.statusCode ?? 0, sent });
      call.destroy();
    });
    call.on('error', (error) => (isOver ? undefined : reject(error)));
    const more = () => {
      if (isOver || sent > 64 * 1024 * 1024) return;
      sent += piece.length;
      call.write(piece, () => setImmediate(more));
    };
    more();
  });
}
test('T21: a body past its bound is refused while it comes, and the caller hears of it', async (t) => {
  const stage = await openStage(t);
  const { status, sent } = await flood(stage, { ...bearer, 'content-type': 'application/json' });
  assert.equal(status, 413);
  assert.ok(sent < 40 * 1024 * 1024, `${sent}`);
  const declared = { ...bearer, 'content-type': 'application/json', 'content-length': String(30_000_000) };
  assert.equal((await flood(stage, declared)).status, 413);
  assert.equal((await flood(stage, { 'content-type': 'application/json' })).status, 401);
  assert.equal((await get(stage, '/healthz')).status, 200);
});

test('T21: a caller that leaves in the middle of its body is no error of the gateway', async (t) => {
  const stage = await openStage(t);
  const raw = connect(stage.port, '127.0.0.1');
  raw.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${stage.port}\r\nAuthorization: Bearer ${SECRET}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a`,
    () => setImmediate(() => raw.destroy()),
  );
  while (!stage.logged.some(({ message }) => /left before/.test(message))) await new Promise(setImmediate);
  assert.deepEqual(
    stage.logged.filter(({ level }) => level === 'error'),
    [],
  );
});

const doors: readonly {
  readonly name: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly body?: RegExp;
  readonly header?: readonly [name: string, value: string];
}[] = [
  {
    name: 'alive',
    path: '/health',
    status: 200,
    body: /^\{"ok":true,"status":"live"\}$/,
    header: ['cache-control', 'no-store'],
  },
  { name: 'alive, by its other name', path: '/healthz', status: 200 },
  { name: 'alive, without a body', path: '/healthz', method: 'HEAD', status: 200, body: /^$/ },
  { name: 'alive is read only', path: '/healthz', method: 'POST', status: 405, header: ['allow', 'GET, HEAD'] },
  { name: 'ready', path: '/readyz', status: 200, body: /"ready":true,"failing":\[\]/ },
  { name: 'models need a token', path: '/v1/models', status: 401, header: ['www-authenticate', 'Bearer'] },
  { name: 'a token in the query is none', path: `/v1/models?token=${SECRET}`, status: 401 },
  { name: 'basic auth is none', path: '/v1/models', headers: { authorization: `Basic ${SECRET}` }, status: 401 },
  {
    name: 'one model',
    path: '/v1/models/openclaw%2Fmain',
    headers: bearer,
    status: 200,
    body: /"id":"openclaw\/main"/,
  },
  { name: 'no such model', path: '/v1/models/gpt', headers: bearer, status: 400, body: /Invalid model id\./ },
  { name: 'the method comes before the token', path: '/v1/chat/completions', status: 405, header: ['allow', 'POST'] },
  { name: 'no preflight', path: '/v1/chat/completions', method: 'OPTIONS', status: 405 },
  { name: 'B04: no type', path: '/v1/chat/completions', method: 'POST', headers: bearer, status: 415 },
  { name: 'an API of others', path: '/api/x', status: 404, body: /^Not Found$/ },
  { name: 'tools come later', path: '/tools/invoke', method: 'POST', status: 404 },
  { name: 'config needs a token', path: '/__openclaw/control-ui-config.json', status: 401 },
  {
    name: 'config',
    path: '/__openclaw/control-ui-config.json',
    headers: bearer,
    status: 200,
    body: /"assistantName":"main"/,
  },
  { name: 'B01: a foreign page', path: '/healthz', headers: { origin: 'https://evil.example' }, status: 403 },
  { name: 'B07: a forged address', path: '/v1/models', headers: { 'x-forwarded-for': '127.0.0.1' }, status: 401 },
];
for (const { name, path, method = 'GET', headers = {}, status, body, header } of doors) {
  test(`M-58: HTTP: ${name}`, async (t) => {
    const stage = await openStage(t);
    const response = await get(stage, path, headers, method);
    assert.equal(response.status, status);
    if (body) assert.match(await response.text(), body);
    if (header) assert.equal(response.headers.get(header[0]), header[1]);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
  });
}

test('M-58: the API is off unless the config turns it on', async (t) => {
  const stage = await openStage(t, { chatCompletions: false });
  assert.equal((await post(stage)).status, 404);
  assert.equal((await get(stage, '/v1/models', bearer)).status, 404);
});

test('B02: only names of ours are answered to', async (t) => {
  const stage = await openStage(t, { allowedHosts: ['gateway.example'], allowedOrigins: ['https://chat.example'] });
  const statusFor = (host: string) =>
    new Promise<number>((resolve, reject) => {
      request(`${stage.url}/healthz`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on('error', reject)
        .end();
    });
  for (const host of ['localhost', `LOCALHOST:${stage.port}`, '[::1]', 'gateway.example:8443', 'chat.example'])
    assert.equal(await statusFor(host), 200, host);
  for (const host of [
    'rebind.evil.example',
    'localhost.evil.example',
    'localhost.',
    '127.1',
    'user@localhost',
    '127.0.0.1:x',
    '0.0.0.0',
  ])
    assert.equal(await statusFor(host), 421, host);
});

test('M-59: the web chat: the page for client routes, files by their names only, kept by their tags', async (t) => {
  const stage = await openStage(t);
  const missing = await get(stage, '/');
  assert.deepEqual([missing.status, (await missing.text()).includes('npm run build')], [503, true]);
  await mkdir(join(stage.uiFolder, 'assets'));
  await writeFile(join(stage.uiFolder, 'index.html'), '<!doctype html><p>page');
  await writeFile(join(stage.uiFolder, 'assets', 'app-1a2b.js'), 'void 0;');
  for (const path of ['/', '/chat', '/sessions/agent:main:main']) {
    const page = await get(stage, path);
    assert.deepEqual([page.status, await page.text()], [200, '<!doctype html><p>page'], path);
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'self'.*frame-ancestors 'none'/);
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.ok(
      policy.includes(`connect-src 'self' ws://127.0.0.1:${stage.port} wss://127.0.0.1:${stage.port};`),
      policy,
    );
    assert.equal(page.headers.get('x-frame-options'), 'DENY');
    assert.equal(page.headers.get('cache-control'), 'no-cache');
  }
  const asset = await get(stage, '/assets/app-1a2b.js');
  assert.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  assert.match(asset.headers.get('content-type') ?? '', /^text\/javascript/);
  const again = await get(stage, '/assets/app-1a2b.js', { 'if-none-match': asset.headers.get('etag') ?? '' });
  assert.equal(again.status, 304);
  await writeFile(join(stage.uiFolder, '..', 'canary.txt'), 'CANARY');
  t.after(() => rm(join(stage.uiFolder, '..', 'canary.txt'), { force: true }));
  for (const path of [
    '/assets/none.js',
    '/..%2fcanary.txt',
    '/%2e%2e/canary.txt',
    '/assets/..%2f..%2fcanary.txt',
    '/%00.js',
    '/%ff.js',
  ]) {
    const response = await get(stage, path);
    assert.doesNotMatch(await response.text(), /CANARY/, path);
    assert.equal(response.status, 404, path);
  }
  const leaked = await get(stage, `/?token=${SECRET}`);
  assert.equal(leaked.status, 400);
});

test('M-58: an answer under way over HTTP ends in order when the gateway goes down', async (t) => {
  const stage = await openStage(t);
  const submitted = Promise.withResolvers<SessionKey>();
  stage.dispatch.onSubmit = ({ sessionKey }) => submitted.resolve(sessionKey);
  const answer = post(stage, { stream: true, headers: { 'idempotency-key': 'k' } });
  const key = await submitted.promise;
  stage.dispatch.tell(key, 'k', start, turn(1), text('Half'));
  const response = await answer;
  const closed = stage.gateway.close('stopping');
  const error = { code: 'GATEWAY_STOPPING', message: 'The gateway is going down' } as const;
  stage.dispatch.end(key, 'k', { outcome: 'failed', error, texts: ['Half'] });
  const chunks = await chunksOf(response);
  assert.ok(chunks.some((chunk) => 'error' in chunk && chunk.error['code'] === 'GATEWAY_STOPPING'));
  await stage.clock.advance(0);
  await closed;
});

test('M-58: a port that is taken is one clear line', async (t) => {
  const stage = await openStage(t);
  await assert.rejects(openStage(t, { port: stage.port }), (error: GatewayError) => {
    assert.equal(error.code, 'PORT_IN_USE');
    assert.match(error.message, /^Port \d+ is already in use$/);
    return true;
  });
});
