import type { IncomingMessage } from 'node:http';
import type { RawData, WebSocket } from 'ws';
import { cutAtCharacter, isGatewayError, messageOf, newId, parseJson, printableLine } from '#base';
import type { SessionKey } from '#domain';
import {
  type ConnectParams,
  EVENTS,
  type HelloOk,
  LIMITS,
  METHODS,
  type MethodName,
  type ParamsChecker,
  type RequestFrame,
  readRequest,
  type WireError,
} from '#protocol';
import type { Authenticator } from './authenticate.ts';
import { type Welcome, welcome } from './handshake.ts';
import { type Caller, methodTable } from './methods/index.ts';
import type { Peer } from './peer.ts';
import type { GatewayPorts } from './ports.ts';
import type { Audience } from './run-events.ts';
import type { RunFeed } from './run-feed.ts';
import type { SelfView } from './self-view.ts';
import { RefusedRequest, wireErrorOf } from './wire-error.ts';

export type ConnectionOptions = {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  readonly peer: Peer;
  readonly ports: GatewayPorts;
  readonly feed: RunFeed;
  readonly checker: ParamsChecker;
  readonly authenticator: Authenticator;
  readonly view: SelfView;
  /** Called once, when the handshake has succeeded. */
  readonly onConnected: (connection: Connection) => void;
  readonly onClosed: (connection: Connection) => void;
};

const CLOSE = { protocol: 1002, policy: 1008, tooBig: 1009 } as const;
const REASON_BYTES_MAX = 123;
const REQUESTS_AT_ONCE_MAX = 64;
const EARLY_FRAMES_MAX = 8;
/** What surrounds frames on the wire: their headers, and pings. */
const FRAMING_BYTES_MAX = 1_024;
/** How long a peer has to answer a close before its socket is taken away. */
const CLOSE_WITHIN_MS = 2_000;

type State = 'waiting' | 'checking' | 'connected' | 'closing';

