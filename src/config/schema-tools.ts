import * as Type from 'typebox';
import { flag, inherited, laterKeys, names } from './schema-parts.ts';

const EXEC_KEYS_LATER = [
  ...([
    'node',
    'pathPrepend',
    'notifyOnExit',
    'notifyOnExitEmptySuccess',
    'cleanupMs',
    'backgroundMs',
    'applyPatch',
  ] as const),
  ...(['approvalRunningNoticeMs', 'commandHighlighting', 'safeBinProfiles', 'safeBinTrustedDirs', 'reviewer'] as const),
] as const;

const execKeys = () => ({
  host: Type.Enum(['gateway', 'auto', 'sandbox', 'node'], {
    default: 'gateway',
    description: 'Where commands run. `gateway` and `auto`: on this machine; with `sandbox` or `node` nothing runs.',
  }),
  askFallback: Type.Enum(['deny', 'allowlist', 'full'], {
    default: 'deny',
    description: 'What counts when nobody answers in time.',
  }),
  timeoutSec: Type.Integer({
    minimum: 1,
    maximum: 86_400,
    default: 1_800,
    description: 'How long a command may run, in seconds.',
    'x-aliases': ['timeoutSeconds'],
  }),
  approvalTimeoutSec: Type.Integer({
    minimum: 10,
    maximum: 86_400,
    default: 1_800,
    description: 'How long a question to a person waits, in seconds.',
  }),
  strictInlineEval: flag(true, 'Code on the command line of an interpreter (`node -e`) is never taken as listed.'),
  safeBins: names('Programs that may run without being listed when they only read their standard input.'),
});

/** What may run. Without defaults, because `mode` and its older form exclude each other. */
const execRuleKeys = () => ({
  mode: Type.Optional(
    Type.Enum(['deny', 'allowlist', 'ask', 'auto', 'full'], {
      description:
        '`deny` nothing runs; `allowlist` what is listed runs, the rest is refused; `ask` what is not listed waits for a person (`auto` the same); `full` everything runs. Absent: `ask`.',
    }),
  ),
  security: Type.Optional(
    Type.Enum(['deny', 'allowlist', 'full'], { description: 'With `ask`, the older form of `mode`; not beside it.' }),
  ),
  ask: Type.Optional(
    Type.Enum(['off', 'on-miss', 'always'], {
      description: 'When a person is asked: never, for what is not listed, or for every command.',
    }),
  ),
  ...laterKeys(EXEC_KEYS_LATER),
});

/** Which tools a scope lets through. */
const policyKeys = () => ({
  profile: Type.Optional(
    Type.Enum(['minimal', 'coding', 'messaging', 'full'], {
      description: 'The set of tools to start from; absent: all.',
    }),
  ),
  allow: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      maxItems: 1_000,
      description: 'Only these tools, by name, with `*` or as `group:<name>`; absent: all of the profile.',
    }),
  ),
  alsoAllow: names('Tools added to the profile or to `allow`.'),
  deny: names('Tools taken away; wins over everything else.'),
});

const resultKeys = () => ({
  maxToolResultTokens: Type.Integer({
    minimum: 64,
    maximum: 1_000_000,
    default: 8_192,
    description: 'A longer result is cut, in tokens (estimated).',
  }),
  truncationMessage: Type.String({
    maxLength: 2_000,
    default:
      '[This result was cut: it has {original} tokens, and the first {kept} are above. Go on with these, or ask for less.]',
    description: 'Put after a result that was cut; `{original}` and `{kept}` become token counts.',
  }),
});

const POLICY_LATER = [
  ...(['byProvider', 'toolsBySender', 'elevated', 'sandbox', 'loopDetection', 'codeMode', 'sessions'] as const),
  ...(['agentToAgent', 'subagents', 'media', 'message', 'web', 'links', 'experimental', 'updatePlan'] as const),
] as const;

/** Tools, for everyone. */
export const ToolsSchema = Type.Object(
  {
    ...policyKeys(),
    exec: Type.Object({ ...execKeys(), ...execRuleKeys() }, { description: 'Commands on this machine.' }),
    fs: Type.Object(
      {
        workspaceOnly: flag(true, "Files are read and written only inside the agent's workspace."),
        ...laterKeys(['writableRoots', 'readableRoots']),
      },
      { description: 'Files.' },
    ),
    ...resultKeys(),
    ...laterKeys(POLICY_LATER),
    ...laterKeys(['sessions_spawn', 'exec_approvals']),
  },
  { description: 'Which tools agents have and how these behave.' },
);

/** Tools, for one agent: what is absent is as it is for everyone. */
export const AgentToolsSchema = Type.Object(
  {
    ...policyKeys(),
    exec: Type.Object(
      { ...inherited(execKeys()), ...execRuleKeys() },
      { description: "This agent's commands; a key that is absent is as in `tools.exec`." },
    ),
    fs: Type.Object(
      {
        workspaceOnly: Type.Optional(
          Type.Boolean({ description: "Files are read and written only inside this agent's workspace." }),
        ),
        ...laterKeys(['writableRoots', 'readableRoots']),
      },
      { description: "This agent's files." },
    ),
    ...inherited(resultKeys()),
    ...laterKeys(POLICY_LATER),
  },
  { description: "This agent's tools: its own rules are asked after those for everyone." },
);
