import type { BridgeOptions } from '#aisdk';
import type { ModelApi, Provider } from '#contract';

/** What every provider factory takes: fetch, timeouts and clock. */
export type ProviderOptions = BridgeOptions;

/** Wire format → its provider, whose code is loaded when it is first asked for. Each call makes a new one: keep what you get. */
export const providerLoaders: Readonly<Record<ModelApi, (options?: ProviderOptions) => Promise<Provider>>> = {
  'openai-completions': async (options) => (await import('./openai-chat/index.ts')).openaiChat(options),
  'anthropic-messages': async (options) => (await import('./anthropic/index.ts')).anthropic(options),
  'google-generative-ai': async (options) => (await import('./google/index.ts')).google(options),
  offline: async () => (await import('./offline/index.ts')).offline(),
};

/** The provider of one wire format. @throws when its code cannot be loaded */
export const loadProvider = (api: ModelApi, options?: ProviderOptions): Promise<Provider> =>
  providerLoaders[api](options);
