/**
 * The one table of operational failures. Each code has one row here, one in `docs/errors.md` and is what callers branch on;
 * message text is for people and may change. Retired codes are never used again.
 */
export const ERROR_CODES = {
  // admission and lanes
  LANE_FULL: { retryable: true },
  GATEWAY_BUSY: { retryable: true },
  GATEWAY_STOPPING: { retryable: true },
  SESSION_KEY_INVALID: { retryable: false },
  AGENT_UNKNOWN: { retryable: false },
  MESSAGE_INVALID: { retryable: false },
  MESSAGE_TOO_LARGE: { retryable: false },
  IDEMPOTENCY_CONFLICT: { retryable: false },
  // the run
  RUN_ABORTED: { retryable: false },
  RUN_TIMEOUT: { retryable: true },
  RUN_TURN_LIMIT: { retryable: false },
  RUN_LOOP: { retryable: false },
  RUN_FAILED: { retryable: false },
  // the model
  MODEL_NOT_CONFIGURED: { retryable: false },
  MODEL_UNREACHABLE: { retryable: true },
  MODEL_OVERLOADED: { retryable: true },
  MODEL_RATE_LIMITED: { retryable: true },
  MODEL_TIMEOUT: { retryable: true },
  MODEL_STREAM_CUT: { retryable: true },
  MODEL_AUTH: { retryable: false },
  MODEL_BILLING: { retryable: false },
  MODEL_NOT_FOUND: { retryable: false },
  MODEL_REQUEST_INVALID: { retryable: false },
  MODEL_CONTEXT_OVERFLOW: { retryable: false },
  MODEL_REFUSED: { retryable: false },
  // tools
  TOOL_UNKNOWN: { retryable: false },
  TOOL_ARGUMENTS_INVALID: { retryable: false },
  TOOL_FAILED: { retryable: false },
  TOOL_DENIED: { retryable: false },
  FILE_REFUSED: { retryable: false },
  FILE_NOT_FOUND: { retryable: false },
  FILE_TOO_LARGE: { retryable: false },
  EDIT_MISMATCH: { retryable: false },
  ENV_REFUSED: { retryable: false },
  PROCESS_UNKNOWN: { retryable: false },
  PROCESS_FAILED: { retryable: false },
  // approvals
  APPROVAL_NOT_FOUND: { retryable: false },
  APPROVAL_ALREADY_RESOLVED: { retryable: false },
  APPROVAL_EXPIRED: { retryable: false },
  // delivery
  DELIVERY_GONE: { retryable: false },
  DELIVERY_BUSY: { retryable: true },
  // config and state
  CONFIG_INVALID: { retryable: false },
  CONFIG_UNREADABLE: { retryable: false },
  CONFIG_KEY_UNKNOWN: { retryable: false },
  CONFIG_CHANGED: { retryable: false },
  SECRET_UNAVAILABLE: { retryable: false },
  STATE_UNWRITABLE: { retryable: false },
  STATE_IN_USE: { retryable: false },
  STATE_NEWER: { retryable: false },
  TRANSCRIPT_DAMAGED: { retryable: false },
  // gateway and client
  PORT_IN_USE: { retryable: false },
  BIND_REFUSED: { retryable: false },
  UNAUTHORIZED: { retryable: false },
  SCOPE_MISSING: { retryable: false },
  RATE_LIMITED: { retryable: true },
  PROTOCOL_MISMATCH: { retryable: false },
  GATEWAY_UNREACHABLE: { retryable: true },
  REQUEST_INVALID: { retryable: false },
  REQUEST_TIMEOUT: { retryable: true },
  JSON_INVALID: { retryable: false },
  NODE_TOO_OLD: { retryable: false },
} as const satisfies Record<string, { retryable: boolean }>;

export type ErrorCode = keyof typeof ERROR_CODES;

export type ErrorFacts = {
  /** Facts for programs; never secrets. */
  readonly detail?: Readonly<Record<string, unknown>>;
  /** What a person can do next, one sentence. */
  readonly next?: string;
  readonly cause?: unknown;
};

/** An operational failure: the message says what happened and what it means, `next` what to do. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly next: string | undefined;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.detail = facts.detail ?? {};
    this.next = facts.next;
  }

  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable;
  }
}

export function isGatewayError(value: unknown, ...codes: readonly ErrorCode[]): value is GatewayError {
  return value instanceof GatewayError && (codes.length === 0 || codes.includes(value.code));
}

/** The text of anything that was thrown, for a log line or for a model; never a stack. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return typeof thrown === 'string' ? thrown : 'unknown error';
}
