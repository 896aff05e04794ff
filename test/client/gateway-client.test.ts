// The client against a real WebSocket server that speaks the public frames. Each case scripts what the gateway does with a frame.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type WebSocket, WebSocketServer } from 'ws';
import { type Clock, isGatewayError, systemClock } from '#base';
import { type ClientOptions, type ClientState, GatewayClient } from '#client';

type Frame = { id: string; method: string; params: Record<string, unknown> };
type Peer = { readonly socket: WebSocket; readonly request: IncomingMessage; readonly frames: Frame[] };
type Script = (frame: Frame, peer: Peer, gateway: Gateway) => void;

const HELLO = {
  type: 'hello-ok',
  protocol: 4,
  server: { version: '0.1.0', connId: 'c' },
  features: { methods: [], events: [] },
  snapshot: {},
  auth: { role: 'operator', scopes: [] },
  policy: { maxPayload: 100_000, maxBufferedBytes: 1_000_000, tickIntervalMs: 30_000 },
};
const FAST = { firstMs: 1, factor: 1, maxMs: 1, jitter: 0 };

class Gateway {
  readonly peers: Peer[] = [];
  readonly #server: WebSocketServer;
  readonly #script: Script;

  constructor(server: WebSocketServer, script: Script) {
    this.#server = server;
    this.#script = script;
    server.on('connection', (socket, request) => this.#connected(socket, request));
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  get frames(): Frame[] {
    return this.peers.flatMap((peer) => peer.frames);
  }

  reply(peer: Peer, id: string, payload: unknown): void {
    peer.socket.send(JSON.stringify({ type: 'res', id, ok: true, payload }));
  }

  refuse(peer: Peer, id: string, error: Record<string, unknown>): void {
    peer.socket.send(JSON.stringify({ type: 'res', id, ok: false, error }));
  }

  event(peer: Peer, event: string, payload: unknown, seq?: number): void {
    peer.socket.send(JSON.stringify({ type: 'event', event, payload, ...(seq === undefined ? {} : { seq }) }));
  }

  #connected(socket: WebSocket, request: IncomingMessage): void {
    const peer: Peer = { socket, request, frames: [] };
    this.peers.push(peer);
    this.event(peer, 'connect.challenge', { nonce: 'n', ts: 0 });
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data)) as Frame;
      peer.frames.push(frame);
      this.#script(frame, peer, this);
    });
  }
}

/** Says hello and hands every other frame to `script`. */
const welcoming =
  (script: Script): Script =>
  (frame, peer, gateway) =>
    frame.method === 'connect' ? gateway.reply(peer, frame.id, HELLO) : script(frame, peer, gateway);

