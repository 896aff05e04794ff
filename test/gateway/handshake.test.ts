// The first frame of a connection: who is let in, with what, and in which words the others are sent away.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { connectFrame, type Frame, openStage, type Peer, SECRET, type Stage } from './stage.ts';

type Device = { readonly id: string; readonly publicKey: string; readonly key: KeyObject };

function newDevice(): Device {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  return {
    id: createHash('sha256').update(raw).digest('hex'),
    publicKey: raw.toString('base64url'),
    key: privateKey,
  };
}

const CLIENT = { id: 'cli', version: '1', platform: ' Linux ', mode: 'cli', deviceFamily: 'Server' };
const ALL = ['operator.read', 'operator.write', 'operator.approvals', 'operator.admin', 'operator.pairing'];
const CONVERSATION = ['operator.approvals', 'operator.read', 'operator.write'];

/** Params signed as a client of either form signs them. */
function signed(
  device: Device,
  facts: {
    readonly nonce: string;
    readonly at: number;
    readonly form: 'v2' | 'v3';
    readonly scopes?: readonly string[];
  },
) {
  const { nonce, at, form, scopes = ALL } = facts;
  const fields = [form, device.id, CLIENT.id, CLIENT.mode, 'operator', scopes.join(','), at, SECRET, nonce];
  const text = [...fields, ...(form === 'v3' ? ['linux', 'server'] : [])].join('|');
  const signature = sign(null, Buffer.from(text), device.key).toString('base64url');
  return {
    client: CLIENT,
    scopes,
    device: { id: device.id, publicKey: device.publicKey, signature, signedAt: at, nonce },
  };
}

const scopesOf = (answer: Frame) => (answer.payload?.['auth'] as { scopes?: string[] } | undefined)?.scopes;

/** One connect on a socket of its own. */
async function tryConnect(
  stage: Stage,
  make: (nonce: string) => Readonly<Record<string, unknown>>,
  peer = stage.socket(),
) {
  const nonce = await peer.challenge();
  peer.send(connectFrame(make(nonce)));
  const answer = await peer.answer('connect');
  return { answer, peer };
}

type Case = {
  readonly name: string;
  readonly params: (nonce: string, device: Device, now: number) => Readonly<Record<string, unknown>>;
  readonly message: RegExp;
  readonly detail?: string;
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly code?: number;
};

const refused: readonly Case[] = [
  {
    name: 'a wrong token',
    params: () => ({ auth: { token: 'wrong' } }),
    message: /^unauthorized: gateway token mismatch/,
    detail: 'AUTH_TOKEN_MISMATCH',
    facts: { authReason: 'token_mismatch', recommendedNextStep: 'update_auth_credentials' },
  },
  {
    name: 'no token',
    params: () => ({ auth: {} }),
    message: /^unauthorized: gateway token missing/,
    detail: 'AUTH_TOKEN_MISSING',
    facts: { authReason: 'token_missing', recommendedNextStep: 'update_auth_configuration' },
  },
  {
    name: 'a password where a token is wanted',
    params: () => ({ auth: { password: SECRET } }),
    message: /gateway token missing/,
    detail: 'AUTH_TOKEN_MISSING',
  },
  {
    name: 'a device token',
    params: () => ({ auth: { deviceToken: SECRET } }),
    message: /^unauthorized: device token mismatch/,
    detail: 'AUTH_DEVICE_TOKEN_MISMATCH',
    facts: { authReason: 'device_token_mismatch' },
  },
  {
    name: 'a bootstrap token',
    params: () => ({ auth: { bootstrapToken: SECRET } }),
    message: /bootstrap token invalid/,
    detail: 'AUTH_BOOTSTRAP_TOKEN_INVALID',
  },
  {
    name: 'a protocol of the past',
    params: () => ({ minProtocol: 1, maxProtocol: 2 }),
    message: /^protocol mismatch$/,
    detail: 'PROTOCOL_MISMATCH',
    facts: { expectedProtocol: 4, minimumProbeProtocol: 3, clientMinProtocol: 1, clientMaxProtocol: 2 },
    code: 1002,
  },
  { name: 'a node', params: () => ({ role: 'node' }), message: /^invalid role: nodes come in a later version$/ },
  { name: 'a role of nobody', params: () => ({ role: 'admin' }), message: /^invalid role$/ },
  {
    name: 'a foreign property',
    params: () => ({ foo: 1 }),
    message: /^invalid connect params: at root: unexpected property 'foo'$/,
  },
  {
    name: 'a mode of the docs only',
    params: () => ({ client: { ...CLIENT, mode: 'operator' } }),
    message: /^invalid connect params: at \/client\/mode: must be equal to one of the allowed values$/,
  },
  {
    name: 'a nonce of another socket',
    params: (_nonce, device, at) => signed(device, { nonce: 'other', at, form: 'v3' }),
    message: /device/,
    detail: 'DEVICE_AUTH_NONCE_MISMATCH',
    facts: { reason: 'device-nonce-mismatch' },
  },
  {
    name: 'a signature of three minutes ago',
    params: (nonce, device, now) => signed(device, { nonce, at: now - 180_000, form: 'v3' }),
    message: /device/,
    detail: 'DEVICE_AUTH_SIGNATURE_EXPIRED',
    facts: { reason: 'device-signature-stale' },
  },
  {
    name: 'scopes that were not signed',
    params: (nonce, device, at) => ({
      ...signed(device, { nonce, at, form: 'v2', scopes: ['operator.read'] }),
      scopes: ALL,
    }),
    message: /device/,
    detail: 'DEVICE_AUTH_SIGNATURE_INVALID',
    facts: { reason: 'device-signature' },
  },
  {
    name: 'the id of another device',
    params(nonce, device, at) {
      const params = signed(device, { nonce, at, form: 'v3' });
      return { ...params, device: { ...params.device, id: newDevice().id } };
    },
    message: /device/,
    detail: 'DEVICE_AUTH_DEVICE_ID_MISMATCH',
    facts: { reason: 'device-id-mismatch' },
  },
  {
    name: 'a key that is none',
    params(nonce, device, at) {
      const params = signed(device, { nonce, at, form: 'v3' });
      return { ...params, device: { ...params.device, publicKey: 'AAAA' } };
    },
    message: /device/,
    detail: 'DEVICE_AUTH_PUBLIC_KEY_INVALID',
  },
];

