import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '#world';
import { Authenticator } from './authenticate.ts';
import type { Peer } from './peer.ts';
import type { AuthSettings } from './ports.ts';

const rateLimit = { maxAttempts: 3, windowMs: 60_000, lockoutMs: 300_000 };
const settings: AuthSettings = { mode: 'token', secret: 'right', rateLimit };
const peer = (key: string, more: Partial<Peer> = {}): Peer => ({ key, isLocal: true, isForwarder: false, ...more });

/** Each word is one attempt or a step of the clock in seconds: `a:right`, `b:wrong`, `a:none`, `a:forged`, `a:device`, `+60`. */
const cases: readonly { readonly name: string; readonly script: string; readonly expect: string }[] = [
  { name: 'right and wrong', script: 'a:right a:wrong a:right', expect: 'ok mismatch ok' },
  {
    name: 'the third failure locks',
    script: 'a:wrong a:wrong a:wrong a:right',
    expect: 'mismatch mismatch mismatch 300000',
  },
  { name: 'nobody else', script: 'a:wrong a:wrong a:wrong b:right', expect: 'mismatch mismatch mismatch ok' },
  {
    name: 'the lock ends',
    script: 'a:wrong a:wrong a:wrong +299 a:right +1 a:right',
    expect: 'mismatch mismatch mismatch 1000 ok',
  },
  { name: 'the window ends', script: 'a:wrong a:wrong +60 a:wrong a:right', expect: 'mismatch mismatch mismatch ok' },
  {
    name: 'to come with nothing is no guess',
    script: 'a:none a:none a:none a:none a:right',
    expect: 'missing missing missing missing ok',
  },
  {
    name: 'B07: unless it is forged',
    script: 'a:forged a:forged a:forged a:right',
    expect: 'missing missing missing 300000',
  },
  {
    name: 'a device has its own count',
    script: 'a:device a:device a:device a:device a:right',
    expect: 'mismatch mismatch mismatch 300000 ok',
  },
];
for (const { name, script, expect } of cases) {
  test(`T3: failures: ${name}`, async () => {
    const clock = new ManualClock();
    const authenticator = new Authenticator({ clock });
    const told: string[] = [];
    for (const word of script.split(' ')) {
      if (word.startsWith('+')) {
        await clock.advance(Number(word) * 1_000);
        continue;
      }
      const [who = '', what = ''] = word.split(':');
      const answer =
        what === 'device'
          ? authenticator.refuse('device-token', settings, peer(who))
          : what === 'forged'
            ? authenticator.check(undefined, settings, peer(who, { isForwarder: true }))
            : authenticator.check(what === 'none' ? undefined : what, settings, peer(who));
      told.push(answer.ok ? 'ok' : answer.reason === 'rate-limited' ? String(answer.retryAfterMs) : answer.reason);
    }
    assert.equal(told.join(' '), expect);
  });
}

test('T3: without a secret, who speaks for somebody else is refused', () => {
  const authenticator = new Authenticator({ clock: new ManualClock() });
  const none: AuthSettings = { mode: 'none', rateLimit };
  assert.equal(authenticator.check(undefined, none, peer('a')).ok, true);
  assert.equal(authenticator.check(undefined, none, peer('a', { isForwarder: true })).ok, false);
});

test('T21: a flood of addresses forgets the oldest, and grows no further', () => {
  const authenticator = new Authenticator({ clock: new ManualClock() });
  for (let i = 0; i < 3; i++) authenticator.check('wrong', settings, peer('first'));
  assert.equal(authenticator.check('right', settings, peer('first')).ok, false);
  for (let i = 0; i < 5_000; i++) authenticator.check('wrong', settings, peer(`flood ${i}`));
  assert.equal(authenticator.check('right', settings, peer('first')).ok, true);
});
