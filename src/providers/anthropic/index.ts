import { type BridgeOptions, bridge, type WireFamily, withSomeKey } from '#aisdk';
import type { ModelRequest, Provider } from '#contract';
import type { ThinkingLevel } from '#domain';

/** Anthropic's messages, and servers that speak them. */
export const anthropic = (options: BridgeOptions = {}): Provider => bridge(FAMILY, options);

/** Tokens of thinking. The least that the API takes is 1,024. */
const BUDGET: Readonly<Record<Exclude<ThinkingLevel, 'off'>, number>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
};
const BUDGET_MIN = 1_024;

const FAMILY: WireFamily = {
  api: 'anthropic-messages',
  async load() {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return (access) => createAnthropic(withSomeKey(access));
  },
  prompt: {
    resultImages: 'inside',
    thinking: 'signed',
    signature: (kind, value) => ({ anthropic: { [kind === 'redacted' ? 'redactedData' : 'signature']: value } }),
    cacheMark: { anthropic: { cacheControl: { type: 'ephemeral' } } },
  },
  readSignature(kind, metadata) {
    const facts = metadata?.['anthropic'];
    if (kind !== 'thinking' || !facts) return undefined;
    if (typeof facts['redactedData'] === 'string') return { value: facts['redactedData'], redacted: true };
    return typeof facts['signature'] === 'string' ? { value: facts['signature'] } : undefined;
  },
  callOptions(request, facts) {
    // Tools are streamed as whole JSON: the eager kind is a beta that compatible servers do not know.
    const anthropicOptions = { toolStreaming: false };
    const budget = facts.chainWithoutThinking ? undefined : budgetFor(request);
    if (budget === undefined) return { providerOptions: { anthropic: anthropicOptions } };
    return {
      providerOptions: { anthropic: { ...anthropicOptions, thinking: { type: 'enabled', budgetTokens: budget } } },
      // For models that take an effort instead of a budget.
      reasoning: request.thinking === 'off' ? 'none' : request.thinking,
      // The SDK adds the budget to the limit, and the sum is what was asked for.
      maxOutputTokens: request.maxOutputTokens - budget,
    };
  },
};

/** At most half of what may be put out, so that an answer still fits. */
function budgetFor({ model, thinking, maxOutputTokens }: ModelRequest): number | undefined {
  if (!model.reasoning || thinking === 'off') return undefined;
  const budget = Math.min(BUDGET[thinking], Math.floor(maxOutputTokens / 2));
  return budget < BUDGET_MIN ? undefined : budget;
}
