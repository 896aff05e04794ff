import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Clock, LruMap } from '#base';
import type { Peer } from './peer.ts';
import type { AuthSettings, RateLimit } from './ports.ts';

export type AuthAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'missing' | 'mismatch' }
  | { readonly ok: false; readonly reason: 'rate-limited'; readonly retryAfterMs: number };

/** Each class of credential has its own count: a device with an old token does not lock out the person beside it. */
export type CredentialClass = 'shared-secret' | 'device-token';

const PEERS_MAX = 4_096;

type Failures = { readonly since: number; readonly count: number; readonly lockedUntil: number };

/** Checks credentials, and counts failures by peer before anything slow happens (security model T3). */
export class Authenticator {
  readonly #clock: Clock;
  readonly #failures = new LruMap<string, Failures>({ max: PEERS_MAX });

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
  }

  /** @param given what the caller presented as the shared secret, or undefined for nothing */
  check(given: string | undefined, settings: AuthSettings, peer: Peer): AuthAnswer {
    // Without a secret, being on this machine is the only proof; who speaks for somebody else is not.
    if (settings.mode === 'none') return peer.isForwarder ? { ok: false, reason: 'missing' } : { ok: true };
    const slot = slotOf('shared-secret', peer);
    const locked = this.#locked(slot);
    if (locked) return locked;
    if (given === undefined || given === '') {
      // To come with nothing is no guess. To come with nothing and claim to be somebody else is one.
      if (peer.isForwarder) this.#count(slot, settings.rateLimit);
      return { ok: false, reason: 'missing' };
    }
    if (sameSecret(given, settings.secret)) return { ok: true };
    this.#count(slot, settings.rateLimit);
    return { ok: false, reason: 'mismatch' };
  }

  /** A credential of a class that this version knows and never accepts. */
  refuse(credential: CredentialClass, settings: AuthSettings, peer: Peer): AuthAnswer {
    const slot = slotOf(credential, peer);
    const locked = this.#locked(slot);
    if (locked) return locked;
    this.#count(slot, settings.rateLimit);
    return { ok: false, reason: 'mismatch' };
  }

  #locked(slot: string): AuthAnswer | undefined {
    const retryAfterMs = (this.#failures.get(slot)?.lockedUntil ?? 0) - this.#clock.now();
    return retryAfterMs > 0 ? { ok: false, reason: 'rate-limited', retryAfterMs } : undefined;
  }

  #count(slot: string, limit: RateLimit): void {
    const now = this.#clock.now();
    const known = this.#failures.get(slot);
    const inWindow = known !== undefined && now - known.since < limit.windowMs;
    const count = inWindow ? known.count + 1 : 1;
    const lockedUntil = count >= limit.maxAttempts ? now + limit.lockoutMs : 0;
    this.#failures.set(slot, { since: inWindow ? known.since : now, count, lockedUntil });
  }
}

const slotOf = (credential: CredentialClass, peer: Peer): string => `${credential} ${peer.key}`;

/** Compares digests, so that neither time nor length tells anything of the secret. */
function sameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

/** The bearer of a request's Authorization header; credentials anywhere else do not count. */
export function bearerOf(request: IncomingMessage): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
}
