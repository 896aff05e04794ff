import { GatewayError, nearestName } from '#base';
import { MODEL_APIS, type ModelApi, type ModelProfile, type ProviderAccess } from '#contract';
import { type ModelRef, modelRefText, parseModelRef } from '#domain';
import { OFFLINE_PROFILE, OLLAMA, VENDOR_ALIASES, VENDORS, type Vendor } from './vendors.ts';

/** A provider as the config names it. `apiKey` is called when a request needs it, never kept. */
export type ConfiguredProvider = {
  readonly baseUrl?: string;
  readonly api?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly apiKey?: () => Promise<string | undefined>;
  readonly models: readonly (Partial<Omit<ModelProfile, 'provider' | 'api'>> & {
    readonly id: string;
    readonly api?: string;
  })[];
};

export type ModelsOptions = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly providers: () => Readonly<Record<string, ConfiguredProvider>>;
  /** Alias → `provider/model`. */
  readonly aliases: () => Readonly<Record<string, string>>;
  /** A local Ollama's address and models, when one was found at start. */
  readonly ollama: () => { readonly baseUrl: string; readonly models: readonly string[] } | undefined;
};

export type ChosenModel = {
  readonly profile: ModelProfile;
  /** In words: why this model. */
  readonly how: string;
};

/** What a model is when nothing is known of it: a modest window, so that nothing overflows. */
const UNKNOWN = {
  contextWindow: 128_000,
  maxTokens: 4_096,
  reasoning: false,
  input: ['text'],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
} as const;

/** The catalog: names to profiles, and how to reach the provider behind each. */
export class Models {
  readonly #options: ModelsOptions;

  constructor(options: ModelsOptions) {
    this.#options = options;
  }

