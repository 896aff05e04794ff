import { type Kysely, sql } from 'kysely';
import { GatewayError } from '#base';
import type { Tables } from './tables.ts';

type Migration = (database: Kysely<Tables>) => Promise<void>;

/** In order, never changed once released; the database remembers how many it has had. */
const MIGRATIONS: readonly Migration[] = [
  async (database) => {
    await database.schema
      .createTable('session')
      .addColumn('key', 'text', (c) => c.primaryKey())
      .addColumn('agent', 'text', (c) => c.notNull())
      .addColumn('label', 'text')
      .addColumn('updated_at', 'integer', (c) => c.notNull())
      .addColumn('row_json', 'text', (c) => c.notNull())
      .execute();
    await database.schema.createIndex('session_by_time').on('session').columns(['updated_at']).execute();
    await database.schema
      .createTable('inbox')
      .addColumn('id', 'integer', (c) => c.primaryKey().autoIncrement())
      .addColumn('session_key', 'text', (c) => c.notNull())
      .addColumn('run_id', 'text', (c) => c.notNull())
      .addColumn('digest', 'text', (c) => c.notNull())
      .addColumn('session_id', 'text', (c) => c.notNull())
      .addColumn('envelope_json', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('result_json', 'text')
      .addColumn('received_at', 'integer', (c) => c.notNull())
      .addColumn('ended_at', 'integer')
      // By run first: the same index finds a run whose session is not known.
      .addUniqueConstraint('inbox_once', ['run_id', 'session_key'])
      .execute();
    await database.schema
      .createTable('outbox')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('run_id', 'text', (c) => c.notNull())
      .addColumn('session_key', 'text', (c) => c.notNull())
      .addColumn('delivery_json', 'text', (c) => c.notNull())
      .addColumn('status', 'text', (c) => c.notNull())
      .addColumn('attempts', 'integer', (c) => c.notNull())
      .addColumn('next_at', 'integer', (c) => c.notNull())
      .addColumn('created_at', 'integer', (c) => c.notNull())
      .addColumn('ended_at', 'integer')
      .addColumn('error', 'text')
      .execute();
    await database.schema.createIndex('outbox_by_status').on('outbox').columns(['status', 'next_at']).execute();
    await database.schema
      .createTable('usage')
      .addColumn('id', 'integer', (c) => c.primaryKey().autoIncrement())
      .addColumn('run_id', 'text', (c) => c.notNull())
      .addColumn('session_key', 'text', (c) => c.notNull())
      .addColumn('agent', 'text', (c) => c.notNull())
      .addColumn('channel', 'text', (c) => c.notNull())
      .addColumn('provider', 'text', (c) => c.notNull())
      .addColumn('model', 'text', (c) => c.notNull())
      .addColumn('at', 'integer', (c) => c.notNull())
      .addColumn('duration_ms', 'integer', (c) => c.notNull())
      .addColumn('turns', 'integer', (c) => c.notNull())
      .addColumn('outcome', 'text', (c) => c.notNull())
      .addColumn('input', 'integer', (c) => c.notNull())
      .addColumn('output', 'integer', (c) => c.notNull())
      .addColumn('cache_read', 'integer', (c) => c.notNull())
      .addColumn('cache_write', 'integer', (c) => c.notNull())
      .addColumn('cost_usd', 'real', (c) => c.notNull())
      .execute();
  },
];

/** @throws {GatewayError} `STATE_NEWER` when a later version of Reins wrote this database. */
export async function migrate(database: Kysely<Tables>): Promise<void> {
  const had = (await sql<{ user_version: number }>`PRAGMA user_version`.execute(database)).rows[0]?.user_version ?? 0;
  if (had > MIGRATIONS.length) {
    throw new GatewayError('STATE_NEWER', 'The database was written by a later version of Reins', {
      next: 'Install that version again, or use another state folder with REINS_STATE_DIR.',
      detail: { had, known: MIGRATIONS.length },
    });
  }
  for (let step = had; step < MIGRATIONS.length; step++) {
    await database.transaction().execute(async (transaction) => {
      await MIGRATIONS[step]!(transaction);
      await sql.raw(`PRAGMA user_version = ${step + 1}`).execute(transaction);
    });
  }
}
