import type { Static } from 'typebox';
import * as Type from 'typebox';
import { AgentsSchema, memoryKeys } from './schema-agents.ts';
import { GatewaySchema } from './schema-gateway.ts';
import { later, laterKeys, names, record, secret } from './schema-parts.ts';
import { ToolsSchema } from './schema-tools.ts';

const SERVICE_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$';

const price = (of: string) =>
  Type.Number({ minimum: 0, default: 0, description: `${of}, in US dollars per million tokens.` });

const ModelSchema = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 256, description: "The provider's name for it." }),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'What people see.' })),
  api: Type.Optional(Type.String({ maxLength: 64, description: "Wire format, where it is not the provider's." })),
  contextWindow: Type.Optional(
    Type.Integer({ minimum: 256, maximum: 100_000_000, description: 'Input and output together, in tokens.' }),
  ),
  maxTokens: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100_000_000, description: 'Longest response, in tokens.' }),
  ),
  reasoning: Type.Optional(Type.Boolean({ description: 'It can think before it answers.' })),
  input: Type.Optional(
    Type.Array(Type.Enum(['text', 'image']), { maxItems: 2, description: 'What it takes: `text`, `image`.' }),
  ),
  cost: Type.Optional(
    Type.Object(
      {
        input: price('Input'),
        output: price('Output'),
        cacheRead: price('Input read from the cache'),
        cacheWrite: price('Input written to the cache'),
      },
      { description: 'Prices.' },
    ),
  ),
  ...laterKeys(['contextTokens', 'compat', 'headers', 'params', 'agentRuntime', 'baseUrl']),
});

const ProviderSchema = Type.Object({
  baseUrl: Type.Optional(
    Type.String({ maxLength: 2_048, description: 'Where it answers, `https://…` up to and with the version (`/v1`).' }),
  ),
  apiKey: Type.Optional(secret('Its key. Absent: from the environment variable that is usual for it.')),
  api: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'Wire format: `openai-completions`, `anthropic-messages` or `google-generative-ai`.',
    }),
  ),
  headers: record(Type.String({ maxLength: 8_192 }), {
    names: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
    default: {},
    description: 'Sent with every request; each value counts as a secret.',
    'x-secret': true,
  }),
  models: Type.Array(ModelSchema, {
    default: [],
    maxItems: 2_000,
    description: 'Its models, and what is known of them.',
  }),
  ...laterKeys([
    'auth',
    'authHeader',
    'timeoutSeconds',
    'request',
    'maxTokens',
    'injectNumCtxForOpenAICompat',
    'params',
  ]),
});

const ModelsSchema = Type.Object(
  {
    providers: record(ProviderSchema, {
      names: SERVICE_NAME,
      default: {},
      description: 'Providers by id, beside the known ones.',
    }),
    ...laterKeys(['mode', 'bedrockDiscovery', 'pricing']),
  },
  { description: 'Where models are reached.' },
);

const BindingSchema = Type.Object({
  agentId: Type.String({ minLength: 1, maxLength: 64, description: 'The agent that answers.' }),
  channel: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Flat form: the channel.' })),
  accountId: Type.Optional(Type.String({ maxLength: 256, description: 'Flat form: the account of ours it came to.' })),
  match: Type.Optional(
    Type.Object(
      {
        channel: Type.String({ minLength: 1, maxLength: 64, description: 'The channel.' }),
        accountId: Type.Optional(
          Type.String({
            maxLength: 256,
            description: 'The account of ours it came to; `*`: any; absent: the default one.',
          }),
        ),
        peer: Type.Optional(
          Type.Object(
            {
              kind: Type.Enum(['direct', 'group', 'channel', 'dm'], { description: 'What kind of place it is.' }),
              id: Type.String({ minLength: 1, maxLength: 256, description: "The channel's id of it." }),
            },
            { description: 'One person, group or room.' },
          ),
        ),
        guildId: Type.Optional(Type.String({ maxLength: 256, description: 'A Discord server.' })),
        teamId: Type.Optional(Type.String({ maxLength: 256, description: 'A Slack or Teams workspace.' })),
        ...laterKeys(['roles']),
      },
      { description: 'What a message must match.' },
    ),
  ),
  ...laterKeys(['type', 'session', 'acp', 'comment']),
});