  /**
   * The model for a run: the first of `wanted` that names one, else the first vendor whose key is in the environment, a configured
   * provider, a local Ollama, and at last the offline guide.
   * @throws {GatewayError} `MODEL_NOT_CONFIGURED` when a named model has no provider here
   */
  choose(wanted: readonly (string | undefined)[], providerHint?: string): ChosenModel {
    const named = wanted.find((name) => name !== undefined && name.trim() !== '');
    if (named !== undefined)
      return { profile: this.profile(this.#ref(named, providerHint)), how: `chosen as ${named}` };
    const vendor = VENDORS.find((v) => this.#keyOf(v) !== undefined);
    if (vendor) {
      const ref = { provider: vendor.id, model: vendor.defaultModel };
      return { profile: this.profile(ref), how: `${this.#keyOf(vendor)?.variable} is set` };
    }
    for (const [provider, configured] of Object.entries(this.#options.providers())) {
      const model = configured.models[0]?.id;
      if (model !== undefined)
        return { profile: this.profile({ provider, model }), how: `the first of models.providers` };
    }
    const local = this.#options.ollama();
    if (local?.models[0] !== undefined) {
      return {
        profile: this.profile({ provider: OLLAMA.id, model: local.models[0] }),
        how: `Ollama answers at ${local.baseUrl}`,
      };
    }
    return { profile: OFFLINE_PROFILE, how: 'no model is configured' };
  }

  /** @throws {GatewayError} `MODEL_NOT_CONFIGURED` */
  profile(ref: ModelRef): ModelProfile {
    if (ref.provider === OFFLINE_PROFILE.provider) return OFFLINE_PROFILE;
    const provider = this.#canonical(ref.provider);
    const configured = this.#options.providers()[provider] ?? this.#options.providers()[ref.provider];
    const vendor = VENDORS.find((v) => v.id === provider);
    const local = provider === OLLAMA.id ? this.#options.ollama() : undefined;
    if (!configured && !vendor && provider !== OLLAMA.id) throw this.#unknownProvider(ref);
    if (provider === OLLAMA.id && !configured && !local) {
      throw new GatewayError('MODEL_NOT_CONFIGURED', `Ollama does not answer, and ${modelRefText(ref)} needs it`, {
        next: 'Start it with: ollama serve',
      });
    }
    const listed = configured?.models.find((m) => m.id === ref.model);
    const known = vendor?.models.find((m) => m.id === ref.model);
    const api = listed?.api ?? configured?.api ?? vendor?.api ?? 'openai-completions';
    return {
      ...UNKNOWN,
      ...known,
      ...defined(listed ?? {}),
      id: ref.model,
      name: listed?.name ?? known?.name ?? ref.model,
      provider,
      api: this.#api(api, ref),
    };
  }

  /** Address and key, fresh for this request. @throws {GatewayError} `MODEL_AUTH` when the vendor needs a key and there is none */
  async access(profile: ModelProfile): Promise<ProviderAccess> {
    if (profile.api === 'offline') return { baseUrl: 'offline:' };
    const configured = this.#options.providers()[profile.provider];
    const vendor = VENDORS.find((v) => v.id === profile.provider);
    const local = profile.provider === OLLAMA.id ? this.#options.ollama() : undefined;
    const baseUrl = configured?.baseUrl ?? vendor?.baseUrl ?? local?.baseUrl;
    if (baseUrl === undefined) {
      throw new GatewayError('MODEL_NOT_CONFIGURED', `models.providers.${profile.provider} has no baseUrl`, {
        next: `Set it: reins config set models.providers.${profile.provider}.baseUrl https://…`,
      });
    }
    const apiKey = (await configured?.apiKey?.()) ?? (vendor && this.#keyOf(vendor)?.value);
    if (vendor && apiKey === undefined && configured?.baseUrl === undefined) {
      throw new GatewayError('MODEL_AUTH', `${vendor.name} needs a key`, {
        next: `Set ${vendor.keyVariables[0]} and start again.`,
      });
    }
    return {
      baseUrl,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(configured?.headers ? { headers: configured.headers } : {}),
    };
  }

  /** Every model that could be used now, the offline guide last. */
  list(): readonly ModelProfile[] {
    const refs = new Map<string, ModelRef>();
    const add = (provider: string, model: string) => refs.set(`${provider}/${model}`, { provider, model });
    for (const [provider, configured] of Object.entries(this.#options.providers()))
      for (const m of configured.models) add(provider, m.id);
    for (const vendor of VENDORS) if (this.#keyOf(vendor)) for (const m of vendor.models) add(vendor.id, m.id);
    for (const model of this.#options.ollama()?.models ?? []) add(OLLAMA.id, model);
    return [...[...refs.values()].map((ref) => this.profile(ref)), OFFLINE_PROFILE];
  }

  #ref(name: string, providerHint: string | undefined): ModelRef {
    const aliases = this.#options.aliases();
    const meant = Object.hasOwn(aliases, name) ? aliases[name]! : name;
    // A name with a slash may still belong to the hinted provider (`org/model` on a compatible server).
    const byHint =
      providerHint === undefined
        ? undefined
        : { provider: providerHint.toLowerCase(), model: meant.replace(`${providerHint}/`, '') };
    const ref = byHint ?? parseModelRef(meant) ?? this.#ownerOf(meant);
    if (ref) return ref;
    throw new GatewayError('MODEL_NOT_CONFIGURED', `"${name}" names no provider`, {
      next: 'Write it as provider/model.',
    });
  }

  #ownerOf(model: string): ModelRef | undefined {
    for (const [provider, configured] of Object.entries(this.#options.providers())) {
      if (configured.models.some((m) => m.id === model)) return { provider, model };
    }
    const vendor = VENDORS.find(
      (v) => v.models.some((m) => m.id === model) || model.startsWith(FAMILY_PREFIX[v.id] ?? '\n'),
    );
    return vendor && { provider: vendor.id, model };
  }

  #canonical(provider: string): string {
    if (Object.hasOwn(this.#options.providers(), provider)) return provider;
    return VENDOR_ALIASES[provider] ?? provider;
  }

  #keyOf(vendor: Vendor): { readonly variable: string; readonly value: string } | undefined {
    for (const variable of vendor.keyVariables) {
      const value = this.#options.env[variable]?.trim();
      if (value) return { variable, value };
    }
    return undefined;
  }

  #api(api: string, ref: ModelRef): ModelApi {
    if ((MODEL_APIS as readonly string[]).includes(api)) return api as ModelApi;
    throw new GatewayError('MODEL_NOT_CONFIGURED', `The wire format "${api}" of ${modelRefText(ref)} is not known`, {
      next: `Use one of: ${MODEL_APIS.filter((a) => a !== 'offline').join(', ')}.`,
    });
  }

  #unknownProvider(ref: ModelRef): GatewayError {
    const known = [
      ...Object.keys(this.#options.providers()),
      ...VENDORS.map((v) => v.id),
      OLLAMA.id,
      OFFLINE_PROFILE.provider,
    ];
    const near = nearestName(ref.provider, known);
    return new GatewayError(
      'MODEL_NOT_CONFIGURED',
      `There is no provider "${ref.provider}" for the model ${modelRefText(ref)}`,
      {
        next: near ? `Did you mean ${near}/${ref.model}?` : `Add models.providers.${ref.provider} to the config.`,
      },
    );
  }
}

const FAMILY_PREFIX: Readonly<Record<string, string>> = {
  anthropic: 'claude-',
  openai: 'gpt-',
  google: 'gemini-',
  deepseek: 'deepseek-',
  alibaba: 'qwen',
};

const defined = <T extends object>(value: T): Partial<T> =>
  Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as Partial<T>;
