// The gateway on real sockets, with everything behind it played by the test: dispatcher, sessions, approvals, clock.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { ManualClock } from '#world';
import { GatewayError } from '../../src/base/index.ts';
import type { Dispatch, Submission } from '../../src/dispatch/index.ts';
import {
  type AgentId,
  type Approval,
  type ApprovalDecision,
  type Envelope,
  type Message,
  NO_USAGE,
  type RunEvent,
  type RunNotice,
  type RunResult,
  type SessionKey,
} from '../../src/domain/index.ts';
import { type GatewayPorts, type GatewaySettings, type RunningGateway, startGateway } from '../../src/gateway/index.ts';
import type { SessionPatch, SessionRow } from '../../src/sessions/index.ts';

export const SECRET = 'stage-secret-0123456789abcdef';
export const MAIN = 'agent:main:main' as SessionKey;

type Played = {
  readonly runId: string;
  readonly sessionKey: SessionKey;
  readonly finished: PromiseWithResolvers<RunResult>;
  seq: number;
  ended: RunResult | undefined;
};

/** A dispatcher whose runs do what the test says. */
export class PlayedDispatch implements Dispatch {
  readonly submitted: Envelope[] = [];
  readonly aborted: SessionKey[] = [];
  /** Thrown by the next submit. */
  refusal: GatewayError | undefined;
  /** Called when a message was accepted. */
  onSubmit: (envelope: Envelope) => void = () => undefined;
  readonly #runs = new Map<string, Played>();
  readonly #listeners = new Set<(notice: RunNotice) => void>();

  async submit(envelope: Envelope): Promise<Submission> {
    if (this.refusal) throw this.refusal;
    const { idempotencyKey: runId, sessionKey } = envelope;
    const known = this.#runs.get(`${sessionKey} ${runId}`);
    if (known) return { runId, status: known.ended ? 'done' : 'in_flight', finished: known.finished.promise };
    this.submitted.push(envelope);
    const run = this.#begin(sessionKey, runId);
    setImmediate(() => this.onSubmit(envelope));
    return { runId, status: 'started', finished: run.finished.promise };
  }

