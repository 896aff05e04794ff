import type { ModelEvent, ModelRequest, Provider, TokenCounts } from '#contract';
import type { AssistantContent } from '#domain';
import { answerFor } from './answer.ts';
import { currentExchange } from './exchange.ts';
import { nextStep } from './plan.ts';
import { understand } from './understand.ts';
import { WORDS } from './words.ts';

/**
 * The guide that answers when no model is configured: it has no network and no state, says what it is, and carries out a few plain
 * requests with the tools it is offered. The same request always gives the same response.
 */
export const offline = (): Provider => ({ api: 'offline', stream });

/** No model ran, so no tokens were used. */
const NO_TOKENS: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
/** A word with the space after it; a text without spaces comes a few characters at a time. */
const CHUNK = /\S{1,12}\s*|\s+/gu;

async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  const exchange = currentExchange(request);
  const understanding = understand(exchange.said);
  const { thoughts } = WORDS[understanding.language];
  const step = nextStep(request, exchange, understanding);
  const content: AssistantContent[] = [];
  const isLost = step.type === 'answer' && understanding.intents.length === 0;
  const thought = step.type === 'calls' ? thoughts.calls(step.calls.length) : isLost ? thoughts.lost : thoughts.answer;
  if (request.thinking !== 'off') {
    for (const [text] of thought.matchAll(CHUNK)) {
      if (signal.aborted) return yield stopped;
      yield { type: 'thinking-delta', text };
    }
    content.push({ type: 'thinking', thinking: thought });
  }
  if (step.type === 'answer') {
    const answer = answerFor(exchange, understanding, step.missing);
    for (const [text] of answer.matchAll(CHUNK)) {
      if (signal.aborted) return yield stopped;
      yield { type: 'text-delta', text };
    }
    content.push({ type: 'text', text: answer });
  } else content.push(...step.calls);
  if (signal.aborted) return yield stopped;
  yield { type: 'finish', content, stopReason: step.type === 'calls' ? 'toolUse' : 'stop', usage: NO_TOKENS };
}

const stopped: ModelEvent = {
  type: 'failure',
  failure: { code: 'RUN_ABORTED', message: 'The request was stopped' },
};
