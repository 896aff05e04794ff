import { networkInterfaces } from 'node:os';
import type { Config } from './schema.ts';

type GatewayBind = Pick<Config['gateway'], 'bind' | 'customBindHost'>;

const LOOPBACK = '127.0.0.1';
// 100.64.0.0/10, which Tailscale gives to its machines.
const TAILNET = /^100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./;

/** The address that the gateway listens on. */
export function bindHost({ bind, customBindHost }: GatewayBind): string {
  if (bind === 'custom') return customBindHost ?? LOOPBACK;
  if (bind === 'lan') return '0.0.0.0';
  return bind === 'tailnet' ? (tailnetAddress() ?? LOOPBACK) : LOOPBACK;
}

/** Whether only this machine can reach the gateway, whatever its interfaces are at this moment. */
export function bindsLoopbackOnly({ bind, customBindHost }: GatewayBind): boolean {
  if (bind === 'custom') return customBindHost === '::1' || /^127\./.test(customBindHost ?? '');
  return bind === 'loopback' || bind === 'auto';
}

function tailnetAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, address }) => family === 'IPv4' && TAILNET.test(address))?.address;
}
