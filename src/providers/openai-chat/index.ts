import { type BridgeOptions, bridge, type WireFamily } from '#aisdk';
import type { Provider } from '#contract';
import type { ThinkingLevel } from '#domain';

/** OpenAI's chat completions, and the many servers that speak them: DeepSeek, Qwen, Ollama, vLLM, OpenRouter and others. */
export const openaiChat = (options: BridgeOptions = {}): Provider => bridge(FAMILY, options);

/** The name under which the SDK keeps this family's options and metadata. */
const NAME = 'openaiCompatible';

/** Only these three are taken by every model that reasons. */
const EFFORT: Readonly<Record<Exclude<ThinkingLevel, 'off'>, 'low' | 'medium' | 'high'>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
};

const FAMILY: WireFamily = {
  api: 'openai-completions',
  async load() {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    return (access) => {
      const isOpenAi = URL.parse(access.baseURL)?.hostname.endsWith('openai.com') ?? false;
      return createOpenAICompatible({
        ...access,
        name: NAME,
        includeUsage: true,
        ...(isOpenAi ? { transformRequestBody: renameTokenLimit } : {}),
      });
    };
  },
  prompt: {
    resultImages: 'after',
    // DeepSeek and others want the reasoning of the exchange in progress back, and refuse that of earlier ones.
    thinking: 'unfinished',
    // The SDK reads a call's signature under Gemini's name; under this family's own it would send it as a field of the call.
    signature: (_kind, value) => ({ google: { thoughtSignature: value } }),
  },
  readSignature(kind, metadata) {
    if (kind === 'thinking') return { value: 'reasoning_content' };
    const signature = metadata?.[NAME]?.['thoughtSignature'];
    return typeof signature === 'string' ? { value: signature } : undefined;
  },
  callOptions({ model, thinking }) {
    return model.reasoning && thinking !== 'off' ? { reasoning: EFFORT[thinking] } : {};
  },
};

/** OpenAI's own newer models refuse the older name of the limit; most compatible servers know only that. */
function renameTokenLimit({ max_tokens, ...body }: Record<string, unknown>): Record<string, unknown> {
  return max_tokens === undefined ? body : { ...body, max_completion_tokens: max_tokens };
}
