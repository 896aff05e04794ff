import { type ErrorCode, GatewayError, isGatewayError } from '#base';
import type { WireError } from '#protocol';

/** A refusal of the protocol itself, with the words and details that clients match. */
export class RefusedRequest extends Error {
  readonly wire: WireError;

  constructor(message: string, details?: WireError['details'], code: WireError['code'] = 'INVALID_REQUEST') {
    super(message);
    this.wire = { code, message, ...(details === undefined ? {} : { details }) };
  }
}

const UNAVAILABLE: ReadonlySet<ErrorCode> = new Set([
  'LANE_FULL',
  'GATEWAY_BUSY',
  'GATEWAY_STOPPING',
  'STATE_UNWRITABLE',
  'RATE_LIMITED',
]);

/** Anything thrown, as a client gets it; what is not ours becomes a plain sentence, its text stays in the log. */
export function wireErrorOf(error: unknown): WireError {
  if (error instanceof RefusedRequest) return error.wire;
  if (!isGatewayError(error)) return { code: 'UNAVAILABLE', message: 'internal error' };
  const details = {
    code: error.code,
    ...(error.code.startsWith('APPROVAL_') ? { reason: error.code } : {}),
    ...(error.next === undefined ? {} : { next: error.next }),
  };
  const code = UNAVAILABLE.has(error.code) || error.code.startsWith('MODEL_') ? 'UNAVAILABLE' : 'INVALID_REQUEST';
  return { code, message: error.message, details, ...(error.retryable ? { retryable: true } : {}) };
}

/** The HTTP status for a failure of ours. */
export function statusOf(error: unknown): number {
  if (!(error instanceof GatewayError)) return 500;
  if (UNAVAILABLE.has(error.code)) return 503;
  if (error.code === 'MESSAGE_TOO_LARGE') return 413;
  if (error.code === 'IDEMPOTENCY_CONFLICT') return 409;
  return 400;
}
