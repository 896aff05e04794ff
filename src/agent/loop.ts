import {
  type Backoff,
  backoffMs,
  type Clock,
  type ErrorCode,
  type GatewayError,
  isGatewayError,
  messageOf,
} from '#base';
import type {
  ModelEvent,
  ModelFailure,
  ModelProfile,
  Provider,
  ProviderAccess,
  TokenCounts,
  Tool,
  ToolContext,
  ToolSpec,
} from '#contract';
import {
  type AssistantContent,
  type AssistantMessage,
  addUsage,
  ENTRY,
  type NewEntry,
  NO_USAGE,
  type RunEvent,
  type RunResult,
  type StopReason,
  type ThinkingLevel,
  type TranscriptEntry,
  textOf,
  toolCallsOf,
  type Usage,
  type UserContent,
} from '#domain';
import type { ArgumentChecker } from './argument-checker.ts';
import { type ContextMemory, deriveContext, type WindowRule } from './derive-context.ts';
import { isShutdown, runTools } from './run-tools.ts';
import type { ResultBound } from './tool-result-bound.ts';

export type LoopLimits = {
  /** Model responses per run. */
  readonly turns: number;
  /** Turns in a row that ask for exactly the same calls. */
  readonly identicalTurns: number;
};

export type LoopInput = {
  readonly profile: ModelProfile;
  readonly provider: Provider;
  /** Called before each request, so that a rotated key counts at once. */
  access(): Promise<ProviderAccess>;
  readonly thinking: ThinkingLevel;
  readonly system: string;
  readonly tools: readonly Tool[];
  readonly window: WindowRule;
  readonly limits: LoopLimits;
  readonly bound: ResultBound;
  /** What the run had done before a restart. */
  readonly before: { readonly turns: number; readonly texts: readonly string[]; readonly usage: Usage };
};

/** What the loop acts through; it does no input or output of its own. */
export type LoopPorts = {
  readonly clock: Clock;
  readonly checker: ArgumentChecker;
  readonly memory: ContextMemory;
  branch(): readonly TranscriptEntry[];
  append(...entries: readonly NewEntry[]): readonly TranscriptEntry[];
  messageSeq(): number;
  emit(event: RunEvent): void;
  priced(counts: TokenCounts): Usage;
  /** Messages that arrived for this session meanwhile and are to be seen in this run. */
  steered(): readonly NewEntry[];
  contextFor(callId: string, progress: (content: readonly UserContent[]) => void): ToolContext;
};

const ATTEMPTS_MAX = 3;
const CUT_ANSWERS_MAX = 2;
const RETRY_AFTER_MAX_MS = 20_000;
const RETRY: Backoff = { firstMs: 400, factor: 4, maxMs: 8_000, jitter: 0.3 };
const RETRIED: ReadonlySet<ErrorCode> = new Set([
  'MODEL_STREAM_CUT',
  'MODEL_OVERLOADED',
  'MODEL_UNREACHABLE',
  'MODEL_RATE_LIMITED',
  'MODEL_CONTEXT_OVERFLOW',
]);
/** How much of the last request's size the next one may have, after a provider said that it was too long. */
const OVERFLOW_SHRINK = 0.65;

/**
 * Model, tools, model, until the model asks for nothing more or a limit is met. The transcript is complete and valid at every moment:
 * whatever ends the run, the next one can go on from it.
 * @returns the result, or undefined when the gateway goes down and the run is to go on after the restart
 */
export async function runLoop(input: LoopInput, ports: LoopPorts, signal: AbortSignal): Promise<RunResult | undefined> {
  return await new Loop(input, ports, signal).run();
}

class Loop {
  readonly #input: LoopInput;
  readonly #ports: LoopPorts;
  readonly #signal: AbortSignal;
  readonly #specs: readonly ToolSpec[];
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #texts: string[];
  #window: WindowRule;
  #usage: Usage;
  #turn: number;
  #lastCalls = '';
  #identical = 0;
  #cutAnswers = 0;

