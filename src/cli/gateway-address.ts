import { GatewayError } from '#base';
import { bindHost, loadConfig, readGatewayToken, resolveSecret, statePaths } from '#config';

/** Where the gateway of a state folder is, and what lets a client in. */
export type GatewayAddress = {
  /** `http://host:port`. */
  readonly url: string;
  readonly token?: string;
  /** In words, where the token was found, for the person whose token is refused. */
  readonly tokenFrom: string;
  readonly stateDir: string;
};

/**
 * From the environment and the config, without asking the gateway.
 * @throws {GatewayError} `CONFIG_INVALID`, `CONFIG_UNREADABLE`, `SECRET_UNAVAILABLE`, `FILE_REFUSED`
 */
export function gatewayAddress(env: NodeJS.ProcessEnv): GatewayAddress {
  const paths = statePaths(env);
  const { config, file } = loadConfig({ stateDir: paths.stateDir, env });
  const { gateway } = config;
  const places = { env, configFile: file, providers: config.secrets.providers };
  if (gateway.mode === 'remote') {
    const url = gateway.remote.url;
    if (url === undefined) {
      throw new GatewayError('CONFIG_INVALID', 'gateway.mode is "remote" and gateway.remote.url is not set', {
        next: 'set it: reins config set gateway.remote.url wss://…',
      });
    }
    const token = resolveSecret(gateway.remote.token, places);
    return { ...tokenFacts(token, 'gateway.remote.token'), url: url.replace(/^ws/, 'http'), stateDir: paths.stateDir };
  }
  if (gateway.port === 0) {
    throw new GatewayError('CONFIG_INVALID', 'gateway.port is 0, so only the running gateway knows its port', {
      next: 'set REINS_GATEWAY_PORT to the one that it printed',
    });
  }
  const listening = bindHost(gateway);
  const host = EVERY_ADDRESS.has(listening) ? '127.0.0.1' : listening;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${gateway.port}`;
  const configured = resolveSecret(gateway.auth.token, places);
  const from = env['REINS_GATEWAY_TOKEN'] ? 'REINS_GATEWAY_TOKEN' : 'gateway.auth.token';
  const facts =
    configured === undefined
      ? tokenFacts(readGatewayToken(paths.tokenFile), paths.tokenFile)
      : tokenFacts(configured, from);
  return { ...facts, url, stateDir: paths.stateDir };
}

/** Who listens on these listens on loopback as well. */
const EVERY_ADDRESS = new Set(['0.0.0.0', '::']);

function tokenFacts(token: string | undefined, from: string): Pick<GatewayAddress, 'token' | 'tokenFrom'> {
  return token === undefined ? { tokenFrom: `${from} (which holds none)` } : { token, tokenFrom: from };
}
