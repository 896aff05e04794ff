import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { ModelApi, ModelRequest } from '#contract';
import type { AssistantMessage } from '#domain';

/** Makes the SDK's model objects for one address, key and set of headers. */
export type SdkClient = (modelId: string) => LanguageModelV4;

/** Where to and with what, in the words that every SDK package takes. */
export type SdkAccess = {
  readonly baseURL: string;
  /** Only where the server takes one. */
  readonly apiKey?: string;
  readonly headers?: Record<string, string>;
  readonly fetch: typeof fetch;
};

/** For packages that would look for a key in the environment when they are given none. */
export const withSomeKey = (access: SdkAccess): SdkAccess => ({ ...access, apiKey: access.apiKey ?? 'none' });

/** What the families of wire formats do differently; the bridge does the rest. */
export type WireFamily = {
  readonly api: ModelApi;
  /** Loads the SDK package, once, when the first request comes. */
  load(): Promise<(access: SdkAccess) => SdkClient>;
  readonly prompt: PromptRules;
  /** Finds a signature in the metadata that the SDK gives with a block of the response. */
  readSignature(kind: SignedKind, metadata: SharedV4ProviderMetadata | undefined): Signature | undefined;
  /** Thinking, token limit and options of this family for one request. */
  callOptions(request: ModelRequest, facts: PromptFacts): Partial<LanguageModelV4CallOptions>;
};

export type SignedKind = 'thinking' | 'text' | 'call';
export type Signature = { readonly value: string; readonly redacted?: true };

export type PromptFacts = {
  /** The model is in the middle of a chain of calls that it began without thinking, so it cannot think now. */
  readonly chainWithoutThinking: boolean;
};

/** How a family wants the conversation. */
export type PromptRules = {
  /** `inside`: a tool result may hold images; `after`: they follow in a user message. */
  readonly resultImages: 'inside' | 'after';
  /** Which earlier thinking goes back: `signed` with its signature, `unfinished` only that of the exchange in progress. */
  readonly thinking: 'signed' | 'unfinished';
  /** Where the provider options of a signed block hold its signature. */
  signature(kind: SignedKind | 'redacted', value: string): SharedV4ProviderOptions;
  /** Marks where a provider may cache the prompt, if this family wants marks. */
  readonly cacheMark?: SharedV4ProviderOptions;
};

/** Signatures mean something only to the model that made them. */
export const isOwn = (message: AssistantMessage, request: ModelRequest): boolean =>
  message.api === request.model.api &&
  message.provider === request.model.provider &&
  message.model === request.model.id;
