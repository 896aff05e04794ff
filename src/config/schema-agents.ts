import * as Type from 'typebox';
import { THINKING_LEVELS } from '#domain';
import { inherited, laterKeys, modelChoice, record } from './schema-parts.ts';
import { AgentToolsSchema } from './schema-tools.ts';

/** How much of a conversation goes to the model. The same keys stand at the top, for all agents. */
export const memoryKeys = () => ({
  shortTermTurns: Type.Integer({
    minimum: 1,
    maximum: 10_000,
    default: 100,
    description: 'How many of the latest exchanges (a message and all that answered it) a model sees.',
  }),
  compressionEnabled: Type.Boolean({
    default: false,
    description: 'Summarise what falls out of the window.',
    'x-later': true,
  }),
  compressionTrigger: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    default: 200,
    description: 'Exchanges after which a summary is made.',
    'x-later': true,
  }),
});

/** What an agent may say otherwise, with the default for those that do not. */
const settingKeys = () => ({
  timeoutSeconds: Type.Integer({
    minimum: 1,
    maximum: 172_800,
    default: 600,
    description: 'How long a run may take, in seconds.',
  }),
  maxTurns: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    default: 40,
    description: 'How many responses of the model a run may have.',
  }),
  systemPromptExtra: Type.String({
    maxLength: 100_000,
    default: '',
    description: 'Text added to the end of the system prompt.',
  }),
});

const optionalKeys = () => ({
  thinkingDefault: Type.Optional(
    Type.Enum([...THINKING_LEVELS], {
      description: 'How much the model thinks before it answers; absent: low for a model that can, else off.',
    }),
  ),
  workspace: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_096,
      description:
        "The folder of the agent's files; `~` is the home folder. Absent: `workspace`, or for further agents `workspace-<id>`, in the state folder.",
    }),
  ),
  model: modelChoice('`provider/model`, an alias, or `{primary, fallbacks}`; absent: the first model that is there.'),
  provider: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: 'The provider of the `model` beside it.' }),
  ),
  contextWindow: Type.Optional(
    Type.Integer({
      minimum: 1_000,
      maximum: 100_000_000,
      description: "Used instead of the model's own window, in tokens.",
      'x-aliases': ['contextTokens'],
    }),
  ),
});

const SETTINGS_LATER = [
  ...(['skills', 'sandbox', 'subagents', 'heartbeat', 'params', 'imageModel', 'utilityModel', 'cwd'] as const),
  ...(['reasoningDefault', 'verboseDefault', 'fastModeDefault', 'contextLimits', 'contextInjection', 'tts'] as const),
  ...(['bootstrapMaxChars', 'bootstrapTotalMaxChars', 'toolProgressDetail', 'humanDelay', 'memorySearch'] as const),
  ...(['blockStreamingDefault', 'runtime', 'agentRuntime', 'skillsLimits', 'experimental'] as const),
] as const;

const entryKeys = () => ({
  default: Type.Optional(Type.Boolean({ description: 'The agent when nothing names one; at most one has it.' })),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: 'What people call it.' })),
  ...optionalKeys(),
  ...inherited(settingKeys()),
  memory: Type.Object(inherited(memoryKeys()), { description: 'As the `memory` section, for this agent.' }),
  tools: AgentToolsSchema,
  identity: Type.Object(
    {
      name: Type.Optional(Type.String({ maxLength: 128, description: 'Its name, where `name` is absent.' })),
      ...laterKeys(['theme', 'emoji', 'avatar']),
    },
    { description: 'How it shows itself.' },
  ),
  ...laterKeys(SETTINGS_LATER),
  ...laterKeys(['models', 'agentDir', 'groupChat', 'description']),
});

const ID_DESCRIPTION = 'The name in session keys and folders: a-z, 0-9, `-` and `_`, at most 64.';

export const AgentsSchema = Type.Object(
  {
    defaults: Type.Object(
      {
        ...optionalKeys(),
        ...settingKeys(),
        models: record(
          Type.Object({
            alias: Type.Optional(
              Type.String({ minLength: 1, maxLength: 64, description: 'A short name for this model.' }),
            ),
            ...laterKeys(['params', 'streaming', 'agentRuntime', 'codeMode']),
          }),
          { default: {}, description: 'By `provider/model`: the models offered for choice, with their aliases.' },
        ),
        maxConcurrent: Type.Integer({
          minimum: 1,
          maximum: 1_000,
          default: 16,
          description: 'How many runs the whole gateway has at once.',
        }),
        userTimezone: Type.Optional(
          Type.String({
            maxLength: 64,
            description: "The IANA time zone of the people it serves; absent: the machine's.",
          }),
        ),
        ...laterKeys(SETTINGS_LATER),
        ...laterKeys([
          ...([
            'repoRoot',
            'skipBootstrap',
            'skipOptionalBootstrapFiles',
            'startupContext',
            'imageMaxDimensionPx',
          ] as const),
          ...([
            'imageQuality',
            'timeFormat',
            'imageGenerationModel',
            'videoGenerationModel',
            'musicGenerationModel',
          ] as const),
          ...(['pdfModel', 'pdfMaxBytesMb', 'pdfMaxPages', 'elevatedDefault', 'mediaMaxMb', 'compaction'] as const),
          ...(['contextPruning', 'cliBackends', 'typingMode', 'typingIntervalSeconds', 'envelopeTimezone'] as const),
          ...(['blockStreamingBreak', 'blockStreamingChunk', 'blockStreamingCoalesce', 'systemAgent'] as const),
          ...(['envelopeTimestamp', 'envelopeElapsed', 'bootstrapPromptTruncationWarning', 'modelPolicy'] as const),
        ]),
      },
      { description: 'Settings of every agent that does not say otherwise.' },
    ),
    list: Type.Array(
      Type.Object({
        id: Type.String({ minLength: 1, maxLength: 64, description: ID_DESCRIPTION }),
        ...entryKeys(),
      }),
      { default: [], maxItems: 1_000, description: 'The agents; empty: one, called `main`.' },
    ),
    entries: record(Type.Object(entryKeys()), {
      default: {},
      description: 'The same as `list`, by id.',
    }),
    ...laterKeys(['ownership']),
  },
  { description: 'Who answers.' },
);
