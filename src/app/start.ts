import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GatewayError, systemClock } from '#base';
import {
  agentIds,
  agentSettings,
  bindHost,
  bindsLoopbackOnly,
  ConfigWatch,
  defaultAgent,
  ensureGatewayToken,
  formatIssue,
  type LoadedConfig,
  loadConfig,
  redactConfig,
  resolveSecret,
  type StatePaths,
  statePaths,
} from '#config';
import { commandList } from '#dispatch';
import { type AuthSettings, type GatewayPorts, type GatewaySettings, startGateway } from '#gateway';
import { ensurePrivateFolder, giveBackMemory, type Log, type LogLevel, openLog } from '#host';
import { type Core, openCore } from './core.ts';
import { onIdleMoments } from './idle-moments.ts';

export type StartOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly port?: number;
  readonly bind?: string;
  readonly console: 'pretty' | 'json' | 'off';
};

export type RunningReins = {
  readonly url: string;
  /** Opens the web chat logged in. */
  readonly link: string;
  readonly stateDir: string;
  readonly model: {
    readonly provider: string;
    readonly model: string;
    readonly offline: boolean;
    readonly how: string;
  };
  readonly warnings: readonly string[];
  /** Resolves when everything is closed. */
  readonly closed: Promise<void>;
  close(reason: string): Promise<void>;
};

/**
 * Starts the gateway: state folder, config, stores, what was left unanswered, then the port.
 * @throws {GatewayError} one clear line for whatever keeps it from starting
 */
export async function startReins(options: StartOptions): Promise<RunningReins> {
  // First of all: whatever is made from here on is for this user only.
  process.umask(0o077);
  const env = withOptions(options);
  const paths = statePaths(env);
  ensurePrivateFolder(paths.stateDir);
  ensurePrivateFolder(paths.logsDir);
  const loaded = loadConfig({ stateDir: paths.stateDir, env });
  const { config } = loaded;
  if (config.gateway.mode === 'remote') {
    throw new GatewayError('CONFIG_INVALID', 'gateway.mode is "remote": the gateway of this config runs elsewhere', {
      next: 'Set gateway.mode to "local" to run one here.',
    });
  }
  const log = openLog({
    file: logFile(paths, loaded),
    level: logLevel(config.logging.level),
    console: options.console,
  });
  for (const secret of loaded.secrets) log.addSecret(secret);
  try {
    return await start({ options, env, paths, loaded, log });
  } catch (error) {
    log.close();
    throw error;
  }
}

type Parts = {
  readonly options: StartOptions;
  readonly env: NodeJS.ProcessEnv;
  readonly paths: StatePaths;
  readonly loaded: LoadedConfig;
  readonly log: Log;
};

async function start({ options, env, paths, loaded, log }: Parts): Promise<RunningReins> {
  const clock = systemClock;
  tellAbout(loaded, log);
  const watch = new ConfigWatch({
    stateDir: paths.stateDir,
    env,
    initial: loaded,
    clock,
    onEvent(event) {
      if (event.type === 'config-refused') {
        log.error('The config has issues; the last good one stays in force', {
          issues: event.issues.map(formatIssue).join(' | '),
        });
      } else {
        for (const secret of event.loaded.secrets) log.addSecret(secret);
        log.info(event.type === 'config-change' ? 'The config changed and is in force' : 'The config is good again', {
          file: event.loaded.file,
        });
        tellAbout(event.loaded, log);
      }
    },
  });
  const config = () => watch.current.config;
  const authOf = authSettings({ env, paths, config });
  const auth = authOf();
  if (auth.mode !== 'none') log.addSecret(auth.secret);
  const core = await openCore({ env, paths, config, log, clock });
  try {
    const settings = () => agentSettings(config(), defaultAgent(config()), paths);
    if (chosenModel(core, settings()).profile.api === 'offline') await core.findLocalModels();
    await core.dispatcher.start();
    const chosen = chosenModel(core, settings());
    const gateway = await startGateway(gatewayPorts({ options, core, config, watch, authOf, log, paths }));
    const leaveIdle = onIdleMoments(core.dispatcher, clock, giveBackMemory);
    const url = `http://${shownHost(gateway.host)}:${gateway.port}`;
    log.info('The gateway is ready', {
      url,
      model: `${chosen.profile.provider}/${chosen.profile.id}`,
      version: version(),
    });
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    let closing: Promise<void> | undefined;
    return {
      url,
      link: auth.mode === 'none' ? `${url}/` : `${url}/#token=${encodeURIComponent(auth.secret)}`,
      stateDir: paths.stateDir,
      model: {
        provider: chosen.profile.provider,
        model: chosen.profile.id,
        offline: chosen.profile.api === 'offline',
        how: chosen.how,
      },
      warnings: [...loaded.issues, ...loaded.warnings].map(formatIssue),
      closed,
      close(reason) {
        closing ??= (async () => {
          log.info('The gateway is going down', { reason });
          watch.close();
          leaveIdle();
          // Clients hear of it first; the runs under way get a moment.
          await Promise.all([gateway.close(reason), core.close()]);
          log.close();
          resolve();
        })();
        return closing;
      },
    };
  } catch (error) {
    watch.close();
    await core.close();
    throw error;
  }
}

