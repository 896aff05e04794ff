import type { IncomingMessage } from 'node:http';
import type { GatewaySettings } from './ports.ts';

export type Refusal = { readonly status: number; readonly message: string };

/**
 * Keeps pages of other sites out, before anything else is looked at (security model T1): the Host must be a name of ours, or a rebound
 * DNS name would make a foreign page same-origin; an Origin, where there is one, must be on a fixed list that the request cannot change.
 * @returns undefined when the request may go on
 */
export function guardOrigin(request: IncomingMessage, settings: GatewaySettings, port: number): Refusal | undefined {
  const host = parseHost(request.headers.host);
  if (host === undefined || !hostNames(settings).has(host.name)) {
    return {
      status: 421,
      message: 'This gateway does not answer to that host name. Add it to gateway.controlUi.allowedOrigins.',
    };
  }
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  // What a sandboxed frame of anybody's page calls itself is no name, even if a config lists it.
  if (origin !== 'null' && allowedOrigins(settings, port).has(origin)) return undefined;
  return { status: 403, message: 'origin not allowed' };
}

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'] as const;

function hostNames(settings: GatewaySettings): ReadonlySet<string> {
  const configured = settings.allowedOrigins.flatMap((origin) => {
    const name = URL.canParse(origin) ? new URL(origin).hostname.toLowerCase() : undefined;
    return name === undefined ? [] : [name];
  });
  return new Set([...ownNames(settings), ...configured]);
}

function allowedOrigins(settings: GatewaySettings, port: number): ReadonlySet<string> {
  const own = ownNames(settings).map((name) => `http://${name}:${port}`);
  return new Set([...own, ...settings.allowedOrigins]);
}

/** An address that we listen on is a name of ours; the wildcard addresses are none. */
function ownNames({ host, allowedHosts }: GatewaySettings): readonly string[] {
  const address = host === '0.0.0.0' || host === '::' ? [] : [host.includes(':') ? `[${host}]` : host];
  return [...LOOPBACK_NAMES, ...address, ...allowedHosts].map((name) => name.toLowerCase());
}

function parseHost(header: string | undefined): { readonly name: string } | undefined {
  // Strict on purpose: what is not plainly a name and a port is not looked at again in another way.
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?$/i.exec(header ?? '') ?? [];
  return name === undefined ? undefined : { name: name.toLowerCase() };
}
