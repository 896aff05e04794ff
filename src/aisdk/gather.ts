import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { isRecord, newId } from '#base';
import type { ModelEvent, ModelFailureCode, TokenCounts } from '#contract';
import type { AssistantContent, TextBlock, ThinkingBlock, ToolCallBlock } from '#domain';
import { uniqueAmong } from './call-ids.ts';
import type { WireFamily } from './wire-family.ts';

type SignatureReader = WireFamily['readSignature'];

export type GatheredEnd =
  | Extract<ModelEvent, { type: 'finish' }>
  | { readonly type: 'broken'; readonly code: ModelFailureCode };

type Delta = Extract<ModelEvent, { type: 'text-delta' | 'thinking-delta' }>;
type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;
type SdkCall = Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>;
type Spoken = { readonly block: Writable<TextBlock> | Writable<ThinkingBlock>; held: string };

const NO_TOKENS: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

/** Collects the parts of one response and says at its end what it was. */
export class Gatherer {
  readonly #signature: SignatureReader;
  /** Kept in order of arrival; a call stays as the SDK gave it until the reason of the end is known. */
  readonly #blocks: (Spoken | SdkCall)[] = [];
  readonly #open = new Map<string, Spoken>();
  readonly #argumentLengths = new Map<string, number>();
  #finish: Finish | undefined;
  #responseId: string | undefined;

  constructor(signature: SignatureReader) {
    this.#signature = signature;
  }

  /** What a person sees of this part, if anything. */
  take(part: LanguageModelV4StreamPart): Delta | undefined {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#begin(part.type === 'text-start' ? 'text' : 'thinking', part.id, part.providerMetadata);
        return undefined;
      case 'text-delta':
      case 'reasoning-delta':
        return this.#extend(part.type === 'text-delta' ? 'text' : 'thinking', part);
      case 'text-end':
      case 'reasoning-end':
        return this.#end(part.id, part.providerMetadata);
      case 'tool-input-delta':
        this.#argumentLengths.set(part.id, (this.#argumentLengths.get(part.id) ?? 0) + part.delta.length);
        return undefined;
      case 'tool-call':
        if (!part.providerExecuted) this.#blocks.push(part);
        return undefined;
      case 'response-metadata':
        this.#responseId ??= part.id;
        return undefined;
      case 'finish':
        this.#finish = part;
        return undefined;
      default:
        return undefined;
    }
  }

  /** What the response was. `broken` when it ended before its end, or is not usable. */
  end(): GatheredEnd {
    const finish = this.#finish;
    if (!finish) return { type: 'broken', code: 'MODEL_STREAM_CUT' };
    const { unified, raw } = finish.finishReason;
    const ending = endingOf(unified, raw);
    if (ending === 'broken') return { type: 'broken', code: BROKEN[raw ?? ''] ?? 'MODEL_STREAM_CUT' };
    const { content, cut } = this.#content(ending === 'length');
    const calls = content.some((block) => block.type === 'toolCall');
    if (cut > 0 && ending === 'stop') return { type: 'broken', code: 'MODEL_STREAM_CUT' };
    if (content.length === 0 && ending === 'filtered') return { type: 'broken', code: 'MODEL_REFUSED' };
    if (raw === 'model_context_window_exceeded' && !content.some((block) => block.type !== 'thinking'))
      return { type: 'broken', code: 'MODEL_CONTEXT_OVERFLOW' };
    return {
      type: 'finish',
      content,
      stopReason: calls ? 'toolUse' : ending === 'length' ? 'length' : 'stop',
      usage: countsOf(finish),
      ...(this.#responseId === undefined ? {} : { responseId: this.#responseId }),
      ...(cut === 0 ? {} : { cutCalls: cut }),
    };
  }

  #begin(kind: 'text' | 'thinking', id: string, metadata: SharedV4ProviderMetadata | undefined): Spoken {
    const block: Spoken['block'] = kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '' };
    const spoken = { block, held: '' };
    this.#blocks.push(spoken);
    this.#open.set(id, spoken);
    this.#sign(spoken, metadata);
    return spoken;
  }

  #extend(
    kind: 'text' | 'thinking',
    part: { readonly id: string; readonly delta: string; readonly providerMetadata?: SharedV4ProviderMetadata },
  ): Delta | undefined {
    const spoken = this.#open.get(part.id) ?? this.#begin(kind, part.id, undefined);
    this.#sign(spoken, part.providerMetadata);
    // Some servers cut text between the halves of a surrogate pair: sent on alone, each half would be lost.
    const text = spoken.held + part.delta;
    const whole = endsInHalf(text) ? text.slice(0, -1) : text;
    spoken.held = text.slice(whole.length);
    return this.#say(spoken, whole);
  }

  #end(id: string, metadata: SharedV4ProviderMetadata | undefined): Delta | undefined {
    const spoken = this.#open.get(id);
    if (!spoken) return undefined;
    this.#open.delete(id);
    this.#sign(spoken, metadata);
    const rest = spoken.held;
    spoken.held = '';
    return this.#say(spoken, rest);
  }

  #say({ block }: Spoken, text: string): Delta | undefined {
    if (text === '') return undefined;
    const sound = text.toWellFormed();
    if (block.type === 'text') {
      block.text += sound;
      return { type: 'text-delta', text: sound };
    }
    block.thinking += sound;
    return { type: 'thinking-delta', text: sound };
  }

  #sign({ block }: Spoken, metadata: SharedV4ProviderMetadata | undefined): void {
    const signature = this.#signature(block.type, metadata);
    if (!signature) return;
    if (block.type === 'text') block.textSignature = signature.value;
    else {
      block.thinkingSignature = signature.value;
      if (signature.redacted) block.redacted = true;
    }
  }

  #content(mayBeCut: boolean): { readonly content: readonly AssistantContent[]; readonly cut: number } {
    const content: AssistantContent[] = [];
    const taken = new Set<string>();
    let cut = 0;
    for (const [i, block] of this.#blocks.entries()) {
      if ('block' in block) {
        if (!isEmpty(block.block)) content.push(block.block);
        continue;
      }
      // At the length limit the last call may have been cut before its arguments began, and then "none" is not what was meant.
      const began = (this.#argumentLengths.get(block.toolCallId) ?? 0) > 0;
      const args = mayBeCut && !began && i === this.#blocks.length - 1 ? undefined : argumentsOf(block.input);
      if (args === undefined) cut++;
      else content.push(this.#call(block, args, taken));
    }
    return { content, cut };
  }

  #call(call: SdkCall, args: Readonly<Record<string, unknown>>, taken: Set<string>): ToolCallBlock {
    const signature = this.#signature('call', call.providerMetadata);
    return {
      type: 'toolCall',
      id: uniqueAmong(taken, call.toolCallId.trim() || `call_${newId()}`),
      name: call.toolName,
      arguments: args,
      ...(signature ? { thoughtSignature: signature.value } : {}),
    };
  }
}

