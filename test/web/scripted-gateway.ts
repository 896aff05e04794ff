// A gateway for the browser tests: it serves the built page and speaks the frames of the public protocol as a test scripts them.
// It has no meaning of its own; the story against the real gateway is elsewhere.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { type WebSocket, WebSocketServer } from 'ws';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
export const CSP = "default-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'";
export const MAIN = 'agent:main:main';

type Frame = { readonly id: string; readonly method: string; readonly params: Record<string, unknown> };
type Stored = { readonly role: string; readonly [field: string]: unknown };
const ZERO = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } };

export class ScriptedGateway {
  readonly token = 'test-token-0123456789';
  readonly requests: Frame[] = [];
  readonly sockets = new Set<WebSocket>();
  readonly tcp = new Set<Socket>();
  readonly messages = new Map<string, Stored[]>([[MAIN, []]]);
  readonly rows = new Map<string, Record<string, unknown>>();
  readonly approvals = new Map<string, Record<string, unknown>>();
  readonly active = new Map<string, ScriptedRun>();
  readonly decisions: { id: string; decision: string }[] = [];
  hellos = 0;
  connectAttempts = 0;
  reachable = true;
  /** What a message that came by chat.send does; runs once per idempotency key. */
  onMessage: (run: ScriptedRun) => Promise<void> = async (run) => {
    await run.say('All right.');
    run.end();
  };
  readonly #dist: string;
  readonly #http: Server;
  readonly #runs = new Set<string>();
  readonly #waiting: { readonly check: () => boolean; readonly resolve: () => void }[] = [];
  #port = 0;

