import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chunksOf, type Reply, type ScriptedError, type WireFormat } from './model-reply.ts';
import { readSystem, readToolNames, readTurns, type SeenRequest, sequenceFault } from './model-request.ts';
import { chatCompletion, errorBody, eventsOf, type ResponseFacts } from './model-wire.ts';

export type { Reply, ScriptedCall, ScriptedError, ScriptedUsage, WireFormat } from './model-reply.ts';
export type { SeenCall, SeenRequest, SeenResult, SeenTurn } from './model-request.ts';

export type ModelServerOptions = {
  /** By default any free port. */
  readonly port?: number;
  /** Refuses (400) requests whose calls, results, ids or arguments do not fit together. */
  readonly strict?: 'strict';
  /** How many requests are kept; the oldest leave first. Default 500. */
  readonly requestsMax?: number;
};

export type ModelServer = AsyncDisposable & {
  /** `http://127.0.0.1:<port>`: the chat and messages formats are under `/v1`, Gemini's under `/v1beta`. */
  readonly url: string;
  readonly port: number;
  /** The newest requests, oldest first. */
  readonly requests: readonly SeenRequest[];
  /** How many requests arrived in all. */
  readonly count: number;
  /** Replies for the next requests, in order, after those that still wait. */
  script(replies: readonly Reply[]): void;
  /** Decides every reply that the script does not give. */
  reply(decide: (request: SeenRequest) => Reply | Promise<Reply>): void;
  /** Resolves with request number `number` (from 1) when it has arrived. */
  arrived(number: number): Promise<SeenRequest>;
  close(): Promise<void>;
};

const BODY_BYTES_MAX = 64 * 1024 * 1024;
const REQUESTS_MAX = 500;
/** What a server without a script says: the yardstick looks for this word. */
const PONG: Reply = { text: Array.from({ length: 20 }, () => 'pong ') };

/**
 * A model server on the loopback address that answers by script, in the real wire format of whichever vendor it is asked as.
 * Without a script every answer is "pong " twenty times; with a script that has run out it is an error 500 that says so.
 */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const world = new ScriptedModel(options);
  await world.listen(options.port ?? 0);
  return world;
}

class ScriptedModel implements ModelServer {
  readonly #server: Server;
  readonly #options: ModelServerOptions;
  readonly #requests: SeenRequest[] = [];
  readonly #script: Reply[] = [];
  readonly #watchers: { readonly number: number; readonly resolve: (request: SeenRequest) => void }[] = [];
  #scripted = false;
  #decide: ((request: SeenRequest) => Reply | Promise<Reply>) | undefined;
  #count = 0;

