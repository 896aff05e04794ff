// One WebSocket from its opening to its close: the handshake, frames in, frames out, and the watch for silence. It never reconnects.
import { type Clock, GatewayError, isRecord, messageOf, parseJson } from '#base';
import { type EventFrame, type HelloOk, LIMITS, PROTOCOL_VERSIONS, type WireError } from '#protocol';
import { errorFromWire } from './wire-error.ts';

/** How long opening and the handshake may take together. */
const HANDSHAKE_MS_MAX = 15_000;
/** Frames the other side has not taken yet; past it the connection counts as stuck. */
const BUFFERED_BYTES_MAX = 32 * 1024 * 1024;
const CLOSE_SILENT = 4000;
const CLOSE_STUCK = 4009;
const POLICY_VIOLATION = 1008;
const PROTOCOL_ERROR = 1002;

export type Identity = {
  /** `ws:` or `wss:` address of the gateway. */
  readonly url: string;
  readonly token?: string;
  /** For a gateway whose shared secret is a password. */
  readonly password?: string;
  readonly clientId: 'gateway-client' | 'webchat-ui';
  readonly mode: 'backend' | 'webchat';
  readonly scopes: readonly string[];
  readonly caps?: readonly string[];
  readonly version: string;
  readonly platform: string;
};

/** A response as it is read: `id` is a string, because ours are. */
export type Answer = {
  readonly id: string;
  readonly ok: boolean;
  readonly payload?: unknown;
  readonly error?: WireError;
};

export type ConnectionHooks = {
  onHello(hello: HelloOk): void;
  onResponse(frame: Answer): void;
  onEvent(frame: EventFrame): void;
  /** Called once, last. `refusal` when the gateway said why it does not want this client. */
  onClose(reason: string, refusal: GatewayError | undefined): void;
};

export class Connection {
  readonly #socket: WebSocket;
  readonly #identity: Identity;
  readonly #hooks: ConnectionHooks;
  readonly #clock: Clock;
  readonly #connectId = 'connect-1';
  #stopWatch: () => void;
  #lastFrameAt = 0;
  #hello: HelloOk | undefined;
  #refusal: GatewayError | undefined;
  #closed = false;

  constructor(identity: Identity, clock: Clock, hooks: ConnectionHooks) {
    this.#identity = identity;
    this.#clock = clock;
    this.#hooks = hooks;
    this.#socket = new WebSocket(identity.url);
    this.#socket.onmessage = (event) => this.#receive(event.data);
    this.#socket.onclose = (event) => this.#ended(event.code, event.reason);
    this.#stopWatch = clock.after(HANDSHAKE_MS_MAX, () =>
      this.#giveUp(CLOSE_SILENT, 'the gateway did not answer in time'),
    );
  }

  send(frame: { readonly type: 'req'; readonly id: string; readonly method: string; readonly params?: unknown }): void {
    if (this.#socket.bufferedAmount > BUFFERED_BYTES_MAX) {
      this.#giveUp(CLOSE_STUCK, 'the gateway stopped taking data');
      return;
    }
    this.#socket.send(JSON.stringify(frame));
  }

  close(): void {
    this.#giveUp(1000, 'closed by this client');
  }

  #receive(data: unknown): void {
    if (this.#closed) return;
    this.#lastFrameAt = this.#clock.now();
    let frame: unknown;
    try {
      frame = parseJson(String(data), { keysMax: 2_000_000 });
    } catch (thrown) {
      this.#giveUp(PROTOCOL_ERROR, `the gateway sent something unreadable: ${messageOf(thrown)}`);
      return;
    }
    if (!isRecord(frame)) return;
    if (frame['type'] === 'event' && typeof frame['event'] === 'string') this.#event(frame as EventFrame);
    else if (frame['type'] === 'res' && typeof frame['id'] === 'string') this.#response(frame as unknown as Answer);
  }

  #event(frame: EventFrame): void {
    if (this.#hello) this.#hooks.onEvent(frame);
    else if (frame.event === 'connect.challenge') this.#sendConnect();
  }

  #response(frame: Answer): void {
    if (this.#hello) {
      this.#hooks.onResponse(frame);
      return;
    }
    if (frame.id !== this.#connectId) return;
    const hello = frame.payload;
    if (frame.ok && isRecord(hello) && hello['type'] === 'hello-ok') {
      this.#hello = hello as unknown as HelloOk;
      this.#watchSilence();
      this.#hooks.onHello(this.#hello);
    } else {
      this.#refusal = errorFromWire(
        frame.error ?? { code: 'INVALID_REQUEST', message: 'the gateway refused to connect' },
      );
      this.#giveUp(1000, this.#refusal.message);
    }
  }

  #sendConnect(): void {
    const { clientId, mode, scopes, caps = [], version, platform, token, password } = this.#identity;
    const auth = { ...(token === undefined ? {} : { token }), ...(password === undefined ? {} : { password }) };
    this.send({
      type: 'req',
      id: this.#connectId,
      method: 'connect',
      params: {
        minProtocol: PROTOCOL_VERSIONS[0],
        maxProtocol: PROTOCOL_VERSIONS.at(-1),
        client: { id: clientId, version, platform, mode },
        role: 'operator',
        scopes,
        caps,
        ...(Object.keys(auth).length === 0 ? {} : { auth }),
      },
    });
  }

  /** The gateway ticks; two silent intervals mean that nobody is there, even if the socket still looks open. */
  #watchSilence(): void {
    const silentMsMax = 2 * Math.max(1_000, this.#hello?.policy.tickIntervalMs ?? LIMITS.tickIntervalMs);
    const check = () => {
      const silentMs = this.#clock.now() - this.#lastFrameAt;
      if (silentMs >= silentMsMax) this.#giveUp(CLOSE_SILENT, 'the gateway went silent');
      else this.#stopWatch = this.#clock.after(silentMsMax - silentMs, check);
    };
    this.#stopWatch();
    this.#stopWatch = this.#clock.after(silentMsMax, check);
  }

  #ended(code: number, reason: string): void {
    // A close for policy before the handshake is final even when no response came with it.
    if (!this.#hello && code === POLICY_VIOLATION) {
      this.#refusal ??= new GatewayError('UNAUTHORIZED', reason || 'the gateway refused this client');
    }
    if (!this.#hello && code === PROTOCOL_ERROR) {
      this.#refusal ??= new GatewayError('PROTOCOL_MISMATCH', reason || 'the gateway speaks another protocol version');
    }
    this.#report(reason || (this.#hello ? 'the connection was lost' : 'the gateway cannot be reached'));
  }

  /** The other side may be gone, so the end is reported now and not when it answers the close. */
  #giveUp(code: number, reason: string): void {
    if (this.#closed) return;
    this.#socket.close(code === PROTOCOL_ERROR ? 4002 : code, reason.slice(0, 100));
    this.#report(reason);
  }

  #report(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopWatch();
    this.#hooks.onClose(reason, this.#refusal);
  }
}
