/** A model by name: `provider/model`, where the model's own name may hold further slashes. */
export type ModelRef = { readonly provider: string; readonly model: string };

/** `anthropic/claude-x` → both parts; without a slash the provider is `fallbackProvider`; undefined when a part is empty. */
export function parseModelRef(text: string, fallbackProvider?: string): ModelRef | undefined {
  const name = text.trim();
  const slash = name.indexOf('/');
  const provider = slash < 0 ? fallbackProvider : name.slice(0, slash).toLowerCase();
  const model = slash < 0 ? name : name.slice(slash + 1);
  return provider && model ? { provider, model } : undefined;
}

export const modelRefText = (ref: ModelRef): string => `${ref.provider}/${ref.model}`;
