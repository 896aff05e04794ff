import { ID_PATTERN } from '#base';
import { type AgentId, agentId, DEFAULT_AGENT, type ThinkingLevel } from '#domain';
import type { Config } from './schema.ts';
import type { StatePaths } from './state-paths.ts';

/** One scope's rules about tools. A tool must pass every scope; `where` is for explanations. */
export type ToolRules = {
  readonly where: string;
  readonly profile?: 'minimal' | 'coding' | 'messaging' | 'full';
  /** Absent: all of the profile. */
  readonly allow?: readonly string[];
  readonly alsoAllow: readonly string[];
  readonly deny: readonly string[];
};

/** What may be executed, in one form whichever way the config says it. */
export type ExecSettings = {
  /** `nowhere`: the config names a place that this version does not have, so nothing runs. */
  readonly host: 'gateway' | 'nowhere';
  readonly security: 'deny' | 'allowlist' | 'full';
  readonly ask: 'off' | 'on-miss' | 'always';
  readonly askFallback: 'deny' | 'allowlist' | 'full';
  readonly timeoutMs: number;
  readonly approvalTimeoutMs: number;
  readonly strictInlineEval: boolean;
  readonly safeBins: readonly string[];
};

/** All that a run needs to know of its agent. */
export type AgentSettings = {
  readonly id: AgentId;
  readonly name: string;
  /** Absolute; need not exist. */
  readonly workspace: string;
  readonly model: { readonly primary?: string; readonly fallbacks: readonly string[] };
  /** The provider of a model that names none. */
  readonly provider?: string;
  /** Absent: low for a model that reasons, else off. */
  readonly thinking?: ThinkingLevel;
  readonly toolRules: readonly ToolRules[];
  readonly exec: ExecSettings;
  readonly workspaceOnly: boolean;
  readonly memory: {
    readonly shortTermTurns: number;
    readonly compressionEnabled: boolean;
    readonly compressionTrigger: number;
  };
  /** Tokens; absent: the model's own. */
  readonly contextWindow?: number;
  readonly maxToolResultTokens: number;
  readonly truncationMessage: string;
  readonly timeoutMs: number;
  readonly maxTurns: number;
  /** Empty when there is none. */
  readonly systemPromptExtra: string;
};

type Agents = Config['agents'];
type Entry = Omit<Agents['list'][number], 'id'>;

/** Every agent, in the order of the config; `main` when it names none. */
export function agentIds(config: Config): readonly AgentId[] {
  const ids = [...config.agents.list.map(({ id }) => id), ...Object.keys(config.agents.entries)].filter((id) =>
    ID_PATTERN.test(id),
  ) as AgentId[];
  return ids.length === 0 ? [DEFAULT_AGENT] : ids;
}

/** The agent when nothing names one: the entry with `default: true`, else the first, else `main`. */
export function defaultAgent(config: Config): AgentId {
  const chosen = config.agents.list.find((entry) => entry.default === true)?.id;
  const named = chosen ?? Object.entries(config.agents.entries).find(([, entry]) => entry.default === true)?.[0];
  return named === undefined ? agentIds(config)[0]! : agentId(named);
}

/** One agent's settings, its own over the defaults; undefined for an agent that there is not. */
export function agentSettings(
  config: Config,
  id: AgentId,
  paths: Pick<StatePaths, 'workspaceFor'>,
): AgentSettings | undefined {
  if (!agentIds(config).includes(id)) return undefined;
  const { defaults } = config.agents;
  const entry = entryOf(config.agents, id);
  const own = entry?.tools;
  const ownModel = entry?.model !== undefined;
  // A provider belongs to the model that stands beside it, not to one that was inherited.
  const provider = ownModel ? entry.provider : defaults.provider;
  const workspace = entry?.workspace ?? (id === defaultAgent(config) ? defaults.workspace : undefined);
  const contextWindow = entry?.contextWindow ?? defaults.contextWindow;
  const thinking = entry?.thinkingDefault ?? defaults.thinkingDefault;
  return {
    id,
    name: entry?.name ?? entry?.identity.name ?? id,
    workspace: paths.workspaceFor(id, workspace),
    model: modelChoiceOf(ownModel ? entry.model : defaults.model),
    ...(provider === undefined ? {} : { provider }),
    ...(thinking === undefined ? {} : { thinking }),
    toolRules: [rulesOf(config.tools, 'tools'), ...(own ? [rulesOf(own, `agents.list "${id}".tools`)] : [])],
    exec: execOf(config.tools.exec, own?.exec),
    workspaceOnly: own?.fs.workspaceOnly ?? config.tools.fs.workspaceOnly,
    memory: {
      shortTermTurns: entry?.memory.shortTermTurns ?? config.memory.shortTermTurns,
      compressionEnabled: entry?.memory.compressionEnabled ?? config.memory.compressionEnabled,
      compressionTrigger: entry?.memory.compressionTrigger ?? config.memory.compressionTrigger,
    },
    ...(contextWindow === undefined ? {} : { contextWindow }),
    maxToolResultTokens: own?.maxToolResultTokens ?? config.tools.maxToolResultTokens,
    truncationMessage: own?.truncationMessage ?? config.tools.truncationMessage,
    timeoutMs: 1_000 * (entry?.timeoutSeconds ?? defaults.timeoutSeconds),
    maxTurns: entry?.maxTurns ?? defaults.maxTurns,
    systemPromptExtra: entry?.systemPromptExtra ?? defaults.systemPromptExtra,
  };
}

