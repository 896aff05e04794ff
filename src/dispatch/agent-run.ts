import type { LoopLimits, ResultBound } from '#agent';
import type { Tool } from '#contract';
import type { AgentId, Sender, ThinkingLevel } from '#domain';

/** What a run needs to know of its agent; resolved anew for each run, so that a changed config counts for the next one. */
export type AgentRunSettings = {
  readonly agent: AgentId;
  readonly name: string;
  readonly workspace: string;
  /** `provider/model` or alias; absent: the first that is there. */
  readonly model?: string;
  /** A config that names provider and model apart. */
  readonly provider?: string;
  /** Absent: low for a model that reasons, else off. */
  readonly thinking?: ThinkingLevel;
  /** Exchanges that history keeps. */
  readonly exchanges: number;
  /** Overrides the model's own window, in tokens. */
  readonly contextWindow?: number;
  readonly limits: LoopLimits;
  readonly bound: ResultBound;
  readonly timeoutMs: number;
  /** Added to the end of the system prompt; empty for nothing. */
  readonly systemExtra: string;
  /** Those of the tools that this sender's run may see. */
  toolsFor(tools: readonly Tool[], facts: { readonly sender: Sender; readonly channel: string }): readonly Tool[];
};