function gatewayPorts(parts: {
  readonly options: StartOptions;
  readonly core: Core;
  readonly config: () => LoadedConfig['config'];
  readonly watch: ConfigWatch;
  readonly authOf: () => AuthSettings;
  readonly log: Log;
  readonly paths: StatePaths;
}): GatewayPorts {
  const { options, core, config, watch, authOf, log, paths } = parts;
  const { models, dispatcher, sessions, approvals } = core;
  return {
    dispatch: dispatcher,
    sessions,
    approvals,
    agents: {
      list: () =>
        agentIds(config()).map((id) => {
          const settings = agentSettings(config(), id, paths);
          const { profile } = chosenModel(core, settings);
          const contextTokens = Math.min(profile.contextWindow, settings?.contextWindow ?? profile.contextWindow);
          return {
            id,
            name: settings?.name ?? id,
            workspace: settings?.workspace ?? paths.workspaceFor(id),
            model: { provider: profile.provider, model: profile.id, contextTokens },
          };
        }),
      defaultId: () => defaultAgent(config()),
    },
    models: {
      list: () =>
        models.list().map(({ provider, id, name, contextWindow, reasoning, input }) => ({
          provider,
          id,
          name,
          contextWindow,
          reasoning,
          input,
        })),
    },
    commands: commandList,
    configView: () => configView(watch.current),
    settings: () => gatewaySettings(config(), authOf, options),
    log,
    logFile: logFile(paths, watch.current),
    clock: systemClock,
    version: version(),
    uiFolder: join(packageRoot(), 'dist', 'web'),
    place: { stateDir: paths.stateDir, configFile: paths.configFile },
  };
}

/** The model for an agent's next run; a name that nothing provides is said in the run, here the guide stands in. */
function chosenModel({ models }: Core, settings: ReturnType<typeof agentSettings>) {
  try {
    return models.choose([settings?.model.primary], settings?.provider);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return models.choose(['offline/guide']);
  }
}

function gatewaySettings(
  config: LoadedConfig['config'],
  authOf: () => AuthSettings,
  { bind }: StartOptions,
): GatewaySettings {
  const gateway = bind === undefined ? config.gateway : { ...config.gateway, bind: bindName(bind) };
  const auth = authOf();
  if (auth.mode === 'none' && !bindsLoopbackOnly(gateway)) {
    throw new GatewayError(
      'BIND_REFUSED',
      'gateway.auth.mode is "none" and the gateway would listen beyond this machine',
      {
        next: 'Set gateway.auth.mode to "token", or gateway.bind to "loopback".',
      },
    );
  }
  return {
    host: bindHost(gateway),
    port: gateway.port,
    auth,
    allowedHosts: [],
    allowedOrigins: gateway.controlUi.allowedOrigins,
    trustedProxies: gateway.trustedProxies,
    chatCompletions: gateway.http.endpoints.chatCompletions.enabled,
  };
}