async function open(context: TestContext, script: Script, options: Partial<ClientOptions> = {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const gateway = new Gateway(server, script);
  const client = new GatewayClient({
    url: gateway.url,
    token: 'secret-token',
    clientId: 'gateway-client',
    mode: 'backend',
    scopes: ['operator.read', 'operator.write'],
    version: '0.1.0',
    platform: 'linux',
    backoff: FAST,
    ...options,
  });
  context.after(() => {
    client.close();
    for (const peer of gateway.peers) peer.socket.terminate();
    server.close();
  });
  return { gateway, client };
}

function untilState(client: GatewayClient, status: ClientState['status']): Promise<ClientState> {
  return new Promise((resolve) => {
    const look = (state: ClientState) => {
      if (state.status !== status) return;
      stop();
      resolve(state);
    };
    const stop = client.onState(look);
    look(client.state);
  });
}

/** A clock whose timers fire only by hand. */
function manualClock(): Clock & { readonly fire: (delayMs: number) => void } {
  let now = 0;
  const timers = new Map<number, () => void>();
  return {
    now: () => now,
    sleep: (delayMs, signal) => systemClock.sleep(delayMs, signal),
    after(delayMs, action) {
      const at = now + delayMs + timers.size / 1e6;
      timers.set(at, action);
      return () => timers.delete(at);
    },
    fire(delayMs) {
      const end = now + delayMs;
      for (;;) {
        const next = [...timers.keys()].sort((a, b) => a - b)[0];
        if (next === undefined || next > end + 0.5) break;
        const action = timers.get(next);
        timers.delete(next);
        now = Math.max(now, Math.floor(next));
        action?.();
      }
      now = end;
    },
  };
}

test('the handshake: a challenge is answered with protocol range, identity, scopes and token, and no Origin', async (context) => {
  const { gateway, client } = await open(
    context,
    welcoming(() => undefined),
    { caps: ['tool-events'] },
  );
  const hello = await client.connect();
  assert.equal(hello.protocol, 4);
  const [connect] = gateway.frames;
  assert.deepEqual(connect?.params, {
    minProtocol: 3,
    maxProtocol: 4,
    client: { id: 'gateway-client', version: '0.1.0', platform: 'linux', mode: 'backend' },
    role: 'operator',
    scopes: ['operator.read', 'operator.write'],
    caps: ['tool-events'],
    auth: { token: 'secret-token' },
  });
  assert.equal(gateway.peers[0]?.request.headers.origin, undefined);
  assert.doesNotMatch(gateway.peers[0]?.request.url ?? '', /token/);
});

const refusals = [
  {
    name: 'a wrong token',
    error: {
      code: 'INVALID_REQUEST',
      message: 'unauthorized: gateway token mismatch',
      details: { code: 'AUTH_TOKEN_MISMATCH', recommendedNextStep: 'update_auth_credentials' },
    },
    code: 'UNAUTHORIZED',
  },
  {
    name: 'another protocol',
    error: { code: 'INVALID_REQUEST', message: 'protocol mismatch', details: { expectedProtocol: 9 } },
    code: 'PROTOCOL_MISMATCH',
  },
  {
    name: 'a foreign origin',
    error: {
      code: 'INVALID_REQUEST',
      message: 'origin not allowed',
      details: { code: 'CONTROL_UI_ORIGIN_NOT_ALLOWED' },
    },
    code: 'UNAUTHORIZED',
  },
] as const;

for (const { name, error, code } of refusals) {
  test(`a refusal is final: ${name} → ${code}`, async (context) => {
    const { gateway, client } = await open(context, (frame, peer, self) => self.refuse(peer, frame.id, error));
    await assert.rejects(client.connect(), (thrown) => isGatewayError(thrown, code));
    assert.equal(client.state.status, 'refused');
    assert.equal(gateway.peers.length, 1);
    await assert.rejects(client.request('health', {}), (thrown) => isGatewayError(thrown, code));
  });
}

test('a close for policy without a response is a refusal too', async (context) => {
  const { client } = await open(context, (_frame, peer) => peer.socket.close(1008, 'pairing required'));
  await assert.rejects(
    client.connect(),
    (thrown) => isGatewayError(thrown, 'UNAUTHORIZED') && thrown.message === 'pairing required',
  );
});

test('attemptsMax: nobody listens, so connecting ends with GATEWAY_UNREACHABLE and a next step', async (context) => {
  const { client } = await open(context, () => undefined, { url: 'ws://127.0.0.1:1/', attemptsMax: 2 });
  await assert.rejects(
    client.connect(),
    (thrown) => isGatewayError(thrown, 'GATEWAY_UNREACHABLE') && /reins start/.test(thrown.next ?? ''),
  );
});

test('a gateway that is busy starting is tried again', async (context) => {
  let refused = 0;
  const { client } = await open(context, (frame, peer, self) => {
    if (refused++ > 0) return self.reply(peer, frame.id, HELLO);
    self.refuse(peer, frame.id, {
      code: 'UNAVAILABLE',
      message: 'starting',
      details: { reason: 'startup-sidecars' },
      retryAfterMs: 1,
    });
  });
  await client.connect();
  assert.equal(refused, 2);
});

test('answers find their question, also out of order; an error becomes a GatewayError', async (context) => {
  const held: Frame[] = [];
  const { client } = await open(
    context,
    welcoming((frame, peer, gateway) => {
      held.push(frame);
      if (held.length < 3) return;
      gateway.refuse(peer, held[2]!.id, { code: 'INVALID_REQUEST', message: 'missing scope: operator.admin' });
      gateway.reply(peer, held[1]!.id, { n: 2 });
      gateway.reply(peer, held[0]!.id, { n: 1 });
    }),
  );
  await client.connect();
  const answers = await Promise.allSettled([
    client.request('health', {}),
    client.request('health', {}),
    client.request('health', {}),
  ]);
  assert.deepEqual(
    answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : (answer.reason as { code: string }).code)),
    [{ n: 1 }, { n: 2 }, 'SCOPE_MISSING'],
  );
});