  constructor(dist: string) {
    this.#dist = dist;
    this.#http = createServer((request, response) => this.#serve(request, response));
    const server = new WebSocketServer({ noServer: true });
    this.#http.on('connection', (socket) => {
      this.tcp.add(socket);
      socket.on('close', () => this.tcp.delete(socket));
    });
    this.#http.on('upgrade', (request, socket, head) => {
      this.connectAttempts += 1;
      if (!this.reachable) return socket.destroy();
      server.handleUpgrade(request, socket, head, (ws) => this.#connected(ws));
    });
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#http.listen(0, '127.0.0.1', resolve));
    this.#port = (this.#http.address() as AddressInfo).port;
    this.rows.set(MAIN, { key: MAIN, kind: 'direct', updatedAt: Date.now(), status: 'done', sessionId: randomUUID() });
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  get signedInUrl(): string {
    return `${this.url}#token=${this.token}`;
  }

  close(): void {
    for (const socket of this.tcp) socket.destroy();
    this.#http.close();
  }

  /** Every connection breaks and no new one comes about until {@link restore}. */
  cut(): void {
    this.reachable = false;
    for (const socket of this.sockets) socket.terminate();
  }

  restore(): void {
    this.reachable = true;
  }

  event(event: string, payload: unknown): void {
    for (const socket of this.sockets) socket.send(JSON.stringify({ type: 'event', event, payload }));
    this.#look();
  }

  /** Resolves once `check` holds; looked at after each request and event. */
  until(check: () => boolean): Promise<void> {
    if (check()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ check, resolve }));
  }

  store(sessionKey: string, message: Stored): void {
    const list = this.messages.get(sessionKey) ?? [];
    this.messages.set(sessionKey, list);
    const id = randomUUID().slice(0, 8);
    const stored = { timestamp: Date.now(), ...message, __openclaw: { id, seq: list.length + 1 } };
    list.push(stored);
    this.event('session.message', { sessionKey, message: stored, messageId: id, messageSeq: list.length });
  }

  row(sessionKey: string, change: Record<string, unknown>): void {
    const before = this.rows.get(sessionKey) ?? { key: sessionKey, kind: 'direct', sessionId: randomUUID() };
    const row = { ...before, updatedAt: Date.now(), ...change };
    this.rows.set(sessionKey, row);
    this.event('sessions.changed', { sessionKey, ts: Date.now(), session: row, ...row });
  }

  #look(): void {
    for (const waiter of [...this.#waiting]) {
      if (!waiter.check()) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      waiter.resolve();
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', 'http://x').pathname;
    const file = join(this.#dist, normalize(path === '/' ? '/index.html' : path));
    const headers = {
      'content-security-policy': CSP,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    };
    try {
      const body = readFileSync(file);
      response.writeHead(200, { ...headers, 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
      response.end(body);
    } catch {
      response.writeHead(404, headers);
      response.end();
    }
  }

  #connected(socket: WebSocket): void {
    socket.send(
      JSON.stringify({ type: 'event', event: 'connect.challenge', payload: { nonce: randomUUID(), ts: Date.now() } }),
    );
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data)) as Frame;
      this.requests.push(frame);
      if (frame.method === 'connect') this.#hello(socket, frame);
      else void this.#answer(socket, frame);
      this.#look();
    });
  }

  #hello(socket: WebSocket, { id, params }: Frame): void {
    if ((params['auth'] as { token?: string } | undefined)?.token !== this.token) {
      const message = 'unauthorized: gateway token mismatch';
      const details = { code: 'AUTH_TOKEN_MISMATCH', recommendedNextStep: 'update_auth_credentials' };
      socket.send(JSON.stringify({ type: 'res', id, ok: false, error: { code: 'INVALID_REQUEST', message, details } }));
      socket.close(1008, message);
      return;
    }
    this.sockets.add(socket);
    this.hellos += 1;
    const payload = {
      type: 'hello-ok',
      protocol: 3,
      server: { version: '0.1.0', connId: randomUUID() },
      features: { methods: ['chat.send', 'chat.history'], events: ['agent', 'chat'] },
      snapshot: { sessionDefaults: { defaultAgentId: 'main', mainKey: 'main', mainSessionKey: MAIN } },
      auth: { role: 'operator', scopes: params['scopes'] },
      policy: { maxPayload: 26_214_400, maxBufferedBytes: 52_428_800, tickIntervalMs: 30_000 },
    };
    socket.send(JSON.stringify({ type: 'res', id, ok: true, payload }));
  }

  async #answer(socket: WebSocket, frame: Frame): Promise<void> {
    const payload = this.#payload(frame);
    socket.send(JSON.stringify({ type: 'res', id: frame.id, ok: true, payload }));
    if (frame.method !== 'chat.send') return;
    const runId = String(frame.params['idempotencyKey']);
    if (this.#runs.has(runId)) return;
    this.#runs.add(runId);
    const host = this.active.get(String(frame.params['sessionKey']));
    if (host) return host.steer(runId, String(frame.params['message']));
    await this.onMessage(
      new ScriptedRun(this, runId, String(frame.params['sessionKey']), String(frame.params['message'])),
    );
  }

  #payload({ method, params }: Frame): unknown {
    const key = String(params['sessionKey'] ?? params['key'] ?? '');
    switch (method) {
      case 'chat.send':
        return { runId: params['idempotencyKey'], status: 'started' };
      case 'chat.history': {
        const run = this.active.get(key);
        const messages = this.messages.get(key) ?? [];
        return {
          sessionKey: key,
          sessionId: this.rows.get(key)?.['sessionId'],
          messages,
          ...(run ? { activeRun: run.partial } : {}),
        };
      }
      case 'sessions.list':
        return { sessions: [...this.rows.values()], hasMore: false, totalCount: this.rows.size };
      case 'exec.approval.list':
        return [...this.approvals.values()];
      case 'exec.approval.resolve': {
        const decision = { id: String(params['id']), decision: String(params['decision']) };
        this.decisions.push(decision);
        this.approvals.delete(decision.id);
        this.event('exec.approval.resolved', { ...decision, resolvedBy: 'operator', ts: Date.now() });
        return { ok: true };
      }
      case 'chat.abort': {
        const run = this.active.get(key);
        run?.abort();
        return { ok: true, aborted: run !== undefined, runIds: run ? [run.runId] : [] };
      }
      default:
        return { subscribed: true };
    }
  }
}

/** One run as the script plays it. */
export class ScriptedRun {
  readonly #gateway: ScriptedGateway;
  readonly runId: string;
  readonly sessionKey: string;
  readonly message: string;
  readonly startedAt = Date.now();
  #seq = 0;
  #text = '';
  #thinking = '';
  #whole = '';
  readonly #steered: { readonly runId: string; readonly message: string }[] = [];
  aborted = false;

  constructor(gateway: ScriptedGateway, runId: string, sessionKey: string, message: string) {
    this.#gateway = gateway;
    this.runId = runId;
    this.sessionKey = sessionKey;
    this.message = message;
    gateway.active.set(sessionKey, this);
    gateway.row(sessionKey, {
      status: 'running',
      hasActiveRun: true,
      derivedTitle: message,
      lastMessagePreview: message,
    });
    gateway.store(sessionKey, { role: 'user', content: message, runId });
    this.agent('lifecycle', { phase: 'start', startedAt: this.startedAt });
  }