for (const { name, params, message, detail, facts = {}, code = 1008 } of refused) {
  test(`M-58: connect is refused with the public words: ${name}`, async (t) => {
    const stage = await openStage(t);
    const { answer, peer } = await tryConnect(stage, (nonce) => params(nonce, newDevice(), stage.clock.now()));
    assert.equal(answer.ok, false);
    assert.equal(answer.error?.code, 'INVALID_REQUEST');
    assert.match(answer.error?.message ?? '', message);
    assert.equal(answer.error?.details?.['code'], detail);
    for (const [fact, value] of Object.entries(facts)) assert.deepEqual(answer.error?.details?.[fact], value, fact);
    const end = await peer.closed;
    assert.equal(end.code, code);
    assert.ok((answer.error?.message ?? '').startsWith(end.reason) && Buffer.byteLength(end.reason) <= 123);
    assert.doesNotMatch(JSON.stringify([peer.frames, stage.logged]), new RegExp(SECRET));
  });
}

const granted: readonly {
  readonly name: string;
  readonly more?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly scopes: readonly string[];
}[] = [
  { name: 'a backend on this machine keeps what it asks for', scopes: [...ALL].sort() },
  {
    name: 'a backend that asks for little gets little',
    more: { scopes: ['operator.read'] },
    scopes: ['operator.read'],
  },
  { name: 'a scope that nobody knows is dropped', more: { scopes: ['operator.moon'] }, scopes: [] },
  { name: 'B06: a command line gets a conversation', more: { client: CLIENT }, scopes: CONVERSATION },
  {
    name: 'B06: a page gets a conversation, whatever it calls itself',
    headers: { origin: 'http://ui.example' },
    scopes: CONVERSATION,
  },
  {
    name: 'B07: a backend behind a proxy that nobody named is not local',
    headers: { 'x-forwarded-for': '127.0.0.1' },
    scopes: CONVERSATION,
  },
];
for (const { name, more = {}, headers = {}, scopes } of granted) {
  test(`M-58: ${name}`, async (t) => {
    const stage = await openStage(t, { allowedOrigins: ['http://ui.example'] });
    const { answer } = await tryConnect(stage, () => ({ scopes: ALL, ...more }), stage.socket(headers));
    assert.deepEqual(scopesOf(answer), scopes);
    const { policy, snapshot, server } = answer.payload as Record<string, Record<string, unknown>>;
    assert.equal(policy?.['tickIntervalMs'], 30_000);
    assert.equal(policy?.['maxPayload'], 26_214_400);
    assert.equal(server?.['version'], '9.9.9');
    assert.equal('stateDir' in (snapshot ?? {}), scopes.includes('operator.admin'), 'places are for admins only');
  });
}

for (const form of ['v2', 'v3'] as const) {
  test(`M-58: a device that signs in form ${form} is let in, and gets no more than without`, async (t) => {
    const stage = await openStage(t);
    const device = newDevice();
    const { answer } = await tryConnect(stage, (nonce) => signed(device, { nonce, at: stage.clock.now(), form }));
    assert.equal(answer.payload?.['type'], 'hello-ok');
    assert.deepEqual(scopesOf(answer), CONVERSATION);
  });
}

