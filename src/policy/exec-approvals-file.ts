import { GatewayError, isRecord, newId, parseJson } from '#base';
import type { AgentId } from '#domain';
import type { AllowEntry } from './exec-allowlist.ts';

export const EXEC_SECURITY = ['deny', 'allowlist', 'full'] as const;
export const EXEC_ASK = ['off', 'on-miss', 'always'] as const;
export type ExecSecurity = (typeof EXEC_SECURITY)[number];
export type ExecAsk = (typeof EXEC_ASK)[number];

/** What the file says for one agent; absent means that it says nothing. */
export type ExecApprovals = {
  readonly security?: ExecSecurity;
  readonly ask?: ExecAsk;
  readonly allowlist: readonly AllowEntry[];
};

type Json = Record<string, unknown>;

const ENTRIES_MAX = 1_000;

/**
 * The public `exec-approvals.json`: `{version: 1, defaults, agents: {<id>: {security, ask, allowlist: [{pattern}]}}}`. Fields that are
 * not ours stay. A damaged file allows nothing and is never written over.
 */
export class ExecApprovalsFile {
  readonly #load: () => Promise<string | undefined>;
  readonly #save: (text: string) => Promise<void>;
  /** Writers wait for each other: each reads what the one before has written. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(ports: {
    readonly load: () => Promise<string | undefined>;
    readonly save: (text: string) => Promise<void>;
  }) {
    this.#load = ports.load;
    this.#save = ports.save;
  }

  /** @throws {GatewayError} `CONFIG_UNREADABLE` for a damaged file */
  async forAgent(agent: AgentId): Promise<ExecApprovals> {
    const file = await this.#read();
    const defaults = isRecord(file['defaults']) ? file['defaults'] : {};
    const agents = isRecord(file['agents']) ? file['agents'] : {};
    const everyone = isRecord(agents['*']) ? agents['*'] : {};
    const own = Object.hasOwn(agents, agent) && isRecord(agents[agent]) ? agents[agent] : {};
    const security = oneOf(EXEC_SECURITY, own['security'] ?? everyone['security'] ?? defaults['security'], 'security');
    const ask = oneOf(EXEC_ASK, own['ask'] ?? everyone['ask'] ?? defaults['ask'], 'ask');
    return {
      ...(security === undefined ? {} : { security }),
      ...(ask === undefined ? {} : { ask }),
      allowlist: [...entriesOf(everyone), ...entriesOf(own)],
    };
  }

  /** Adds an entry to an agent's allow-list, once. */
  async remember(agent: AgentId, entry: AllowEntry, now: number): Promise<void> {
    const write = this.#writing.then(async () => {
      const file = await this.#read();
      const agents = isRecord(file['agents']) ? file['agents'] : {};
      const own: Json = Object.hasOwn(agents, agent) && isRecord(agents[agent]) ? agents[agent] : {};
      const known = Array.isArray(own['allowlist']) ? own['allowlist'] : [];
      if (entriesOf(own).some((e) => e.pattern === entry.pattern && e.argvDigest === entry.argvDigest)) return;
      if (known.length >= ENTRIES_MAX)
        throw new GatewayError('CONFIG_INVALID', `The allow-list of ${agent} has ${ENTRIES_MAX} entries already`);
      const added = {
        id: newId(),
        pattern: entry.pattern,
        ...(entry.argvDigest ? { argvDigest: entry.argvDigest } : {}),
        source: 'allow-always',
        addedAt: now,
      };
      const next = { version: 1, ...file, agents: { ...agents, [agent]: { ...own, allowlist: [...known, added] } } };
      await this.#save(`${JSON.stringify(next, null, 2)}\n`);
    });
    this.#writing = write.catch(() => undefined);
    await write;
  }

  async #read(): Promise<Json> {
    const text = await this.#load();
    if (text === undefined || text.trim() === '') return {};
    try {
      const value = parseJson(text);
      if (isRecord(value) && (value['version'] === undefined || value['version'] === 1)) return value;
    } catch (cause) {
      throw damaged(cause);
    }
    throw damaged(undefined);
  }
}

function entriesOf(agent: Json): readonly AllowEntry[] {
  if (!Array.isArray(agent['allowlist'])) return [];
  return agent['allowlist'].slice(0, ENTRIES_MAX).flatMap((item: unknown): readonly AllowEntry[] => {
    if (typeof item === 'string') return [{ pattern: item }];
    if (!isRecord(item) || typeof item['pattern'] !== 'string' || item['pattern'] === '') return [];
    // An entry for certain arguments that we cannot check must not become one for all arguments.
    if (item['argPattern'] !== undefined) return [];
    return [
      {
        pattern: item['pattern'],
        ...(typeof item['argvDigest'] === 'string' ? { argvDigest: item['argvDigest'] } : {}),
      },
    ];
  });
}

/** An unknown word means the strictest thing it could. */
function oneOf<T extends string>(known: readonly T[], value: unknown, name: string): T | undefined {
  if (value === undefined) return undefined;
  if (known.includes(value as T)) return value as T;
  throw new GatewayError('CONFIG_UNREADABLE', `exec-approvals.json: ${name} must be one of ${known.join(', ')}`, {
    next: 'Mend the file; until then no command runs.',
  });
}

const damaged = (cause: unknown) =>
  new GatewayError('CONFIG_UNREADABLE', 'exec-approvals.json cannot be read', {
    next: 'Mend or delete the file; until then no command runs.',
    cause,
  });
