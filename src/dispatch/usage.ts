import type { RunResult } from '#domain';
import type { Database } from '#store';
import type { ActiveRun } from './active-run.ts';

/** What a run used, one row a run; in the transaction that records its end. Times are milliseconds. */
export async function recordUsage(
  run: ActiveRun,
  result: RunResult,
  startedAt: number,
  at: number,
  transaction: Database,
): Promise<void> {
  const { usage } = result;
  await transaction
    .insertInto('usage')
    .values({
      run_id: run.id,
      session_key: run.envelope.sessionKey,
      agent: run.envelope.agent,
      channel: run.envelope.channel,
      provider: result.provider,
      model: result.model,
      at,
      duration_ms: at - startedAt,
      turns: result.turns,
      outcome: result.outcome,
      input: usage.input,
      output: usage.output,
      cache_read: usage.cacheRead,
      cache_write: usage.cacheWrite,
      cost_usd: usage.cost.total,
    })
    .execute();
}
