// How strict the exec policy is, as data: two settings in two places (the config and exec-approvals.json) come down to two answers.

export const EXEC_SECURITY = ['deny', 'allowlist', 'full'] as const;
export const EXEC_ASK = ['off', 'on-miss', 'always'] as const;
export const EXEC_ASK_FALLBACK = ['deny', 'allowlist', 'full'] as const;
export type ExecSecurity = (typeof EXEC_SECURITY)[number];
export type ExecAsk = (typeof EXEC_ASK)[number];
export type ExecAskFallback = (typeof EXEC_ASK_FALLBACK)[number];

/** What the config says for one agent. */
export type ExecRule = {
  readonly security: ExecSecurity;
  readonly ask: ExecAsk;
  /** What counts when nobody answers in time. Default `deny`. */
  readonly askFallback?: ExecAskFallback;
  /** True when the config itself says `full`: then it counts for everyone who may talk to the agent. */
  readonly isExplicit: boolean;
};

/** What to do with a command, from mild to strict. */
const EFFECTS = ['run', 'ask', 'refuse'] as const;
export type ExecEffect = (typeof EFFECTS)[number];
export type ExecEffects = { readonly listed: ExecEffect; readonly unlisted: ExecEffect };

/** The operator's own runs. `full` with `on-miss` has nobody to ask about: nothing misses. */
export const EXEC_EFFECTS: Readonly<Record<ExecSecurity, Readonly<Record<ExecAsk, ExecEffects>>>> = {
  deny: {
    off: { listed: 'refuse', unlisted: 'refuse' },
    'on-miss': { listed: 'refuse', unlisted: 'refuse' },
    always: { listed: 'refuse', unlisted: 'refuse' },
  },
  allowlist: {
    off: { listed: 'run', unlisted: 'refuse' },
    'on-miss': { listed: 'run', unlisted: 'ask' },
    always: { listed: 'ask', unlisted: 'ask' },
  },
  full: {
    off: { listed: 'run', unlisted: 'run' },
    'on-miss': { listed: 'run', unlisted: 'run' },
    always: { listed: 'ask', unlisted: 'ask' },
  },
};

/** What the file says; a setting that it leaves out is the config's. */
export type ExecRuleOfFile = Partial<Pick<ExecRule, 'security' | 'ask' | 'askFallback'>>;

/**
 * The stricter answer of config and file, each taken as a whole. Setting by setting there is no order to go by: `ask: off` is stricter
 * than `on-miss` where a miss is refused and milder where nothing misses.
 */
export function effectsOf(
  config: ExecRule,
  file: ExecRuleOfFile,
): ExecEffects & { readonly fallback: ExecAskFallback } {
  const own = EXEC_EFFECTS[config.security][config.ask];
  const other = EXEC_EFFECTS[file.security ?? config.security][file.ask ?? config.ask];
  const fallback = config.askFallback ?? 'deny';
  return {
    listed: stricter(EFFECTS, own.listed, other.listed),
    unlisted: stricter(EFFECTS, own.unlisted, other.unlisted),
    fallback: stricter(['full', 'allowlist', 'deny'], fallback, file.askFallback ?? fallback),
  };
}

/** `order` goes from mild to strict. */
const stricter = <T>(order: readonly T[], one: T, other: T): T =>
  order.indexOf(one) >= order.indexOf(other) ? one : other;