  abort(key: SessionKey, runId?: string): readonly string[] {
    this.aborted.push(key);
    return [...this.#runs.values()]
      .filter((run) => run.sessionKey === key && !run.ended && (runId ?? run.runId) === run.runId)
      .map((run) => {
        this.end(run.sessionKey, run.runId, { outcome: 'aborted' });
        return run.runId;
      });
  }

  async wait(runId: string): Promise<RunResult | undefined> {
    return [...this.#runs.values()].find((run) => run.runId === runId)?.finished.promise;
  }

  activeRun(key: SessionKey): string | undefined {
    return [...this.#runs.values()].find((run) => run.sessionKey === key && !run.ended)?.runId;
  }

  subscribe(listener: (notice: RunNotice) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  load() {
    return { running: 0, waiting: 0 };
  }

  /** Tells an event of a run, which need not have been submitted. */
  tell(sessionKey: SessionKey, runId: string, ...events: readonly RunEvent[]): void {
    const run = this.#runs.get(`${sessionKey} ${runId}`) ?? this.#begin(sessionKey, runId);
    for (const event of events) {
      const notice = { runId, sessionKey, seq: ++run.seq, event };
      for (const listener of this.#listeners) listener(notice);
    }
  }

  end(sessionKey: SessionKey, runId: string, more: Partial<RunResult> = {}): void {
    const run = this.#runs.get(`${sessionKey} ${runId}`)!;
    const result: RunResult = {
      ...{ outcome: 'answered', texts: [], usage: NO_USAGE, provider: 'world', model: 'm', turns: 1 },
      ...more,
    };
    run.ended = result;
    this.tell(sessionKey, runId, { type: 'run-end', at: 0, result });
    run.finished.resolve(result);
  }

  #begin(sessionKey: SessionKey, runId: string): Played {
    const run = { runId, sessionKey, finished: Promise.withResolvers<RunResult>(), seq: 0, ended: undefined };
    this.#runs.set(`${sessionKey} ${runId}`, run);
    return run;
  }
}

export class PlayedSessions {
  readonly rows = new Map<SessionKey, SessionRow>();
  readonly stored = new Map<SessionKey, { entryId: string; seq: number; message: Message }[]>();
  /** Runs in the middle of each reading of a history. */
  whileReading: () => void = () => undefined;
  /** How often a row was read. */
  gets = 0;
  fault: Error | undefined;
  readonly #listeners = new Set<(change: { key: SessionKey; reason: string }) => void>();

  async list() {
    const rows = [...this.rows.values()];
    return { rows, total: rows.length };
  }

  async get(key: SessionKey) {
    this.gets++;
    if (this.fault) throw this.fault;
    return this.rows.get(key);
  }

  async create(key: SessionKey, { agent, label }: { agent: AgentId; label?: string }): Promise<SessionRow> {
    const known = this.rows.get(key);
    if (known) return known;
    const row: SessionRow = {
      ...{ key, agent, sessionId: `id-of-${key}`, startedAt: 1, updatedAt: 1, lastInteractionAt: 1, status: 'idle' },
      ...{ inputTokens: 0, outputTokens: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, costUsd: 0 },
      ...(label === undefined ? {} : { label }),
    };
    this.rows.set(key, row);
    for (const listener of this.#listeners) listener({ key, reason: 'create' });
    return row;
  }

  async patch(key: SessionKey, patch: SessionPatch): Promise<SessionRow> {
    const kept = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== null));
    const row = { ...this.rows.get(key)!, ...kept } as SessionRow;
    this.rows.set(key, row);
    return row;
  }

  async reset(key: SessionKey): Promise<SessionRow> {
    const row = { ...this.rows.get(key)!, sessionId: 'fresh' };
    this.rows.set(key, row);
    return row;
  }

  async delete(key: SessionKey): Promise<boolean> {
    return this.rows.delete(key);
  }

  async history(key: SessionKey, { limit }: { limit: number }) {
    const messages = [...(this.stored.get(key) ?? [])].slice(-limit);
    await Promise.resolve();
    this.whileReading();
    return { sessionId: 's', messages };
  }

  store(key: SessionKey, message: Message): { readonly entryId: string; readonly seq: number } {
    const messages = this.stored.get(key) ?? [];
    this.stored.set(key, messages);
    const place = { entryId: `e${messages.length + 1}`, seq: messages.length + 1 };
    messages.push({ ...place, message });
    return place;
  }

  subscribe(listener: (change: { key: SessionKey; reason: string }) => void) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export class PlayedApprovals {
  readonly waiting = new Map<string, Approval>();
  readonly #listeners = new Set<(approval: Approval) => void>();

  ask(id: string, command: string): void {
    const approval: Approval = {
      ...{ id, runId: 'r', callId: 'c', sessionKey: MAIN, agent: 'main' as AgentId, command, cwd: '/tmp' },
      ...{ reason: 'not on the list', allowedDecisions: ['allow-once', 'deny'], createdAt: 1, expiresAt: 2 },
    };
    this.waiting.set(id, approval);
    for (const listener of this.#listeners) listener(approval);
  }

  list = () => [...this.waiting.values()];
  get = (id: string) => this.waiting.get(id);

  resolve(id: string, decision: ApprovalDecision, by: string): Approval {
    const approval = this.waiting.get(id);
    if (!approval) throw new GatewayError('APPROVAL_NOT_FOUND', 'unknown or expired approval id');
    this.waiting.delete(id);
    const resolved = { ...approval, decision, resolvedBy: by, resolvedAt: 3 };
    for (const listener of this.#listeners) listener(resolved);
    return resolved;
  }

  /** How many listen. */
  get listening(): number {
    return this.#listeners.size;
  }

  subscribe(listener: (approval: Approval) => void) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export type Stage = {
  readonly gateway: RunningGateway;
  readonly port: number;
  readonly url: string;
  readonly clock: ManualClock;
  readonly dispatch: PlayedDispatch;
  readonly sessions: PlayedSessions;
  readonly approvals: PlayedApprovals;
  readonly uiFolder: string;
  readonly logged: { readonly level: string; readonly message: string; readonly fields: unknown }[];
  /** A socket that has said nothing yet. */
  socket(headers?: Readonly<Record<string, string>>): Peer;
  /** A client that was let in. */
  client(more?: Readonly<Record<string, unknown>>, headers?: Readonly<Record<string, string>>): Promise<Peer>;
};

/** Everything is taken down when the test ends. */
export async function openStage(t: TestContext, settings: Partial<GatewaySettings> = {}): Promise<Stage> {
  const uiFolder = await mkdtemp(join(tmpdir(), 'reins-stage-'));
  const clock = new ManualClock();
  const [dispatch, sessions, approvals] = [new PlayedDispatch(), new PlayedSessions(), new PlayedApprovals()];
  const logged: Stage['logged'] = [];
  const logAt = (level: string) => (message: string, fields?: unknown) => void logged.push({ level, message, fields });
  const model = { provider: 'world', model: 'm', contextTokens: 64_000 };
  const agents = ['main', 'research'].map((id) => ({ id: id as AgentId, name: id, workspace: `/ws/${id}`, model }));
  const ports: GatewayPorts = {
    ...{ dispatch, sessions, approvals, clock, uiFolder, version: '9.9.9', logFile: join(uiFolder, 'gateway.log') },
    agents: { list: () => agents, defaultId: () => 'main' as AgentId },
    models: {
      list: () => [{ provider: 'world', id: 'm', name: 'M', contextWindow: 64_000, reasoning: false, input: ['text'] }],
    },
    commands: () => [{ name: 'status', description: 'show the state' }],
    configView: () => ({ config: { gateway: { auth: { token: '[redacted]' } } } }),
    settings: () => ({
      ...{
        host: '127.0.0.1',
        port: 0,
        allowedHosts: [],
        allowedOrigins: [],
        trustedProxies: [],
        chatCompletions: true,
      },
      auth: {
        mode: 'token',
        secret: SECRET,
        rateLimit: { maxAttempts: 10, windowMs: 60_000, lockoutMs: 300_000 },
      },
      ...settings,
    }),
    log: { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
    place: { stateDir: '/state', configFile: '/state/reins.json' },
  };
  const gateway = await startGateway(ports);
  const peers: Peer[] = [];
  t.after(async () => {
    for (const peer of peers) peer.socket.terminate();
    await Promise.all([gateway.close('stopping'), closing(clock)]);
    await rm(uiFolder, { recursive: true, force: true });
  });
  const socket: Stage['socket'] = (headers = {}) => {
    const peer = new Peer(new WebSocket(`ws://127.0.0.1:${gateway.port}/`, { headers }));
    peers.push(peer);
    return peer;
  };
  return {
    ...{ gateway, port: gateway.port, url: `http://127.0.0.1:${gateway.port}`, clock },
    ...{ dispatch, sessions, approvals, uiFolder, logged, socket },
    async client(more, headers) {
      const peer = socket(headers);
      await peer.challenge();
      peer.send(connectFrame(more));
      await peer.answer('connect');
      return peer;
    },
  };
}

/** What the gateway waits for while it closes is its clock's. */
async function closing(clock: ManualClock): Promise<void> {
  await new Promise(setImmediate);
  await clock.advance(10_000);
}

export const connectFrame = (more: Readonly<Record<string, unknown>> = {}) => ({
  ...{ type: 'req', id: 'connect', method: 'connect' },
  params: {
    ...{ minProtocol: 3, maxProtocol: 4, role: 'operator', auth: { token: SECRET } },
    client: { id: 'gateway-client', version: '1', platform: 'test', mode: 'backend' },
    scopes: ['operator.admin', 'operator.read', 'operator.write', 'operator.approvals'],
    ...more,
  },
});

type Wire = {
  readonly code?: string;
  readonly retryable?: boolean;
  readonly message?: string;
  readonly details?: Record<string, unknown>;
};
export type Frame = {
  readonly type: string;
  readonly id?: unknown;
  readonly event?: string;
  readonly ok?: boolean;
  readonly seq?: number;
  readonly stateVersion?: { readonly presence: number; readonly health: number };
  readonly payload?: Record<string, unknown>;
  readonly error?: Wire;
};

/** One end of a WebSocket that remembers every frame. */
export class Peer {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  /** Resolves with how it ended, or with the HTTP status of a refused upgrade. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  readonly #wake = new Set<() => void>();

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => {
      this.frames.push(JSON.parse(String(data)) as Frame);
      this.#changed();
    });
    const { promise, resolve } = Promise.withResolvers<{ readonly code: number; readonly reason: string }>();
    this.closed = promise;
    socket.on('unexpected-response', (_request, response) => resolve({ code: response.statusCode ?? 0, reason: '' }));
    // An end that the gateway did not explain shows as such in `closed`.
    socket.on('error', () => resolve({ code: 0, reason: 'error' }));
    socket.on('close', (code, reason) => {
      resolve({ code, reason: String(reason) });
      this.#changed();
    });
  }

  send(frame: object | string | Buffer): void {
    this.socket.send(typeof frame === 'string' || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame));
  }

  async challenge(): Promise<string> {
    return (await this.until((frame) => frame.event === 'connect.challenge')).payload?.['nonce'] as string;
  }

  /** The first frame, past or to come, that fits. */
  async until(fits: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const frame = this.frames.find(fits);
      if (frame) return frame;
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed; got ${JSON.stringify(this.frames)}`);
      await new Promise<void>((resolve) => this.#wake.add(resolve));
    }
  }

  #changed(): void {
    for (const wake of this.#wake) wake();
    this.#wake.clear();
  }

  answer(id: string): Promise<Frame> {
    return this.until((frame) => frame.type === 'res' && frame.id === id);
  }

  #requests = 0;
  /** The whole answer, also a refusal. */
  async request(method: string, params?: unknown): Promise<Frame> {
    const id = `${method}-${++this.#requests}`;
    this.send({ type: 'req', id, method, ...(params === undefined ? {} : { params }) });
    return await this.answer(id);
  }

  /** The payload of an answer that must be good. */
  async call(method: string, params: unknown = {}): Promise<Record<string, unknown>> {
    const { ok, payload, error } = await this.request(method, params);
    if (!ok) throw new Error(`${method}: ${error?.message}`);
    return payload ?? {};
  }

  events(...names: readonly string[]): readonly Frame[] {
    return this.frames.filter((frame) => frame.event !== undefined && names.includes(frame.event));
  }

  /** Everything that the gateway sent before it answered this has come. */
  async settled(): Promise<void> {
    await new Promise(setImmediate);
    await this.request('health');
  }

  async opened(): Promise<void> {
    if (this.socket.readyState !== WebSocket.OPEN) await once(this.socket, 'open');
  }
}

export const userMessage = (text: string): Message => ({ role: 'user', content: text, timestamp: 1 });
export const assistantMessage = (text: string): Message => ({
  ...{ role: 'assistant', content: [{ type: 'text', text }], api: 'a', provider: 'world', model: 'm' },
  ...{ usage: NO_USAGE, stopReason: 'stop', timestamp: 2 },
});
export const start: RunEvent = { type: 'run-start', at: 1, resumed: false };
export const text = (piece: string, turn = 1): RunEvent => ({ type: 'text-delta', turn, text: piece });
export const turn = (number: number): RunEvent => ({
  ...{ type: 'turn-start', turn: number, provider: 'world', model: 'm' },
});
