import { join } from 'node:path';
import { type Clock, GatewayError, newId } from '#base';
import { type AgentId, agentOf, MAIN_SESSION, type Message, type SessionKey } from '#domain';
import { type Damage, type Database, TranscriptFile } from '#store';
import { isFresh, type ResetRule } from './freshness.ts';
import type { SessionPatch, SessionQuery, SessionRow } from './session-row.ts';
import { Transcript } from './transcript.ts';

const OPEN_TRANSCRIPTS_MAX = 64;
const OPEN_BYTES_MAX = 64 * 1024 * 1024;
const QUERY_MAX = 1_000;

export type SessionFacts = {
  readonly agent: AgentId;
  readonly label?: string;
  readonly channel?: string;
  readonly chatType?: SessionRow['chatType'];
};

export type SessionsOptions = {
  readonly database: Database;
  readonly clock: Clock;
  /** Where an agent's transcripts are. */
  readonly folderOf: (agent: AgentId) => string;
  /** The folder named in a new transcript's header. */
  readonly workspaceOf: (agent: AgentId) => string;
  readonly resetRule: () => ResetRule;
  readonly onDamage: (damage: Damage) => void;
};

export type SessionChange = {
  readonly key: SessionKey;
  readonly reason: 'create' | 'patch' | 'reset' | 'delete' | 'update';
};

