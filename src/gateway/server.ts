import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { GatewayError } from '#base';
import { LIMITS, ParamsChecker } from '#protocol';
import { Authenticator } from './authenticate.ts';
import { Connection } from './connection.ts';
import { HttpRoutes } from './http-routes.ts';
import { guardOrigin } from './origin-guard.ts';
import { peerOf } from './peer.ts';
import type { GatewayPorts } from './ports.ts';
import { type Audience, type Broadcaster, RunEvents } from './run-events.ts';
import { RunFeed } from './run-feed.ts';
import { SelfView } from './self-view.ts';
import { sessionView } from './session-view.ts';

export type RunningGateway = {
  readonly port: number;
  readonly host: string;
  /** Tells clients, closes their connections, lets answers under way end for a moment, and stops listening. */
  close(reason: string): Promise<void>;
};

const SOCKETS_PER_PEER_MAX = 16;
const WAITING_SOCKETS_MAX = 128;
const CONNECTED_MAX = 512;
/** A little more than the dispatcher gives its runs: an answer that is being streamed ends by itself, with its end in it. */
const SHUTDOWN_CLOSE_MS = 5_000;

/**
 * Listens: HTTP and WebSocket on one port.
 * @throws {GatewayError} `PORT_IN_USE`, `BIND_REFUSED`
 */
export async function startGateway(ports: GatewayPorts): Promise<RunningGateway> {
  const gateway = new Gateway(ports);
  await gateway.listen();
  return gateway;
}

const REFUSED_SOCKET_MS = 1_000;

