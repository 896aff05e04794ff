import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { GatewayError, messageOf } from '#base';
import { MAIN_SESSION, mainSessionKey } from '#domain';
import { LIMITS, ParamsChecker } from '#protocol';
import { Authenticator, bearerOf, callerOf } from './authenticate.ts';
import { Connection } from './connection.ts';
import { sendApiError, sendJson, sendText, setSecurityHeaders } from './http-answers.ts';
import type { GatewayStatus } from './methods/index.ts';
import { chatCompletions, sendModels } from './openai-api.ts';
import { guardOrigin } from './origin-guard.ts';
import type { GatewayPorts } from './ports.ts';
import { type Audience, type Broadcaster, RunEvents } from './run-events.ts';
import { RunFeed } from './run-feed.ts';
import { sessionView } from './session-view.ts';
import { StaticFiles } from './static-files.ts';
import { statusOf } from './wire-error.ts';

export type RunningGateway = {
  readonly port: number;
  readonly host: string;
  /** Tells clients, closes their connections and stops listening. */
  close(reason: string): Promise<void>;
};

const SOCKETS_PER_ADDRESS_MAX = 16;
const WAITING_SOCKETS_MAX = 128;
const CONNECTED_MAX = 512;
const SHUTDOWN_CLOSE_MS = 1_000;

/**
 * Listens: HTTP and WebSocket on one port.
 * @throws {GatewayError} `PORT_IN_USE`, `BIND_REFUSED`
 */
export async function startGateway(ports: GatewayPorts): Promise<RunningGateway> {
  const gateway = new Gateway(ports);
  await gateway.listen();
  return gateway;
}

