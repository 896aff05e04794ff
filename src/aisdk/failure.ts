import { isRecord, printableLine } from '#base';
import type { ModelFailure, ModelFailureCode, ModelRequest } from '#contract';
import { isContextOverflow } from './overflow.ts';
import { type ProviderError, readProviderError } from './provider-error.ts';
import { retryAfterMs } from './retry-after.ts';

const BILLING =
  /insufficient[ _](?:quota|balance|funds|credits?)|credit balance|billing|payment required|out of credits|arrear|欠费|余额不足/i;
const NO_SUCH_MODEL =
  /model[_ ]not[_ ](?:found|exist)|model\b.{0,80}\b(?:does not exist|not found|is not supported|not exist)|(?:unknown|no such|invalid) model|not a valid model/i;
const BAD_KEY =
  /invalid[_ ]api[_ ]key|incorrect api key|api key not valid|api[_ ]key[_ ]invalid|invalid authentication|unauthorized/i;
const OVERLOADED = /overloaded|over capacity|server is busy|high demand|engine is currently/i;
const REFUSED = /content[_ ](?:policy|filter)|data_inspection_failed|safety system|responsible ai/i;
const CONNECTION = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ECONNRESET', 'EPIPE', 'EHOSTUNREACH', 'ENETUNREACH', 'ECONNABORTED'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_SOCKET', 'ETIMEDOUT', 'ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED'],
  ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'EPROTO'],
]);
const WAITED = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

type Who = Pick<ModelRequest, 'model' | 'access'>;

/**
 * What an error of the SDK, of the network or of the provider means: a code to branch on and a sentence for a person. The order of the
 * rules matters: the provider's words count before its status, since many wrap one error in another's status.
 * @param now milliseconds since the epoch
 */
export function asFailure(error: unknown, who: Who, now: number): ModelFailure {
  const known = readProviderError(error);
  const code = codeOf(known);
  const wait = RETRY_LATER.has(code) ? retryAfterMs(known.headers, bodyOf(error), now) : undefined;
  return {
    code,
    message: sentenceFor(code, known, who),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
    ...(known.status === undefined ? {} : { status: known.status }),
  };
}

const RETRY_LATER: ReadonlySet<ModelFailureCode> = new Set(['MODEL_RATE_LIMITED', 'MODEL_OVERLOADED']);

function codeOf(error: ProviderError): ModelFailureCode {
  const { status, text, own } = error;
  if (own?.code.startsWith('MODEL_')) return own.code as ModelFailureCode;
  if (own) return 'MODEL_UNREACHABLE';
  if (status === undefined && error.networkCodes.some((c) => WAITED.has(c))) return 'MODEL_TIMEOUT';
  if (error.timedOut) return 'MODEL_TIMEOUT';
  if (status === undefined && error.networkCodes.some((c) => CONNECTION.has(c)))
    return error.responseBegan ? 'MODEL_STREAM_CUT' : 'MODEL_UNREACHABLE';
  if (isContextOverflow(status, text)) return 'MODEL_CONTEXT_OVERFLOW';
  if (status === 402) return 'MODEL_BILLING';
  if (status === 429) {
    // A free tier's limit is described as a quota with a plan, but comes back by itself: then the provider says when.
    const comesBack =
      error.headers['retry-after'] !== undefined || /retry (?:in|after)|retryDelay|per (?:minute|day)/i.test(text);
    return /insufficient_quota/.test(text) || (BILLING.test(text) && !comesBack)
      ? 'MODEL_BILLING'
      : 'MODEL_RATE_LIMITED';
  }
  if (status === undefined || status < 500) {
    if (BILLING.test(text)) return 'MODEL_BILLING';
    if (status === 401 || BAD_KEY.test(text)) return 'MODEL_AUTH';
    if (status === 403) return REFUSED.test(text) ? 'MODEL_REFUSED' : 'MODEL_AUTH';
    if (status === 404 || NO_SUCH_MODEL.test(text)) return 'MODEL_NOT_FOUND';
    if (REFUSED.test(text)) return 'MODEL_REFUSED';
  }
  if (status === 408 || status === 504) return 'MODEL_TIMEOUT';
  if (status !== undefined && status >= 500) return 'MODEL_OVERLOADED';
  if (status === undefined && OVERLOADED.test(text)) return 'MODEL_OVERLOADED';
  if (status === undefined)
    return error.responseBegan || isUnreadable(error) ? 'MODEL_STREAM_CUT' : 'MODEL_REQUEST_INVALID';
  return 'MODEL_REQUEST_INVALID';
}

