import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ERROR_CODES, GatewayError, ID_PATTERN, isGatewayError, isRecord, newId, parseJson } from '#base';
import {
  type AgentId,
  agentOf,
  agentSessionKey,
  answerText,
  type Envelope,
  type ImageBlock,
  isThinkingLevel,
  type RunNotice,
  type RunResult,
  type SessionKey,
  verbatimSessionKey,
} from '#domain';
import { LIMITS } from '#protocol';
import { readBody, refuseUnread, sendApiError, sendJson } from './http-answers.ts';
import type { GatewayPorts } from './ports.ts';
import type { RunFeed } from './run-feed.ts';
import { statusOf } from './wire-error.ts';

const BODY_BYTES_MAX = 20 * 1024 * 1024;
const IMAGES_MAX = 16;
const HISTORY_MAX = 200;
const REPEATABLE_NAME_LENGTH = 32;
const FIRST_CHUNK_AFTER_MS = 100;
const BEAT_EVERY_MS = 15_000;
const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache',
  Connection: 'keep-alive',
};
const MODEL_NAMES = /^(?:reins|openclaw)(?:[/:](.+))?$|^agent:(.+)$/;

type ChatRequest = {
  readonly envelope: Envelope;
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
};

/** `POST /v1/chat/completions`: the last user message is the prompt, the agent answers with its own tools and session. */
export async function chatCompletions(
  request: IncomingMessage,
  response: ServerResponse,
  ports: GatewayPorts,
  feed: RunFeed,
): Promise<void> {
  let asked: ChatRequest;
  try {
    asked = readChatRequest(await readBody(request, BODY_BYTES_MAX), request, ports);
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    const answer = () => sendApiError(response, statusOf(error), error.message, 'invalid_request_error');
    return isGatewayError(error, 'MESSAGE_TOO_LARGE') ? refuseUnread(request, response, answer) : answer();
  }
  if (asked.stream) await streamed(asked, response, ports, feed);
  else await whole(asked, response, ports);
}

async function whole({ envelope, model }: ChatRequest, response: ServerResponse, ports: GatewayPorts): Promise<void> {
  let result: RunResult;
  try {
    result = await (await ports.dispatch.submit(envelope)).finished;
  } catch (error) {
    return refuse(response, error);
  }
  if (result.outcome === 'failed' && answerText(result) === '') {
    const status = result.error?.code === 'GATEWAY_STOPPING' ? 503 : 500;
    return sendApiError(response, status, failureText(result), 'api_error', {
      ...(result.error ? { code: result.error.code } : {}),
      headers: retryHeaders(status, result.error !== undefined && ERROR_CODES[result.error.code].retryable),
    });
  }
  sendJson(response, 200, {
    id: `chatcmpl_${envelope.idempotencyKey}`,
    object: 'chat.completion',
    created: Math.floor(ports.clock.now() / 1000),
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: answerText(result) }, finish_reason: 'stop' }],
    usage: usageOf(result),
  });
}