/** Keys to sessions: create or resume, resets, choices, lists, and the transcript behind each. */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #listeners = new Set<(change: SessionChange) => void>();
  /** Open transcripts by session id, used longest ago first. A promise, so that two readers never open one file twice. */
  readonly #open = new Map<
    string,
    { readonly opening: Promise<Transcript>; transcript: Transcript | undefined; holders: number }
  >();
  readonly #rows = new Map<SessionKey, SessionRow>();
  /** Two messages that both find no session must not make two. */
  readonly #resuming = new Map<SessionKey, Promise<SessionRow>>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  async get(key: SessionKey): Promise<SessionRow | undefined> {
    const known = this.#rows.get(key);
    if (known) return known;
    const found = await this.#options.database
      .selectFrom('session')
      .select('row_json')
      .where('key', '=', key)
      .executeTakeFirst();
    return found === undefined ? undefined : this.#remember(JSON.parse(found.row_json) as SessionRow);
  }

  /** The session as it is, or a new one. */
  async create(key: SessionKey, facts: SessionFacts): Promise<SessionRow> {
    return (await this.get(key)) ?? (await this.resume(key, facts));
  }

  /** The session a message goes to: created where it is missing, started over where its reset rule says so. */
  async resume(key: SessionKey, facts: SessionFacts): Promise<SessionRow> {
    const known = this.#rows.get(key);
    if (known && isFresh(this.#options.resetRule(), known, this.#options.clock.now())) return known;
    let resuming = this.#resuming.get(key);
    if (!resuming) {
      resuming = this.#resume(key, facts).finally(() => this.#resuming.delete(key));
      this.#resuming.set(key, resuming);
    }
    return await resuming;
  }

  async patch(key: SessionKey, patch: SessionPatch): Promise<SessionRow> {
    const row = await this.#existing(key);
    const changed: Record<string, unknown> = { ...row, updatedAt: this.#options.clock.now() };
    for (const [name, value] of Object.entries(patch)) {
      if (value === null) delete changed[name];
      else if (value !== undefined) changed[name] = value;
    }
    return await this.#save(changed as SessionRow, 'patch');
  }

  /** Keeps label and choices, gives a new empty transcript; the old one stays on disk. */
  async reset(key: SessionKey): Promise<SessionRow> {
    return await this.#save(this.#startedOver(await this.#existing(key)), 'reset');
  }

  /** Forgets the session; its transcript stays on disk. False when there was none. The main session cannot be deleted, only reset. */
  async delete(key: SessionKey): Promise<boolean> {
    const agent = agentOf(key);
    if (agent !== undefined && key === `agent:${agent}:${MAIN_SESSION}`) {
      throw new GatewayError('SESSION_KEY_INVALID', `Cannot delete the main session (${key})`, {
        next: 'Reset it instead.',
      });
    }
    const row = await this.get(key);
    if (!row) return false;
    await this.#options.database.deleteFrom('session').where('key', '=', key).execute();
    this.#rows.delete(key);
    this.#tell({ key, reason: 'delete' });
    return true;
  }

  async list(query: SessionQuery): Promise<{ readonly rows: readonly SessionRow[]; readonly total: number }> {
    let select = this.#options.database.selectFrom('session');
    if (query.agent !== undefined) select = select.where('agent', '=', query.agent);
    if (query.label !== undefined) select = select.where('label', '=', query.label);
    if (query.activeSince !== undefined) select = select.where('updated_at', '>=', query.activeSince);
    if (query.search !== undefined && query.search !== '') {
      const wanted = query.search.toLowerCase();
      select = select.where(({ eb, fn, or }) => {
        const holds = (column: 'key' | 'label') =>
          eb(fn<number>('instr', [fn('lower', [column]), eb.val(wanted)]), '>', 0);
        return or([holds('key'), holds('label')]);
      });
    }
    const rows = await select
      .select('row_json')
      .orderBy('updated_at', 'desc')
      .limit(Math.min(query.limit, QUERY_MAX))
      .execute();
    const { total } = await select.select(({ fn }) => fn.countAll<number>().as('total')).executeTakeFirstOrThrow();
    return { rows: rows.map((found) => this.#newest(JSON.parse(found.row_json) as SessionRow)), total };
  }

  /** The newest `limit` messages; empty for a session that does not exist. */
  async history(
    key: SessionKey,
    { limit }: { readonly limit: number },
  ): Promise<{
    readonly sessionId?: string;
    readonly thinkingLevel?: string;
    readonly messages: readonly { readonly entryId: string; readonly seq: number; readonly message: Message }[];
  }> {
    const row = await this.get(key);
    if (!row) return { messages: [] };
    const messages = await this.withTranscript(row, (transcript) => transcript.history(limit));
    return { sessionId: row.sessionId, ...(row.thinkingLevel ? { thinkingLevel: row.thinkingLevel } : {}), messages };
  }

  /** Holds the session's transcript open for `use`; open ones beyond the bound close when nobody holds them. */
  async withTranscript<T>(row: SessionRow, use: (transcript: Transcript) => T | Promise<T>): Promise<T> {
    const held = this.#hold(row);
    try {
      return await use(await held.opening);
    } finally {
      held.holders--;
      this.#closeSpare();
    }
  }

  /** Keeps a changed row in memory; {@link write} makes it last. */
  remember(row: SessionRow): void {
    this.#remember(row);
    this.#tell({ key: row.key, reason: 'update' });
  }

  /** Puts a row on disk, also in a caller's transaction; {@link remember} it once that is through. */
  async write(row: SessionRow, database: Database = this.#options.database): Promise<void> {
    const change = {
      agent: row.agent,
      label: row.label ?? null,
      updated_at: row.updatedAt,
      row_json: JSON.stringify(row),
    };
    await database
      .insertInto('session')
      .values({ key: row.key, ...change })
      .onConflict((conflict) => conflict.column('key').doUpdateSet(change))
      .execute();
  }

  subscribe(listener: (change: SessionChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    const open = await Promise.allSettled([...this.#open.values()].map((held) => held.opening));
    for (const held of open) if (held.status === 'fulfilled') held.value.close();
    this.#open.clear();
  }

  async #resume(key: SessionKey, facts: SessionFacts): Promise<SessionRow> {
    const row = await this.get(key);
    if (!row) return await this.#save(this.#newRow(key, facts), 'create');
    if (isFresh(this.#options.resetRule(), row, this.#options.clock.now())) return row;
    return await this.#save(this.#startedOver(row), 'reset');
  }

  #newRow(key: SessionKey, facts: SessionFacts): SessionRow {
    const now = this.#options.clock.now();
    return {
      key,
      agent: facts.agent,
      sessionId: newId(),
      ...(facts.label === undefined ? {} : { label: facts.label }),
      ...(facts.channel === undefined ? {} : { channel: facts.channel }),
      ...(facts.chatType === undefined ? {} : { chatType: facts.chatType }),
      startedAt: now,
      updatedAt: now,
      lastInteractionAt: now,
      status: 'idle',
      ...NO_COUNTS,
    };
  }

  #startedOver(row: SessionRow): SessionRow {
    const now = this.#options.clock.now();
    const { runStartedAt: _, runEndedAt: __, ...kept } = row;
    return {
      ...kept,
      ...NO_COUNTS,
      sessionId: newId(),
      startedAt: now,
      updatedAt: now,
      lastInteractionAt: now,
      status: 'idle',
    };
  }

  async #existing(key: SessionKey): Promise<SessionRow> {
    const row = await this.get(key);
    if (row) return row;
    throw new GatewayError('SESSION_KEY_INVALID', `There is no session ${key}`, {
      next: 'List them with: reins sessions',
    });
  }

  async #save(row: SessionRow, reason: SessionChange['reason']): Promise<SessionRow> {
    await this.write(row);
    this.#remember(row);
    this.#tell({ key: row.key, reason });
    return row;
  }

  #remember(row: SessionRow): SessionRow {
    this.#rows.delete(row.key);
    this.#rows.set(row.key, row);
    if (this.#rows.size > QUERY_MAX) {
      for (const [key, old] of this.#rows) {
        if (old.status !== 'running') {
          this.#rows.delete(key);
          break;
        }
      }
    }
    return row;
  }

  /** A list shows what memory knows (a run under way), not what the last run saved. */
  #newest(saved: SessionRow): SessionRow {
    return this.#rows.get(saved.key) ?? saved;
  }

  #tell(change: SessionChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  #hold(row: SessionRow) {
    const known = this.#open.get(row.sessionId);
    if (known) {
      this.#open.delete(row.sessionId);
      this.#open.set(row.sessionId, known);
      known.holders++;
      return known;
    }
    const held: { opening: Promise<Transcript>; transcript: Transcript | undefined; holders: number } = {
      opening: this.#openTranscript(row).then((transcript) => {
        held.transcript = transcript;
        return transcript;
      }),
      transcript: undefined,
      holders: 1,
    };
    this.#open.set(row.sessionId, held);
    // A file that could not be opened is tried again by the next one who asks.
    held.opening.catch(() => this.#open.delete(row.sessionId));
    return held;
  }

  async #openTranscript(row: SessionRow): Promise<Transcript> {
    const now = this.#options.clock.now();
    const path = join(this.#options.folderOf(row.agent), `${row.sessionId}.jsonl`);
    const timestamp = new Date(now).toISOString();
    const header = {
      type: 'session',
      version: 3,
      id: row.sessionId,
      timestamp,
      cwd: this.#options.workspaceOf(row.agent),
    } as const;
    const transcript = new Transcript(await TranscriptFile.open(path, header, now));
    if (transcript.damage) this.#options.onDamage(transcript.damage);
    return transcript;
  }

  #closeSpare(): void {
    let bytes = 0;
    for (const held of this.#open.values()) bytes += held.transcript?.bytes ?? 0;
    for (const [id, held] of this.#open) {
      if (this.#open.size <= OPEN_TRANSCRIPTS_MAX && bytes <= OPEN_BYTES_MAX) return;
      if (held.holders > 0 || held.transcript === undefined) continue;
      bytes -= held.transcript.bytes;
      held.transcript.close();
      this.#open.delete(id);
    }
  }
}

const NO_COUNTS = { inputTokens: 0, outputTokens: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, costUsd: 0 } as const;
