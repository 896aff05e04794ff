import { fitsGlob } from './glob.ts';

/** One scope's rules; a tool must pass every scope. */
export type ToolRules = {
  /** Where they stand, for explanations: `tools`, `agents.list "x".tools`. */
  readonly where: string;
  readonly profile?: ToolProfile;
  readonly allow?: readonly string[];
  readonly alsoAllow: readonly string[];
  readonly deny: readonly string[];
};

export type ToolProfile = 'minimal' | 'coding' | 'messaging' | 'full';

export type ToolDecision = {
  readonly allowed: boolean;
  /** The rule that decided, as a person finds it in the config. */
  readonly rule: string;
};

/** What a decision may rest on, from authenticated facts. What is not said is the less trusted of both. */
export type ToolFacts = {
  /** The operator asked for the run. */
  readonly owner?: boolean;
  /** Names of tools that plugins registered, for `group:plugins`. Without them: every tool that is not one of the built-in groups'. */
  readonly ofPlugins?: ReadonlySet<string>;
};

/** The public names for groups of tools. `group:plugins` and `group:all` are answered by where a tool comes from. */
export const TOOL_GROUPS: Readonly<Record<string, readonly string[]>> = {
  'group:fs': ['read', 'write', 'edit', 'apply_patch'],
  'group:runtime': ['exec', 'process'],
  'group:sessions': [
    'sessions_list',
    'sessions_history',
    'sessions_send',
    'sessions_spawn',
    'sessions_yield',
    'subagents',
    'session_status',
    'agents_list',
  ],
  'group:memory': ['memory_search', 'memory_get', 'write_memory', 'compress_memory'],
  'group:web': ['web_search', 'web_fetch'],
  'group:ui': ['browser', 'canvas'],
  'group:automation': ['cron', 'gateway'],
  'group:messaging': ['message'],
  'group:nodes': ['nodes'],
  'group:media': ['image', 'pdf', 'image_generate', 'video_generate', 'music_generate', 'tts'],
};

const PROFILES: Readonly<Record<ToolProfile, readonly string[]>> = {
  minimal: ['session_status'],
  coding: ['group:fs', 'group:runtime', 'group:sessions', 'group:memory', 'group:web', 'group:media'],
  messaging: ['group:messaging', 'sessions_list', 'sessions_history', 'sessions_send', 'session_status'],
  full: ['*'],
};

/** They reach the gateway itself or other machines: for the operator's own runs only, whatever a list says (security model §1, T24). */
export const OWNER_TOOLS: ReadonlySet<string> = new Set(['gateway', 'cron', 'nodes']);

/** Older names for a tool. */
const ALIASES: Readonly<Record<string, string>> = { bash: 'exec', shell: 'exec', 'apply-patch': 'apply_patch' };

/**
 * Whether a tool may be seen and called, and by which rule. Deny wins over everything; every scope must let it through. An older name is
 * decided as the tool that it names, and letters count the same in either case, so that neither is a way round a denial.
 */
export function decideTool(name: string, scopes: readonly ToolRules[], facts: ToolFacts = {}): ToolDecision {
  const tool = canonical(name);
  let last: ToolDecision = { allowed: true, rule: 'no rule' };
  for (const scope of scopes) {
    last = decideInScope(tool, scope, facts);
    if (!last.allowed) return last;
  }
  if (OWNER_TOOLS.has(tool) && facts.owner !== true) return { allowed: false, rule: 'for the operator only' };
  return last;
}

/** The tools that a run may see, in their order. */
export function allowedTools<T extends { readonly name: string }>(
  tools: readonly T[],
  scopes: readonly ToolRules[],
  facts: ToolFacts = {},
): readonly T[] {
  return tools.filter((tool) => decideTool(tool.name, scopes, facts).allowed);
}

function decideInScope(tool: string, scope: ToolRules, facts: ToolFacts): ToolDecision {
  const { where, profile, allow, alsoAllow, deny } = scope;
  const naming = (patterns: readonly string[]) => patterns.find((pattern) => matches(pattern, tool, facts));
  const denying = naming(deny);
  if (denying !== undefined) return { allowed: false, rule: `${where}.deny: ${denying}` };
  const adding = naming(alsoAllow);
  if (adding !== undefined) return { allowed: true, rule: `${where}.alsoAllow: ${adding}` };
  if (profile !== undefined && naming(PROFILES[profile]) === undefined)
    return { allowed: false, rule: `${where}.profile: ${profile}` };
  if (allow === undefined)
    return { allowed: true, rule: profile === undefined ? `${where}: everything` : `${where}.profile: ${profile}` };
  const allowing = naming(allow);
  return allowing === undefined
    ? { allowed: false, rule: `${where}.allow does not name it` }
    : { allowed: true, rule: `${where}.allow: ${allowing}` };
}

function matches(pattern: string, tool: string, { ofPlugins }: ToolFacts): boolean {
  const wanted = canonical(pattern);
  if (wanted === 'group:all') return true;
  if (wanted === 'group:plugins') {
    if (ofPlugins === undefined) return !Object.values(TOOL_GROUPS).some((names) => names.includes(tool));
    return [...ofPlugins].some((name) => canonical(name) === tool);
  }
  if (wanted.startsWith('group:')) return Object.hasOwn(TOOL_GROUPS, wanted) && TOOL_GROUPS[wanted]!.includes(tool);
  return fitsGlob(wanted, tool);
}

function canonical(name: string): string {
  const plain = name.trim().toLowerCase();
  return Object.hasOwn(ALIASES, plain) ? ALIASES[plain]! : plain;
}
