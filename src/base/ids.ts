/** A random UUID (version 4). */
export const newId = (): string => crypto.randomUUID();

/** Eight random lower-case hex digits: unique within one transcript, where the caller checks for collisions. */
// The beginning of a UUID is random, and runtimes make UUIDs from a pool: much cheaper than asking for four bytes.
export const shortId = (): string => crypto.randomUUID().slice(0, 8);

/** `bytes` random bytes as base64url without padding: for tokens and nonces. */
export function randomToken(bytes = 32): string {
  const raw = crypto.getRandomValues(new Uint8Array(bytes));
  return btoa(String.fromCharCode(...raw))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/** Agent, session, plugin, skill, account and channel ids that become file names (security model T12). */
export const ID_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/;
