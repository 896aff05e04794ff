import {
  agreedProtocol,
  ConnectParams,
  OPERATOR_SCOPES,
  type ParamsChecker,
  PROTOCOL_VERSIONS,
  type RequestFrame,
} from '#protocol';
import type { AuthAnswer, Authenticator } from './authenticate.ts';
import { deviceFault } from './device-signature.ts';
import type { Peer } from './peer.ts';
import type { AuthSettings } from './ports.ts';
import { RefusedRequest } from './wire-error.ts';

/** What a first frame is judged by. */
export type HandshakeFacts = {
  readonly checker: ParamsChecker;
  readonly authenticator: Authenticator;
  readonly auth: AuthSettings;
  readonly peer: Peer;
  /** The connection was opened by a page. */
  readonly isPage: boolean;
  /** Of the challenge on this socket. */
  readonly nonce: string;
  readonly now: number;
};

export type Welcome = {
  readonly params: ConnectParams;
  readonly protocol: number;
  readonly scopes: ReadonlySet<string>;
};

/** A secret's holder over a page or from elsewhere: everything that a conversation needs, nothing that changes the gateway. */
const SHARED_SECRET_SCOPES: ReadonlySet<string> = new Set(['operator.read', 'operator.write', 'operator.approvals']);
const KNOWN_SCOPES: ReadonlySet<string> = new Set(OPERATOR_SCOPES);

/**
 * Judges a client's first frame: form, role, protocol, secret, device, and then what it may do.
 * @throws {RefusedRequest} with the words and `details.code` that clients know
 */
export function welcome(frame: RequestFrame, facts: HandshakeFacts): Welcome {
  const params = paramsOf(frame, facts.checker);
  const protocol = protocolOf(params);
  authenticate(params, facts);
  return { params, protocol, scopes: grantedScopes(params, facts) };
}

function paramsOf({ method, params: given }: RequestFrame, checker: ParamsChecker): ConnectParams {
  if (method !== 'connect') throw new RefusedRequest('invalid handshake: first request must be connect');
  const fault = checker.faultOf(ConnectParams, given);
  if (fault) throw new RefusedRequest(`invalid connect params: ${fault}`);
  const params = given as ConnectParams;
  const { role = 'operator' } = params;
  if (role === 'node') throw new RefusedRequest('invalid role: nodes come in a later version');
  if (role !== 'operator') throw new RefusedRequest('invalid role');
  return params;
}

function protocolOf(params: ConnectParams): number {
  const protocol = agreedProtocol(params);
  if (protocol !== undefined) return protocol;
  throw new RefusedRequest('protocol mismatch', {
    code: 'PROTOCOL_MISMATCH',
    clientMinProtocol: params.minProtocol,
    clientMaxProtocol: params.maxProtocol,
    expectedProtocol: PROTOCOL_VERSIONS.at(-1),
    minimumProbeProtocol: PROTOCOL_VERSIONS[0],
  });
}

function authenticate(params: ConnectParams, { authenticator, auth, peer, nonce, now }: HandshakeFacts): void {
  const { token, password, deviceToken, bootstrapToken } = params.auth ?? {};
  const hasSecret = token !== undefined || password !== undefined;
  // Devices are not paired in this version, so nothing that a device could hold is good.
  if (!hasSecret && deviceToken !== undefined && auth.mode !== 'none')
    throw unauthorized(authenticator.refuse('device-token', auth, peer), 'device token', 'DEVICE_TOKEN');
  if (!hasSecret && bootstrapToken !== undefined && auth.mode !== 'none') {
    authenticator.refuse('device-token', auth, peer);
    throw new RefusedRequest('unauthorized: bootstrap token invalid', {
      code: 'AUTH_BOOTSTRAP_TOKEN_INVALID',
      authReason: 'bootstrap_token_invalid',
      recommendedNextStep: 'update_auth_credentials',
    });
  }
  const word = auth.mode === 'password' ? 'password' : 'token';
  const answer = authenticator.check(word === 'password' ? password : token, auth, peer);
  if (!answer.ok) throw unauthorized(answer, `gateway ${word}`, word.toUpperCase());
  // Only for a caller with the secret: a signature costs more to check than to send.
  const fault = deviceFault(params, nonce, now);
  if (fault)
    throw new RefusedRequest(`device identity refused: ${fault.reason}`, { code: fault.code, reason: fault.reason });
}

/** A client's wish can only make its rights smaller (security model T4). */
function grantedScopes(params: ConnectParams, { peer, isPage }: HandshakeFacts): ReadonlySet<string> {
  const asked = (params.scopes ?? []).filter((scope) => KNOWN_SCOPES.has(scope));
  const isBackend = params.client.id === 'gateway-client' && params.client.mode === 'backend';
  if (isBackend && !isPage && peer.isLocal) return new Set(asked);
  return new Set(asked.filter((scope) => SHARED_SECRET_SCOPES.has(scope)));
}

function unauthorized(answer: AuthAnswer, what: string, code: string): RefusedRequest {
  if (!answer.ok && answer.reason === 'rate-limited') {
    return new RefusedRequest('unauthorized: too many failed attempts', {
      code: 'AUTH_RATE_LIMITED',
      authReason: 'rate_limited',
      retryAfterMs: answer.retryAfterMs,
      recommendedNextStep: 'wait_then_retry',
    });
  }
  const isMissing = !answer.ok && answer.reason === 'missing';
  const reason = isMissing ? 'missing' : 'mismatch';
  return new RefusedRequest(`unauthorized: ${what} ${reason}`, {
    code: `AUTH_${code}_${reason.toUpperCase()}`,
    authReason: `${code.toLowerCase()}_${reason}`,
    // No device has a token in this version: to try again with one would fail again.
    canRetryWithDeviceToken: false,
    recommendedNextStep: isMissing ? 'update_auth_configuration' : 'update_auth_credentials',
  });
}
