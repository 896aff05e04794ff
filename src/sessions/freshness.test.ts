import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFresh, type ResetRule } from './freshness.ts';

// Local time on purpose: people think of "four in the morning" where they are.
const at = (text: string) => new Date(text).getTime();
const daily: ResetRule = { mode: 'daily', atHour: 4 };
const idle: ResetRule = { mode: 'idle', idleMinutes: 30 };
const cases = [
  {
    name: 'daily: same morning',
    rule: daily,
    started: '2026-03-10T04:00',
    used: '2026-03-10T05:00',
    now: '2026-03-11T03:59',
    fresh: true,
  },
  {
    name: 'daily: past four',
    rule: daily,
    started: '2026-03-10T23:00',
    used: '2026-03-11T03:00',
    now: '2026-03-11T04:00',
    fresh: false,
  },
  {
    name: 'daily: started after four',
    rule: daily,
    started: '2026-03-11T04:01',
    used: '2026-03-11T04:01',
    now: '2026-03-11T23:59',
    fresh: true,
  },
  {
    name: 'idle: just used',
    rule: idle,
    started: '2026-01-01T00:00',
    used: '2026-03-11T10:00',
    now: '2026-03-11T10:29',
    fresh: true,
  },
  {
    name: 'idle: half an hour',
    rule: idle,
    started: '2026-03-11T00:00',
    used: '2026-03-11T10:00',
    now: '2026-03-11T10:30',
    fresh: false,
  },
  {
    name: 'none: never',
    rule: { mode: 'none' } as const,
    started: '2020-01-01T00:00',
    used: '2020-01-01T00:00',
    now: '2026-03-11T10:30',
    fresh: true,
  },
];
for (const { name, rule, started, used, now, fresh } of cases) {
  test(`M-7: reset ${name}`, () => {
    assert.equal(isFresh(rule, { startedAt: at(started), lastInteractionAt: at(used) }, at(now)), fresh);
  });
}