/** How clients prove who they are, read anew each time. @throws {GatewayError} for a mode that this version does not have */
function authSettings({
  env,
  paths,
  config,
}: Pick<Parts, 'env' | 'paths'> & { readonly config: () => LoadedConfig['config'] }): () => AuthSettings {
  let made: string | undefined;
  return () => {
    const { auth } = config().gateway;
    const { rateLimit } = auth;
    const places = { env, configFile: paths.configFile, providers: config().secrets.providers };
    if (auth.mode === 'none') return { mode: 'none', rateLimit };
    if (auth.mode === 'password') {
      const secret = resolveSecret(auth.password, places);
      if (secret) return { mode: 'password', secret, rateLimit };
      throw new GatewayError(
        'CONFIG_INVALID',
        'gateway.auth.mode is "password" and there is no gateway.auth.password',
        {
          next: 'Set it, or use mode "token".',
        },
      );
    }
    if (auth.mode === 'trusted-proxy') {
      throw new GatewayError('CONFIG_INVALID', 'gateway.auth.mode "trusted-proxy" is not supported in this version', {
        next: 'Use mode "token".',
      });
    }
    const configured = resolveSecret(auth.token, places);
    if (configured) return { mode: 'token', secret: configured, rateLimit };
    made ??= ensureGatewayToken(paths.tokenFile);
    return { mode: 'token', secret: made, rateLimit };
  };
}

/** The config for people and clients: nothing secret in any copy. */
function configView(loaded: LoadedConfig): Readonly<Record<string, unknown>> {
  const safe = <T>(value: T) => redactConfig(value, loaded.secrets);
  const shown = safe(loaded.config);
  return {
    path: loaded.file,
    exists: loaded.exists,
    // The owner's text may hold secrets anywhere, comments too.
    raw: loaded.secrets.length > 0 ? null : loaded.raw,
    parsed: safe(loaded.parsed),
    sourceConfig: safe(loaded.parsed),
    resolved: safe(loaded.resolved),
    runtimeConfig: shown,
    config: shown,
    valid: loaded.issues.length === 0,
    source: loaded.source,
    issues: loaded.issues,
    warnings: loaded.warnings,
    legacyIssues: [],
    hash: loaded.hash,
  };
}

function tellAbout(loaded: LoadedConfig, log: Log): void {
  if (loaded.source === 'last-good') {
    log.error('The config has issues; the last good one is in use', {
      issues: loaded.issues.map(formatIssue).join(' | '),
    });
  }
  for (const warning of loaded.warnings) log.warn(formatIssue(warning));
  for (const notice of loaded.notices) log.info(notice);
}

/** The words of `gateway.bind`, for the option of the same name. @throws {GatewayError} `BIND_REFUSED` */
function bindName(bind: string): (typeof BINDS)[number] {
  const known = BINDS.find((name) => name === bind);
  if (known) return known;
  throw new GatewayError('BIND_REFUSED', `"${bind}" is not a place to listen`, {
    next: `Use one of: ${BINDS.join(', ')}.`,
  });
}

const BINDS = ['loopback', 'lan', 'tailnet', 'auto', 'custom'] as const;

const withOptions = ({ env, port }: StartOptions): NodeJS.ProcessEnv =>
  port === undefined ? env : { ...env, REINS_GATEWAY_PORT: String(port) };

const logFile = (paths: StatePaths, { config }: LoadedConfig): string =>
  config.logging.file === undefined ? paths.logFile : paths.fromConfig(config.logging.file);

function logLevel(level: string): LogLevel {
  if (level === 'trace' || level === 'debug') return 'debug';
  if (level === 'info' || level === 'warn') return level;
  return 'error';
}

const shownHost = (host: string): string =>
  host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;

/** The folder of package.json: above `src/app` in a checkout, above `dist` (or its parts) in a release. */
function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (let up = 0; up < 4; up++) {
    if (statSync(join(folder, 'package.json'), { throwIfNoEntry: false })?.isFile()) return folder;
    folder = dirname(folder);
  }
  throw new GatewayError('STATE_UNWRITABLE', 'This copy of Reins has no package.json', { next: 'Install it again.' });
}

function version(): string {
  return (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }).version;
}
