import { type BridgeOptions, bridge, type WireFamily, withSomeKey } from '#aisdk';
import type { Provider } from '#contract';
import type { ThinkingLevel } from '#domain';

/** Google's Gemini API. */
export const google = (options: BridgeOptions = {}): Provider => bridge(FAMILY, options);

/** Tokens of thinking for the models that take a number of them. */
const BUDGET: Readonly<Record<Exclude<ThinkingLevel, 'off'>, number>> = {
  minimal: 512,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
};

const FAMILY: WireFamily = {
  api: 'google-generative-ai',
  async load() {
    const { createGoogle } = await import('@ai-sdk/google');
    return (access) => createGoogle(withSomeKey(access));
  },
  prompt: {
    resultImages: 'inside',
    thinking: 'signed',
    signature: (_kind, value) => ({ google: { thoughtSignature: value } }),
  },
  readSignature(_kind, metadata) {
    const signature = metadata?.['google']?.['thoughtSignature'];
    return typeof signature === 'string' ? { value: signature } : undefined;
  },
  callOptions({ model, thinking, maxOutputTokens }) {
    if (!model.reasoning) return {};
    // The SDK knows which models take a budget, which a level, and which cannot do without.
    if (thinking === 'off') return { reasoning: 'none' };
    // A budget counts against the output limit here, and the SDK's own share of it may be larger than the whole.
    const budget = /gemini-2\.5/.test(model.id)
      ? { thinkingBudget: Math.min(BUDGET[thinking], Math.floor(maxOutputTokens / 2)) }
      : {};
    return {
      reasoning: thinking === 'xhigh' ? 'high' : thinking,
      providerOptions: { google: { thinkingConfig: { includeThoughts: true, ...budget } } },
    };
  },
};
