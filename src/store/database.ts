import { Kysely, SqliteDialect } from 'kysely';
import { migrate } from './migrations.ts';
import { openSqlite } from './sqlite.ts';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;

/**
 * Opens the one database of a state folder and brings it up to date. Close it with `destroy()`.
 * @throws {GatewayError} `STATE_IN_USE`, `STATE_UNWRITABLE`, `STATE_NEWER`
 */
export async function openDatabase(file: string): Promise<Database> {
  const database = new Kysely<Tables>({ dialect: new SqliteDialect({ database: openSqlite(file) }) });
  try {
    await migrate(database);
  } catch (error) {
    await database.destroy();
    throw error;
  }
  return database;
}
