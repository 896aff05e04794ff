import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { SqliteDatabase, SqliteStatement } from 'kysely';
import { GatewayError, LruMap } from '#base';

const STATEMENTS_MAX = 128;

/**
 * `node:sqlite` in the form that Kysely's SQLite dialect takes. Exclusive: a second process that opens the same file is refused, and
 * the kernel frees the lock when this one dies, however it dies.
 * @throws {GatewayError} `STATE_IN_USE`, `STATE_UNWRITABLE`
 */
export function openSqlite(file: string): SqliteDatabase {
  let database: DatabaseSync;
  try {
    database = new DatabaseSync(file, { enableForeignKeyConstraints: true, timeout: 0 });
    // WAL with `normal` survives the death of the process; only the death of the machine can lose the last commits.
    database.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000;',
    );
    database.exec('BEGIN IMMEDIATE; COMMIT;');
  } catch (cause) {
    throw asStateError(file, cause);
  }
  const statements = new LruMap<string, SqliteStatement>({ max: STATEMENTS_MAX });
  return {
    close: () => database.close(),
    prepare(sql) {
      const known = statements.get(sql);
      if (known) return known;
      const statement = asKyselyStatement(database.prepare(sql));
      statements.set(sql, statement);
      return statement;
    },
  };
}

function asKyselyStatement(statement: StatementSync): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...(parameters as SQLInputValue[])),
    run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
    iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
  };
}

function asStateError(file: string, cause: unknown): GatewayError {
  const text = cause instanceof Error ? cause.message : '';
  if (/locked|busy/i.test(text)) {
    return new GatewayError('STATE_IN_USE', `Another Reins is using ${file}`, {
      next: 'Stop it first, or use another state folder with REINS_STATE_DIR.',
      cause,
    });
  }
  return new GatewayError('STATE_UNWRITABLE', `The database ${file} cannot be opened (${text || 'unknown reason'})`, {
    next: 'Check that the folder exists, belongs to you and is writable.',
    cause,
  });
}
