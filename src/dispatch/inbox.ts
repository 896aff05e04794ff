import type { Clock } from '#base';
import type { Envelope, RunResult, SessionKey } from '#domain';
import type { Database, InboxTable } from '#store';

type Accepted = {
  readonly digest: string;
  readonly envelope: Envelope /** Its session's transcript at the time. */;
  readonly sessionId: string;
};
export type InboxRow =
  | (Accepted & { readonly status: 'accepted' })
  | (Accepted & { readonly status: 'done'; readonly result: RunResult });

/** Every accepted message, on disk before anyone is told that it was; kept for the idempotency window after its answer. */
export class Inbox {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(options: { readonly database: Database; readonly clock: Clock }) {
    this.#database = options.database;
    this.#clock = options.clock;
  }

  /** Records a message; the row that was there before when this key came before. */
  async accept(envelope: Envelope, digest: string, sessionId: string): Promise<InboxRow | undefined> {
    const inserted = await this.#database
      .insertInto('inbox')
      .values({
        session_key: envelope.sessionKey,
        run_id: envelope.idempotencyKey,
        digest,
        session_id: sessionId,
        envelope_json: JSON.stringify(envelope),
        status: 'accepted',
        result_json: null,
        received_at: envelope.receivedAt,
        ended_at: null,
      })
      .onConflict((conflict) => conflict.columns(['run_id', 'session_key']).doNothing())
      .executeTakeFirst();
    return inserted.numInsertedOrUpdatedRows === 1n
      ? undefined
      : await this.find(envelope.idempotencyKey, envelope.sessionKey);
  }

  /** The newest row of a run id, in one session or in any. */
  async find(runId: string, key?: SessionKey): Promise<InboxRow | undefined> {
    let select = this.#database.selectFrom('inbox').selectAll().where('run_id', '=', runId);
    if (key !== undefined) select = select.where('session_key', '=', key);
    const row = await select.orderBy('id', 'desc').limit(1).executeTakeFirst();
    return row && parsed(row);
  }

  /** Messages that were accepted and not answered, in the order they came. */
  async unanswered(): Promise<readonly Extract<InboxRow, { status: 'accepted' }>[]> {
    const rows = await this.#database
      .selectFrom('inbox')
      .selectAll()
      .where('status', '=', 'accepted')
      .orderBy('id')
      .execute();
    return rows.map(parsed).filter((row) => row.status === 'accepted');
  }

  /** These messages have their answer: one run answers all that joined it. */
  async answer(key: SessionKey, runIds: readonly string[], result: RunResult, transaction: Database): Promise<void> {
    await transaction
      .updateTable('inbox')
      .set({ status: 'done', result_json: JSON.stringify(result), ended_at: this.#clock.now() })
      .where('session_key', '=', key)
      .where('run_id', 'in', runIds)
      .execute();
  }

  /** Forgets what was answered longer ago than the window. */
  async prune(windowMs: number): Promise<void> {
    await this.#database
      .deleteFrom('inbox')
      .where('status', '=', 'done')
      .where('ended_at', '<', this.#clock.now() - windowMs)
      .execute();
  }
}

function parsed(row: Pick<InboxTable, 'digest' | 'session_id' | 'envelope_json' | 'result_json'>): InboxRow {
  const envelope = JSON.parse(row.envelope_json) as Envelope;
  const accepted = { digest: row.digest, sessionId: row.session_id, envelope };
  if (row.result_json === null) return { status: 'accepted', ...accepted };
  return { status: 'done', ...accepted, result: JSON.parse(row.result_json) as RunResult };
}