test('agent: the first response tells of acceptance, the second is the result', async (context) => {
  const { client } = await open(
    context,
    welcoming((frame, peer, gateway) => {
      gateway.reply(peer, frame.id, { runId: frame.params['idempotencyKey'], status: 'accepted' });
      gateway.reply(peer, frame.id, { runId: frame.params['idempotencyKey'], status: 'ok', summary: 'completed' });
    }),
  );
  await client.connect();
  const accepted: string[] = [];
  const result = await client.run(
    { message: 'hello', idempotencyKey: 'k1' },
    { onAccepted: ({ runId }) => accepted.push(runId) },
  );
  assert.deepEqual({ accepted, status: result.status }, { accepted: ['k1'], status: 'ok' });
});

test('M-01: a message that was not answered is sent again on the next connection, with its key; a read fails instead', async (context) => {
  const { gateway, client } = await open(
    context,
    welcoming((frame, peer, self) => {
      if (self.peers.length > 1)
        return self.reply(peer, frame.id, { runId: frame.params['idempotencyKey'], status: 'in_flight' });
      if (frame.method === 'chat.send') peer.socket.terminate();
    }),
  );
  await client.connect();
  const lost = client.request('chat.history', { sessionKey: 'main' });
  const sent = client.request('chat.send', { sessionKey: 'main', message: 'm1', idempotencyKey: 'k1' });
  await assert.rejects(lost, (thrown) => isGatewayError(thrown, 'GATEWAY_UNREACHABLE'));
  assert.deepEqual(await sent, { runId: 'k1', status: 'in_flight' });
  const sends = gateway.frames.filter(({ method }) => method === 'chat.send');
  assert.deepEqual(
    sends.map(({ params }) => params['idempotencyKey']),
    ['k1', 'k1'],
  );
});

test('what is asked while there is no connection waits for one', async (context) => {
  const { client } = await open(
    context,
    welcoming((frame, peer, self) => self.reply(peer, frame.id, { ok: true })),
  );
  const early = client.request('health', {});
  await client.connect();
  assert.deepEqual(await early, { ok: true });
});

test('agent keeps waiting for its second response over a lost connection and tells of acceptance once', async (context) => {
  const { client } = await open(
    context,
    welcoming((frame, peer, self) => {
      self.reply(peer, frame.id, { runId: 'k1', status: 'accepted' });
      if (self.peers.length === 1) peer.socket.terminate();
      else self.reply(peer, frame.id, { runId: 'k1', status: 'ok' });
    }),
  );
  let accepted = 0;
  await client.connect();
  const result = await client.run({ message: 'm', idempotencyKey: 'k1' }, { onAccepted: () => accepted++ });
  assert.deepEqual({ accepted, status: result.status }, { accepted: 1, status: 'ok' });
});

