import type { ErrorCode } from '#base';
import type { AssistantContent, Message, StopReason, ThinkingLevel } from '#domain';

/** Wire formats by their public names. */
export const MODEL_APIS = ['openai-completions', 'anthropic-messages', 'google-generative-ai', 'offline'] as const;
export type ModelApi = (typeof MODEL_APIS)[number];

/** What is known of one model; limits in tokens, prices in US dollars per million tokens. */
export type ModelProfile = {
  readonly provider: string;
  readonly id: string;
  readonly name: string;
  readonly api: ModelApi;
  readonly contextWindow: number;
  readonly maxTokens: number;
  readonly reasoning: boolean;
  readonly input: readonly ('text' | 'image')[];
  readonly cost: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
  };
};

/** Where and with what to reach a provider. The key is a value only here, at the last moment. */
export type ProviderAccess = {
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A tool as a model sees it; `parameters` is a JSON Schema of an object. */
export type ToolSpec = {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
};

export type ModelRequest = {
  readonly model: ModelProfile;
  readonly access: ProviderAccess;
  /** The part that stays the same byte for byte between turns. */
  readonly system: string;
  /** Valid as a sequence: starts with a user message, and every tool call has its results directly after it, in call order. */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  readonly thinking: ThinkingLevel;
  readonly maxOutputTokens: number;
};

/** Counts of one response, before prices. */
export type TokenCounts = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

export type ModelFailureCode = Extract<ErrorCode, `MODEL_${string}`> | 'RUN_ABORTED';

export type ModelFailure = {
  readonly code: ModelFailureCode;
  /** For a person; no raw JSON, no key, no address with a key in it. */
  readonly message: string;
  readonly retryAfterMs?: number;
  readonly status?: number;
};

/**
 * A response as it arrives. Exactly one `finish` or `failure` is the last event; the stream itself never throws.
 * `finish.content` is the whole response. A tool call whose arguments did not arrive whole is never in it: then the stream ends
 * with `failure` `MODEL_STREAM_CUT`, or with `finish` and stop reason `length` without that call.
 */
export type ModelEvent =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'thinking-delta'; readonly text: string }
  | {
      readonly type: 'finish';
      readonly content: readonly AssistantContent[];
      readonly stopReason: Extract<StopReason, 'stop' | 'toolUse' | 'length'>;
      readonly usage: TokenCounts;
      readonly responseId?: string;
      /** Calls that were left out because the response was cut inside them (stop reason `length`). */
      readonly cutCalls?: number;
    }
  | { readonly type: 'failure'; readonly failure: ModelFailure };

/** An adapter to one wire format. Holds no state between calls. */
export interface Provider {
  readonly api: ModelApi;
  /** Must not throw; must stop soon after `signal` aborts, with `failure` `RUN_ABORTED`. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
}