const endsInHalf = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};

function isEmpty(block: TextBlock | ThinkingBlock): boolean {
  if (block.type === 'text') return block.text === '' && block.textSignature === undefined;
  return block.thinking === '' && block.thinkingSignature === undefined;
}

/** The arguments as an object; nothing at all means none; undefined when they did not arrive whole. */
function argumentsOf(input: string): Readonly<Record<string, unknown>> | undefined {
  if (input.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(input);
    if (value === null) return {};
    return isRecord(value) ? value : undefined;
  } catch {
    // Cut in the middle, or never JSON: either way there is no call to run.
    return undefined;
  }
}

/** Ends that a provider names but that leave no usable answer. */
const BROKEN: Readonly<Record<string, ModelFailureCode>> = {
  insufficient_system_resource: 'MODEL_OVERLOADED',
  overloaded: 'MODEL_OVERLOADED',
};
const BROKEN_RAW =
  /^(?:error|abort(?:ed)?|cancel(?:l?ed)?|insufficient_system_resource|overloaded|OTHER|MALFORMED_\w+|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|FINISH_REASON_UNSPECIFIED)$/;

function endingOf(
  unified: Finish['finishReason']['unified'],
  raw: string | undefined,
): 'stop' | 'length' | 'filtered' | 'broken' {
  if (raw === 'model_context_window_exceeded') return 'length';
  if (raw === undefined || BROKEN_RAW.test(raw)) return 'broken';
  if (unified === 'length') return 'length';
  if (unified === 'content-filter') return 'filtered';
  return unified === 'error' || unified === 'interrupted' ? 'broken' : 'stop';
}

function countsOf({ usage }: Finish): TokenCounts {
  const { inputTokens, outputTokens } = usage;
  const cacheRead = inputTokens.cacheRead ?? 0;
  const cacheWrite = inputTokens.cacheWrite ?? 0;
  const total = inputTokens.total ?? 0;
  return {
    ...NO_TOKENS,
    input: Math.max(0, inputTokens.noCache ?? total - cacheRead - cacheWrite),
    output: outputTokens.total ?? 0,
    cacheRead,
    cacheWrite,
  };
}
