// A model that costs nothing: an OpenAI-compatible server of its own process, twenty pieces of text an answer, no delay. What the
// gateway takes on top of it is the gateway's. Prints its port. Usage: node bench/mock-model.ts
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

const PIECE = 'pong ';
const PIECES = 20;
const REQUEST_BYTES_MAX = 16 * 1024 * 1024;

let answers = 0;

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const data = [{ id: 'mock', object: 'model', created: 0, owned_by: 'bench' }];
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data }));
    return;
  }
  answer(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await read(request);
  const { stream } = JSON.parse(body) as { readonly stream?: unknown };
  const id = `chatcmpl-${++answers}`;
  const inputTokens = Math.ceil(body.length / 4);
  const usage = { prompt_tokens: inputTokens, completion_tokens: PIECES, total_tokens: inputTokens + PIECES };
  if (stream !== true) {
    const choice = { index: 0, message: { role: 'assistant', content: PIECE.repeat(PIECES) }, finish_reason: 'stop' };
    const whole = { id, object: 'chat.completion', created: 1, model: 'mock', choices: [choice], usage };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(whole));
    return;
  }
  const base = { id, object: 'chat.completion.chunk', created: 1, model: 'mock' };
  const say = (facts: object) => response.write(`data: ${JSON.stringify({ ...base, ...facts })}\n\n`);
  const piece = (delta: object, finish: string | null) =>
    say({ choices: [{ index: 0, delta, finish_reason: finish }] });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  piece({ role: 'assistant', content: '' }, null);
  for (let i = 0; i < PIECES; i++) piece({ content: PIECE }, null);
  piece({}, 'stop');
  say({ choices: [], usage });
  response.end('data: [DONE]\n\n');
}

async function read(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > REQUEST_BYTES_MAX) throw new Error('the request is too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(typeof address === 'object' ? address?.port : address);
});