  constructor(options: ModelServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => {
        // A script that throws is a fault of the test: the client sees it as a 500 with the reason.
        if (!response.headersSent) sendJson(response, 500, { error: { message: String(error), type: 'script_error' } });
        else response.destroy();
      });
    });
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get requests(): readonly SeenRequest[] {
    return this.#requests;
  }

  get count(): number {
    return this.#count;
  }

  script(replies: readonly Reply[]): void {
    this.#scripted = true;
    this.#script.push(...replies);
  }

  reply(decide: (request: SeenRequest) => Reply | Promise<Reply>): void {
    this.#decide = decide;
  }

  arrived(number: number): Promise<SeenRequest> {
    const known = this.#requests.find((request) => request.number === number);
    if (known) return Promise.resolve(known);
    return new Promise((resolve) => this.#watchers.push({ number, resolve }));
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://model');
    if (request.method === 'GET') return this.#look(url.pathname, response);
    const format = formatOf(url.pathname);
    if (request.method !== 'POST' || format === undefined)
      return sendJson(response, 404, { error: { message: `no such path: ${url.pathname}`, type: 'not_found' } });
    const bodyText = await readBody(request);
    const seen = bodyText === undefined ? undefined : this.#see(format, url.pathname, request, bodyText);
    if (seen === undefined)
      return sendError(response, format, { status: bodyText === undefined ? 413 : 400, message: 'unreadable body' });
    const fault = this.#options.strict ? sequenceFault(seen.turns) : undefined;
    if (fault !== undefined) return sendError(response, format, { status: 400, message: `strict: ${fault}` });
    await answer(response, seen, await this.#next(seen));
  }

  #look(path: string, response: ServerResponse): void {
    const models = [{ id: 'mock', object: 'model', created: 1, owned_by: 'world' }];
    if (path === '/stats') sendJson(response, 200, { requests: this.#count });
    else if (path === '/v1/models') sendJson(response, 200, { object: 'list', data: models });
    else sendJson(response, 404, { error: { message: 'no such path', type: 'not_found' } });
  }

  #see(format: WireFormat, path: string, request: IncomingMessage, bodyText: string): SeenRequest | undefined {
    let body: Readonly<Record<string, unknown>>;
    try {
      body = JSON.parse(bodyText);
    } catch {
      return undefined;
    }
    const turns = readTurns(format, body);
    const lastAssistant = turns.findLastIndex((turn) => turn.role === 'assistant');
    const named = format === 'google-generative-ai' ? /models\/([^:]+):/.exec(path)?.[1] : body['model'];
    const seen: SeenRequest = {
      number: ++this.#count,
      at: Date.now(),
      format,
      path,
      headers: request.headers,
      bodyText,
      body,
      model: typeof named === 'string' ? decodeURIComponent(named) : '',
      streamed: format === 'google-generative-ai' ? path.endsWith(':streamGenerateContent') : body['stream'] === true,
      system: readSystem(format, body),
      toolNames: readToolNames(format, body),
      turns,
      userText: turns.findLast((turn) => turn.role === 'user' && turn.text !== '')?.text ?? '',
      newResults: turns.slice(lastAssistant + 1).flatMap((turn) => turn.results),
    };
    this.#requests.push(seen);
    if (this.#requests.length > (this.#options.requestsMax ?? REQUESTS_MAX)) this.#requests.shift();
    for (const watcher of this.#watchers.filter((w) => w.number === seen.number)) {
      this.#watchers.splice(this.#watchers.indexOf(watcher), 1);
      watcher.resolve(seen);
    }
    return seen;
  }

  async #next(request: SeenRequest): Promise<Reply> {
    const scripted = this.#script.shift();
    if (scripted) return scripted;
    if (this.#decide) return await this.#decide(request);
    if (!this.#scripted) return PONG;
    return { error: { status: 500, message: `the script has no reply for request ${request.number}` } };
  }
}

function formatOf(path: string): WireFormat | undefined {
  if (path === '/v1/chat/completions') return 'openai-completions';
  if (path === '/v1/messages') return 'anthropic-messages';
  return /^\/v1(beta)?\/models\/[^/]+:streamGenerateContent$/.test(path) ? 'google-generative-ai' : undefined;
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

async function answer(response: ServerResponse, request: SeenRequest, reply: Reply): Promise<void> {
  await reply.before;
  if (reply.hang === 'before-headers') return;
  if (reply.error) return sendError(response, request.format, reply.error);
  if (reply.http) {
    const { status, body = '', headers = {} } = reply.http;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
    return;
  }
  const facts: ResponseFacts = {
    id: `response-${request.number}`,
    model: request.model,
    usage: reply.usage ?? { prompt: Math.ceil(request.bodyText.length / 4), output: chunksOf(reply.text).length },
  };
  if (!request.streamed) return sendJson(response, 200, chatCompletion(reply, facts));
  await streamBody(response, reply, request.format, facts);
}

async function streamBody(
  response: ServerResponse,
  reply: Reply,
  format: WireFormat,
  facts: ResponseFacts,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.socket?.setNoDelay(true);
  const parts = reply.raw === undefined ? eventsOf(format, reply, facts) : [reply.raw].flat();
  const limit = Math.min(reply.endAt ?? Number.POSITIVE_INFINITY, reply.resetAt ?? Number.POSITIVE_INFINITY);
  const apart = reply.raw !== undefined || reply.pauses !== undefined || reply.cutAt !== undefined;
  if (!apart) {
    // Nothing asks for separate writes: one is enough, and the yardstick measures the gateway and not this server.
    const whole = Buffer.from(parts.join(''));
    response.write(whole.subarray(0, Math.min(limit, whole.length)));
  } else {
    let sent = 0;
    for (const [i, part] of parts.entries()) {
      for (const pause of reply.pauses ?? []) if (pause.afterEvents === i) await pause.until;
      const bytes = typeof part === 'string' ? Buffer.from(part) : part;
      for (const piece of cutPieces(bytes, sent, reply.cutAt ?? [], limit)) await writeAlone(response, piece);
      sent += bytes.length;
    }
    for (const pause of reply.pauses ?? []) if (pause.afterEvents >= parts.length) await pause.until;
  }
  if (reply.hang === 'before-end') return;
  if (reply.resetAt === undefined) response.end();
  // What was written is given to the kernel before the connection goes.
  else setImmediate(() => response.socket?.destroy());
}

/** The part of `bytes`, which begin at offset `start` of the body, that is sent, divided where a new write is to begin. */
function cutPieces(bytes: Buffer, start: number, cutAt: readonly number[], limit: number): readonly Buffer[] {
  const end = Math.max(0, Math.min(bytes.length, limit - start));
  const cuts = cutAt.map((cut) => cut - start).filter((cut) => cut > 0 && cut < end);
  const edges = [0, ...cuts.sort((a, b) => a - b), end];
  return edges.slice(1).flatMap((to, i) => (to > edges[i]! ? [bytes.subarray(edges[i], to)] : []));
}

/** Writes and lets the other side read, so that the next write is a chunk of its own. */
async function writeAlone(response: ServerResponse, bytes: Buffer): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((resolve) => response.write(bytes, () => resolve()));
  for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendError(response: ServerResponse, format: WireFormat, error: ScriptedError): void {
  response.writeHead(error.status, { 'content-type': 'application/json', ...error.headers });
  response.end(JSON.stringify(errorBody(format, error)));
}
