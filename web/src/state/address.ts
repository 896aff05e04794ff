// What the page's own address may tell it, and what it must not (security model T2).

export type AddressFacts = {
  /** From the fragment, which browsers never send to a server. */
  readonly token?: string;
  /** The same address without anything secret or foreign; to be put into the address bar at once. */
  readonly cleaned: string;
  /** Why something in the address was not used, for the person who followed the link. */
  readonly notices: readonly string[];
};

/** Names that ask a page to talk to another gateway. This page only ever talks to the one that served it. */
const GATEWAY_PARAMETERS = ['gatewayUrl', 'gateway', 'wsUrl'];
const SECRET_PARAMETERS = ['token', 'password', 'auth'];

export function readAddress(href: string): AddressFacts {
  const url = new URL(href);
  const notices: string[] = [];
  for (const name of GATEWAY_PARAMETERS) {
    const wanted = url.searchParams.get(name);
    if (wanted === null) continue;
    url.searchParams.delete(name);
    notices.push(
      `The link asked this page to connect to another gateway, ${wanted.slice(0, 300)}. That was not done: this page only ` +
        `talks to ${url.origin}. To use the other gateway, open its own address.`,
    );
  }
  for (const name of SECRET_PARAMETERS) {
    if (!url.searchParams.has(name)) continue;
    url.searchParams.delete(name);
    notices.push(
      'The link carried a secret in its query, where servers and logs can see it, so it was not used. Use the link that “reins start” prints.',
    );
  }
  const fragment = new URLSearchParams(url.hash.slice(1));
  const token = fragment.get('token')?.trim();
  if (fragment.has('token')) url.hash = '';
  return { ...(token ? { token } : {}), cleaned: url.pathname + url.search + url.hash, notices };
}

/** The WebSocket address of the gateway that served the page. */
export function gatewayAddress(href: string): string {
  const url = new URL('./', href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = '';
  url.hash = '';
  return url.href;
}
