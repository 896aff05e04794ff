// A real gateway in this process, with a model server of the outside world, for stories that play through the whole house.
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ModelServer, startModelServer } from '#world';
import { type RunningReins, startReins } from '../../src/app/index.ts';
import { GatewayClient } from '../../src/client/index.ts';

export const TOKEN = 'story-token-0123456789abcdef';

export type House = {
  readonly reins: RunningReins;
  readonly url: string;
  readonly port: number;
  readonly stateDir: string;
  readonly workspace: string;
  readonly model: ModelServer;
  /** A client with every right, or with those given. */
  client(options?: { readonly scopes?: readonly string[] }): Promise<GatewayClient>;
  /** `POST /v1/chat/completions`, not streamed. */
  ask(text: string, more?: { readonly user?: string; readonly key?: string }): Promise<Response>;
  /** All lines of all transcripts, parsed. */
  transcripts(): Promise<readonly Record<string, unknown>[]>;
  /** Goes down in order and comes up again on the same state. */
  restart(): Promise<void>;
};

type Options = {
  /** Merged over the story's config. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Prepares the state folder before the start. */
  readonly before?: (stateDir: string) => void;
};

/** Everything is taken down when the test ends. */
export async function openHouse(t: TestContext, { config = {}, env = {}, before }: Options = {}): Promise<House> {
  const stateDir = await mkdtemp(join(tmpdir(), 'reins-story-'));
  const model = await startModelServer({ strict: 'strict' });
  const workspace = join(stateDir, 'workspace');
  mkdirSync(workspace, { mode: 0o700 });
  const story = {
    gateway: { port: 0, auth: { token: TOKEN }, http: { endpoints: { chatCompletions: { enabled: true } } } },
    agents: { defaults: { model: 'world/m' } },
    models: {
      providers: {
        world: {
          baseUrl: `${model.url}/v1`,
          apiKey: 'k',
          api: 'openai-completions',
          models: [{ id: 'm', contextWindow: 64_000, maxTokens: 4_096 }],
        },
      },
    },
    ...config,
  };
  writeFileSync(join(stateDir, 'reins.json'), JSON.stringify(story), { mode: 0o600 });
  before?.(stateDir);
  const { PATH = '' } = process.env;
  const start = () => startReins({ env: { PATH, HOME: stateDir, REINS_STATE_DIR: stateDir, ...env }, console: 'off' });
  let reins = await start();
  const clients: GatewayClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    await reins.close('test over');
    await model.close();
    await rm(stateDir, { recursive: true, force: true });
  });
  return {
    get reins() {
      return reins;
    },
    get url() {
      return reins.url;
    },
    get port() {
      return Number(new URL(reins.url).port);
    },
    stateDir,
    workspace,
    model,
    async client({ scopes = ['operator.admin', 'operator.read', 'operator.write', 'operator.approvals'] } = {}) {
      const client = new GatewayClient({
        url: reins.url.replace('http', 'ws'),
        token: TOKEN,
        clientId: 'gateway-client',
        mode: 'backend',
        scopes: [...scopes],
        caps: ['tool-events'],
        version: 'test',
        platform: 'test',
      });
      clients.push(client);
      await client.connect();
      return client;
    },
    ask: (text, { user = 'anna', key } = {}) =>
      fetch(`${reins.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${TOKEN}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body: JSON.stringify({ model: 'reins', user, messages: [{ role: 'user', content: text }] }),
      }),
    async transcripts() {
      const folder = join(stateDir, 'agents', 'main', 'sessions');
      const names = (await readdir(folder)).filter((name) => name.endsWith('.jsonl'));
      const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
      return texts
        .flatMap((text) => text.split('\n').filter((line) => line !== ''))
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    },
    async restart() {
      await reins.close('restart');
      reins = await start();
    },
  };
}

/** The text of a chat completion's answer. */
export async function answerOf(response: Response): Promise<string> {
  const body = (await response.json()) as { choices?: { message: { content: string } }[]; error?: unknown };
  return body.choices?.[0]?.message.content ?? JSON.stringify(body.error);
}