  get partial(): Record<string, unknown> {
    return { runId: this.runId, startedAt: this.startedAt, text: this.#text, thinking: this.#thinking, seq: this.#seq };
  }

  agent(stream: string, data: Record<string, unknown>): void {
    const place = { runId: this.runId, sessionKey: this.sessionKey, seq: ++this.#seq, ts: Date.now() };
    this.#gateway.event('agent', { ...place, stream, data });
  }

  #chat(state: string, rest: Record<string, unknown>): void {
    this.#gateway.event('chat', { runId: this.runId, sessionKey: this.sessionKey, seq: this.#seq, state, ...rest });
  }

  think(delta: string): void {
    this.#thinking += delta;
    this.agent('thinking', { text: this.#thinking, delta });
  }

  /** Streams `text` in its parts: split where `‖` is. */
  async say(text: string): Promise<void> {
    for (const delta of text.split('‖')) {
      this.#text += delta;
      this.#whole += delta;
      this.agent('assistant', { text: this.#text, delta });
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** The model's response is complete and stored. */
  storeTurn(calls: readonly Record<string, unknown>[] = [], stopReason = calls.length > 0 ? 'toolUse' : 'stop'): void {
    const content = [
      ...(this.#thinking === '' ? [] : [{ type: 'thinking', thinking: this.#thinking }]),
      ...(this.#text === '' ? [] : [{ type: 'text', text: this.#text }]),
      ...calls.map((call) => ({ type: 'toolCall', ...call })),
    ];
    this.#text = '';
    this.#thinking = '';
    const usage = { ...ZERO, input: 1_840, output: 212, totalTokens: 2_052, cost: { total: 0.0123 } };
    this.#gateway.store(this.sessionKey, {
      role: 'assistant',
      content,
      api: 'x',
      provider: 'acme',
      model: 'acme-large',
      usage,
      stopReason,
    });
  }

  toolStart(toolCallId: string, name: string, args: Record<string, unknown>): void {
    this.agent('tool', { phase: 'start', name, toolCallId, args });
  }

  toolEnd(toolCallId: string, name: string, text: string, outcome: 'ok' | 'failed' | 'denied' = 'ok'): void {
    const content = [{ type: 'text', text }];
    const isError = outcome !== 'ok';
    this.agent('tool', { phase: 'result', name, toolCallId, isError, outcome, result: { content } });
    this.#gateway.store(this.sessionKey, { role: 'toolResult', toolCallId, toolName: name, content, isError });
  }

  ask(id: string, toolCallId: string, command: string, warningText?: string): void {
    const request = {
      command,
      cwd: '/home/user/workspace',
      sessionKey: this.sessionKey,
      toolCallId,
      runId: this.runId,
      warningText,
    };
    const record = { id, request, createdAtMs: Date.now(), expiresAtMs: Date.now() + 300_000 };
    this.#gateway.approvals.set(id, record);
    this.#gateway.event('exec.approval.requested', record);
  }

  /** A message that came while this run is under way: its own run ends at once, its words are stored by {@link takeSteered}. */
  steer(runId: string, message: string): void {
    this.#steered.push({ runId, message });
    this.#gateway.event('chat', { runId, sessionKey: this.sessionKey, seq: 1, state: 'final' });
  }

  takeSteered(): void {
    for (const { runId, message } of this.#steered.splice(0)) {
      this.#gateway.store(this.sessionKey, { role: 'user', content: message, runId });
    }
  }

  /** The gateway itself answers, and stores nothing of it. */
  async command(text: string): Promise<void> {
    this.#gateway.messages.set(this.sessionKey, []);
    this.#finish('done');
    this.#chat('final', { message: { role: 'assistant', content: [{ type: 'text', text }] } });
  }

  end(): void {
    if (this.aborted) return;
    if (this.#text !== '') this.storeTurn();
    this.#finish('done');
    this.#chat('final', { message: { role: 'assistant', content: [{ type: 'text', text: this.#whole }] } });
  }

  abort(): void {
    this.aborted = true;
    this.storeTurn([], 'aborted');
    this.#finish('aborted');
    this.#chat('aborted', { stopReason: 'rpc' });
  }

  fail(errorMessage: string, error: Record<string, unknown>): void {
    this.#finish('failed');
    this.#chat('error', { errorMessage, error });
  }

  #finish(status: string): void {
    this.#gateway.active.delete(this.sessionKey);
    this.agent('lifecycle', { phase: 'end', endedAt: Date.now() });
    const facts = {
      modelProvider: 'acme',
      model: 'acme-large',
      totalTokens: 20_166,
      contextTokens: 128_000,
      estimatedCostUsd: 0.0421,
    };
    this.#gateway.row(this.sessionKey, { status, hasActiveRun: false, ...facts });
  }
}
