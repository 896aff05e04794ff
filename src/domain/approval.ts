import type { AgentId, SessionKey } from './session-key.ts';

export const APPROVAL_DECISIONS = ['allow-once', 'allow-always', 'deny'] as const;
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number];

/** A question to a person: may this call happen? What is shown is exactly what will run (security model T9). */
export type Approval = {
  readonly id: string;
  readonly runId: string;
  readonly callId: string;
  readonly sessionKey: SessionKey;
  readonly agent: AgentId;
  /** The whole command. Show it through `printable`. */
  readonly command: string;
  readonly cwd: string;
  /** Why it was not allowed without asking. */
  readonly reason: string;
  readonly allowedDecisions: readonly ApprovalDecision[];
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Absent while it waits. `expired` counts as denied. */
  readonly decision?: ApprovalDecision | 'expired';
  readonly resolvedBy?: string;
  readonly resolvedAt?: number;
};