  constructor(input: LoopInput, ports: LoopPorts, signal: AbortSignal) {
    this.#input = input;
    this.#ports = ports;
    this.#signal = signal;
    this.#turn = input.before.turns;
    this.#texts = [...input.before.texts];
    this.#usage = input.before.usage;
    this.#window = input.window;
    this.#tools = new Map(input.tools.map((tool) => [tool.name, tool]));
    this.#specs = input.tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters: parameters as unknown as Readonly<Record<string, unknown>>,
    }));
  }

  async run(): Promise<RunResult | undefined> {
    for (;;) {
      if (this.#turn >= this.#input.limits.turns)
        return this.#limitMet('RUN_TURN_LIMIT', `I stopped after ${this.#turn} turns`);
      this.#turn++;
      this.#append(...this.#ports.steered());
      const { profile } = this.#input;
      this.#ports.emit({ type: 'turn-start', turn: this.#turn, provider: profile.provider, model: profile.id });
      const response = await this.#ask();
      if (isShutdown(this.#signal)) return undefined;
      if (response.type === 'aborted') return this.#aborted(response.partial);
      if (response.type === 'failure') return this.#failed(response.failure);
      const message = this.#record(response);
      const calls = toolCallsOf(message);
      if (calls.length > 0) {
        if (this.#isLoop(calls)) {
          this.#refuseCalls(calls);
          return this.#limitMet('RUN_LOOP', `I stopped because the same call was repeated ${this.#identical} times`);
        }
        await this.#runTools(message);
        if (isShutdown(this.#signal)) return undefined;
        if (this.#signal.aborted) return this.#aborted([]);
      } else if (response.cutCalls > 0 && ++this.#cutAnswers <= CUT_ANSWERS_MAX) this.#append(CUT_NOTE);
      else return this.#result('answered', undefined);
    }
  }

  async #ask(): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      if (this.#signal.aborted) return { type: 'aborted', partial: [] };
      const response = await this.#askOnce();
      if (response.type !== 'failure' || attempt >= ATTEMPTS_MAX || !this.#mayRetry(response.failure)) return response;
      const { failure } = response;
      this.#ports.emit({ type: 'turn-retry', turn: this.#turn, reason: failure.code });
      // A stream that broke off is asked for again at once: the provider is there, only this answer was lost.
      const again = failure.code === 'MODEL_STREAM_CUT' || failure.code === 'MODEL_CONTEXT_OVERFLOW';
      const delayMs = failure.retryAfterMs ?? (again ? 0 : backoffMs(RETRY, attempt));
      try {
        await this.#ports.clock.sleep(delayMs, this.#signal);
      } catch {
        // The only reason to wake early is an abort.
        return { type: 'aborted', partial: [] };
      }
    }
  }

  #mayRetry(failure: ModelFailure): boolean {
    return RETRIED.has(failure.code) && (failure.retryAfterMs ?? 0) <= RETRY_AFTER_MAX_MS;
  }

  async #askOnce(): Promise<Response> {
    const { profile, provider, system, thinking } = this.#input;
    const context = deriveContext(this.#ports.branch(), this.#window, this.#ports.memory);
    const partial = new PartialAnswer();
    let end: ModelEvent | undefined;
    try {
      const access = await this.#input.access();
      const maxOutputTokens = Math.min(profile.maxTokens, Math.floor(profile.contextWindow / 2));
      const request = {
        model: profile,
        access,
        system,
        messages: context.messages,
        tools: this.#specs,
        thinking,
        maxOutputTokens,
      };
      for await (const event of provider.stream(request, this.#signal)) {
        if (event.type === 'text-delta') {
          partial.add('text', event.text);
          this.#ports.emit({ type: 'text-delta', turn: this.#turn, text: event.text });
        } else if (event.type === 'thinking-delta') {
          partial.add('thinking', event.text);
          this.#ports.emit({ type: 'thinking-delta', turn: this.#turn, text: event.text });
        } else end = event;
      }
    } catch (error) {
      end = { type: 'failure', failure: asFailure(error) };
    }
    if (this.#signal.aborted) return { type: 'aborted', partial: partial.content() };
    if (end?.type === 'finish') return { ...end, cutCalls: end.cutCalls ?? 0 };
    if (end?.type !== 'failure') {
      return {
        type: 'failure',
        failure: { code: 'MODEL_STREAM_CUT', message: 'The model stopped in the middle of its answer' },
      };
    }
    if (end.failure.code === 'MODEL_CONTEXT_OVERFLOW') {
      this.#window = {
        ...this.#window,
        tokens: Math.floor(Math.min(this.#window.tokens, context.tokens) * OVERFLOW_SHRINK),
      };
    }
    return end;
  }

  #record(response: Extract<Response, { type: 'finish' }>): AssistantMessage {
    const usage = this.#ports.priced(response.usage);
    this.#usage = addUsage(this.#usage, usage);
    const message = this.#message(response.content, response.stopReason, usage, response.responseId);
    const text = textOf(message);
    if (text !== '') this.#texts.push(text);
    this.#append({ type: 'message', message });
    this.#ports.emit({ type: 'turn-end', turn: this.#turn, usage });
    return message;
  }

  async #runTools(message: AssistantMessage): Promise<void> {
    await runTools(toolCallsOf(message), {
      turn: this.#turn,
      tools: this.#tools,
      checker: this.#ports.checker,
      bound: this.#input.bound,
      contextFor: this.#ports.contextFor,
      append: (...entries) => this.#ports.append(...entries),
      messageSeq: () => this.#ports.messageSeq(),
      emit: (event) => this.#ports.emit(event),
      now: () => this.#ports.clock.now(),
      signal: this.#signal,
    });
  }

  /** The same calls with the same arguments, turn after turn, lead nowhere. */
  #isLoop(calls: readonly { readonly name: string; readonly arguments: unknown }[]): boolean {
    const asked = JSON.stringify(calls.map((call) => [call.name, call.arguments]));
    this.#identical = asked === this.#lastCalls ? this.#identical + 1 : 1;
    this.#lastCalls = asked;
    return this.#identical >= this.#input.limits.identicalTurns;
  }

  #refuseCalls(calls: readonly { readonly id: string; readonly name: string }[]): void {
    const timestamp = this.#ports.clock.now();
    for (const call of calls) {
      const content = [{ type: 'text' as const, text: 'Not run: the same call was repeated too often.' }];
      const message = {
        role: 'toolResult' as const,
        toolCallId: call.id,
        toolName: call.name,
        content,
        isError: true,
        timestamp,
      };
      this.#append({ type: 'message', message });
    }
  }

  #aborted(partial: readonly AssistantContent[]): RunResult {
    const isTimeout = isGatewayError(this.#signal.reason, 'RUN_TIMEOUT');
    const message = this.#message(partial, 'aborted', NO_USAGE);
    const text = textOf(message);
    if (text !== '') this.#texts.push(text);
    this.#append({
      type: 'message',
      message: { ...message, errorMessage: isTimeout ? messageOf(this.#signal.reason) : 'Stopped' },
    });
    if (!isTimeout) return this.#result('aborted', undefined);
    const { code, message: said, next } = this.#signal.reason as GatewayError;
    return this.#result('failed', { code, message: said, ...(next === undefined ? {} : { next }) });
  }

  #failed(failure: ModelFailure): RunResult {
    const message = { ...this.#message([], 'error', NO_USAGE), errorMessage: failure.message };
    this.#append({ type: 'message', message });
    const next = NEXT_STEP[failure.code];
    return this.#result('failed', {
      code: failure.code,
      message: failure.message,
      ...(next === undefined ? {} : { next }),
    });
  }

  /** A limit ends the run with an answer in the transcript, so that the person sees why and the conversation can go on. */
  #limitMet(code: 'RUN_TURN_LIMIT' | 'RUN_LOOP', what: string): RunResult {
    const text = `${what}. Tell me to go on if that is what you want.`;
    const note = {
      ...this.#message([{ type: 'text', text }], 'stop', NO_USAGE),
      provider: 'reins',
      model: 'gateway-injected',
    };
    this.#append({ type: 'message', message: note });
    this.#texts.push(text);
    return this.#result('answered', { code, message: what });
  }

  #message(
    content: readonly AssistantContent[],
    stopReason: StopReason,
    usage: Usage,
    responseId?: string,
  ): AssistantMessage {
    const { profile } = this.#input;
    return {
      role: 'assistant',
      content,
      api: profile.api,
      provider: profile.provider,
      model: profile.id,
      usage,
      stopReason,
      timestamp: this.#ports.clock.now(),
      ...(responseId === undefined ? {} : { responseId }),
    };
  }

  #append(...entries: readonly NewEntry[]): void {
    for (const entry of entries) {
      const [placed] = this.#ports.append(entry);
      if (placed?.type !== 'message') continue;
      this.#ports.emit({ type: 'message', entryId: placed.id, message: placed.message, seq: this.#ports.messageSeq() });
    }
  }

  #result(outcome: RunResult['outcome'], error: RunResult['error']): RunResult {
    const { profile } = this.#input;
    return {
      outcome,
      texts: this.#texts,
      usage: this.#usage,
      provider: profile.provider,
      model: profile.id,
      turns: this.#turn,
      ...(error === undefined ? {} : { error }),
    };
  }
}

