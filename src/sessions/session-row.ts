import type { AgentId, QueueMode, RunResult, SessionKey, ThinkingLevel } from '#domain';

/** A session as lists show it. Times are milliseconds since the epoch, tokens and dollars are sums of the last run. */
export type SessionRow = {
  readonly key: SessionKey;
  readonly agent: AgentId;
  /** The current transcript; a reset gives a new one. */
  readonly sessionId: string;
  readonly label?: string;
  readonly channel?: string;
  readonly chatType?: 'direct' | 'group' | 'channel';
  /** Start of this transcript; the daily reset compares with it. */
  readonly startedAt: number;
  readonly updatedAt: number;
  /** The last message of a person; the idle reset compares with it. */
  readonly lastInteractionAt: number;
  readonly status: 'idle' | 'running' | 'done' | 'failed' | 'aborted';
  readonly runStartedAt?: number;
  readonly runEndedAt?: number;
  readonly provider?: string;
  readonly model?: string;
  /** The person's choices for this session; absent means the agent's. */
  readonly modelOverride?: string;
  readonly thinkingLevel?: ThinkingLevel;
  readonly queueMode?: QueueMode;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The size of the last prompt. */
  readonly totalTokens: number;
  readonly contextTokens?: number;
  readonly costUsd: number;
};

/** null clears, absent keeps. */
export type SessionPatch = {
  readonly label?: string | null;
  readonly modelOverride?: string | null;
  readonly thinkingLevel?: ThinkingLevel | null;
  readonly queueMode?: QueueMode | null;
};

export type SessionQuery = {
  readonly agent?: AgentId;
  readonly label?: string;
  /** Matches in key or label, case-insensitive. */
  readonly search?: string;
  readonly activeSince?: number;
  /** At most 1,000. */
  readonly limit: number;
};

/** The session once a run of it has ended. */
export function afterRun(session: SessionRow, result: RunResult, now: number): SessionRow {
  const status = result.outcome === 'answered' ? 'done' : result.outcome;
  const ended = { ...session, status, updatedAt: now, runEndedAt: now } as const;
  if (result.turns === 0) return ended;
  const { usage } = result;
  return {
    ...ended,
    provider: result.provider,
    model: result.model,
    inputTokens: usage.input,
    outputTokens: usage.output,
    cacheRead: usage.cacheRead,
    cacheWrite: usage.cacheWrite,
    totalTokens: usage.input + usage.cacheRead + usage.cacheWrite,
    costUsd: usage.cost.total,
  };
}
