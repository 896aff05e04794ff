import type { ErrorCode } from '#base';
import type { Approval } from './approval.ts';
import type { Message, Usage, UserContent } from './message.ts';
import type { SessionKey } from './session-key.ts';

/** Everything a run tells, in order. Exactly one `run-end` closes it: also on abort, also on failure. */
export type RunEvent =
  | { readonly type: 'run-start'; readonly at: number; readonly resumed: boolean }
  | { readonly type: 'turn-start'; readonly turn: number; readonly provider: string; readonly model: string }
  | { readonly type: 'thinking-delta'; readonly turn: number; readonly text: string }
  | { readonly type: 'text-delta'; readonly turn: number; readonly text: string }
  /** The turn's answer broke off and is asked for again: what was streamed of it does not count. */
  | { readonly type: 'turn-retry'; readonly turn: number; readonly reason: ErrorCode }
  | { readonly type: 'message'; readonly entryId: string; readonly message: Message; readonly seq: number }
  | { readonly type: 'tool-start'; readonly turn: number; readonly call: ToolCallFacts; readonly at: number }
  | {
      readonly type: 'tool-delta';
      readonly turn: number;
      readonly call: ToolCallFacts;
      readonly content: readonly UserContent[];
    }
  | {
      readonly type: 'tool-end';
      readonly turn: number;
      readonly call: ToolCallFacts;
      readonly outcome: ToolOutcome;
      readonly content: readonly UserContent[];
      readonly details?: unknown;
      readonly startedAt: number;
      readonly at: number;
    }
  | { readonly type: 'approval-start'; readonly approval: Approval }
  | { readonly type: 'approval-end'; readonly approval: Approval }
  | { readonly type: 'turn-end'; readonly turn: number; readonly usage: Usage }
  | { readonly type: 'run-end'; readonly at: number; readonly result: RunResult };

export type ToolCallFacts = {
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
};
export type ToolOutcome = 'ok' | 'failed' | 'denied' | 'aborted';

export type RunResult = {
  readonly outcome: 'answered' | 'aborted' | 'failed';
  /** The texts of the run's assistant messages, in order; the last is the answer. */
  readonly texts: readonly string[];
  readonly usage: Usage;
  readonly provider: string;
  readonly model: string;
  readonly turns: number;
  /** Present when failed, and when the run was cut short by a limit. */
  readonly error?: { readonly code: ErrorCode; readonly message: string; readonly next?: string };
};

/** A run event with its place: what a subscriber gets. `seq` counts within the run, from 1. */
export type RunNotice = {
  readonly runId: string;
  readonly sessionKey: SessionKey;
  readonly seq: number;
  readonly event: RunEvent;
};

/** The answer as one text: the assistant texts of a run joined by a blank line. */
export const answerText = (result: RunResult): string => result.texts.filter((t) => t !== '').join('\n\n');
