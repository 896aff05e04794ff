import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

/** Where a request comes from, as far as the gateway can vouch for it (security model T3). */
export type Peer = {
  /** Whose failures count together: a page's on this machine by its origin, anyone else's by address, IPv6 by its /64. */
  readonly key: string;
  /** On this machine, directly: nothing says that it speaks for somebody else. */
  readonly isLocal: boolean;
  /** Says that it speaks for somebody else, and is no proxy that the config trusts. */
  readonly isForwarder: boolean;
};

const FORWARDING_HEADERS = [
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port'],
  ...['x-forwarded-server', 'x-real-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip', 'via'],
] as const;
const ORIGIN_CHARACTERS_MAX = 200;
const HOPS_MAX = 32;

/**
 * What a forwarding header says counts only from a trusted proxy, and never makes anyone local.
 * @param trustedProxies addresses and CIDR ranges
 */
export function peerOf(request: IncomingMessage, trustedProxies: readonly string[]): Peer {
  const socketAddress = unmapped(request.socket.remoteAddress ?? '');
  const isForwarded = FORWARDING_HEADERS.some((name) => request.headers[name] !== undefined);
  if (!isForwarded) {
    const isLocal = isLoopback(socketAddress);
    const { origin } = request.headers;
    const key =
      isLocal && origin !== undefined ? `page ${origin.slice(0, ORIGIN_CHARACTERS_MAX)}` : networkOf(socketAddress);
    return { key, isLocal, isForwarder: false };
  }
  const isTrusted = trustOf(trustedProxies);
  if (!isTrusted(socketAddress)) return { key: networkOf(socketAddress), isLocal: false, isForwarder: true };
  const client = clientBehind(request.headers['x-forwarded-for'], isTrusted) ?? socketAddress;
  return { key: networkOf(client), isLocal: false, isForwarder: false };
}

/** From the right, which is what the nearest proxy wrote, to the first address that is no proxy of ours. */
function clientBehind(
  header: string | readonly string[] | undefined,
  isTrusted: (address: string) => boolean,
): string | undefined {
  const hops = String(header ?? '')
    .split(',')
    .slice(-HOPS_MAX);
  for (const hop of hops.reverse()) {
    const address = unmapped(hop.trim());
    // Left of what cannot be read, nothing is believed.
    if (isIP(address) === 0) return undefined;
    if (!isTrusted(address)) return address;
  }
  return undefined;
}

function trustOf(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/', 2);
    const family = isIPv6(address) ? 'ipv6' : isIPv4(address) ? 'ipv4' : undefined;
    if (family === undefined) continue;
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** IPv4 that came in on a socket for both families is IPv4. */
const unmapped = (address: string): string =>
  /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address.replace(/%.*$/, '').toLowerCase();

const isLoopback = (address: string): boolean => address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);

/** One customer of one provider has a whole /64 of IPv6: its addresses are one caller. */
function networkOf(address: string): string {
  if (isIPv4(address) || address === '::1') return address;
  if (!isIPv6(address)) return 'unknown';
  const [left = '', right] = address.split('::', 2) as [string, string?];
  const groups = (text: string | undefined) => (text === undefined || text === '' ? [] : text.split(':'));
  const [head, tail] = [groups(left), groups(right)];
  const zeros = right === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  const all = [...head, ...Array.from({ length: zeros }, () => '0'), ...tail];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
