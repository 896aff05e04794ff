import type { IncomingMessage } from 'node:http';
import type { RawData, WebSocket } from 'ws';
import { cutAtCharacter, isGatewayError, newId, parseJson, printableLine } from '#base';
import type { SessionKey } from '#domain';
import {
  agreedProtocol,
  ConnectParams,
  EVENTS,
  type HelloOk,
  LIMITS,
  METHODS,
  type MethodName,
  OPERATOR_SCOPES,
  type ParamsChecker,
  PROTOCOL_VERSIONS,
  type RequestFrame,
  readRequest,
  type WireError,
} from '#protocol';
import { type Authenticator, callerOf, isLocal } from './authenticate.ts';
import { deviceFault } from './device-signature.ts';
import { type Caller, type GatewayStatus, methodTable } from './methods/index.ts';
import { hasOrigin } from './origin-guard.ts';
import type { GatewayPorts } from './ports.ts';
import type { Audience } from './run-events.ts';
import type { RunFeed } from './run-feed.ts';
import { RefusedRequest, wireErrorOf } from './wire-error.ts';

export type ConnectionOptions = {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  readonly ports: GatewayPorts;
  readonly feed: RunFeed;
  readonly checker: ParamsChecker;
  readonly authenticator: Authenticator;
  readonly status: GatewayStatus;
  /** The snapshot in hello-ok. */
  readonly snapshot: (isAdmin: boolean) => Promise<Readonly<Record<string, unknown>>>;
  /** Called once, when the handshake has succeeded. */
  readonly onConnected: (connection: Connection) => void;
  readonly onClosed: (connection: Connection) => void;
};

const CLOSE = { normal: 1000, protocol: 1002, policy: 1008, tooBig: 1009, tooSlow: 1013, restart: 1012 } as const;
const REASON_BYTES_MAX = 123;
const REQUESTS_AT_ONCE_MAX = 64;
const EARLY_FRAMES_MAX = 8;
/** A secret's holder over a page or from elsewhere: everything that a conversation needs, nothing that changes the gateway. */
const SHARED_SECRET_SCOPES: ReadonlySet<string> = new Set(['operator.read', 'operator.write', 'operator.approvals']);