type Response =
  | (Extract<ModelEvent, { type: 'finish' }> & { readonly cutCalls: number })
  | Extract<ModelEvent, { type: 'failure' }>
  | { readonly type: 'aborted'; readonly partial: readonly AssistantContent[] };

/** What was streamed so far, for a run that is stopped in the middle. */
class PartialAnswer {
  readonly #blocks: { readonly kind: 'text' | 'thinking'; text: string }[] = [];

  add(kind: 'text' | 'thinking', text: string): void {
    const last = this.#blocks.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.#blocks.push({ kind, text });
  }

  content(): readonly AssistantContent[] {
    // Thinking without its signature cannot be sent back; the text is what the person saw.
    return this.#blocks.flatMap(({ kind, text }) => (kind === 'text' ? [{ type: 'text' as const, text }] : []));
  }
}

function asFailure(error: unknown): ModelFailure {
  if (isGatewayError(error) && (error.code.startsWith('MODEL_') || error.code === 'SECRET_UNAVAILABLE')) {
    const code = error.code === 'SECRET_UNAVAILABLE' ? 'MODEL_AUTH' : error.code;
    return {
      code: code as ModelFailure['code'],
      message: error.next ? `${error.message}. ${error.next}` : error.message,
    };
  }
  return { code: 'MODEL_REQUEST_INVALID', message: `The request could not be made: ${messageOf(error)}` };
}

const CUT_NOTE: NewEntry = {
  type: 'custom_message',
  customType: ENTRY.recovery,
  content:
    'Note from the gateway: your last response reached its length limit in the middle of a tool call, which was not run. Do it again in smaller steps.',
  display: false,
};

const NEXT_STEP: Readonly<Partial<Record<ErrorCode, string>>> = {
  MODEL_AUTH: 'Check the key of this provider, then send the message again.',
  MODEL_BILLING: 'Check the balance of your account with this provider.',
  MODEL_NOT_FOUND: 'Choose another model: reins config set agents.defaults.model provider/model',
  MODEL_RATE_LIMITED: 'Wait a little and send the message again.',
  MODEL_OVERLOADED: 'Wait a little and send the message again.',
  MODEL_UNREACHABLE: 'Check the network and the address of this provider, then send the message again.',
  MODEL_TIMEOUT: 'Send the message again.',
  MODEL_STREAM_CUT: 'Send the message again.',
  MODEL_CONTEXT_OVERFLOW: 'Start a new session with /new, or choose a model with a larger window.',
};
