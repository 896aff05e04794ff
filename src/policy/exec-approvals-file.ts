import { GatewayError, isRecord, newId, parseJson } from '#base';
import type { AgentId } from '#domain';
import type { AllowEntry } from './exec-allowlist.ts';
import { EXEC_ASK, EXEC_ASK_FALLBACK, EXEC_SECURITY, type ExecRuleOfFile } from './exec-rule.ts';

/** What the file says for one agent; a setting that is absent is left to the config. */
export type ExecApprovals = ExecRuleOfFile & { readonly allowlist: readonly AllowEntry[] };

type Json = Readonly<Record<string, unknown>>;

type Content = { readonly file: Json; readonly defaults: Json; readonly agents: Json };

const ENTRIES_MAX = 1_000;
const PATTERN_CHARACTERS_MAX = 4_096;

/**
 * The public `exec-approvals.json`: `{version: 1, defaults: {security?, ask?, askFallback?}, agents: {<id>: {security?, ask?, askFallback?,
 * allowlist: [{id?, pattern, argvHash?, lastUsedAt?, source?}]}}}`; the agent `*` is everyone. Fields that are not ours stay. A damaged
 * file allows nothing and is never written over.
 */
export class ExecApprovalsFile {
  readonly #load: () => Promise<string | undefined>;
  readonly #save: (text: string) => Promise<void>;
  /** Writers wait for each other: each reads what the one before has written. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(ports: {
    /** The file's text, or undefined where there is no file. */
    readonly load: () => Promise<string | undefined>;
    /** Replaces the file as a whole. */
    readonly save: (text: string) => Promise<void>;
  }) {
    this.#load = ports.load;
    this.#save = ports.save;
  }

  /** @throws {GatewayError} `CONFIG_UNREADABLE` for a damaged file */
  async forAgent(agent: AgentId): Promise<ExecApprovals> {
    return approvalsIn(await this.#read(), agent);
  }

  /**
   * Adds entries to an agent's allow-list, each once, in one write.
   * @param now milliseconds since the epoch
   * @throws {GatewayError} `CONFIG_UNREADABLE` for a damaged file, `CONFIG_INVALID` when the list is full
   */
  async remember(agent: AgentId, entries: readonly AllowEntry[], now: number): Promise<void> {
    const write = this.#writing.then(() => this.#add(agent, entries, now));
    // The next writer goes on whatever became of this one, whose caller learns of it below.
    this.#writing = write.catch(() => undefined);
    await write;
  }

  async #add(agent: AgentId, entries: readonly AllowEntry[], now: number): Promise<void> {
    const content = await this.#read();
    // Read whole, so that damage that is not in the way of writing is not written over either.
    approvalsIn(content, agent);
    const { file, agents } = content;
    const own = member(agents, agent);
    const listed = listOf(own);
    const known = listed.flatMap(entryOf);
    const added = entries.filter(
      (entry) => !known.some((k) => k.pattern === entry.pattern && k.argvHash === entry.argvHash),
    );
    if (added.length === 0) return;
    if (listed.length + added.length > ENTRIES_MAX) {
      throw new GatewayError('CONFIG_INVALID', `The allow-list of ${agent} is full with ${ENTRIES_MAX} entries`, {
        next: 'Remove entries from exec-approvals.json that are not needed any more.',
      });
    }
    const fresh = added.map((entry) => ({ id: newId(), ...entry, lastUsedAt: now, source: 'allow-always' }));
    const next = {
      version: 1,
      ...file,
      agents: { ...agents, [agent]: { ...own, allowlist: [...listed, ...fresh] } },
    };
    await this.#save(`${JSON.stringify(next, null, 2)}\n`);
  }

  async #read(): Promise<Content> {
    const text = await this.#load();
    if (text === undefined) return { file: {}, defaults: {}, agents: {} };
    const file = parsed(text);
    if (file['version'] !== undefined && file['version'] !== 1) throw damaged('its version is not 1');
    return { file, defaults: member(file, 'defaults'), agents: member(file, 'agents') };
  }
}

function approvalsIn({ defaults, agents }: Content, agent: AgentId): ExecApprovals {
  const everyone = member(agents, '*');
  const own = member(agents, agent);
  const say = <T extends string>(name: string, known: readonly T[]) =>
    oneOf(known, own[name] ?? everyone[name] ?? defaults[name], name);
  const security = say('security', EXEC_SECURITY);
  const ask = say('ask', EXEC_ASK);
  const askFallback = say('askFallback', EXEC_ASK_FALLBACK);
  return {
    ...(security === undefined ? {} : { security }),
    ...(ask === undefined ? {} : { ask }),
    ...(askFallback === undefined ? {} : { askFallback }),
    allowlist: [everyone, own].flatMap((each) => listOf(each).slice(0, ENTRIES_MAX).flatMap(entryOf)),
  };
}

function parsed(text: string): Json {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw damaged('it is not JSON', cause);
  }
  if (!isRecord(value)) throw damaged('it is not an object');
  return value;
}

/** An absent member is empty; one of another kind is damage, so that it is neither taken for "nothing said" nor written over. */
function member(record: Json, name: string): Json {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  if (value === undefined) return {};
  if (!isRecord(value)) throw damaged(`"${name}" is not an object`);
  return value;
}

function listOf(agent: Json): readonly unknown[] {
  const list = agent['allowlist'];
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw damaged('an allowlist is not a list');
  return list;
}

/** An entry that we do not understand whole allows nothing: what it says more could only have narrowed it. */
function entryOf(item: unknown): readonly AllowEntry[] {
  if (typeof item === 'string') return entryOf({ pattern: item });
  if (!isRecord(item)) return [];
  const { pattern, argvHash } = item;
  if (typeof pattern !== 'string' || pattern === '' || pattern.length > PATTERN_CHARACTERS_MAX) return [];
  if (Object.keys(item).some((key) => /^arg/i.test(key) && key !== 'argvHash')) return [];
  if (argvHash === undefined) return [{ pattern }];
  return typeof argvHash === 'string' && argvHash !== '' ? [{ pattern, argvHash }] : [];
}

/** A word that is not known could mean the strictest thing there is. */
function oneOf<T extends string>(known: readonly T[], value: unknown, name: string): T | undefined {
  if (value === undefined || known.includes(value as T)) return value as T | undefined;
  throw damaged(`"${name}" must be one of ${known.join(', ')}`);
}

const damaged = (why: string, cause?: unknown) =>
  new GatewayError('CONFIG_UNREADABLE', `exec-approvals.json cannot be read: ${why}`, {
    next: 'Mend or delete the file; until then no command runs.',
    ...(cause === undefined ? {} : { cause }),
  });
