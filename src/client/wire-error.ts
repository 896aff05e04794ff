import { ERROR_CODES, type ErrorCode, GatewayError, isRecord } from '#base';
import type { WireError } from '#protocol';

const isErrorCode = (code: unknown): code is ErrorCode => typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);

/**
 * A failure that the gateway reported, as one of our codes. `detail` keeps the facts a caller may branch on: `wireCode`, the
 * gateway's own details, and `retryAfterMs` when it named a time.
 */
export function errorFromWire(wire: WireError): GatewayError {
  const details = isRecord(wire.details) ? wire.details : {};
  return new GatewayError(codeOf(wire, details), wire.message, {
    detail: {
      ...details,
      wireCode: wire.code,
      ...(wire.retryAfterMs === undefined ? {} : { retryAfterMs: wire.retryAfterMs }),
    },
    ...nextStep(details),
  });
}

function codeOf(wire: WireError, details: Readonly<Record<string, unknown>>): ErrorCode {
  if (isErrorCode(details['code'])) return details['code'];
  if (isErrorCode(wire.code)) return wire.code;
  const detail = typeof details['code'] === 'string' ? details['code'] : '';
  if (detail === 'AUTH_RATE_LIMITED') return 'RATE_LIMITED';
  if (wire.message.startsWith('protocol mismatch')) return 'PROTOCOL_MISMATCH';
  if (wire.message.startsWith('missing scope:')) return 'SCOPE_MISSING';
  if (wire.code === 'NOT_PAIRED' || /^(AUTH|DEVICE|CONTROL_UI|PAIRING)_/.test(detail)) return 'UNAUTHORIZED';
  if (wire.code === 'AGENT_TIMEOUT') return 'RUN_TIMEOUT';
  if (wire.code === 'UNAVAILABLE') return 'GATEWAY_BUSY';
  return 'REQUEST_INVALID';
}

const STEPS: Readonly<Record<string, string>> = {
  update_auth_credentials: 'Run “reins start” on the gateway’s machine and use the token it prints.',
  update_auth_configuration: 'Give the gateway’s token; “reins start” prints a link that holds it.',
  wait_then_retry: 'Wait a moment and try again.',
};

function nextStep(details: Readonly<Record<string, unknown>>): { readonly next?: string } {
  if (typeof details['next'] === 'string') return { next: details['next'] };
  const step = STEPS[String(details['recommendedNextStep'])];
  return step === undefined ? {} : { next: step };
}
