import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from '#base';
import { type Authenticator, bearerOf } from './authenticate.ts';
import { notAllowed, refuseUnread, sendApiError, sendJson, sendText, setSecurityHeaders } from './http-answers.ts';
import { chatCompletions, sendModels } from './openai-api.ts';
import { guardOrigin } from './origin-guard.ts';
import { peerOf } from './peer.ts';
import type { GatewayPorts } from './ports.ts';
import type { RunFeed } from './run-feed.ts';
import type { SelfView } from './self-view.ts';
import { StaticFiles } from './static-files.ts';
import { statusOf } from './wire-error.ts';

type RoutesOptions = {
  readonly ports: GatewayPorts;
  readonly authenticator: Authenticator;
  readonly feed: RunFeed;
  readonly view: SelfView;
  /** The port that pages of ours come from; known once the gateway listens. */
  readonly port: () => number;
  /** Names of what keeps the gateway from taking work. */
  readonly failing: () => readonly string[];
};

const READ = 'GET, HEAD';
/** Paths of programs: a page in their place would only confuse them. */
const PROGRAM_PATHS = ['/v1/', '/api/', '/hooks', '/tools/'];
const CREDENTIAL_IN_QUERY = /(^|&)(token|password|access_token|api_key)=/i;

/** Who gets what over HTTP. The order is the same for all: host and origin, method, credential, type, and only then the body. */
export class HttpRoutes {
  readonly #options: RoutesOptions;
  readonly #files: StaticFiles;

  constructor(options: RoutesOptions) {
    this.#options = options;
    this.#files = new StaticFiles(options.ports.uiFolder);
  }

  /** Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    setSecurityHeaders(response);
    try {
      await this.#route(request, response);
    } catch (error) {
      const { log } = this.#options.ports;
      if (request.destroyed && !request.complete)
        return log.debug('A caller left before its request was read', { path: request.url });
      log.error('A request failed unexpectedly', {
        path: request.url,
        error: messageOf(error),
        stack: (error as Error)?.stack,
      });
      if (response.headersSent) response.destroy();
      else sendApiError(response, statusOf(error), 'internal error', 'api_error');
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { ports, feed, port } = this.#options;
    const settings = ports.settings();
    const refused = guardOrigin(request, settings, port());
    if (refused)
      return refuseUnread(request, response, () => sendText(response, refused.status, `${refused.message}\n`));
    const { method = 'GET', url = '/' } = request;
    const [path = '/', query = ''] = url.split('?', 2);
    const isRead = method === 'GET' || method === 'HEAD';
    switch (path) {
      case '/health':
      case '/healthz':
        return isRead ? sendJson(response, 200, { ok: true, status: 'live' }) : notAllowed(request, response, READ);
      case '/ready':
      case '/readyz':
        return isRead ? this.#ready(response) : notAllowed(request, response, READ);
      case '/__openclaw/control-ui-config.json':
        if (!isRead) return notAllowed(request, response, READ);
        return this.#isAllowed(request, response) ? this.#uiConfig(response) : undefined;
      case '/v1/chat/completions':
        if (!settings.chatCompletions) break;
        if (method !== 'POST') return notAllowed(request, response, 'POST');
        if (!this.#isAllowed(request, response) || !isJson(request, response)) return;
        return await chatCompletions(request, response, ports, feed);
    }
    if ((path === '/v1/models' || path.startsWith('/v1/models/')) && settings.chatCompletions) {
      if (method !== 'GET') return notAllowed(request, response, 'GET');
      if (!this.#isAllowed(request, response)) return;
      const id = path === '/v1/models' ? undefined : (decoded(path.slice('/v1/models/'.length)) ?? '');
      return sendModels(response, ports, id);
    }
    if (PROGRAM_PATHS.some((prefix) => path.startsWith(prefix)))
      return refuseUnread(request, response, () => sendText(response, 404, 'Not Found'));
    if (!isRead) return notAllowed(request, response, READ);
    if (CREDENTIAL_IN_QUERY.test(query)) {
      const why = 'Credentials in the query are refused: they end up in logs. Use the link with #token=.\n';
      return sendText(response, 400, why);
    }
    const name = decoded(path);
    if (name === undefined) return sendText(response, 404, 'Not Found');
    await this.#files.serve(name, request, response);
  }

  /** Checks the bearer; answers the refusal itself. Before the body is read. */
  #isAllowed(request: IncomingMessage, response: ServerResponse): boolean {
    const { authenticator, ports } = this.#options;
    const { auth, trustedProxies } = ports.settings();
    const answer = authenticator.check(bearerOf(request), auth, peerOf(request, trustedProxies));
    if (answer.ok) return true;
    refuseUnread(request, response, () => {
      if (answer.reason === 'rate-limited') {
        const headers = { 'Retry-After': String(Math.ceil(answer.retryAfterMs / 1_000)) };
        sendApiError(response, 429, 'Too many failed attempts', 'rate_limit_error', { headers });
      } else {
        const headers = { 'WWW-Authenticate': 'Bearer' };
        sendApiError(response, 401, 'Unauthorized', 'unauthorized', { headers });
      }
    });
    return false;
  }

  #ready(response: ServerResponse): void {
    const { view, failing } = this.#options;
    const names = failing();
    const ready = names.length === 0;
    sendJson(response, ready ? 200 : 503, {
      ready,
      failing: names,
      uptimeMs: view.uptimeMs,
      eventLoop: view.eventLoop(),
    });
  }

  #uiConfig(response: ServerResponse): void {
    const { agents, version } = this.#options.ports;
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
}

/** A page of another site can post text without asking; JSON it cannot. */
function isJson(request: IncomingMessage, response: ServerResponse): boolean {
  if (/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) return true;
  refuseUnread(request, response, () =>
    sendApiError(response, 415, 'Use Content-Type: application/json.', 'invalid_request_error'),
  );
  return false;
}

/** Undefined for what is not valid percent-encoding: nothing has such a name. */
function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