test('a request that nobody answers times out, and one that is aborted rejects with its reason', async (context) => {
  const clock = manualClock();
  const { client } = await open(
    context,
    welcoming(() => undefined),
    { clock },
  );
  await client.connect();
  const slow = client.request('health', {}, { timeoutMs: 500 });
  const controller = new AbortController();
  const stopped = client.request('health', {}, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(stopped, /enough/);
  clock.fire(600);
  await assert.rejects(slow, (thrown) => isGatewayError(thrown, 'REQUEST_TIMEOUT'));
});

test('two silent tick intervals end the connection, any frame keeps it', async (context) => {
  const clock = manualClock();
  const { gateway, client } = await open(
    context,
    welcoming(() => undefined),
    { clock },
  );
  await client.connect();
  clock.fire(45_000);
  const ticked = new Promise<void>((resolve) => client.on('shutdown', () => resolve()));
  gateway.event(gateway.peers[0]!, 'shutdown', { reason: 'x', restartExpectedMs: null });
  await ticked;
  clock.fire(45_000);
  assert.equal(client.state.status, 'connected');
  const states: string[] = [];
  client.onState(({ status }) => states.push(status));
  clock.fire(30_000);
  assert.equal(states[0], 'reconnecting');
});

test('the queue of questions is bounded: one more is refused at once', async (context) => {
  const { client } = await open(
    context,
    welcoming(() => undefined),
    { requestsMax: 2 },
  );
  await client.connect();
  const held = [client.request('health', {}), client.request('health', {})];
  await assert.rejects(client.request('health', {}), (thrown) => isGatewayError(thrown, 'GATEWAY_BUSY'));
  client.close();
  for (const each of held) await assert.rejects(each, (thrown) => isGatewayError(thrown, 'GATEWAY_UNREACHABLE'));
});

test('a message larger than the gateway takes is refused before it is sent', async (context) => {
  const { gateway, client } = await open(
    context,
    welcoming(() => undefined),
  );
  await client.connect();
  const params = { sessionKey: 'main', message: 'x'.repeat(100_000), idempotencyKey: 'k' };
  await assert.rejects(client.request('chat.send', params), (thrown) => isGatewayError(thrown, 'MESSAGE_TOO_LARGE'));
  assert.equal(gateway.frames.length, 1);
});

test('events reach their listeners and queues in order; a gap in seq is told', async (context) => {
  const { gateway, client } = await open(
    context,
    welcoming(() => undefined),
  );
  await client.connect();
  const seen: string[] = [];
  client.on('agent', ({ runId }) => seen.push(runId));
  client.onGap(() => seen.push('gap'));
  const queue = client.events({ max: 10 });
  const peer = gateway.peers[0]!;
  for (const [runId, seq] of [
    ['a', 1],
    ['b', 2],
    ['c', 5],
  ] as const) {
    gateway.event(peer, 'agent', { runId, sessionKey: 'main', stream: 'assistant', seq: 1, ts: 0, data: {} }, seq);
  }
  const queued: unknown[] = [];
  for await (const frame of queue) {
    queued.push((frame.payload as { runId: string }).runId);
    if (queued.length === 3) break;
  }
  assert.deepEqual(seen, ['a', 'b', 'gap', 'c']);
  assert.deepEqual(queued, ['a', 'b', 'c']);
});

test('a reader that falls behind loses its stream and nobody else theirs', async (context) => {
  const { gateway, client } = await open(
    context,
    welcoming(() => undefined),
  );
  await client.connect();
  const queue = client.events({ max: 2 });
  let heard = 0;
  const third = new Promise<void>((resolve) => client.on('shutdown', () => ++heard === 3 && resolve()));
  for (let i = 0; i < 3; i++) gateway.event(gateway.peers[0]!, 'shutdown', { reason: 'x', restartExpectedMs: null });
  await third;
  assert.equal(queue.overflowed, true);
});

test('retryNow skips the wait', async (context) => {
  const slow = { firstMs: 3_600_000, factor: 1, maxMs: 3_600_000, jitter: 0 };
  const { gateway, client } = await open(
    context,
    welcoming(() => undefined),
    { backoff: slow },
  );
  await client.connect();
  gateway.peers[0]!.socket.terminate();
  const state = await untilState(client, 'reconnecting');
  assert.equal(state.status === 'reconnecting' && state.attempt, 1);
  client.retryNow();
  await untilState(client, 'connected');
  assert.equal(gateway.peers.length, 2);
});

test('a frame that must not be read ends the connection, and the next one is tried', async (context) => {
  const { gateway, client } = await open(
    context,
    welcoming(() => undefined),
  );
  await client.connect();
  gateway.peers[0]!.socket.send('{"__proto__": 1}');
  await untilState(client, 'reconnecting');
  await untilState(client, 'connected');
  assert.equal(gateway.peers.length, 2);
});