test('M-58: health and presence follow hello, numbered, each with its state version', async (t) => {
  const stage = await openStage(t);
  const peer = await stage.client();
  const health = await peer.until((frame) => frame.event === 'health');
  const presence = await peer.until((frame) => frame.event === 'presence');
  assert.deepEqual([presence.seq, health.seq], [1, 2]);
  assert.equal(health.payload?.['ok'], true);
  assert.ok((health.stateVersion?.health ?? 0) > 1 && (presence.stateVersion?.presence ?? 0) > 1);
  const second = await stage.client();
  await second.until((frame) => frame.event === 'health');
  await peer.settled();
  const [before, after] = peer.events('presence').map((frame) => frame.stateVersion?.presence ?? 0);
  assert.ok(before !== undefined && after !== undefined && after > before);
});

test('M-58: a client that does not wait for hello is answered all the same', async (t) => {
  const stage = await openStage(t);
  const peer = stage.socket();
  await peer.opened();
  peer.send(connectFrame());
  peer.send({ type: 'req', id: 'early', method: 'health' });
  assert.equal((await peer.answer('early')).ok, true);
});

test('B05: what follows a wrong first frame is not even looked at', async (t) => {
  const stage = await openStage(t);
  for (const first of ['not json', '{"type":"event"}', '{"type":"req","id":"1","method":"config.get"}', '[]', 'null']) {
    const peer = stage.socket();
    await peer.challenge();
    peer.send(first);
    peer.send(connectFrame());
    peer.send({ type: 'req', id: 'late', method: 'agents.list' });
    assert.equal((await peer.closed).code, 1008, first);
    assert.ok(!peer.frames.some((frame) => frame.ok === true), first);
  }
  const binary = stage.socket();
  await binary.challenge();
  binary.send(Buffer.from(JSON.stringify(connectFrame())));
  assert.equal((await binary.closed).code, 1008);
  await aliveAfter(stage);
});

test('M-58: who says nothing for ten seconds is sent away', async (t) => {
  const stage = await openStage(t);
  const peer = stage.socket();
  await peer.challenge();
  await stage.clock.advance(9_999);
  assert.equal(peer.socket.readyState, peer.socket.OPEN);
  await stage.clock.advance(1);
  assert.deepEqual(await peer.closed, { code: 1008, reason: 'handshake timeout' });
});

test('T21: sixteen sockets of one address may wait, the next is refused until one is let in or goes', async (t) => {
  const stage = await openStage(t);
  const waiting: Peer[] = [];
  for (let i = 0; i < 16; i++) waiting.push(stage.socket());
  await Promise.all(waiting.map((peer) => peer.challenge()));
  assert.equal((await stage.socket().closed).code, 429);
  waiting[0]?.send(connectFrame());
  await waiting[0]?.answer('connect');
  const next = stage.socket();
  assert.ok(await next.challenge());
});

