import type { TSchema } from 'typebox';
import type { AgentId, SessionKey, ToolOutcome, UserContent } from '#domain';
import type { ExecGate } from './exec-gate.ts';

/** What a tool gives back to the model. Throwing is also an answer: the loop turns it into an error result. */
export type ToolResult = {
  readonly content: readonly UserContent[];
  /** For people and programs, not for the model. Must be JSON. */
  readonly details?: unknown;
  readonly outcome?: Exclude<ToolOutcome, 'aborted'>;
};

/** Narrow ways back into the gateway for the tools that need one; wired in `app`. */
export type ToolPorts = {
  readonly exec: ExecGate;
};

export type ToolContext = {
  readonly agent: AgentId;
  readonly sessionKey: SessionKey;
  readonly runId: string;
  readonly callId: string;
  /** The absolute folder that the call may touch. */
  readonly workspace: string;
  /** True when the operator of the gateway asked for this run. */
  readonly owner: boolean;
  /** Aborts with the run; a tool must let go of what it holds soon after. */
  readonly signal: AbortSignal;
  /** Shows what there is so far; may be called often, only the newest matters. */
  progress(content: readonly UserContent[]): void;
  readonly ports: ToolPorts;
};

export type Tool = {
  readonly name: string;
  /** For people: a short title. */
  readonly label: string;
  /** For the model, in our own words. */
  readonly description: string;
  /** A TypeBox object schema. Arguments are validated against it before `execute`. */
  readonly parameters: TSchema;
  /**
   * What a second execution could do. `reads`: nothing. `writes`: change something again, so its start is recorded before it.
   * `writes-when-allowed`: the same, from the moment when the exec gate has allowed it; before that nothing has happened.
   */
  readonly effect: 'reads' | 'writes' | 'writes-when-allowed';
  /** Older or looser forms that models send, brought to the schema's form; must not throw. */
  prepare?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  execute(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolResult>;
};

export const textResult = (text: string, details?: unknown): ToolResult => ({
  content: [{ type: 'text', text }],
  ...(details === undefined ? {} : { details }),
});
