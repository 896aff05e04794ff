import { GatewayError, ID_PATTERN } from '#base';

/**
 * The opaque name of one continuing conversation, `agent:<agentId>:<rest>`, lower case; or, from an HTTP header, any text as
 * given. Parsed nowhere but here. Grammar and uses: docs/state.md.
 */
export type SessionKey = string & { readonly __brand: 'SessionKey' };
export type AgentId = string & { readonly __brand: 'AgentId' };

/** The agent when nothing names one. */
export const DEFAULT_AGENT = 'main' as AgentId;
export const MAIN_SESSION = 'main';

const KEY_LENGTH_MAX = 512;
const KEY_FORBIDDEN = /[\u0000-\u001f\u007f\u2028\u2029]/;

/** @throws {GatewayError} `AGENT_UNKNOWN` when the text cannot be an agent id. */
export function agentId(text: string): AgentId {
  const id = text.trim().toLowerCase();
  if (!ID_PATTERN.test(id)) {
    throw new GatewayError('AGENT_UNKNOWN', `"${text}" cannot be an agent id`, {
      next: 'Use lower-case letters, digits, "-" and "_", at most 64.',
    });
  }
  return id as AgentId;
}

/**
 * A client's name for a session: a full key stays, a short one (`main`, `notes`) belongs to `defaultAgent`.
 * @throws {GatewayError} `SESSION_KEY_INVALID`
 */
export function resolveSessionKey(given: string, defaultAgent: AgentId = DEFAULT_AGENT): SessionKey {
  const key = checked(given).toLowerCase();
  if (key.startsWith('agent:')) {
    const [, agent = '', ...rest] = key.split(':');
    if (!ID_PATTERN.test(agent) || rest.join(':') === '') throw invalid(given);
    return key as SessionKey;
  }
  return agentSessionKey(defaultAgent, key === 'global' ? MAIN_SESSION : key);
}

/** A key taken as it is written, without prefix: the HTTP API's session header. */
export const verbatimSessionKey = (given: string): SessionKey => checked(given) as SessionKey;

export const agentSessionKey = (agent: AgentId, rest: string): SessionKey =>
  checked(`agent:${agent}:${rest.toLowerCase()}`) as SessionKey;

export const mainSessionKey = (agent: AgentId): SessionKey => agentSessionKey(agent, MAIN_SESSION);

/** The agent a key names, or undefined for a key taken verbatim. */
export function agentOf(key: SessionKey): AgentId | undefined {
  const [prefix, agent] = key.split(':', 2);
  return prefix === 'agent' && agent !== undefined && ID_PATTERN.test(agent) ? (agent as AgentId) : undefined;
}

export type DmScope = 'main' | 'per-peer' | 'per-channel-peer' | 'per-account-channel-peer';

/** Where a channel message belongs: a group has its own session, a direct message one by `dmScope`; a thread splits either. */
export function channelSessionKey(facts: {
  readonly agent: AgentId;
  readonly channel: string;
  readonly account?: string;
  readonly chatType: 'direct' | 'group' | 'channel';
  readonly peer: string;
  readonly thread?: string;
  readonly dmScope: DmScope;
}): SessionKey {
  const thread = facts.thread === undefined ? '' : `:thread:${facts.thread}`;
  const direct: Record<DmScope, string> = {
    main: MAIN_SESSION,
    'per-peer': `direct:${facts.peer}`,
    'per-channel-peer': `${facts.channel}:direct:${facts.peer}`,
    'per-account-channel-peer': `${facts.channel}:${facts.account ?? 'default'}:direct:${facts.peer}`,
  };
  const rest = facts.chatType === 'direct' ? direct[facts.dmScope] : `${facts.channel}:${facts.chatType}:${facts.peer}`;
  return agentSessionKey(facts.agent, rest + thread);
}

export type SessionKind = 'direct' | 'group' | 'global' | 'unknown';

export function sessionKind(key: SessionKey): SessionKind {
  if (agentOf(key) === undefined) return 'unknown';
  return /:(group|channel|room):/.test(key) ? 'group' : 'direct';
}

function checked(given: string): string {
  const key = given.trim();
  if (key === '' || key.length > KEY_LENGTH_MAX || KEY_FORBIDDEN.test(key)) throw invalid(given);
  return key;
}

function invalid(given: string): GatewayError {
  return new GatewayError('SESSION_KEY_INVALID', `"${given.slice(0, 80)}" cannot be a session key`, {
    next: 'Use a short name such as "notes", or a full key "agent:<agent>:<name>".',
  });
}