const SessionSchema = Type.Object(
  {
    scope: Type.Enum(['per-sender', 'global'], {
      default: 'per-sender',
      description: '`global` puts every direct message in the main session. For chat platforms.',
      'x-later': true,
    }),
    dmScope: Type.Enum(['main', 'per-peer', 'per-channel-peer', 'per-account-channel-peer'], {
      default: 'per-channel-peer',
      description:
        'What direct messages share a session: all, those of one person, also per channel, also per account.',
      'x-later': true,
    }),
    mainKey: Type.String({
      default: 'main',
      minLength: 1,
      maxLength: 64,
      pattern: '^[A-Za-z0-9_-]+$',
      description: 'A further name for the main session.',
      'x-later': true,
    }),
    reset: Type.Object(
      {
        mode: Type.Enum(['none', 'daily', 'idle'], {
          default: 'none',
          description: 'Whether a session starts over by itself: never, once a day, or after a pause.',
        }),
        atHour: Type.Integer({
          minimum: 0,
          maximum: 23,
          default: 4,
          description: 'For `daily`: the hour, in local time.',
        }),
        idleMinutes: Type.Integer({
          minimum: 1,
          maximum: 5_256_000,
          default: 60,
          description: 'For `idle`: the pause, in minutes.',
        }),
      },
      { description: 'When a session starts over by itself; its transcript stays on disk.' },
    ),
    resetTriggers: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
      default: ['/new', '/reset'],
      maxItems: 50,
      description: 'Messages that start the session over.',
    }),
    idempotency: Type.Object(
      {
        windowMinutes: Type.Integer({
          minimum: 5,
          maximum: 30,
          default: 10,
          description: 'How long a repeated message gets the first answer instead of a run, in minutes.',
        }),
      },
      { description: 'Messages that arrive twice.' },
    ),
    ...laterKeys([
      ...([
        'groupScope',
        'identityLinks',
        'resetByType',
        'resetByChannel',
        'store',
        'maintenance',
        'threadBindings',
      ] as const),
      ...(['sendPolicy', 'sharing', 'notifyOnCreate', 'idleMinutes', 'agentToAgent', 'typingMode'] as const),
      ...(['typingIntervalSeconds', 'parentForkMaxTokens', 'writeLock'] as const),
    ]),
  },
  { description: 'How messages become conversations.' },
);

const MessagesSchema = Type.Object(
  {
    queue: Type.Object(
      {
        mode: Type.Enum(['steer', 'followup', 'collect', 'interrupt'], {
          default: 'steer',
          description:
            'What a message does while its session is busy: joins the run, waits for its own run, waits to be answered together with others, or stops the run.',
        }),
        cap: Type.Integer({
          minimum: 1,
          maximum: 1_000,
          default: 20,
          description: 'How many messages of one session may wait.',
        }),
        drop: Type.Enum(['new', 'old', 'summarize'], {
          default: 'new',
          description:
            'What happens past the cap: the newest is refused. `old` and `summarize` are accepted and act as `new`.',
        }),
        ...laterKeys(['byChannel', 'debounceMs', 'debounceMsByChannel']),
      },
      { description: 'Messages that arrive while their session is busy.' },
    ),
    ...laterKeys([
      ...([
        'responsePrefix',
        'messagePrefix',
        'ackReaction',
        'ackReactionScope',
        'removeAckAfterReply',
        'inbound',
      ] as const),
      ...(['groupChat', 'statusReactions', 'visibleReplies', 'usageTemplate', 'responseUsage', 'tts'] as const),
      ...(['suppressToolErrors'] as const),
    ]),
  },
  { description: 'How messages are taken.' },
);

const LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

const LoggingSchema = Type.Object(
  {
    level: Type.Enum([...LEVELS], { default: 'info', description: 'The least severe line that goes to the log file.' }),
    file: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4_096,
        description: 'The log file; absent: `logs/gateway.log` in the state folder.',
      }),
    ),
    consoleLevel: Type.Enum([...LEVELS], { default: 'info', description: 'The least severe line that is shown.' }),
    consoleStyle: Type.Enum(['pretty', 'compact', 'json'], { default: 'pretty', description: 'How lines are shown.' }),
    redactPatterns: names(
      'Regular expressions whose matches are masked beside the built-in ones. Without nested quantifiers and back references, at most 200 characters.',
    ),
    ...laterKeys(['redactSensitive', 'maxFileBytes', 'audit']),
  },
  { description: 'What is written down. Secrets are always masked.' },
);

const SecretProviderSchema = Type.Object({
  source: Type.Enum(['env', 'file', 'exec'], { description: 'What kind of place it is; `exec` is refused here.' }),
  path: Type.Optional(Type.String({ maxLength: 4_096, description: 'For `file`: a file in the config folder.' })),
  mode: Type.Enum(['json', 'singleValue'], {
    default: 'json',
    description: 'For `file`: an object into which ids point (`/a/b`), or one value.',
  }),
  ...laterKeys([
    'command',
    'args',
    'env',
    'allowlist',
    'timeoutMs',
    'maxOutputBytes',
    'jsonOnly',
    'passEnv',
    'trustedDirs',
  ]),
});

/** The config as it is after defaults; the file may leave out everything that has one. */
export const ConfigSchema = Type.Object({
  gateway: GatewaySchema,
  agents: AgentsSchema,
  models: ModelsSchema,
  tools: ToolsSchema,
  bindings: Type.Array(BindingSchema, {
    default: [],
    maxItems: 5_000,
    description:
      'Which agent answers what, as `{channel, accountId, agentId}` or `{agentId, match}`. No channel of this version uses it yet.',
  }),
  session: SessionSchema,
  messages: MessagesSchema,
  memory: Type.Object(
    { ...memoryKeys(), ...laterKeys(['backend', 'citations', 'qmd', 'search']) },
    { description: 'What agents remember of a conversation.' },
  ),
  logging: LoggingSchema,
  secrets: Type.Object(
    {
      providers: record(SecretProviderSchema, {
        names: SERVICE_NAME,
        default: {},
        description: 'Places that secret references name, by name.',
      }),
      ...laterKeys(['defaults', 'resolution']),
    },
    { description: 'Where secrets are.' },
  ),
  $schema: Type.Optional(Type.String({ maxLength: 2_048, description: 'For editors; not used.' })),
  env: later('Environment variables for a later version; every text in it counts as a secret.', { 'x-secret': true }),
  channels: later('Chat platforms.'),
  plugins: later('Plugins.'),
  skills: later('Skills.'),
  hooks: later('Hooks and webhooks.'),
  cron: later('Schedules.'),
  browser: later('The browser tool.'),
  auth: later('Profiles with which models are reached.'),
  approvals: later('Where approvals are forwarded to.'),
  ...laterKeys([
    ...([
      'meta',
      'wizard',
      'sandbox',
      'ui',
      'talk',
      'tts',
      'web',
      'commands',
      'discovery',
      'canvasHost',
      'media',
    ] as const),
    ...([
      'nodeHost',
      'nodes',
      'mcp',
      'acp',
      'cli',
      'broadcast',
      'audio',
      'diagnostics',
      'update',
      'telemetry',
    ] as const),
    ...(['proxy', 'transcripts', 'surfaces', 'crestodian', 'multiAgent', 'audit', 'worktrees'] as const),
  ]),
});

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/** The whole config: validated, every default in place, frozen. Times and sizes are in the unit that the key's name says. */
export type Config = DeepReadonly<Static<typeof ConfigSchema>>;