/** The hot path: one chunk for each piece of text. A caller that goes away stops nothing: the answer stays in the session. */
async function streamed(
  { envelope, model, includeUsage }: ChatRequest,
  response: ServerResponse,
  ports: GatewayPorts,
  feed: RunFeed,
): Promise<void> {
  const head = `{"id":${JSON.stringify(`chatcmpl_${envelope.idempotencyKey}`)},"object":"chat.completion.chunk","created":${Math.floor(ports.clock.now() / 1000)},"model":${JSON.stringify(model)},`;
  const chunk = (rest: string) => `data: ${head}${rest}}\n\n`;
  const delta = (content: string, finish = 'null') =>
    chunk(`"choices":[{"index":0,"delta":${content},"finish_reason":${finish}}]`);
  // The first chunk travels with the first text, the last ones together: every write is a call into the system.
  let waiting = delta('{"role":"assistant"}');
  const text = new StreamedText((piece) => {
    // A reader that does not read loses its connection; the run goes on and its answer stays in the session.
    if (response.writableLength > LIMITS.maxBufferedBytes) response.destroy();
    response.write(waiting + delta(`{"content":${JSON.stringify(piece)}}`));
    waiting = '';
  });
  const unfollow = feed.follow(envelope.sessionKey, envelope.idempotencyKey, (notice) => text.take(notice));
  // A model that thinks long, or a tool that works long: the caller and what is between must see that the answer is coming.
  let stillThere = (): void => undefined;
  const beat = () => {
    response.write(waiting === '' ? ': working\n\n' : waiting);
    waiting = '';
    stillThere = ports.clock.after(BEAT_EVERY_MS, beat);
  };
  try {
    const submission = await ports.dispatch.submit(envelope);
    response.writeHead(200, STREAM_HEADERS);
    // Of a run that was under way before, the beginning is gone: its answer follows as a whole.
    text.begin(submission.status === 'started' ? 'start' : 'end');
    stillThere = ports.clock.after(FIRST_CHUNK_AFTER_MS, beat);
    const result = await submission.finished;
    text.end(answerText(result));
    const fault = { message: failureText(result), type: 'api_error', code: result.error?.code };
    const failure = result.outcome === 'failed' ? `data: ${JSON.stringify({ error: fault })}\n\n` : '';
    const usage = includeUsage ? chunk(`"choices":[],"usage":${JSON.stringify(usageOf(result))}`) : '';
    response.end(`${waiting}${failure}${delta('{}', '"stop"')}${usage}data: [DONE]\n\n`);
  } catch (error) {
    if (response.headersSent) response.destroy();
    else refuse(response, error);
  } finally {
    stillThere();
    unfollow();
  }
}

/**
 * Turns a run's events into text that only grows: messages are joined by a blank line, and an answer that is asked for again continues
 * where it is the same as what was sent. Pieces of one turn of the event loop leave as one: providers put many small ones in a packet.
 */
class StreamedText {
  readonly #send: (piece: string) => void;
  #waiting = true;
  /** Sent in this turn of the event loop, not yet on its way. */
  #gathered = '';
  #sent = '';
  /** What the run has said, as far as it counts. */
  #said = '';
  /** What was sent is the beginning of what was said; only a retry can make it false. Checked only then: it costs the whole text. */
  #isInStep = true;
  #turnStart = 0;
  #inTurn = false;
  #isMuted = false;

  constructor(send: (piece: string) => void) {
    this.#send = send;
  }

