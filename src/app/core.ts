import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { type Clock, messageOf } from '#base';
import { agentSettings, type Config, modelAliases, resolveSecret, type StatePaths } from '#config';
import type { ModelApi, Provider, Tool } from '#contract';
import { Dispatcher } from '#dispatch';
import type { AgentId } from '#domain';
import { AppendFile, type Log, Processes } from '#host';
import { type ConfiguredProvider, findOllama, Models } from '#models';
import type { Approvals } from '#policy';
import { loadProvider } from '#providers';
import { Sessions } from '#sessions';
import { openDatabase } from '#store';
import { builtinTools } from '#tools';
import { approvalDesk } from './approval-desk.ts';
import { runSettings } from './run-settings.ts';
import { WorkspaceTexts } from './workspace-texts.ts';

export type CoreOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly paths: StatePaths;
  /** The config in force; asked anew each time, so that a reload counts for the next run. */
  readonly config: () => Config;
  readonly log: Log;
  readonly clock: Clock;
};

/** Everything between the door for messages and the disk: what a gateway serves, and what a local run uses by itself. */
export type Core = {
  readonly sessions: Sessions;
  readonly models: Models;
  readonly approvals: Approvals;
  readonly dispatcher: Dispatcher;
  workspaceOf(agent: AgentId): string;
  /** Looks for a local Ollama; what it finds counts from then on. */
  findLocalModels(): Promise<void>;
  /** Lets runs finish for a moment, suspends the rest, and closes what is open. */
  close(): Promise<void>;
};

const WAITING_TOTAL_MAX = 1_024;

/** @throws {GatewayError} `STATE_IN_USE`, `STATE_UNWRITABLE`, `STATE_NEWER` */
export async function openCore({ env, paths, config, log, clock }: CoreOptions): Promise<Core> {
  const database = await openDatabase(paths.database);
  const audit = AppendFile.open(paths.auditFile);
  const record = (fields: Readonly<Record<string, unknown>>) => audit.append(`${JSON.stringify(fields)}\n`);
  const processes = new Processes();
  const texts = new WorkspaceTexts();
  const providers = new Map<ModelApi, Promise<Provider>>();
  const made = new Set<string>();
  let ollama: Awaited<ReturnType<typeof findOllama>>;
  let tools: Promise<readonly Tool[]> | undefined;

  const workspaceOf = (agent: AgentId) => agentSettings(config(), agent, paths)?.workspace ?? paths.workspaceFor(agent);
  const sessions = new Sessions({
    database,
    clock,
    folderOf: (agent) => paths.sessionsDirOf(agent),
    workspaceOf,
    resetRule: () => config().session.reset,
    onDamage: ({ file, count, keptIn }) =>
      log.warn(`Set aside ${count} unreadable ${count === 1 ? 'line' : 'lines'} of a transcript; the rest is intact`, {
        file,
        count,
        keptIn,
      }),
  });
  const models = new Models({
    env,
    providers: () => configuredProviders(config(), { env, paths }),
    aliases: () => modelAliases(config()),
    ollama: () => ollama,
  });
  const desk = approvalDesk({ env, paths, config, clock, workspaceOf, audit: record });
  const dispatcher = new Dispatcher({
    database,
    sessions,
    models,
    clock,
    lanes: {
      runningMax: config().agents.defaults.maxConcurrent,
      waitingMax: config().messages.queue.cap,
      waitingTotalMax: WAITING_TOTAL_MAX,
    },
    settings(agent) {
      const settings = agentSettings(config(), agent, paths);
      if (!settings) return undefined;
      const { workspace } = settings;
      if (!made.has(workspace)) {
        mkdirSync(workspace, { recursive: true, mode: 0o700 });
        made.add(workspace);
      }
      return runSettings(settings);
    },
    provider(api) {
      let provider = providers.get(api);
      if (!provider) {
        provider = loadProvider(api);
        providers.set(api, provider);
        // Code that did not load is tried again by the next run.
        provider.catch(() => providers.delete(api));
      }
      return provider;
    },
    tools() {
      tools ??= builtinTools({ processes, clock, env });
      return tools;
    },
    execGate: desk.gate,
    workspaceTexts: (agent) => texts.of(workspaceOf(agent)),
    zone: config().agents.defaults.userTimezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    channel: () => undefined,
    queueMode: () => config().messages.queue.mode,
    resetTriggers: () => config().session.resetTriggers,
    idempotencyWindowMs: () => config().session.idempotency.windowMinutes * 60_000,
    digest: (text) => createHash('sha256').update(text).digest('hex'),
    log: (level, message, fields) => log[level](message, fields),
    audit: record,
  });
  return {
    sessions,
    models,
    approvals: desk.approvals,
    dispatcher,
    workspaceOf,
    async findLocalModels() {
      ollama = await findOllama(env);
    },
    async close() {
      await dispatcher
        .close()
        .catch((error) => log.error('Runs could not be closed in order', { error: messageOf(error) }));
      await processes.closeAll();
      await sessions.close();
      await database.destroy();
      audit.close();
    },
  };
}

/** The config's providers; their keys are looked up when a request needs them. */
function configuredProviders(
  config: Config,
  { env, paths }: Pick<CoreOptions, 'env' | 'paths'>,
): Readonly<Record<string, ConfiguredProvider>> {
  const places = { env, configFile: paths.configFile, providers: config.secrets.providers };
  return Object.fromEntries(
    Object.entries(config.models.providers).map(([id, provider]) => [
      id,
      {
        ...(provider.baseUrl === undefined ? {} : { baseUrl: provider.baseUrl }),
        ...(provider.api === undefined ? {} : { api: provider.api }),
        headers: provider.headers,
        models: provider.models as ConfiguredProvider['models'],
        apiKey: () => Promise.resolve(resolveSecret(provider.apiKey, places)),
      },
    ]),
  );
}
