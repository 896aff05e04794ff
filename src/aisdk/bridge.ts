import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { type Clock, LruMap, systemClock } from '#base';
import type { ModelEvent, ModelFailure, ModelRequest, Provider, ProviderAccess } from '#contract';
import { ByteWatch } from './byte-watch.ts';
import { asFailure } from './failure.ts';
import { Gatherer } from './gather.ts';
import { toPrompt, toTools } from './prompt.ts';
import type { SdkClient, WireFamily } from './wire-family.ts';

export type BridgeOptions = {
  /** All requests go through it; by default the runtime's own at the time of the call. */
  readonly fetch?: typeof fetch;
  /** A response that sends no byte for this long is given up. Default 120,000. */
  readonly idleTimeoutMs?: number;
  /** A longer response body is given up. Default 64 MiB. */
  readonly responseBytesMax?: number;
  readonly clock?: Clock;
};

const IDLE_TIMEOUT_MS = 120_000;
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
const CLIENTS_MAX = 16;
const MODELS_MAX = 64;

/**
 * A `Provider` for one family of wire formats, on top of the AI SDK's model classes. The SDK is loaded with the first request; its
 * clients are kept per address, key and headers.
 */
export function bridge(family: WireFamily, options: BridgeOptions = {}): Provider {
  const sdk = new SdkModels(family, options.fetch);
  return {
    api: family.api,
    stream: (request, signal) => streamOf({ family, options, sdk }, request, signal),
  };
}

type Parts = {
  readonly family: WireFamily;
  readonly options: BridgeOptions;
  readonly sdk: SdkModels;
};

async function* streamOf(parts: Parts, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  const { options, sdk } = parts;
  const clock = options.clock ?? systemClock;
  if (signal.aborted) return yield stopped();
  const watch = new ByteWatch(clock, {
    idleMs: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
    bytesMax: options.responseBytesMax ?? RESPONSE_BYTES_MAX,
  });
  const gathered = new Gatherer(parts.family.readSignature);
  const abort = () => watch.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  let reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | undefined;
  const failed = (error: unknown): ModelEvent => {
    if (signal.aborted) return stopped();
    return { type: 'failure', failure: verdictOf(watch, request) ?? streamFailure(error, watch, request, clock.now()) };
  };
  try {
    const model = await sdk.model(request);
    const stream = await startedOrAborted(model, callOptions(parts.family, request, watch, sdk), watch.signal);
    reader = stream.getReader();
    const stop = () => void reader?.cancel().catch(() => undefined);
    watch.signal.addEventListener('abort', stop, { once: true });
    for (;;) {
      const { done, value } = await reader.read();
      if (done || watch.signal.aborted) break;
      if (value.type === 'error') return yield failed(value.error);
      const delta = gathered.take(value);
      if (delta) yield delta;
    }
    if (watch.signal.aborted) return yield failed(watch.signal.reason);
    const end = gathered.end();
    if (end.type === 'finish') yield end;
    else yield { type: 'failure', failure: endFailure(end.code, request, clock.now()) };
  } catch (error) {
    yield failed(error);
  } finally {
    // Also when the reader of this stream leaves early: nothing may go on being paid for that nobody reads.
    signal.removeEventListener('abort', abort);
    watch.stop();
    watch.abort(OVER);
  }
}

/** The SDK waits for the first bytes; a fetch that does not heed its signal must not make an abort wait. */
async function startedOrAborted(
  model: LanguageModelV4,
  call: LanguageModelV4CallOptions,
  signal: AbortSignal,
): Promise<ReadableStream<LanguageModelV4StreamPart>> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    const started = Promise.resolve(model.doStream(call));
    const { stream } = await Promise.race([started, aborted]);
    return stream;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function callOptions(
  family: WireFamily,
  request: ModelRequest,
  watch: ByteWatch,
  sdk: SdkModels,
): LanguageModelV4CallOptions {
  const { prompt, facts } = toPrompt(request, family.prompt);
  const tools = toTools(request.tools);
  sdk.watch(watch);
  return {
    prompt,
    maxOutputTokens: request.maxOutputTokens,
    ...(tools.length > 0 ? { tools, toolChoice: { type: 'auto' } } : {}),
    abortSignal: watch.signal,
    ...family.callOptions(request, facts),
  };
}

