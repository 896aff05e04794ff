// A state folder with everything a gateway needs, and a visitor who talks to it over the OpenAI-compatible API.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Only ever on loopback, in a folder that the test removes. */
export const TOKEN = 'crash-test-token-0123456789';

export type Place = {
  readonly stateDir: string;
  readonly workspace: string;
  readonly sessionsDir: string;
  readonly logFile: string;
  [Symbol.dispose](): void;
};

/** A new state folder whose agent talks to the model at `modelUrl` and may run every command unasked. */
export function newPlace(modelUrl: string): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reins-crash-')));
  const place = placeIn(root);
  mkdirSync(place.workspace, { recursive: true });
  writeFileSync(join(place.stateDir, 'reins.json'), JSON.stringify(config(modelUrl, place.workspace), null, 2), {
    mode: 0o600,
  });
  return place;
}

function placeIn(root: string): Place {
  const stateDir = join(root, 'state');
  return {
    stateDir,
    workspace: join(stateDir, 'workspace'),
    sessionsDir: join(stateDir, 'agents', 'main', 'sessions'),
    logFile: join(root, 'output.log'),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
  };
}

function config(modelUrl: string, workspace: string) {
  return {
    gateway: {
      auth: { mode: 'token', token: TOKEN },
      http: { endpoints: { chatCompletions: { enabled: true } } },
    },
    agents: { defaults: { model: 'script/script', workspace } },
    models: {
      providers: {
        script: {
          baseUrl: modelUrl,
          apiKey: 'none',
          api: 'openai-completions',
          models: [{ id: 'script', name: 'script', contextWindow: 128_000, maxTokens: 4_096 }],
        },
      },
    },
    tools: { exec: { mode: 'full' } },
  };
}

export type Question = {
  readonly text: string;
  /** Who asks: a session of its own for each. */
  readonly visitor: string;
  /** Sent as `Idempotency-Key`: the run's id. */
  readonly key: string;
  readonly form: 'whole' | 'stream';
};

export type Reply = { readonly status: number; readonly text: string };

const REPLY_MS_MAX = 60_000;

/** Asks once. @throws when the connection broke before the answer was whole; then nobody knows whether the message arrived. */
export async function ask(url: string, question: Question): Promise<Reply> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      'idempotency-key': question.key,
    },
    body: JSON.stringify({
      model: 'reins',
      user: question.visitor,
      stream: question.form === 'stream',
      messages: [{ role: 'user', content: question.text }],
    }),
    signal: AbortSignal.timeout(REPLY_MS_MAX),
  });
  const body = await response.text();
  if (!response.ok) return { status: response.status, text: body };
  return { status: response.status, text: question.form === 'stream' ? streamedText(body) : wholeText(body) };
}

type Completion = {
  readonly choices: readonly {
    readonly message?: { readonly content?: string };
    readonly delta?: { readonly content?: string };
  }[];
};

const wholeText = (body: string): string => (JSON.parse(body) as Completion).choices[0]?.message?.content ?? '';

function streamedText(body: string): string {
  const events = body
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length));
  if (events.at(-1) !== '[DONE]') throw new Error('the stream broke off');
  return events
    .slice(0, -1)
    .map((event) => (JSON.parse(event) as Completion).choices[0]?.delta?.content ?? '')
    .join('');
}