/** The opening of a WebSocket by hand, to send bytes that no client library would. */
async function rawSocket(stage: Stage, t: TestContext) {
  const raw = connect(stage.port, '127.0.0.1');
  t.after(() => raw.destroy());
  // The gateway goes away first: what is still written to it fails, and shall.
  raw.on('error', () => undefined);
  raw.write(
    `GET / HTTP/1.1\r\nHost: 127.0.0.1:${stage.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  const [first] = (await once(raw, 'data')) as [Buffer];
  assert.match(first.toString('latin1'), /^HTTP\/1\.1 101/);
  return raw;
}

test('B11: a frame that says it will be 20 MB is not gathered', async (t) => {
  const stage = await openStage(t);
  const raw = await rawSocket(stage, t);
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(20_000_000n);
  raw.write(Buffer.concat([Buffer.from([0x81, 0xff]), length, Buffer.alloc(4)]));
  let got = Buffer.alloc(0);
  raw.on('data', (part) => {
    got = Buffer.concat([got, part]);
  });
  raw.write(Buffer.alloc(70_000));
  while (!got.includes(Buffer.from([0x03, 0xf1]))) await once(raw, 'data');
  // It never answers the close: its socket is taken away.
  const end = Promise.withResolvers<void>();
  raw.on('close', () => end.resolve());
  await stage.clock.advance(2_000);
  await end.promise;
  await aliveAfter(stage);
});

test('T21: pieces without an end and floods of pings are cut at the same place', async (t) => {
  const stage = await openStage(t);
  const floods = { pieces: [0x00, 0x80, 0, 0, 0, 0], pings: [0x89, 0x80, 0, 0, 0, 0] };
  for (const [name, piece] of Object.entries(floods)) {
    const raw = await rawSocket(stage, t);
    raw.resume();
    const end = Promise.withResolvers<boolean>();
    raw.on('close', () => end.resolve(true));
    raw.write(Buffer.from([0x01, 0x80, 0, 0, 0, 0]));
    raw.write(Buffer.concat(Array.from({ length: 12_000 }, () => Buffer.from(piece))));
    // Well before the ten seconds of a handshake are over.
    let isOver = false;
    for (let seconds = 0; seconds < 8 && !isOver; seconds++) {
      const turn = stage.clock.advance(1_000).then(() => false);
      isOver = await Promise.race([end.promise, turn.then(() => nextPacket())]);
    }
    assert.ok(isOver, name);
  }
  await aliveAfter(stage);
});

/** Sockets get their turn. */
async function nextPacket(): Promise<boolean> {
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  return false;
}

async function aliveAfter(stage: Stage): Promise<void> {
  assert.deepEqual(await (await fetch(`${stage.url}/healthz`)).json(), { ok: true, status: 'live' });
}

test('B08: failures over WebSocket and HTTP count together; after the lockout the right token is let in', async (t) => {
  const stage = await openStage(t);
  for (let i = 0; i < 6; i++) await tryConnect(stage, () => ({ auth: { token: 'wrong' } }));
  const http = (token: string) => fetch(`${stage.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  for (let i = 0; i < 4; i++) assert.equal((await http('wrong')).status, 401);
  const locked = await http(SECRET);
  assert.equal(locked.status, 429);
  assert.equal(locked.headers.get('retry-after'), '300');
  const { answer } = await tryConnect(stage, () => ({}));
  assert.equal(answer.error?.details?.['code'], 'AUTH_RATE_LIMITED');
  assert.equal(answer.error?.details?.['recommendedNextStep'], 'wait_then_retry');
  await stage.clock.advance(300_000);
  assert.equal((await http(SECRET)).status, 200);
});

test('B12: names that draw on terminals are escaped in what is logged', async (t) => {
  const stage = await openStage(t);
  await tryConnect(stage, () => ({
    client: { ...CLIENT, id: 'a\u202eb' },
    ['x\u001b]0;owned\u0007\n[gateway] auth ok user=admin']: 1,
  }));
  const log = JSON.stringify(stage.logged.map(({ fields }) => fields));
  assert.match(log, /u\{202e\}/);
  for (const fields of stage.logged.flatMap(({ fields }) => Object.values((fields ?? {}) as object)))
    assert.doesNotMatch(String(fields), /[\u0000-\u001f\u202e]/);
});

test('B01: an origin of "null" never counts, even when a config lists it; the listed one does', async (t) => {
  const stage = await openStage(t, { allowedOrigins: ['null', 'https://chat.example'] });
  for (const origin of [
    'null',
    'https://evil.example',
    'https://chat.example.evil.example',
    'https://chat.example:8443',
  ])
    assert.equal((await stage.socket({ origin }).closed).code, 403, origin);
  assert.ok(await stage.socket({ origin: 'https://chat.example' }).challenge());
  assert.ok(await stage.socket({ origin: stage.url }).challenge());
});

test('M-58: without a secret, who speaks for somebody else is not let in', async (t) => {
  const stage = await openStage(t, {
    auth: { mode: 'none', rateLimit: { maxAttempts: 10, windowMs: 1, lockoutMs: 1 } },
  });
  const direct = await tryConnect(stage, () => ({ auth: {} }));
  assert.equal(direct.answer.ok, true);
  const proxied = await tryConnect(stage, () => ({ auth: {} }), stage.socket({ 'x-forwarded-for': '203.0.113.9' }));
  assert.equal(proxied.answer.ok, false);
});

test('M-58: property: without the secret no first frame opens anything, whatever else is in it', async (t) => {
  const rateLimit = { maxAttempts: 1_000_000, windowMs: 1, lockoutMs: 1 };
  const stage = await openStage(t, { auth: { mode: 'token', secret: SECRET, rateLimit } });
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom('', SECRET.slice(1), `${SECRET} `, SECRET.toUpperCase(), '__proto__'),
  );
  const auth = fc.record(
    { token: word, password: fc.oneof(word, fc.constant(SECRET)), deviceToken: word },
    { requiredKeys: [] },
  );
  const extra = fc.dictionary(fc.constantFrom('role', 'scopes', 'caps', 'device', 'isOwner', 'client'), fc.jsonValue());
  await fc.assert(
    fc.asyncProperty(auth, fc.oneof(fc.constant({}), extra), async (given, more) => {
      const { answer, peer } = await tryConnect(stage, () => ({ ...more, auth: given }));
      assert.equal(answer.ok, false);
      assert.equal((await peer.closed).code, 1008);
    }),
    { numRuns: 80 },
  );
  await aliveAfter(stage);
});