  take({ event }: RunNotice): void {
    if (this.#isMuted) return;
    if (event.type === 'turn-start') {
      this.#turnStart = this.#said.length;
      this.#inTurn = false;
    } else if (event.type === 'turn-retry') {
      this.#said = this.#said.slice(0, this.#turnStart);
      this.#inTurn = false;
      this.#isInStep = this.#said.length === this.#sent.length;
    } else if (event.type === 'text-delta') {
      const piece = !this.#inTurn && this.#said !== '' ? `\n\n${event.text}` : event.text;
      this.#inTurn = true;
      this.#said += piece;
      if (this.#waiting) return;
      if (this.#isInStep) this.#push(piece);
      else this.#catchUp();
    }
  }

  /** @param from `start`: the run is new and its text may flow; `end`: only the whole answer is to be sent */
  begin(from: 'start' | 'end'): void {
    this.#waiting = false;
    this.#isMuted = from === 'end';
    if (this.#isMuted) this.#said = '';
    else this.#catchUp();
  }

  /** The whole answer is known: what is missing of it follows. */
  end(answer: string): void {
    if (answer !== this.#sent) {
      this.#said = answer;
      this.#catchUp();
      if (!this.#sent.endsWith(answer)) this.#push(`\n\n${answer}`);
    }
    this.#leave();
  }

  /** Sends what was said beyond what was sent, where the one continues the other. */
  #catchUp(): void {
    if (this.#said.length < this.#sent.length || !this.#said.startsWith(this.#sent)) return;
    this.#isInStep = true;
    if (this.#said.length > this.#sent.length) this.#push(this.#said.slice(this.#sent.length));
  }

  #push(piece: string): void {
    this.#sent += piece;
    if (this.#gathered === '') setImmediate(() => this.#leave());
    this.#gathered += piece;
  }

  #leave(): void {
    if (this.#gathered === '') return;
    const piece = this.#gathered;
    this.#gathered = '';
    this.#send(piece);
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  const status = statusOf(error);
  const text = isGatewayError(error)
    ? error.next
      ? `${error.message}. ${error.next}`
      : error.message
    : 'internal error';
  sendApiError(response, status, text, status >= 500 ? 'api_error' : 'invalid_request_error', {
    ...(isGatewayError(error) ? { code: error.code } : {}),
    headers: retryHeaders(status, isGatewayError(error) && error.retryable),
  });
}

/** Callers try again by themselves after a 5xx, unless they are told that it would end the same way. */
function retryHeaders(status: number, retryable: boolean): Readonly<Record<string, string>> {
  if (status === 503) return { 'Retry-After': '2' };
  return status >= 500 && !retryable ? { 'x-should-retry': 'false' } : {};
}

function failureText({ error }: RunResult): string {
  if (!error) return 'internal error';
  return error.next ? `${error.message}. ${error.next}` : error.message;
}

function usageOf({ usage }: RunResult) {
  const prompt_tokens = usage.input + usage.cacheRead + usage.cacheWrite;
  return { prompt_tokens, completion_tokens: usage.output, total_tokens: prompt_tokens + usage.output };
}

function readChatRequest(text: string, request: IncomingMessage, ports: GatewayPorts): ChatRequest {
  const body = parseJson(text);
  if (!isRecord(body)) throw invalid('The body must be a JSON object.');
  if (!Array.isArray(body['messages'])) throw invalid('Missing user message in `messages`.');
  const messages = body['messages'].filter(isRecord);
  const last = messages.findLastIndex((message) => message['role'] === 'user');
  if (last < 0) throw invalid('Missing user message in `messages`.');
  const prompt = contentOf(messages[last]?.['content']);
  const agent = agentFor(body['model'], header(request, 'agent-id'), ports);
  const given = request.headers['idempotency-key'];
  const idempotencyKey = typeof given === 'string' && given !== '' ? given : undefined;
  const sessionKey = sessionFor(request, { user: body['user'], idempotencyKey, agent });
  const system = messages
    .filter((m) => m['role'] === 'system' || m['role'] === 'developer')
    .map((m) => contentOf(m['content']).text);
  const history = messages.slice(0, last).flatMap((m) => {
    const role = m['role'];
    return role === 'user' || role === 'assistant'
      ? [{ role: role as 'user' | 'assistant', text: contentOf(m['content']).text }]
      : [];
  });
  const model = header(request, 'model');
  const thinking = body['reasoning_effort'];
  return {
    model: typeof body['model'] === 'string' ? body['model'] : 'reins',
    stream: body['stream'] === true,
    includeUsage: isRecord(body['stream_options']) && body['stream_options']['include_usage'] === true,
    envelope: {
      idempotencyKey: idempotencyKey ?? newId(),
      channel: 'http',
      surface: header(request, 'message-channel') ?? 'openai-api',
      chatType: 'direct',
      sender: { id: 'operator', owner: true },
      sessionKey,
      agent: agentOf(sessionKey) ?? agent,
      text: prompt.text,
      images: prompt.images,
      receivedAt: ports.clock.now(),
      options: {
        ...(model === undefined ? {} : { model }),
        ...(isThinkingLevel(thinking) ? { thinking } : {}),
        ...(system.length > 0 ? { extraSystem: system.join('\n\n') } : {}),
        ...(history.length > 0 ? { history: history.slice(-HISTORY_MAX) } : {}),
      },
    },
  };
}

/** The agent that a model name or header means. @throws {GatewayError} `REQUEST_INVALID` */
function agentFor(model: unknown, named: string | undefined, ports: GatewayPorts): AgentId {
  const known = ports.agents.list().map(({ id }) => id);
  const match = typeof model === 'string' ? MODEL_NAMES.exec(model) : ['', undefined];
  if (!match) throw invalid('Invalid `model`. Use `reins` or `reins/<agentId>`.');
  const wanted = named ?? match[1] ?? match[2];
  if (wanted === undefined || wanted === 'default') return ports.agents.defaultId();
  const agent = known.find((id) => id === wanted.toLowerCase());
  if (agent === undefined)
    throw invalid(`Invalid \`model\`: there is no agent "${wanted.slice(0, 64)}". Use one of: ${known.join(', ')}.`);
  return agent;
}

/** A header's key as it is given; the user's own session; else one for this request, which a repeat of the request finds again. */
function sessionFor(
  request: IncomingMessage,
  facts: { readonly user: unknown; readonly idempotencyKey: string | undefined; readonly agent: AgentId },
): SessionKey {
  const { user, idempotencyKey, agent } = facts;
  const given = header(request, 'session-key');
  if (given !== undefined) return verbatimSessionKey(given);
  if (typeof user === 'string' && user !== '') {
    if (user.length > 256) throw invalid('`user` is longer than 256 characters.');
    return agentSessionKey(agent, `openai-user:${user}`);
  }
  const name =
    idempotencyKey === undefined
      ? newId()
      : createHash('sha256').update(idempotencyKey).digest('hex').slice(0, REPEATABLE_NAME_LENGTH);
  return agentSessionKey(agent, `openai:${name}`);
}

/** Our own header names and the public ones mean the same. */
function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[`x-reins-${name}`] ?? request.headers[`x-openclaw-${name}`];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function contentOf(content: unknown): { readonly text: string; readonly images: readonly ImageBlock[] } {
  if (typeof content === 'string') return { text: content, images: [] };
  if (!Array.isArray(content)) return { text: '', images: [] };
  const texts: string[] = [];
  const images: ImageBlock[] = [];
  for (const part of content.filter(isRecord)) {
    if (typeof part['text'] === 'string') texts.push(part['text']);
    else if (part['type'] === 'image_url') images.push(imageOf(part['image_url']));
  }
  if (images.length > IMAGES_MAX) throw invalid(`At most ${IMAGES_MAX} images per message.`);
  return { text: texts.join('\n'), images };
}

function imageOf(value: unknown): ImageBlock {
  const url = isRecord(value) ? value['url'] : value;
  const [, mimeType, data] =
    /^data:(image\/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/]+=*)$/.exec(typeof url === 'string' ? url : '') ?? [];
  if (mimeType === undefined || data === undefined) {
    throw invalid(
      '`image_url` must be a data: URL of a png, jpeg, gif or webp picture; fetching addresses is not supported in this version.',
    );
  }
  return { type: 'image', data, mimeType };
}

const invalid = (message: string) => new GatewayError('REQUEST_INVALID', message);

/** `GET /v1/models` and `/v1/models/{id}`: a model is an agent. */
export function sendModels(response: ServerResponse, ports: GatewayPorts, id?: string): void {
  const names = ['reins', 'reins/default', ...ports.agents.list().map((agent) => `reins/${agent.id}`)];
  const row = (name: string) => ({ id: name, object: 'model', created: 0, owned_by: 'reins', permission: [] });
  if (id === undefined) return sendJson(response, 200, { object: 'list', data: names.map(row) });
  const known = names.includes(id.replace(/^openclaw/, 'reins'));
  if (!known || !ID_PATTERN.test(id.split(/[/:]/).at(-1) ?? ''))
    return sendApiError(response, 400, 'Invalid model id.', 'invalid_request_error');
  sendJson(response, 200, row(id));
}
