import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { type Clock, LruMap } from '#base';
import type { AuthSettings, RateLimit } from './ports.ts';

export type AuthAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'missing' | 'mismatch' }
  | { readonly ok: false; readonly reason: 'rate-limited'; readonly retryAfterMs: number };

const ADDRESSES_MAX = 4_096;

type Failures = { readonly since: number; readonly count: number; readonly lockedUntil: number };

/** Checks the shared secret, and counts failures by address before anything slow happens (security model T3). */
export class Authenticator {
  readonly #clock: Clock;
  readonly #failures = new LruMap<string, Failures>({ max: ADDRESSES_MAX });

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
  }

  /**
   * @param given what the caller presented, or undefined for nothing
   * @param who the caller's address or page; see {@link callerOf}
   */
  check(given: string | undefined, settings: AuthSettings, who: string): AuthAnswer {
    if (settings.mode === 'none') return { ok: true };
    const lockedMs = this.#lockedMs(who);
    if (lockedMs > 0) return { ok: false, reason: 'rate-limited', retryAfterMs: lockedMs };
    if (given === undefined || given === '') return { ok: false, reason: 'missing' };
    if (sameSecret(given, settings.secret)) return { ok: true };
    this.#count(who, settings.rateLimit);
    return { ok: false, reason: 'mismatch' };
  }

  #lockedMs(who: string): number {
    return (this.#failures.get(who)?.lockedUntil ?? 0) - this.#clock.now();
  }

  #count(who: string, limit: RateLimit): void {
    const now = this.#clock.now();
    const known = this.#failures.get(who);
    const inWindow = known !== undefined && now - known.since < limit.windowMs;
    const count = inWindow ? known.count + 1 : 1;
    const lockedUntil = count >= limit.maxAttempts ? now + limit.lockoutMs : 0;
    this.#failures.set(who, { since: inWindow ? known.since : now, count, lockedUntil });
  }
}

/** Compares digests, so that neither time nor length tells anything of the secret. */
function sameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

/** The bearer of a request's Authorization header; credentials anywhere else do not count. */
export function bearerOf(request: IncomingMessage): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/**
 * Whose failures count together: a page's from this machine by its origin, anyone else's by address (IPv4 in IPv6 unmapped, IPv6 by its
 * /64). What a forwarding header says does not count: there is no proxy that we trust.
 */
export function callerOf(request: IncomingMessage): string {
  const address = canonicalAddress(request.socket.remoteAddress ?? '');
  const { origin } = request.headers;
  return origin !== undefined && isLoopback(address) ? `origin ${origin.slice(0, 200)}` : address;
}

/** A caller on this machine, directly: nothing says that it speaks for somebody else. */
export function isLocal(request: IncomingMessage): boolean {
  const forwarded = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via'];
  return (
    isLoopback(canonicalAddress(request.socket.remoteAddress ?? '')) &&
    !forwarded.some((name) => request.headers[name] !== undefined)
  );
}

function canonicalAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return 'unknown';
  if (address === '::1') return address;
  const [left = '', right] = address.toLowerCase().split('::', 2) as [string, string?];
  const head = left === '' ? [] : left.split(':');
  const tail = right === undefined || right === '' ? [] : right.split(':');
  const groups =
    right === undefined
      ? head
      : [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => '0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');