/** A reason of its own: without one, every request that is over would pay for an error and its stack. */
const OVER = 'over';

const stopped = (): ModelEvent => ({
  type: 'failure',
  failure: { code: 'RUN_ABORTED', message: 'The request was stopped' },
});

function verdictOf(watch: ByteWatch, { model }: ModelRequest): ModelFailure | undefined {
  if (watch.verdict === 'idle')
    return { code: 'MODEL_TIMEOUT', message: `${model.provider} stopped sending its answer` };
  if (watch.verdict === 'too-large')
    return { code: 'MODEL_REQUEST_INVALID', message: `${model.provider} sent more than a response may hold` };
  return undefined;
}

/** Once a response had begun, a connection that fails has cut it: the provider was reached. */
function streamFailure(error: unknown, watch: ByteWatch, request: ModelRequest, now: number): ModelFailure {
  const failure = asFailure(error, request, now);
  if (failure.code !== 'MODEL_UNREACHABLE' || !watch.responded) return failure;
  return endFailure('MODEL_STREAM_CUT', request, now);
}

const WORDS_FOR: Readonly<Partial<Record<ModelFailure['code'], string>>> = {
  MODEL_CONTEXT_OVERFLOW: 'context_length_exceeded',
  MODEL_OVERLOADED: 'overloaded',
  MODEL_REFUSED: 'content_filter',
};

/** A failure that only the end of a stream told of, in the same words as one that the provider told. */
const endFailure = (code: ModelFailure['code'], request: ModelRequest, now: number): ModelFailure =>
  asFailure({ message: WORDS_FOR[code] ?? '' }, request, now);

/** The SDK's model objects, each made once. */
class SdkModels {
  readonly #family: WireFamily;
  readonly #fetch: typeof fetch | undefined;
  readonly #clients = new LruMap<string, SdkClient>({ max: CLIENTS_MAX });
  readonly #models = new LruMap<string, LanguageModelV4>({ max: MODELS_MAX });
  /** A client serves many requests: the signal that the SDK hands to fetch tells which one's bytes they are. */
  readonly #watches = new WeakMap<AbortSignal, ByteWatch>();
  #loading: ReturnType<WireFamily['load']> | undefined;

  constructor(family: WireFamily, fetcher: typeof fetch | undefined) {
    this.#family = family;
    this.#fetch = fetcher;
  }

  watch(watch: ByteWatch): void {
    this.#watches.set(watch.signal, watch);
  }

  async model({ access, model }: ModelRequest): Promise<LanguageModelV4> {
    const accessKey = JSON.stringify([access.baseUrl, access.apiKey ?? null, access.headers ?? null]);
    const modelKey = `${model.id}\n${accessKey}`;
    const known = this.#models.get(modelKey);
    if (known) return known;
    const client = this.#clients.get(accessKey) ?? (await this.#client(accessKey, access));
    const made = client(model.id);
    this.#models.set(modelKey, made);
    return made;
  }

  async #client(key: string, access: ProviderAccess): Promise<SdkClient> {
    this.#loading ??= this.#family.load();
    this.#loading.catch(() => {
      // A package that could not be loaded is tried again by the next request; this one tells why.
      this.#loading = undefined;
    });
    const makeClient = await this.#loading;
    const { baseUrl, apiKey, headers } = access;
    const client = makeClient({
      baseURL: baseUrl,
      fetch: this.#watchedFetch,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(headers === undefined ? {} : { headers: { ...headers } }),
    });
    this.#clients.set(key, client);
    return client;
  }

  readonly #watchedFetch: typeof fetch = async (input, init) => {
    // Looked up now: another part of the process may have put its own fetch in place since.
    const response = await (this.#fetch ?? globalThis.fetch)(input, init);
    const watch = init?.signal ? this.#watches.get(init.signal) : undefined;
    return watch ? watch.watched(response) : response;
  };
}
