import { isGatewayError, isRecord } from '#base';
import { answerText, type RunResult } from '#domain';
import { faultOf } from './fault.ts';

/** What a run was, the same whether it happened in the gateway or here: the document of `reins agent --json`. */
export type RunOutcome = {
  readonly runId: string;
  readonly sessionKey: string;
  readonly outcome: RunResult['outcome'];
  /** The whole answer. */
  readonly text: string;
  /** The run's assistant messages, in order. */
  readonly texts: readonly string[];
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: unknown;
  /** Why it failed or was cut short. */
  readonly error?: { readonly code: string; readonly message: string; readonly next?: string };
};

type Place = { readonly runId: string; readonly sessionKey: string };

export function outcomeOfResult(place: Place, result: RunResult): RunOutcome {
  const { outcome, texts, provider, model, usage, error } = result;
  return { ...place, outcome, text: answerText(result), texts, provider, model, usage, ...(error ? { error } : {}) };
}

/** The last response of the gateway's method `agent`, in its public form `{payloads[], meta}`. */
export function outcomeOfResponse(place: Place, response: { readonly result?: unknown }): RunOutcome {
  const result = isRecord(response.result) ? response.result : {};
  const meta = isRecord(result['meta']) ? result['meta'] : {};
  const facts = isRecord(meta['agentMeta']) ? meta['agentMeta'] : {};
  const payloads = Array.isArray(result['payloads']) ? result['payloads'] : [];
  const texts = payloads.flatMap((one) => (isRecord(one) && typeof one['text'] === 'string' ? [one['text']] : []));
  return {
    ...place,
    outcome: meta['aborted'] === true ? 'aborted' : 'answered',
    text: texts.filter((text) => text !== '').join('\n\n'),
    texts,
    ...(typeof facts['provider'] === 'string' ? { provider: facts['provider'] } : {}),
    ...(typeof facts['model'] === 'string' ? { model: facts['model'] } : {}),
    ...(isRecord(facts['usage']) ? { usage: facts['usage'] } : {}),
  };
}

/** A run that the gateway answered with an error. */
export function outcomeOfFailure(place: Place, thrown: unknown): RunOutcome {
  const outcome = isGatewayError(thrown, 'RUN_ABORTED') ? 'aborted' : 'failed';
  return { ...place, outcome, text: '', texts: [], error: faultOf(thrown) };
}
