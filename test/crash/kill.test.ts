import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runKills } from './harness.ts';

// More moments by hand: REINS_KILLS=200 REINS_SEED=7 node --test test/crash/kill.test.ts, or npm run bench -- --only kill.
const kills = Number(process.env['REINS_KILLS'] ?? 15);
const seed = Number(process.env['REINS_SEED'] ?? 1);

test('M-16: whatever the moment of a kill -9, every message is answered once and no effect happens twice', async (t) => {
  const report = await runKills({ kills, seed });
  t.diagnostic(JSON.stringify({ ...report, problems: report.problems.length }));
  assert.deepEqual(report.problems, []);
  assert.equal(report.answers, report.messages);
  assert.equal(report.repeatsEqual, report.messages);
  // The run proves something only if the deaths hurt.
  assert.ok(report.resent > 0 && report.outcomes.ok > 0, JSON.stringify(report));
});
