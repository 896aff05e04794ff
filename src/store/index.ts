export { type Database, openDatabase } from './database.ts';
export type { InboxTable, OutboxTable, SessionTable, Tables, UsageTable } from './tables.ts';
export { type Damage, TranscriptFile } from './transcript-file.ts';
