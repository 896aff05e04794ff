// Who may come in, and how far: rows of the list of bad inputs, each with its harmless twin, against the real gateway.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import { type House, openHouse, TOKEN } from './house.ts';

type Answer = { readonly status: number; readonly headers: Record<string, unknown>; readonly body: string };

/** One HTTP request with exactly these headers. */
function http(
  house: House,
  path: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port: house.port, path, method, headers: { host: `127.0.0.1:${house.port}`, ...headers } },
      (response) => {
        let text = '';
        response.on('data', (part) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

const connectFrame = (more: Record<string, unknown> = {}) => ({
  type: 'req',
  id: '1',
  method: 'connect',
  params: {
    minProtocol: 3,
    maxProtocol: 4,
    client: { id: 'gateway-client', version: '1', platform: 'test', mode: 'backend' },
    role: 'operator',
    scopes: ['operator.read', 'operator.write', 'operator.admin'],
    auth: { token: TOKEN },
    ...more,
  },
});

type Talk = {
  readonly status?: number;
  readonly frames: readonly Record<string, unknown>[];
  readonly code?: number;
  readonly reason: string;
};

/** Opens a socket, sends the frames, and listens until it is closed or `enough` frames came. */
function talk(
  house: House,
  frames: readonly (object | string)[],
  { headers = {}, enough = 2 }: { headers?: Record<string, string>; enough?: number } = {},
): Promise<Talk> {
  return new Promise((resolve) => {
    const seen: Record<string, unknown>[] = [];
    const socket = new WebSocket(`ws://127.0.0.1:${house.port}/`, { headers });
    socket.on('unexpected-response', (_request, response) =>
      resolve({ status: response.statusCode ?? 0, frames: seen, reason: '' }),
    );
    socket.on('error', () => undefined);
    socket.on('open', () => {
      for (const frame of frames) socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
    });
    socket.on('message', (data) => {
      seen.push(JSON.parse(String(data)));
      if (seen.length >= enough) socket.close(1000);
    });
    socket.on('close', (code, reason) => resolve({ frames: seen, code, reason: String(reason) }));
  });
}

const isHello = (frame: Record<string, unknown> | undefined) =>
  (frame?.['payload'] as { type?: string } | undefined)?.type === 'hello-ok';
const alive = async (house: House) => assert.equal((await http(house, '/healthz')).body, '{"ok":true,"status":"live"}');

test('B01: a page of another site is refused although its token is right', async (t) => {
  const house = await openHouse(t);
  const evil = await talk(house, [connectFrame()], { headers: { origin: 'https://evil.example' } });
  assert.equal(evil.status, 403);
  assert.deepEqual(evil.frames, []);
  for (const headers of [{}, { origin: house.url }] as Record<string, string>[]) {
    const fine = await talk(house, [connectFrame()], { headers });
    assert.ok(isHello(fine.frames[1]), JSON.stringify(fine));
  }
  assert.equal((await talk(house, [connectFrame()], { headers: { origin: 'null' } })).status, 403);
});

test('B02: a rebound name is refused before any frame is read', async (t) => {
  const house = await openHouse(t);
  const name = `rebind.evil.example:${house.port}`;
  const evil = await talk(house, [connectFrame()], { headers: { host: name, origin: `http://${name}` } });
  assert.ok(evil.status === 421 || evil.status === 403);
  assert.equal((await http(house, '/', { headers: { host: name } })).status, 421);
  assert.ok(isHello((await talk(house, [connectFrame()], { headers: { host: `localhost:${house.port}` } })).frames[1]));
});

test('B05: anything before connect is an error and the end', async (t) => {
  const house = await openHouse(t);
  const { frames, code, reason } = await talk(house, [{ type: 'req', id: '1', method: 'config.get', params: {} }], {
    enough: 9,
  });
  assert.equal(code, 1008);
  assert.match(reason, /first request must be connect/);
  assert.equal((frames[1] as { ok?: boolean }).ok, false);
  assert.doesNotMatch(JSON.stringify(frames), /story-token|providers/);
  await alive(house);
});

test('B06: a secret without a device gives no admin and no pairing over a page', async (t) => {
  const house = await openHouse(t);
  const client = { id: 'webchat-ui', version: '1', platform: 'test', mode: 'webchat' };
  const asked = { client, scopes: ['operator.admin', 'operator.pairing', 'operator.read'] };
  const { frames } = await talk(
    house,
    [connectFrame(asked), { type: 'req', id: '2', method: 'sessions.delete', params: { key: 'x' } }],
    { enough: 4 },
  );
  const hello = frames.find(isHello) as { payload: { auth: { scopes: string[] } } } | undefined;
  assert.deepEqual(hello?.payload.auth.scopes, ['operator.read']);
  assert.match(JSON.stringify(frames.find((f) => f['id'] === '2')), /missing scope: operator.admin/);
  const operator = await talk(house, [
    { ...connectFrame(asked), params: { ...connectFrame(asked).params, client: { ...client, mode: 'operator' } } },
  ]);
  assert.ok(!operator.frames.some(isHello), 'an unknown mode is refused');
});

test('B07, B08: forwarding headers make nobody local, and failures count by address', async (t) => {
  const house = await openHouse(t);
  const forged = { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '::1', forwarded: 'for=127.0.0.1' };
  assert.equal((await http(house, '/v1/models', { headers: forged })).status, 401);
  const wrong = { authorization: 'Bearer wrong-wrong-wrong', 'x-forwarded-for': '203.0.113.9' };
  const statuses = [];
  for (let i = 0; i < 12; i++) statuses.push((await http(house, '/v1/models', { headers: wrong })).status);
  // The forged request without a token was the first of the ten.
  assert.deepEqual(statuses, [...Array(9).fill(401), 429, 429, 429]);
  const locked = await http(house, '/v1/models', { headers: { authorization: `Bearer ${TOKEN}` } });
  assert.equal(locked.status, 429);
  assert.ok(Number(locked.headers['retry-after']) > 0);
  await alive(house);
});

test('B07 control: the right token is let in, the wrong one learns nothing', async (t) => {
  const house = await openHouse(t);
  const right = await http(house, '/v1/models', { headers: { authorization: `Bearer ${TOKEN}` } });
  assert.equal(right.status, 200);
  assert.deepEqual(
    (JSON.parse(right.body) as { data: { id: string }[] }).data.map((m) => m.id),
    ['reins', 'reins/default', 'reins/main'],
  );
  const bodies = await Promise.all([
    http(house, '/v1/models'),
    http(house, '/v1/models', { headers: { authorization: 'Bearer x' } }),
    http(house, '/v1/models', { headers: { authorization: `Basic ${TOKEN}` } }),
  ]);
  for (const { status, body } of bodies)
    assert.deepEqual([status, JSON.parse(body)], [401, { error: { message: 'Unauthorized', type: 'unauthorized' } }]);
  assert.equal((await http(house, `/?token=${TOKEN}`)).status, 400, 'a credential in the query is refused');
});

test('B10: a long body of an unknown caller is not waited for', async (t) => {
  const house = await openHouse(t);
  const socket = connect(house.port, '127.0.0.1');
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${house.port}\r\nContent-Type: application/json\r\nContent-Length: 200000000\r\n\r\n{`,
  );
  let text = '';
  socket.on('data', (part) => {
    text += part;
  });
  await once(socket, 'close');
  assert.match(text, /^HTTP\/1\.1 401/);
  await alive(house);
});

test('B11: a frame over 64 KiB before connect is closed unparsed', async (t) => {
  const house = await openHouse(t);
  const big = await talk(house, [JSON.stringify({ a: 'x'.repeat(70_000) })], { enough: 9 });
  assert.ok(big.code === 1009 || big.code === 1008);
  assert.equal(big.frames.length, 1, 'only the challenge came');
  const fine = connectFrame({
    pathEnv: 'p'.repeat(8_000),
    permissions: Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`permission-${i}`, true])),
  });
  assert.ok(JSON.stringify(fine).length > 50_000);
  assert.ok(isHello((await talk(house, [fine])).frames[1]));
});

test('B12: what a client calls itself cannot pose as a log line', async (t) => {
  const house = await openHouse(t);
  await talk(house, [
    connectFrame({
      userAgent: 'x\u001b]0;owned\u0007\n[gateway] auth ok user=admin',
      client: { id: 'a\u202eb', version: '1', platform: 'x', mode: 'cli' },
    }),
  ]);
  const { readFile } = await import('node:fs/promises');
  const log = await readFile(`${house.stateDir}/logs/gateway.log`, 'utf8');
  for (const line of log.split('\n').filter((l) => l !== '')) {
    assert.doesNotThrow(() => JSON.parse(line));
    assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
  }
});

test('B14: keys that reach a prototype are refused', async (t) => {
  const house = await openHouse(t);
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const body =
    '{"model":"reins","messages":[{"role":"user","content":"hi"}],"__proto__":{"isOwner":true},"constructor":{"prototype":{"polluted":1}}}';
  assert.equal((await http(house, '/v1/chat/completions', { method: 'POST', headers, body })).status, 400);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  assert.equal(({} as Record<string, unknown>)['isOwner'], undefined);
  assert.equal(house.model.count, 0);
  const frames = (
    await talk(house, [connectFrame(), '{"type":"req","id":"2","method":"health","params":{"__proto__":{"a":1}}}'], {
      enough: 4,
    })
  ).frames;
  assert.match(JSON.stringify(frames.find((f) => f['ok'] === false)), /invalid request frame/);
  const deep = `${'['.repeat(100)}${']'.repeat(100)}`;
  assert.equal((await http(house, '/v1/chat/completions', { method: 'POST', headers, body: deep })).status, 400);
});

test('B04: text that a form could post runs nothing', async (t) => {
  const house = await openHouse(t);
  const body = '{"model":"reins","messages":[{"role":"user","content":"hi"}]}';
  const post = (headers: Record<string, string>) =>
    http(house, '/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      body,
    });
  assert.equal((await post({ 'content-type': 'text/plain' })).status, 415);
  assert.equal((await post({ 'content-type': 'application/json', origin: 'https://evil.example' })).status, 403);
  assert.equal(
    (await http(house, '/v1/chat/completions', { method: 'OPTIONS', headers: { origin: house.url } })).status,
    405,
  );
  assert.equal(house.model.count, 0);
  const fine = await post({ 'content-type': 'application/json' });
  assert.equal(fine.status, 200);
  assert.equal(fine.headers['access-control-allow-origin'], undefined);
});

const handshakes = [
  {
    name: 'a wrong token',
    params: { auth: { token: 'x' } },
    code: 1008,
    detail: 'AUTH_TOKEN_MISMATCH',
    message: /^unauthorized: gateway token mismatch/,
  },
  {
    name: 'no token',
    params: { auth: {} },
    code: 1008,
    detail: 'AUTH_TOKEN_MISSING',
    message: /^unauthorized: gateway token missing/,
  },
  {
    name: 'an old protocol',
    params: { minProtocol: 1, maxProtocol: 2 },
    code: 1002,
    detail: 'PROTOCOL_MISMATCH',
    message: /^protocol mismatch$/,
  },
  {
    name: 'a device token',
    params: { auth: { deviceToken: 'x' } },
    code: 1008,
    detail: 'AUTH_DEVICE_TOKEN_MISMATCH',
    message: /device token mismatch/,
  },
  {
    name: 'an unknown property',
    params: { isOwner: true },
    code: 1008,
    detail: undefined,
    message: /unexpected property 'isOwner'/,
  },
  { name: 'a node', params: { role: 'node' }, code: 1008, detail: undefined, message: /^invalid role/ },
];
test('M-58: a handshake is refused with the words and codes that clients know', async (t) => {
  const house = await openHouse(t);
  for (const { name, params, code, detail, message } of handshakes) {
    const answer = await talk(house, [connectFrame(params)], { enough: 9 });
    const error = (answer.frames[1] as { error?: { message: string; details?: { code?: string } } } | undefined)?.error;
    assert.equal(answer.code, code, name);
    assert.match(error?.message ?? '', message, name);
    assert.equal(error?.details?.code, detail, name);
  }
  const { frames } = await talk(house, [connectFrame({ minProtocol: 2, maxProtocol: 3 })]);
  assert.equal(
    (frames[1]?.['payload'] as { protocol?: number } | undefined)?.protocol,
    3,
    'the highest version in the range of the client',
  );
});

test('M-58: property: whatever the first frame is, it opens nothing and the gateway lives', async (t: TestContext) => {
  const house = await openHouse(t);
  const frame = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record({
        type: fc.constantFrom('req', 'res', 'event'),
        id: fc.oneof(fc.string(), fc.integer()),
        method: fc.constantFrom('connect', 'health', '__proto__'),
        params: fc.jsonValue(),
      })
      .map((v) => JSON.stringify(v)),
  );
  await fc.assert(
    fc.asyncProperty(frame, async (text) => {
      const { frames } = await talk(house, [text], { enough: 9 });
      assert.ok(!frames.some(isHello));
    }),
    { numRuns: 60 },
  );
  await alive(house);
});