/** The SDK's words for an event that is not what the wire format promises. */
const isUnreadable = (error: ProviderError): boolean =>
  /JSON parsing failed|Type validation failed|terminated|other side closed|stream error|finish reason|premature/i.test(
    error.text,
  ) || error.text === '';

function sentenceFor(code: ModelFailureCode, error: ProviderError, { model, access }: Who): string {
  const name = model.provider;
  const status = error.status === undefined ? '' : ` (status ${error.status})`;
  switch (code) {
    case 'MODEL_AUTH':
      return access.apiKey === undefined
        ? `${name} wants a key and none is set${status}`
        : `${name} refused the key, or does not let it use ${model.id}${status}`;
    case 'MODEL_BILLING':
      return `The account with ${name} has no credit left, or its plan does not cover this${status}`;
    case 'MODEL_NOT_FOUND':
      return `${name} does not know the model ${model.id}, or there is no model API at its address${status}`;
    case 'MODEL_RATE_LIMITED':
      return `${name} takes no more requests for now: its rate limit is reached`;
    case 'MODEL_OVERLOADED':
      return `${name} cannot answer at the moment${status}`;
    case 'MODEL_TIMEOUT':
      return `${name} did not answer in time${status}`;
    case 'MODEL_UNREACHABLE':
      return `${name} cannot be reached at ${addressOf(access.baseUrl)}${reason(error)}`;
    case 'MODEL_CONTEXT_OVERFLOW':
      return `The conversation is longer than ${model.id} can take in`;
    case 'MODEL_STREAM_CUT':
      return `The answer of ${name} broke off before its end`;
    case 'MODEL_REFUSED':
      return `${name} refused to answer this`;
    default: {
      const said = quotable(error.sentence, access.apiKey);
      return `${name} did not accept the request${status}${said === '' ? '' : `: ${said}`}`;
    }
  }
}

function reason(error: ProviderError): string {
  if (error.own) return `: ${error.own.message}`;
  const code = error.networkCodes.find((c) => CONNECTION.has(c));
  return code === undefined ? '' : ` (${code})`;
}

/** Origin and path only: a query or a user name may hold a key. */
function addressOf(baseUrl: string): string {
  const url = URL.parse(baseUrl);
  return url ? `${url.origin}${url.pathname.replace(/\/$/, '')}` : 'its address';
}

const SECRETS =
  /\b(?:sk|pk|rk|key|gsk|xai|AIza)[-_]?[A-Za-z0-9_-]{12,}|\bBearer\s+\S+|[?&](?:key|token|api_key)=[^\s&]+/gi;

/** A provider's sentence made fit for a person: one line, no JSON, nothing that looks like a key. */
function quotable(sentence: string, apiKey: string | undefined): string {
  if (/^\s*[[{<]/.test(sentence)) return '';
  const withoutKey = apiKey ? sentence.replaceAll(apiKey, '…') : sentence;
  const plain = withoutKey
    .replace(SECRETS, '…')
    .replace(/[{[].*$/s, '')
    .trim();
  return printableLine(plain, 200);
}

function bodyOf(error: unknown): unknown {
  return isRecord(error) || error instanceof Error
    ? ((error as { responseBody?: unknown }).responseBody ?? (error as { data?: unknown }).data)
    : undefined;
}
