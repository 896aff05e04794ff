import { GatewayError, isGatewayError, isRecord } from '#base';
import { GatewayClient } from '#client';
import { agentId, DEFAULT_AGENT, mainSessionKey, resolveSessionKey, type SessionKey } from '#domain';
import { type GatewayAddress, gatewayAddress } from './gateway-address.ts';
import { ownVersion } from './own-version.ts';
import type { CommandContext } from './program.ts';

const CONNECT_MS = 10_000;

/** A connection to the gateway of this state folder, and what the gateway said of itself at its start. */
export class GatewayLink implements Disposable {
  readonly client: GatewayClient;
  readonly address: GatewayAddress;
  readonly hello: Awaited<ReturnType<GatewayClient['connect']>>;

  constructor(facts: Pick<GatewayLink, 'client' | 'address' | 'hello'>) {
    this.client = facts.client;
    this.address = facts.address;
    this.hello = facts.hello;
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
}

export type ConnectOptions = {
  /** What to do when no gateway answers. */
  readonly next?: string;
  /** `keep`: once connected, a lost connection is made again, for as long as it takes. */
  readonly whenLost?: 'give-up' | 'keep';
  readonly signal?: AbortSignal;
};

/**
 * @throws {GatewayError} `GATEWAY_UNREACHABLE` when nobody answers there or it is not Reins, `UNAUTHORIZED` with a wrong token; or
 *   the signal's reason.
 */
export async function connectGateway(context: CommandContext, options: ConnectOptions = {}): Promise<GatewayLink> {
  const address = gatewayAddress(context.env);
  const { whenLost = 'give-up' } = options;
  const client = new GatewayClient({
    url: address.url.replace(/^http/, 'ws'),
    ...(address.token === undefined ? {} : { token: address.token }),
    clientId: 'gateway-client',
    mode: 'backend',
    scopes: ['operator.read', 'operator.write', 'operator.admin', 'operator.approvals'],
    caps: ['tool-events'],
    version: ownVersion(),
    platform: process.platform,
    ...(whenLost === 'keep' ? {} : { attemptsMax: 1 }),
  });
  // The first attempt decides even for those who keep trying later: nobody waits for a gateway that was never started.
  const failed = new Promise<never>((_, reject) => {
    client.onState((state) => {
      if (state.status === 'reconnecting') reject(unreachable(address, options.next, state.reason));
    });
  });
  const timeout = AbortSignal.timeout(CONNECT_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  try {
    const hello = await Promise.race([client.connect(signal), failed]);
    return new GatewayLink({ client, address, hello });
  } catch (thrown) {
    client.close();
    if (options.signal?.aborted) throw options.signal.reason;
    if (timeout.aborted || isGatewayError(thrown, 'GATEWAY_UNREACHABLE')) {
      throw unreachable(address, options.next, thrown);
    }
    if (isGatewayError(thrown, 'UNAUTHORIZED')) throw wrongToken(address, thrown);
    throw thrown;
  } finally {
    failed.catch(() => undefined);
  }
}

function unreachable(address: GatewayAddress, next: string | undefined, cause: unknown): GatewayError {
  return new GatewayError('GATEWAY_UNREACHABLE', `No gateway answers at ${address.url}`, {
    next: next ?? 'start one with: reins start',
    cause,
  });
}

function wrongToken(address: GatewayAddress, cause: GatewayError): GatewayError {
  return new GatewayError(
    'UNAUTHORIZED',
    `The gateway at ${address.url} does not accept the token from ${address.tokenFrom}`,
    {
      next: 'it runs with another state folder or token: set REINS_STATE_DIR or REINS_GATEWAY_TOKEN as it was started with',
      cause,
    },
  );
}

/** The session that `--session` and `--agent` mean; without either the gateway's main one. */
export function sessionKeyFor(
  link: GatewayLink,
  asked: { readonly session?: string; readonly agent?: string },
): SessionKey {
  const given: unknown = link.hello.snapshot['sessionDefaults'];
  const defaults = isRecord(given) ? given : {};
  const named = (name: string): string | undefined => (typeof defaults[name] === 'string' ? defaults[name] : undefined);
  const agent = agentId(asked.agent ?? named('defaultAgentId') ?? DEFAULT_AGENT);
  if (asked.session !== undefined) return resolveSessionKey(asked.session, agent);
  const main = named('mainSessionKey');
  return asked.agent === undefined && main !== undefined ? resolveSessionKey(main) : mainSessionKey(agent);
}
