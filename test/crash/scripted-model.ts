// The model of the crash tests: an OpenAI-compatible server whose answers follow from the request alone, so that it says the same
// before and after the gateway's death. It lives in the test's process and refuses every request that breaks the pairing rules.
import { EventEmitter } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export type WireCall = {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
};
export type WireMessage = {
  readonly role: string;
  readonly content?: string | readonly { readonly text?: string }[] | null;
  readonly tool_calls?: readonly WireCall[];
  readonly tool_call_id?: string;
};
export type ScriptedCall = { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
export type ScriptedAnswer = { readonly text: string; readonly calls?: readonly ScriptedCall[] };
/** What to answer to a conversation; must not depend on anything else. */
export type Script = (messages: readonly WireMessage[]) => ScriptedAnswer;

/** Between two events of a stream: long enough that a kill can fall between them. */
const PACE_MS = 2;

export class ScriptedModel {
  readonly requests: (readonly WireMessage[])[] = [];
  /** Requests that a strict vendor would refuse, each in words. */
  readonly violations: string[] = [];
  /** Emits `request` when one has arrived and `answered` when its answer was sent. */
  readonly moments = new EventEmitter<{ request: []; answered: [] }>();
  readonly #script: Script;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #calls = 0;

  private constructor(script: Script) {
    this.#script = script;
  }

  static async start(script: Script): Promise<ScriptedModel> {
    const model = new ScriptedModel(script);
    await new Promise<void>((resolve) => model.#server.listen(0, '127.0.0.1', resolve));
    return model;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the model server is closed');
    return `http://127.0.0.1:${address.port}/v1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The gateway may die at any moment; what it no longer reads is nobody's loss.
    response.on('error', () => undefined);
    let body = '';
    try {
      for await (const part of request) body += part;
    } catch {
      response.destroy();
      return;
    }
    if (request.method === 'GET') {
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'script', object: 'model' }] }));
      return;
    }
    const { messages } = JSON.parse(body) as { messages: readonly WireMessage[] };
    this.requests.push(messages);
    this.moments.emit('request');
    const fault = pairingFault(messages);
    if (fault !== undefined) {
      this.violations.push(fault);
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: fault, type: 'invalid_request_error' } }));
      return;
    }
    await this.#stream(this.#script(messages), response);
    this.moments.emit('answered');
  }

  async #stream({ text, calls = [] }: ScriptedAnswer, response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const base = { id: `answer-${this.requests.length}`, object: 'chat.completion.chunk', created: 1, model: 'script' };
    const chunk = (delta: object, finish: string | null = null) => ({
      ...base,
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const half = Math.ceil(text.length / 2);
    const events = [
      chunk({ role: 'assistant', content: '' }),
      ...[text.slice(0, half), text.slice(half)].filter((part) => part !== '').map((content) => chunk({ content })),
      ...calls.map((call, index) =>
        chunk({
          tool_calls: [
            {
              index,
              id: `call_${++this.#calls}`,
              type: 'function',
              function: { name: call.name, arguments: JSON.stringify(call.arguments) },
            },
          ],
        }),
      ),
      chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
      { ...base, choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
    ];
    for (const event of events) {
      if (response.destroyed) return;
      response.write(`data: ${JSON.stringify(event)}\n\n`);
      await new Promise((resolve) => setTimeout(resolve, PACE_MS));
    }
    response.end('data: [DONE]\n\n');
  }
}

export function textOfWire(message: WireMessage): string {
  if (typeof message.content === 'string') return message.content;
  return (message.content ?? []).map((part) => part.text ?? '').join('');
}

/** The strictest vendor's rules: every call has its result directly after it, every result its call, no id occurs twice. */
export function pairingFault(messages: readonly WireMessage[]): string | undefined {
  const seen = new Set<string>();
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id ?? '')) return `result of ${message.tool_call_id} has no call before it`;
      continue;
    }
    if (open.size > 0) return `call ${[...open].join(', ')} has no result directly after it`;
    for (const call of message.tool_calls ?? []) {
      if (seen.has(call.id)) return `id ${call.id} occurs twice`;
      seen.add(call.id);
      try {
        JSON.parse(call.function.arguments);
      } catch {
        return `arguments of ${call.id} are not JSON`;
      }
    }
    open = new Set((message.tool_calls ?? []).map((call) => call.id));
  }
  return open.size > 0 ? `call ${[...open].join(', ')} has no result` : undefined;
}
