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
  readonly allowed: boolean /** The rule that decided, as a person finds it in the config. */;
  readonly rule: string;
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

/** Older names for a tool. */
const ALIASES: Readonly<Record<string, string>> = { bash: 'exec', shell: 'exec', 'apply-patch': 'apply_patch' };

/** Whether a tool may be seen and called, and by which rule. Deny wins over everything; every scope must let it through. */
export function decideTool(name: string, scopes: readonly ToolRules[]): ToolDecision {
  let last: ToolDecision = { allowed: true, rule: 'no rule' };
  for (const scope of scopes) {
    last = decideInScope(name, scope);
    if (!last.allowed) return last;
  }
  return last;
}

export function allowedTools<T extends { readonly name: string }>(
  tools: readonly T[],
  scopes: readonly ToolRules[],
): readonly T[] {
  return tools.filter((tool) => decideTool(tool.name, scopes).allowed);
}

function decideInScope(name: string, { where, profile, allow, alsoAllow, deny }: ToolRules): ToolDecision {
  const denying = deny.find((pattern) => matches(pattern, name));
  if (denying !== undefined) return { allowed: false, rule: `${where}.deny: ${denying}` };
  const adding = alsoAllow.find((pattern) => matches(pattern, name));
  if (adding !== undefined) return { allowed: true, rule: `${where}.alsoAllow: ${adding}` };
  if (profile !== undefined && !PROFILES[profile].some((pattern) => matches(pattern, name))) {
    return { allowed: false, rule: `${where}.profile: ${profile}` };
  }
  if (allow === undefined)
    return { allowed: true, rule: profile === undefined ? `${where}: everything` : `${where}.profile: ${profile}` };
  const allowing = allow.find((pattern) => matches(pattern, name));
  return allowing === undefined
    ? { allowed: false, rule: `${where}.allow does not name it` }
    : { allowed: true, rule: `${where}.allow: ${allowing}` };
}

function matches(pattern: string, name: string): boolean {
  const wanted = pattern.trim().toLowerCase();
  if (wanted === 'group:all') return true;
  if (wanted.startsWith('group:')) return TOOL_GROUPS[wanted]?.includes(name) ?? false;
  return fitsGlob(Object.hasOwn(ALIASES, wanted) ? ALIASES[wanted]! : wanted, name);
}
