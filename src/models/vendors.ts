import type { ModelApi, ModelProfile } from '#contract';

/** A model vendor that needs no configuration beyond its key. */
export type Vendor = {
  readonly id: string;
  readonly name: string;
  readonly api: ModelApi;
  readonly baseUrl: string;
  /** Environment variables that hold its key, the first one set counts. */
  readonly keyVariables: readonly string[];
  /** The model when none is named. */
  readonly defaultModel: string;
  readonly models: readonly Pick<
    ModelProfile,
    'id' | 'name' | 'contextWindow' | 'maxTokens' | 'reasoning' | 'input' | 'cost'
  >[];
};

const cost = (input: number, output: number, cacheRead = 0, cacheWrite = 0) => ({
  input,
  output,
  cacheRead,
  cacheWrite,
});
const seesImages = ['text', 'image'] as const;
const readsText = ['text'] as const;

/**
 * In the order in which a key in the environment is looked for. Limits and prices (US dollars per million tokens) are those the vendors
 * publish for these model names; a config's `models.providers` entry wins over every one of them. See docs/models.md.
 */
export const VENDORS: readonly Vendor[] = [
  {
    id: 'anthropic',
    name: 'Anthropic',
    api: 'anthropic-messages',
    baseUrl: 'https://api.anthropic.com/v1',
    keyVariables: ['ANTHROPIC_API_KEY'],
    defaultModel: 'claude-sonnet-4-5',
    models: [
      {
        id: 'claude-sonnet-4-5',
        name: 'Claude Sonnet 4.5',
        contextWindow: 200_000,
        maxTokens: 64_000,
        reasoning: true,
        input: seesImages,
        cost: cost(3, 15, 0.3, 3.75),
      },
      {
        id: 'claude-opus-4-5',
        name: 'Claude Opus 4.5',
        contextWindow: 200_000,
        maxTokens: 64_000,
        reasoning: true,
        input: seesImages,
        cost: cost(5, 25, 0.5, 6.25),
      },
      {
        id: 'claude-haiku-4-5',
        name: 'Claude Haiku 4.5',
        contextWindow: 200_000,
        maxTokens: 64_000,
        reasoning: true,
        input: seesImages,
        cost: cost(1, 5, 0.1, 1.25),
      },
    ],
  },
  {
    id: 'openai',
    name: 'OpenAI',
    api: 'openai-completions',
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    defaultModel: 'gpt-5.1',
    models: [
      {
        id: 'gpt-5.1',
        name: 'GPT-5.1',
        contextWindow: 400_000,
        maxTokens: 128_000,
        reasoning: true,
        input: seesImages,
        cost: cost(1.25, 10, 0.125),
      },
      {
        id: 'gpt-5-mini',
        name: 'GPT-5 mini',
        contextWindow: 400_000,
        maxTokens: 128_000,
        reasoning: true,
        input: seesImages,
        cost: cost(0.25, 2, 0.025),
      },
      {
        id: 'gpt-4.1',
        name: 'GPT-4.1',
        contextWindow: 1_047_576,
        maxTokens: 32_768,
        reasoning: false,
        input: seesImages,
        cost: cost(2, 8, 0.5),
      },
    ],
  },
  {
    id: 'google',
    name: 'Google Gemini',
    api: 'google-generative-ai',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    defaultModel: 'gemini-2.5-flash',
    models: [
      {
        id: 'gemini-2.5-pro',
        name: 'Gemini 2.5 Pro',
        contextWindow: 1_048_576,
        maxTokens: 65_536,
        reasoning: true,
        input: seesImages,
        cost: cost(1.25, 10, 0.125),
      },
      {
        id: 'gemini-2.5-flash',
        name: 'Gemini 2.5 Flash',
        contextWindow: 1_048_576,
        maxTokens: 65_536,
        reasoning: true,
        input: seesImages,
        cost: cost(0.3, 2.5, 0.03),
      },
    ],
  },
  {
    id: 'deepseek',
    name: 'DeepSeek',
    api: 'openai-completions',
    baseUrl: 'https://api.deepseek.com/v1',
    keyVariables: ['DEEPSEEK_API_KEY'],
    defaultModel: 'deepseek-chat',
    models: [
      {
        id: 'deepseek-chat',
        name: 'DeepSeek Chat',
        contextWindow: 128_000,
        maxTokens: 8_192,
        reasoning: false,
        input: readsText,
        cost: cost(0.28, 0.42, 0.028),
      },
      {
        id: 'deepseek-reasoner',
        name: 'DeepSeek Reasoner',
        contextWindow: 128_000,
        maxTokens: 65_536,
        reasoning: true,
        input: readsText,
        cost: cost(0.28, 0.42, 0.028),
      },
    ],
  },
  {
    id: 'alibaba',
    name: 'Alibaba Qwen',
    api: 'openai-completions',
    baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    keyVariables: ['DASHSCOPE_API_KEY'],
    defaultModel: 'qwen-plus',
    models: [
      {
        id: 'qwen-plus',
        name: 'Qwen Plus',
        contextWindow: 1_000_000,
        maxTokens: 32_768,
        reasoning: false,
        input: readsText,
        cost: cost(0.4, 1.2),
      },
      {
        id: 'qwen3-max',
        name: 'Qwen3 Max',
        contextWindow: 262_144,
        maxTokens: 65_536,
        reasoning: false,
        input: readsText,
        cost: cost(1.2, 6),
      },
    ],
  },
];

/** Other names that configs use for a vendor. */
export const VENDOR_ALIASES: Readonly<Record<string, string>> = {
  qwen: 'alibaba',
  dashscope: 'alibaba',
  gemini: 'google',
  claude: 'anthropic',
};

export const OLLAMA = { id: 'ollama', name: 'Ollama', api: 'openai-completions', port: 11_434 } as const;

export const OFFLINE_PROFILE: ModelProfile = {
  provider: 'offline',
  id: 'guide',
  name: 'Offline guide',
  api: 'offline',
  contextWindow: 128_000,
  maxTokens: 4_096,
  reasoning: true,
  input: ['text'],
  cost: cost(0, 0),
};