/** One client's socket: handshake, then requests with their answers, and the events it may see. */
export class Connection {
  readonly id = newId();
  readonly subscriptions: { sessions: boolean; readonly messages: Set<SessionKey> } = {
    sessions: false,
    messages: new Set(),
  };
  readonly connectedAt: number;
  readonly #options: ConnectionOptions;
  readonly #nonce = newId();
  readonly #gone = new AbortController();
  readonly #early: { readonly data: RawData; readonly isBinary: boolean }[] = [];
  #cancelDeadline: () => void;
  #params: ConnectParams | undefined;
  #scopes: ReadonlySet<string> = new Set();
  #state: State = 'waiting';
  #seq = 0;
  #requests = 0;

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
    this.#meter();
    this.#send(
      `{"type":"event","event":"connect.challenge","payload":{"nonce":"${this.#nonce}","ts":${this.connectedAt}}}`,
    );
  }

  get client(): ConnectParams['client'] | undefined {
    return this.#params?.client;
  }

  get scopes(): ReadonlySet<string> {
    return this.#scopes;
  }

  /** Whether an event for this audience would be sent here. */
  hears(to: Audience): boolean {
    if (this.#state !== 'connected') return false;
    if (to === 'everyone') return true;
    const { scope, cap, subscribed } = to;
    if (!hasScope(this.#scopes, scope)) return false;
    if (cap !== undefined && !this.#params?.caps?.includes(cap)) return false;
    if (subscribed?.to === 'sessions') return this.subscriptions.sessions;
    if (subscribed?.to === 'messages') return this.subscriptions.messages.has(subscribed.key);
    return true;
  }

  /**
   * Sends an event to one who {@link hears} it.
   * @param text the frame without its end: `{"type":"event","event":…,"payload":…`, made once for all connections
   */
  event(text: string, to: Audience): void {
    // Events for subscribers have no number: a client that did not ask for them must not see a gap.
    const isNumbered = to === 'everyone' || (to.subscribed === undefined && to.cap === undefined);
    this.#send(isNumbered ? `${text},"seq":${++this.#seq}}` : `${text}}`);
  }

  /** Nothing that still arrives counts; a peer that does not answer loses its socket. */
  close(code: number, reason: string): void {
    if (this.#state === 'closing') return;
    this.#state = 'closing';
    this.#early.length = 0;
    this.#cancelDeadline();
    const { socket, ports } = this.#options;
    this.#cancelDeadline = ports.clock.after(CLOSE_WITHIN_MS, () => socket.terminate());
    socket.close(code, cutToBytes(reason, REASON_BYTES_MAX));
  }

  /** Until `connect` has succeeded, bytes are counted as they arrive: a frame of 25 MiB must not be gathered to be refused. */
  #meter(): void {
    const { socket: raw } = this.#options.request;
    let bytes = 0;
    const count = (part: Buffer) => {
      if (this.#state === 'connected') return void raw.off('data', count);
      bytes += part.length;
      const frames = this.#state === 'waiting' ? 1 : 1 + EARLY_FRAMES_MAX;
      if (bytes <= frames * LIMITS.preAuthFrameBytes + FRAMING_BYTES_MAX) return;
      raw.off('data', count);
      this.close(CLOSE.tooBig, 'frame too large before connect');
      // What else this peer has to say is not even read.
      this.#options.socket.pause();
    };
    raw.on('data', count);
  }

  #take(data: RawData, isBinary: boolean): void {
    if (this.#state === 'closing') return;
    const bytes = bytesOf(data);
    if (this.#state !== 'connected' && bytes.length > LIMITS.preAuthFrameBytes)
      return this.close(CLOSE.tooBig, 'frame too large before connect');
    if (this.#state === 'checking') {
      // A client that does not wait for hello-ok: its first few requests wait for it instead, unread.
      if (this.#early.push({ data, isBinary }) > EARLY_FRAMES_MAX) this.close(CLOSE.policy, 'invalid handshake');
      return;
    }
    const value = isBinary ? undefined : readJson(bytes);
    if (this.#state === 'connected') return this.#request(value);
    const read = readRequest(value);
    if ('fault' in read) return this.close(CLOSE.policy, 'invalid handshake');
    this.#state = 'checking';
    void this.#connect(read.frame);
  }

  #request(value: unknown): void {
    const read = value === undefined ? { id: null, fault: 'not valid JSON' } : readRequest(value);
    if ('frame' in read) void this.#handle(read.frame);
    else this.#respond(read.id, { code: 'INVALID_REQUEST', message: `invalid request frame: ${read.fault}` });
  }

  async #connect(frame: RequestFrame): Promise<void> {
    const { ports, request, peer, checker, authenticator, onConnected } = this.#options;
    try {
      const { params, protocol, scopes } = welcome(frame, {
        checker,
        authenticator,
        auth: ports.settings().auth,
        peer,
        isPage: request.headers.origin !== undefined,
        nonce: this.#nonce,
        now: ports.clock.now(),
      });
      const hello = await this.#hello({ params, protocol, scopes });
      if (this.#state !== 'checking') return;
      this.#cancelDeadline();
      this.#params = params;
      this.#scopes = scopes;
      this.#state = 'connected';
      this.#send(JSON.stringify({ type: 'res', id: frame.id, ok: true, payload: hello }));
      onConnected(this);
      for (const early of this.#early.splice(0)) this.#take(early.data, early.isBinary);
    } catch (error) {
      const wire = wireErrorOf(error);
      if (error instanceof RefusedRequest) {
        ports.log.warn('A connection was refused', {
          reason: printableLine(wire.message, 300),
          client: printableLine(clientName(frame.params), 80),
          peer: printableLine(peer.key, 240),
        });
      } else ports.log.error('A handshake failed', { error: messageOf(error), stack: (error as Error)?.stack });
      this.#respond(frame.id, wire);
      const isVersion = wire.details?.['code'] === 'PROTOCOL_MISMATCH';
      this.close(isVersion ? CLOSE.protocol : CLOSE.policy, wire.message);
    }
  }

  async #hello({ protocol, scopes }: Welcome): Promise<HelloOk> {
    const { ports, view } = this.#options;
    const { maxPayload, maxBufferedBytes, tickIntervalMs, attachments } = LIMITS;
    return {
      type: 'hello-ok',
      protocol,
      server: { version: ports.version, connId: this.id },
      features: { methods: Object.keys(METHODS), events: EVENTS },
      snapshot: await view.snapshot(scopes.has('operator.admin') ? 'admin' : 'others'),
      auth: { role: 'operator', scopes: [...scopes].sort(), method: ports.settings().auth.mode },
      policy: { maxPayload, maxBufferedBytes, tickIntervalMs, attachments },
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
    const { ports, feed, view } = this.#options;
    return await handler(params, { ports, feed, view, caller: this.#caller(respondLater) });
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
    this.#state = 'closing';
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

/** One view of the bytes, however the socket gathered them; never a copy of a frame that is whole. */
function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** Undefined for what is not JSON, or not JSON that may be used. */
function readJson(bytes: Buffer): unknown {
  try {
    return parseJson(bytes.toString('utf8'));
  } catch (error) {
    if (isGatewayError(error, 'JSON_INVALID')) return undefined;
    throw error;
  }
}