class Gateway implements RunningGateway, Broadcaster, GatewayStatus {
  readonly #ports: GatewayPorts;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: LIMITS.maxPayload,
    clientTracking: true,
  });
  readonly #connections = new Set<Connection>();
  readonly #waiting = new Map<Connection, string>();
  readonly #authenticator: Authenticator;
  readonly #checker = new ParamsChecker();
  readonly #feed = new RunFeed();
  readonly #events: RunEvents;
  readonly #files: StaticFiles;
  readonly #leave: (() => void)[] = [];
  readonly #startedAt: number;
  #versions = { presence: 1, health: 1 };
  #stopping = false;
  port = 0;
  host = '';

  constructor(ports: GatewayPorts) {
    this.#ports = ports;
    this.#startedAt = ports.clock.now();
    this.#authenticator = new Authenticator({ clock: ports.clock });
    this.#files = new StaticFiles(ports.uiFolder);
    this.#events = new RunEvents({
      out: this,
      feed: this.#feed,
      clock: ports.clock,
      session: async (key) => {
        const row = await ports.sessions.get(key);
        return row && sessionView(row, ports);
      },
    });
    this.#server = createServer(
      {
        headersTimeout: 10_000,
        requestTimeout: 30_000,
        maxHeaderSize: 16 * 1024,
        keepAliveTimeout: 60_000,
        requireHostHeader: true,
      },
      (request, response) => void this.#answer(request, response),
    );
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    this.#server.on('clientError', (_error, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    });
  }

  get hasListeners(): boolean {
    return this.#connections.size > 0;
  }

  async listen(): Promise<void> {
    const { host, port } = this.#ports.settings();
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(listenError(error, host, port)));
      this.#server.listen({ host, port }, resolve);
    });
    const address = this.#server.address();
    this.port = typeof address === 'object' && address ? address.port : port;
    this.host = host;
    this.#leave.push(
      this.#ports.dispatch.subscribe((notice) => this.#events.take(notice)),
      this.#ports.approvals.subscribe((approval) => this.#events.approval(approval)),
      this.#ports.sessions.subscribe(
        ({ key, reason }) => reason !== 'update' && this.#events.sessionChanged(key, reason),
      ),
    );
    this.#tick();
  }

  broadcast(event: string, payload: unknown, to: Audience): void {
    let text: string | undefined;
    for (const connection of this.#connections) {
      text ??= JSON.stringify(payload);
      connection.event(event, text, to);
    }
  }

  async close(reason: string): Promise<void> {
    this.#stopping = true;
    for (const leave of this.#leave) leave();
    this.#everyone('shutdown', { reason: `gateway ${reason}`, restartExpectedMs: null });
    for (const connection of [...this.#connections, ...this.#waiting.keys()]) connection.close(1012, 'service restart');
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const timer = setTimeout(() => {
      for (const socket of this.#sockets.clients) socket.terminate();
      this.#server.closeAllConnections();
    }, SHUTDOWN_CLOSE_MS);
    await closed;
    clearTimeout(timer);
  }

  async health(): Promise<Readonly<Record<string, unknown>>> {
    const { agents, sessions, clock } = this.#ports;
    const { rows, total } = await sessions.list({ limit: 5 });
    const now = clock.now();
    const recent = rows.map(({ key, updatedAt }) => ({ key, updatedAt, age: now - updatedAt }));
    const summary = { path: '(multiple)', count: total, recent };
    return {
      ok: true,
      ts: now,
      durationMs: 0,
      eventLoop: eventLoop(),
      plugins: { loaded: [], errors: [] },
      channels: {},
      channelOrder: [],
      channelLabels: {},
      heartbeatSeconds: 0,
      defaultAgentId: agents.defaultId(),
      agents: agents.list().map(({ id, name }) => ({
        agentId: id,
        name,
        isDefault: id === agents.defaultId(),
        heartbeat: { enabled: false },
        sessions: summary,
      })),
      sessions: summary,
    };
  }

  presence(): readonly Readonly<Record<string, unknown>>[] {
    const { version } = this.#ports;
    const self = {
      host: hostname(),
      version,
      platform: process.platform,
      mode: 'gateway',
      reason: 'self',
      text: `Gateway ${version}`,
      ts: this.#startedAt,
    };
    const clients = [...this.#connections].map((connection) => {
      const { client } = connection;
      return {
        host: client?.displayName ?? client?.id,
        version: client?.version,
        platform: client?.platform,
        mode: client?.mode,
        roles: ['operator'],
        scopes: [...connection.scopes],
        instanceId: client?.instanceId ?? connection.id,
        reason: 'connect',
        text: `${client?.id} (${client?.mode})`,
        ts: connection.connectedAt,
      };
    });
    return [self, ...clients];
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    setSecurityHeaders(response);
    try {
      await this.#route(request, response);
    } catch (error) {
      this.#ports.log.error('A request failed unexpectedly', {
        path: request.url,
        error: messageOf(error),
        stack: (error as Error)?.stack,
      });
      if (response.headersSent) response.destroy();
      else sendApiError(response, statusOf(error), 'internal error', 'api_error');
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refused = guardOrigin(request, this.#ports.settings(), this.port);
    if (refused) return sendText(response, refused.status, `${refused.message}\n`);
    const { method = 'GET', url = '/' } = request;
    const [path = '/', query = ''] = url.split('?', 2);
    const isRead = method === 'GET' || method === 'HEAD';
    if (path === '/health' || path === '/healthz')
      return isRead ? sendJson(response, 200, { ok: true, status: 'live' }) : notAllowed(response, 'GET, HEAD');
    if (path === '/ready' || path === '/readyz')
      return isRead ? this.#ready(response) : notAllowed(response, 'GET, HEAD');
    if (path === '/v1/chat/completions' && this.#ports.settings().chatCompletions) {
      if (method !== 'POST') return notAllowed(response, 'POST');
      if (!this.#isAllowed(request, response) || !isJson(request, response)) return;
      return await chatCompletions(request, response, this.#ports, this.#feed);
    }
    if ((path === '/v1/models' || path.startsWith('/v1/models/')) && this.#ports.settings().chatCompletions) {
      if (method !== 'GET') return notAllowed(response, 'GET');
      if (!this.#isAllowed(request, response)) return;
      return sendModels(
        response,
        this.#ports,
        path === '/v1/models' ? undefined : decoded(path.slice('/v1/models/'.length)),
      );
    }
    if (path === '/__openclaw/control-ui-config.json') {
      if (!isRead) return notAllowed(response, 'GET, HEAD');
      return this.#isAllowed(request, response) ? this.#uiConfig(response) : undefined;
    }
    if (path.startsWith('/v1/') || path.startsWith('/api/') || path === '/tools/invoke' || path.startsWith('/hooks'))
      return sendText(response, 404, 'Not Found');
    if (!isRead) return notAllowed(response, 'GET, HEAD');
    if (/(^|&)(token|password|access_token)=/i.test(query)) {
      return sendText(
        response,
        400,
        'Credentials in the query are refused: they end up in logs. Use the link with #token=.\n',
      );
    }
    await this.#files.serve(decoded(path), request, response);
  }

  /** Checks the bearer; answers the refusal itself. Before the body is read. */
  #isAllowed(request: IncomingMessage, response: ServerResponse): boolean {
    const answer = this.#authenticator.check(bearerOf(request), this.#ports.settings().auth, callerOf(request));
    if (answer.ok) return true;
    // What an unknown caller sends is not read, however long it is.
    response.shouldKeepAlive = false;
    response.once('finish', () => request.destroy());
    if (answer.reason === 'rate-limited') {
      const headers = { 'Retry-After': String(Math.ceil(answer.retryAfterMs / 1000)) };
      sendApiError(response, 429, 'Too many failed attempts', 'rate_limit_error', { headers });
    } else sendApiError(response, 401, 'Unauthorized', 'unauthorized', { headers: { 'WWW-Authenticate': 'Bearer' } });
    return false;
  }

  #ready(response: ServerResponse): void {
    const failing = this.#stopping ? ['stopping'] : [];
    const uptimeMs = this.#ports.clock.now() - this.#startedAt;
    sendJson(response, failing.length > 0 ? 503 : 200, {
      ready: failing.length === 0,
      failing,
      uptimeMs,
      eventLoop: eventLoop(),
    });
  }

  #uiConfig(response: ServerResponse): void {
    const { agents, version } = this.#ports;
    const id = agents.defaultId();
    const name = agents.list().find((agent) => agent.id === id)?.name ?? id;
    sendJson(response, 200, {
      basePath: '/',
      assistantName: name,
      assistantAvatar: name.slice(0, 1).toUpperCase(),
      assistantAvatarStatus: 'none',
      assistantAgentId: id,
      serverVersion: version,
      localMediaPreviewRoots: [],
      embedSandbox: 'scripts',
      allowExternalEmbedUrls: false,
    });
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', (error) => this.#ports.log.debug('An upgrade failed', { error: error.message }));
    const refused = guardOrigin(request, this.#ports.settings(), this.port);
    const address = callerOf(request);
    if (refused) return refuseUpgrade(socket, refused.status);
    if (this.#stopping || this.#waiting.size >= WAITING_SOCKETS_MAX || this.#connections.size >= CONNECTED_MAX)
      return refuseUpgrade(socket, 503);
    if ([...this.#waiting.values()].filter((other) => other === address).length >= SOCKETS_PER_ADDRESS_MAX)
      return refuseUpgrade(socket, 429);
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      const connection = new Connection({
        socket: client,
        request,
        ports: this.#ports,
        feed: this.#feed,
        checker: this.#checker,
        authenticator: this.#authenticator,
        status: this,
        snapshot: (isAdmin) => this.#snapshot(isAdmin),
        onConnected: (connected) => {
          this.#waiting.delete(connected);
          this.#connections.add(connected);
          this.#presenceChanged();
        },
        onClosed: (closed) => {
          this.#waiting.delete(closed);
          if (this.#connections.delete(closed)) this.#presenceChanged();
        },
      });
      this.#waiting.set(connection, address);
    });
  }

  async #snapshot(isAdmin: boolean): Promise<Readonly<Record<string, unknown>>> {
    const { agents, place } = this.#ports;
    const defaultAgentId = agents.defaultId();
    const authMode = this.#ports.settings().auth.mode;
    return {
      presence: this.presence(),
      health: await this.health(),
      stateVersion: this.#versions,
      uptimeMs: this.#ports.clock.now() - this.#startedAt,
      sessionDefaults: {
        defaultAgentId,
        mainKey: MAIN_SESSION,
        mainSessionKey: mainSessionKey(defaultAgentId),
        scope: 'per-sender',
      },
      ...(isAdmin ? { configPath: place.configFile, stateDir: place.stateDir, authMode } : {}),
    };
  }

  #presenceChanged(): void {
    if (this.#stopping) return;
    this.#versions = { ...this.#versions, presence: this.#versions.presence + 1 };
    this.#everyone('presence', { presence: this.presence(), stateVersion: this.#versions });
  }

  #everyone(event: string, payload: unknown): void {
    const text = JSON.stringify(payload);
    for (const connection of this.#connections) connection.event(event, text, undefined);
  }

  #tick(): void {
    this.#leave.push(
      this.#ports.clock.after(LIMITS.tickIntervalMs, () => {
        this.#leave.pop();
        this.#everyone('tick', { ts: this.#ports.clock.now() });
        this.#tick();
      }),
    );
  }
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
  socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function notAllowed(response: ServerResponse, allow: string): void {
  sendText(response, 405, 'Method Not Allowed', { Allow: allow });
}

/** A page of another site can post text without asking; JSON it cannot. */
function isJson(request: IncomingMessage, response: ServerResponse): boolean {
  if (/^application\/json\b/i.test(request.headers['content-type'] ?? '')) return true;
  sendApiError(response, 415, 'Use Content-Type: application/json.', 'invalid_request_error');
  return false;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // Not valid percent-encoding: no file and no id has such a name.
    return '';
  }
}

function eventLoop() {
  const { utilization } = performance.eventLoopUtilization();
  return { degraded: false, reasons: [], utilization: Math.round(utilization * 1000) / 1000 };
}