/** One client's socket: handshake, then requests with their answers, and the events it may see. */
export class Connection {
  readonly id = newId();
  readonly subscriptions: { sessions: boolean; readonly messages: Set<SessionKey> } = {
    sessions: false,
    messages: new Set(),
  };
  readonly #options: ConnectionOptions;
  readonly #nonce = newId();
  readonly #gone = new AbortController();
  readonly #cancelDeadline: () => void;
  #params: ConnectParams | undefined;
  #scopes: ReadonlySet<string> = new Set();
  #state: 'waiting' | 'checking' | 'connected' | 'closed' = 'waiting';
  #seq = 0;
  #requests = 0;
  readonly #early: { readonly data: RawData; readonly isBinary: boolean }[] = [];
  readonly connectedAt: number;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { socket, ports } = options;
    this.connectedAt = ports.clock.now();
    this.#cancelDeadline = ports.clock.after(LIMITS.connectWithinMs, () =>
      this.close(CLOSE.policy, 'handshake timeout'),
    );
    socket.on('message', (data, isBinary) => this.#take(data, isBinary));
    socket.on('error', (error) =>
      ports.log.debug('A connection failed', { connection: this.id, error: error.message }),
    );
    socket.on('close', () => this.#closed());
    this.#send(
      JSON.stringify({
        type: 'event',
        event: 'connect.challenge',
        payload: { nonce: this.#nonce, ts: ports.clock.now() },
      }),
    );
  }

  get isConnected(): boolean {
    return this.#state === 'connected';
  }

  get client(): ConnectParams['client'] | undefined {
    return this.#params?.client;
  }

  get scopes(): ReadonlySet<string> {
    return this.#scopes;
  }

  /** @param payload JSON text, made once for all connections */
  event(name: string, payload: string, to: Audience | undefined): void {
    if (this.#state !== 'connected' || (to && !this.#maySee(to))) return;
    // Events for subscribers have no number: a client that did not ask for them must not see a gap.
    const numbered = to?.subscribed === undefined && to?.cap === undefined ? `,"seq":${++this.#seq}` : '';
    this.#send(`{"type":"event","event":"${name}","payload":${payload}${numbered}}`);
  }

  close(code: number, reason: string): void {
    this.#options.socket.close(code, cutToBytes(reason, REASON_BYTES_MAX));
  }

  #maySee({ scope, cap, subscribed }: Audience): boolean {
    if (!hasScope(this.#scopes, scope)) return false;
    if (cap !== undefined && !this.#params?.caps?.includes(cap)) return false;
    if (subscribed?.to === 'sessions') return this.subscriptions.sessions;
    if (subscribed?.to === 'messages') return this.subscriptions.messages.has(subscribed.key);
    return true;
  }

  #take(data: RawData, isBinary: boolean): void {
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as ArrayBuffer);
    if (this.#state === 'waiting' || this.#state === 'checking') {
      if (bytes.length > LIMITS.preAuthFrameBytes) return this.close(CLOSE.tooBig, 'frame too large before connect');
      if (this.#state === 'checking') {
        // A client that does not wait for hello-ok: its first few requests wait for it instead, unread.
        if (this.#early.push({ data, isBinary }) > EARLY_FRAMES_MAX) this.close(CLOSE.policy, 'invalid handshake');
        return;
      }
    }
    let value: unknown;
    try {
      if (isBinary) throw new Error('binary');
      value = parseJson(bytes.toString('utf8'));
    } catch {
      if (this.#state === 'waiting') return this.close(CLOSE.policy, 'invalid handshake');
      return this.#respond(null, { code: 'INVALID_REQUEST', message: 'invalid request frame: not valid JSON' });
    }
    const read = readRequest(value);
    if (this.#state === 'waiting') {
      if ('fault' in read) return this.close(CLOSE.policy, 'invalid handshake');
      this.#state = 'checking';
      void this.#connect(read.frame);
    } else if ('fault' in read) {
      this.#respond(read.id, { code: 'INVALID_REQUEST', message: `invalid request frame: ${read.fault}` });
    } else void this.#handle(read.frame);
  }

  async #connect(frame: RequestFrame): Promise<void> {
    try {
      const params = this.#checked(frame);
      const protocol = this.#agree(params);
      this.#authenticate(params);
      this.#scopes = this.#grant(params);
      this.#params = params;
      const hello = await this.#hello(protocol);
      this.#cancelDeadline();
      if (this.#gone.signal.aborted) return;
      this.#state = 'connected';
      this.#send(JSON.stringify({ type: 'res', id: frame.id, ok: true, payload: hello }));
      this.#options.onConnected(this);
      for (const early of this.#early.splice(0)) this.#take(early.data, early.isBinary);
    } catch (error) {
      const wire = wireErrorOf(error);
      if (!(error instanceof RefusedRequest))
        this.#options.ports.log.error('A handshake failed', { error: String(error) });
      else
        this.#options.ports.log.warn('A connection was refused', {
          reason: wire.message,
          client: printableLine(clientName(frame.params), 80),
        });
      this.#respond(frame.id, wire);
      this.close(wire.message === 'protocol mismatch' ? CLOSE.protocol : CLOSE.policy, wire.message);
    }
  }

  #checked(frame: RequestFrame): ConnectParams {
    if (frame.method !== 'connect') throw new RefusedRequest('invalid handshake: first request must be connect');
    const fault = this.#options.checker.faultOf(ConnectParams, frame.params);
    if (fault) throw new RefusedRequest(`invalid connect params: ${fault}`);
    const params = frame.params as ConnectParams;
    const { role = 'operator' } = params;
    if (role === 'node') throw new RefusedRequest('invalid role: nodes are not supported in this version');
    if (role !== 'operator') throw new RefusedRequest('invalid role');
    return params;
  }

  #agree(params: ConnectParams): number {
    const protocol = agreedProtocol(params);
    if (protocol !== undefined) return protocol;
    throw new RefusedRequest('protocol mismatch', {
      code: 'PROTOCOL_MISMATCH',
      clientMinProtocol: params.minProtocol,
      clientMaxProtocol: params.maxProtocol,
      expectedProtocol: PROTOCOL_VERSIONS.at(-1),
      minimumProbeProtocol: PROTOCOL_VERSIONS[0],
    });
  }

  #authenticate(params: ConnectParams): void {
    const { ports, request, authenticator } = this.#options;
    const { auth } = ports.settings();
    const given = params.auth ?? {};
    if (given.deviceToken !== undefined && given.token === undefined && given.password === undefined) {
      throw refusal(
        'device token mismatch',
        'AUTH_DEVICE_TOKEN_MISMATCH',
        'device_token_mismatch',
        'update_auth_credentials',
      );
    }
    const word = auth.mode === 'password' ? 'password' : 'token';
    const answer = authenticator.check(given[word], auth, callerOf(request));
    const upper = word.toUpperCase();
    if (!answer.ok) {
      if (answer.reason === 'rate-limited') {
        throw new RefusedRequest('unauthorized: too many failed attempts', {
          code: 'AUTH_RATE_LIMITED',
          retryAfterMs: answer.retryAfterMs,
          recommendedNextStep: 'wait_then_retry',
        });
      }
      if (answer.reason === 'missing')
        throw refusal(
          `gateway ${word} missing`,
          `AUTH_${upper}_MISSING`,
          `${word}_missing`,
          'update_auth_configuration',
        );
      throw refusal(
        `gateway ${word} mismatch`,
        `AUTH_${upper}_MISMATCH`,
        `${word}_mismatch`,
        'update_auth_credentials',
      );
    }
    const fault = deviceFault(params, this.#nonce, ports.clock.now());
    if (fault)
      throw new RefusedRequest(`device identity refused: ${fault.reason}`, { code: fault.code, reason: fault.reason });
  }

  /** A client's wish can only make its rights smaller (security model T4). */
  #grant(params: ConnectParams): ReadonlySet<string> {
    const asked = (params.scopes ?? []).filter((scope) => (OPERATOR_SCOPES as readonly string[]).includes(scope));
    const { request } = this.#options;
    const isBackend = params.client.id === 'gateway-client' && params.client.mode === 'backend';
    if (isBackend && !params.device && !hasOrigin(request) && isLocal(request)) return new Set(asked);
    return new Set(asked.filter((scope) => SHARED_SECRET_SCOPES.has(scope)));
  }

  async #hello(protocol: number): Promise<HelloOk> {
    const { ports, snapshot } = this.#options;
    return {
      type: 'hello-ok',
      protocol,
      server: { version: ports.version, connId: this.id },
      features: { methods: Object.keys(METHODS), events: EVENTS },
      snapshot: await snapshot(this.#scopes.has('operator.admin')),
      auth: { role: 'operator', scopes: [...this.#scopes].sort(), method: ports.settings().auth.mode },
      policy: {
        maxPayload: LIMITS.maxPayload,
        maxBufferedBytes: LIMITS.maxBufferedBytes,
        tickIntervalMs: LIMITS.tickIntervalMs,
      },
    };
  }

  async #handle(frame: RequestFrame): Promise<void> {
    if (this.#requests >= REQUESTS_AT_ONCE_MAX) {
      return this.#respond(frame.id, {
        code: 'UNAVAILABLE',
        message: `more than ${REQUESTS_AT_ONCE_MAX} requests at once`,
        retryable: true,
      });
    }
    this.#requests++;
    try {
      const later: Promise<unknown>[] = [];
      const payload = await this.#call(frame, (answer) => later.push(answer));
      this.#send(JSON.stringify({ type: 'res', id: frame.id, ok: true, payload }));
      for (const answer of later) {
        answer.then(
          (second) => this.#send(JSON.stringify({ type: 'res', id: frame.id, ok: true, payload: second })),
          (error) =>
            this.#respond(frame.id, wireErrorOf(error), {
              runId: payloadRunId(payload),
              status: 'error',
              summary: wireErrorOf(error).message,
            }),
        );
      }
    } catch (error) {
      if (!isGatewayError(error) && !(error instanceof RefusedRequest)) {
        this.#options.ports.log.error('A request failed unexpectedly', {
          method: printableLine(frame.method, 80),
          error: String(error),
          stack: (error as Error)?.stack,
        });
      }
      this.#respond(frame.id, wireErrorOf(error));
    } finally {
      this.#requests--;
    }
  }

  async #call(
    { method, params = {} }: RequestFrame,
    respondLater: (answer: Promise<unknown>) => void,
  ): Promise<unknown> {
    const isKnown = Object.hasOwn(METHODS, method);
    const scope = isKnown ? METHODS[method as MethodName].scope : 'operator.admin';
    // Rights come before the look-up: who may not call it does not learn whether it exists.
    if (scope !== 'none' && !hasScope(this.#scopes, scope))
      throw new RefusedRequest(`missing scope: ${scope}`, { code: 'SCOPE_MISSING', scope });
    const handler = methodTable.get(method);
    if (!isKnown || !handler) throw new RefusedRequest(`unknown method: ${printableLine(method, 128)}`);
    const fault = this.#options.checker.faultOf(METHODS[method as MethodName].params, params);
    if (fault) throw new RefusedRequest(`invalid ${method} params: ${fault}`);
    const { ports, feed, status } = this.#options;
    return await handler(params, { ports, feed, status, caller: this.#caller(respondLater) });
  }

  #caller(respondLater: Caller['respondLater']): Caller {
    const { id = 'test', mode = 'test' } = this.client ?? {};
    const isPage = mode === 'webchat' || mode === 'ui' || id.startsWith('webchat') || id === 'openclaw-control-ui';
    return {
      channel: isPage ? 'webchat' : 'cli',
      surface: id,
      scopes: this.#scopes,
      name: `${id}/${mode}`,
      subscriptions: this.subscriptions,
      respondLater,
      gone: this.#gone.signal,
    };
  }

  #respond(id: unknown, error: WireError, payload?: unknown): void {
    this.#send(JSON.stringify({ type: 'res', id, ok: false, error, ...(payload === undefined ? {} : { payload }) }));
  }

  #send(text: string): void {
    const { socket } = this.#options;
    if (socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > LIMITS.maxBufferedBytes) {
      // A reader that does not read costs itself its connection; it finds everything again in the history.
      this.#options.ports.log.warn('A client was too slow and is disconnected', { connection: this.id });
      return socket.terminate();
    }
    socket.send(text);
  }

  #closed(): void {
    this.#state = 'closed';
    this.#cancelDeadline();
    this.#gone.abort();
    this.#options.onClosed(this);
  }
}

/** Admin has every right of an operator, write includes read. */
function hasScope(scopes: ReadonlySet<string>, wanted: string): boolean {
  return (
    scopes.has(wanted) || scopes.has('operator.admin') || (wanted === 'operator.read' && scopes.has('operator.write'))
  );
}

function refusal(what: string, code: string, authReason: string, recommendedNextStep: string): RefusedRequest {
  return new RefusedRequest(`unauthorized: ${what}`, {
    code,
    authReason,
    canRetryWithDeviceToken: false,
    recommendedNextStep,
  });
}

function clientName(params: unknown): string {
  const client = (params as { client?: { id?: unknown } } | undefined)?.client;
  return typeof client?.id === 'string' ? client.id : 'unknown';
}

const payloadRunId = (payload: unknown): unknown => (payload as { runId?: unknown } | undefined)?.runId;

function cutToBytes(text: string, max: number): string {
  let cut = cutAtCharacter(text, max);
  while (Buffer.byteLength(cut) > max) cut = cutAtCharacter(cut, cut.length - 1);
  return cut;
}