/** Alias → `provider/model`. */
export function modelAliases(config: Config): Readonly<Record<string, string>> {
  const aliases: Record<string, string> = Object.create(null);
  for (const [name, { alias }] of Object.entries(config.agents.defaults.models)) {
    if (alias !== undefined) aliases[alias] = name;
  }
  return aliases;
}

/** Which messages an agent answers. Absent parts match the default account, and any peer, server or workspace. */
export type Binding = {
  readonly agentId: string;
  readonly channel: string;
  readonly accountId?: string;
  readonly peer?: { readonly kind: 'direct' | 'group' | 'channel'; readonly id: string };
  readonly guildId?: string;
  readonly teamId?: string;
};

/** The bindings in one form. */
export function bindingsOf(config: Config): readonly Binding[] {
  return config.bindings.map(({ agentId: agent, channel, accountId, match }) => {
    const { peer, ...rest } = match ?? { channel: channel ?? '', ...(accountId === undefined ? {} : { accountId }) };
    const kind = peer?.kind === 'dm' ? 'direct' : peer?.kind;
    return {
      agentId: agent,
      channel: rest.channel,
      ...('accountId' in rest && rest.accountId !== undefined ? { accountId: rest.accountId } : {}),
      ...(peer === undefined || kind === undefined ? {} : { peer: { kind, id: peer.id } }),
      ...('guildId' in rest && rest.guildId !== undefined ? { guildId: rest.guildId } : {}),
      ...('teamId' in rest && rest.teamId !== undefined ? { teamId: rest.teamId } : {}),
    };
  });
}

function entryOf(agents: Agents, id: AgentId): Entry | undefined {
  return agents.list.find((entry) => entry.id === id) ?? agents.entries[id];
}

function modelChoiceOf(model: Entry['model']): AgentSettings['model'] {
  if (typeof model === 'string') return { primary: model, fallbacks: [] };
  return { ...(model?.primary === undefined ? {} : { primary: model.primary }), fallbacks: model?.fallbacks ?? [] };
}

function rulesOf(tools: Config['tools'] | Entry['tools'], where: string): ToolRules {
  return {
    where,
    ...(tools.profile === undefined ? {} : { profile: tools.profile }),
    ...(tools.allow === undefined ? {} : { allow: tools.allow }),
    alsoAllow: tools.alsoAllow,
    deny: tools.deny,
  };
}

type ExecRule = Pick<ExecSettings, 'security' | 'ask'>;

const MODES: Readonly<Record<'deny' | 'allowlist' | 'ask' | 'auto' | 'full', ExecRule>> = {
  deny: { security: 'deny', ask: 'off' },
  allowlist: { security: 'allowlist', ask: 'off' },
  ask: { security: 'allowlist', ask: 'on-miss' },
  // The public `auto` has a model look before a person; without that reviewer a person is asked.
  auto: { security: 'allowlist', ask: 'on-miss' },
  full: { security: 'full', ask: 'off' },
};

function execOf(everyone: Config['tools']['exec'], own: Entry['tools']['exec'] | undefined): ExecSettings {
  const host = own?.host ?? everyone.host;
  const ownRule = own !== undefined && (own.mode ?? own.security ?? own.ask) !== undefined;
  return {
    host: host === 'gateway' || host === 'auto' ? 'gateway' : 'nowhere',
    ...(ownRule ? ruleOf(own, ruleOf(everyone, MODES.ask)) : ruleOf(everyone, MODES.ask)),
    askFallback: own?.askFallback ?? everyone.askFallback,
    timeoutMs: 1_000 * (own?.timeoutSec ?? everyone.timeoutSec),
    approvalTimeoutMs: 1_000 * (own?.approvalTimeoutSec ?? everyone.approvalTimeoutSec),
    strictInlineEval: own?.strictInlineEval ?? everyone.strictInlineEval,
    safeBins: own?.safeBins ?? everyone.safeBins,
  };
}

function ruleOf(keys: Pick<Config['tools']['exec'], 'mode' | 'security' | 'ask'>, wider: ExecRule): ExecRule {
  if (keys.mode !== undefined) return MODES[keys.mode];
  // `security` alone is a whole rule: who writes "allowlist" gets refusals, not questions; who writes "full" is not asked.
  if (keys.security !== undefined) return { security: keys.security, ask: keys.ask ?? 'off' };
  return { security: wider.security, ask: keys.ask ?? wider.ask };
}