class Gateway implements RunningGateway, Broadcaster {
  readonly #ports: GatewayPorts;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: LIMITS.maxPayload,
    clientTracking: true,
  });
  readonly #connections = new Set<Connection>();
  /** Connected and not yet welcome, with whose they are. */
  readonly #waiting = new Map<Connection, string>();
  readonly #authenticator: Authenticator;
  readonly #checker = new ParamsChecker();
  readonly #feed: RunFeed;
  readonly #events: RunEvents;
  readonly #view: SelfView;
  readonly #leave: (() => void)[] = [];
  #cancelTick: () => void = () => undefined;
  #stopping = false;
  port = 0;
  host = '';

  constructor(ports: GatewayPorts) {
    this.#ports = ports;
    this.#authenticator = new Authenticator(ports);
    this.#view = new SelfView(ports, this.#connections);
    this.#feed = new RunFeed(ports);
    this.#events = new RunEvents({
      out: this,
      feed: this.#feed,
      clock: ports.clock,
      log: ports.log,
      session: async (key) => {
        const row = await ports.sessions.get(key);
        return row && sessionView(row, ports);
      },
    });
    const routes = new HttpRoutes({
      ports,
      authenticator: this.#authenticator,
      feed: this.#feed,
      view: this.#view,
      port: () => this.port,
      failing: () => (this.#stopping ? ['stopping'] : []),
    });
    this.#server = createServer(
      {
        headersTimeout: 10_000,
        requestTimeout: 30_000,
        maxHeaderSize: 16 * 1024,
        keepAliveTimeout: 60_000,
        requireHostHeader: true,
      },
      (request, response) => {
        // A connection that was busy when the gateway went down is idle now, and would be waited for.
        response.once('close', () => this.#stopping && setImmediate(() => this.#server.closeIdleConnections()));
        void routes.answer(request, response);
      },
    );
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    this.#server.on('clientError', (_error, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    });
  }

  async listen(): Promise<void> {
    const { host, port } = this.#ports.settings();
    await new Promise<void>((resolve, reject) => {
      const refuse = (error: Error) => reject(listenError(error, host, port));
      this.#server.once('error', refuse);
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', refuse);
        resolve();
      });
    });
    this.#server.on('error', (error) => this.#ports.log.error('The listener failed', { error: error.message }));
    const address = this.#server.address();
    this.port = typeof address === 'object' && address ? address.port : port;
    this.host = host;
    const { dispatch, approvals, sessions } = this.#ports;
    this.#leave.push(
      dispatch.subscribe((notice) => this.#events.take(notice)),
      approvals.subscribe((approval) => this.#events.approval(approval)),
      sessions.subscribe(({ key, reason }) => reason !== 'update' && this.#events.sessionChanged(key, reason)),
    );
    this.#tick();
  }

  hears(to: Audience): boolean {
    for (const connection of this.#connections) if (connection.hears(to)) return true;
    return false;
  }

  broadcast(event: string, payload: unknown, to: Audience): void {
    let text: string | undefined;
    for (const connection of this.#connections) {
      if (!connection.hears(to)) continue;
      text ??= frameText(event, payload);
      connection.event(text, to);
    }
  }

  async close(reason: string): Promise<void> {
    this.#stopping = true;
    this.#cancelTick();
    this.broadcast('shutdown', { reason: `gateway ${reason}`, restartExpectedMs: null }, 'everyone');
    for (const connection of [...this.#connections, ...this.#waiting.keys()]) connection.close(1012, 'service restart');
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const cancel = this.#ports.clock.after(SHUTDOWN_CLOSE_MS, () => {
      for (const socket of this.#sockets.clients) socket.terminate();
      this.#server.closeAllConnections();
    });
    await closed;
    cancel();
    // Until now: answers under way over HTTP live on the run events too.
    for (const leave of this.#leave) leave();
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', (error) => this.#ports.log.debug('An upgrade failed', { error: error.message }));
    const settings = this.#ports.settings();
    const refused = guardOrigin(request, settings, this.port);
    if (refused) return refuseUpgrade(socket, refused.status);
    if (this.#stopping || this.#waiting.size >= WAITING_SOCKETS_MAX || this.#connections.size >= CONNECTED_MAX)
      return refuseUpgrade(socket, 503);
    const peer = peerOf(request, settings.trustedProxies);
    const ofPeer = [...this.#waiting.values()].filter((key) => key === peer.key).length;
    if (ofPeer >= SOCKETS_PER_PEER_MAX) return refuseUpgrade(socket, 429);
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      const connection = new Connection({
        socket: client,
        request,
        peer,
        ports: this.#ports,
        feed: this.#feed,
        checker: this.#checker,
        authenticator: this.#authenticator,
        view: this.#view,
        onConnected: (connected) => this.#welcomed(connected),
        onClosed: (closed) => {
          this.#waiting.delete(closed);
          if (this.#connections.delete(closed)) this.#presenceChanged();
        },
      });
      this.#waiting.set(connection, peer.key);
    });
  }

  #welcomed(connection: Connection): void {
    this.#waiting.delete(connection);
    this.#connections.add(connection);
    this.#presenceChanged();
    this.#view.health().then(
      (health) => {
        this.#view.changed('health');
        const text = frameText('health', health, this.#view.versions);
        if (connection.hears('everyone')) connection.event(text, 'everyone');
      },
      (error) => this.#ports.log.error('The health could not be told', { error: String(error) }),
    );
  }

  #presenceChanged(): void {
    if (this.#stopping) return;
    this.#view.changed('presence');
    const text = frameText('presence', { presence: this.#view.presence() }, this.#view.versions);
    for (const connection of this.#connections) if (connection.hears('everyone')) connection.event(text, 'everyone');
  }

  #tick(): void {
    this.#cancelTick = this.#ports.clock.after(LIMITS.tickIntervalMs, () => {
      this.broadcast('tick', { ts: this.#ports.clock.now() }, 'everyone');
      this.#tick();
    });
  }
}

/** An event's frame without its end, which differs by connection. */
function frameText(event: string, payload: unknown, stateVersion?: object): string {
  const version = stateVersion === undefined ? '' : `,"stateVersion":${JSON.stringify(stateVersion)}`;
  return `{"type":"event","event":"${event}","payload":${JSON.stringify(payload)}${version}`;
}

function listenError(error: Error, host: string, port: number): GatewayError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new GatewayError('PORT_IN_USE', `Port ${port} is already in use`, {
      next: 'Stop what uses it, or choose another port: reins start --port <number>.',
      cause: error,
    });
  }
  return new GatewayError('BIND_REFUSED', `Cannot listen on ${host}:${port} (${code ?? error.message})`, {
    next: 'Check gateway.bind and gateway.port in the config.',
    cause: error,
  });
}

function refuseUpgrade(socket: Duplex, status: number): void {
  // The HTTP server does not know this socket any more: a peer that keeps its half open would hold up the shutdown.
  socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
  setTimeout(() => socket.destroy(), REFUSED_SOCKET_MS).unref();
}
