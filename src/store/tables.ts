import type { Generated } from 'kysely';

/** Times are milliseconds since the epoch; `*_json` columns hold JSON text whose meaning belongs to the folder named. */
export type Tables = {
  session: SessionTable;
  inbox: InboxTable;
  outbox: OutboxTable;
  usage: UsageTable;
};

/** Owned by `sessions`. */
export type SessionTable = {
  key: string;
  agent: string;
  label: string | null;
  updated_at: number;
  row_json: string;
};

/** Owned by `dispatch`: every message that was accepted, until its answer is older than the idempotency window. */
export type InboxTable = {
  id: Generated<number>;
  session_key: string;
  run_id: string;
  /** SHA-256 of what the sender wrote, to tell a repeat from a reused key. */
  digest: string;
  session_id: string;
  envelope_json: string;
  status: 'accepted' | 'done';
  result_json: string | null;
  received_at: number;
  ended_at: number | null;
};

/** Owned by `dispatch`: every answer that was promised to a channel. */
export type OutboxTable = {
  id: string;
  run_id: string;
  session_key: string;
  delivery_json: string;
  status: 'pending' | 'accepted' | 'gone' | 'expired';
  attempts: number;
  next_at: number;
  created_at: number;
  ended_at: number | null;
  error: string | null;
};

/** One row a run. Tokens and US dollars. */
export type UsageTable = {
  id: Generated<number>;
  run_id: string;
  session_key: string;
  agent: string;
  channel: string;
  provider: string;
  model: string;
  at: number;
  duration_ms: number;
  turns: number;
  outcome: string;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  cost_usd: number;
};
