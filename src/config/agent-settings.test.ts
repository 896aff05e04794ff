import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentId } from '#domain';
import { agentIds, agentSettings, bindHost, checkConfigText, defaultAgent, modelAliases, statePaths } from './index.ts';

const PATHS = statePaths({ HOME: '/home/anna' });
const configOf = (text: string) => checkConfigText(text, { file: '/nowhere/reins.json', env: {} }).config;
const settingsOf = (text: string, id = 'main') => agentSettings(configOf(text), id as AgentId, PATHS);

test('without agents in the config there is one, main, with the defaults', () => {
  const config = configOf('{}');
  assert.deepEqual([agentIds(config), defaultAgent(config)], [['main'], 'main']);
  const { exec, toolRules, memory, ...rest } = settingsOf('{}')!;
  assert.deepEqual(rest, {
    id: 'main',
    name: 'main',
    workspace: '/home/anna/.reins/workspace',
    model: { fallbacks: [] },
    workspaceOnly: true,
    maxToolResultTokens: 8_192,
    truncationMessage: config.tools.truncationMessage,
    timeoutMs: 600_000,
    maxTurns: 40,
    systemPromptExtra: '',
  });
  assert.deepEqual(memory, { shortTermTurns: 100, compressionEnabled: false, compressionTrigger: 200 });
  assert.deepEqual(toolRules, [{ where: 'tools', alsoAllow: [], deny: [] }]);
  assert.deepEqual(
    { security: exec.security, ask: exec.ask, askFallback: exec.askFallback },
    { security: 'allowlist', ask: 'on-miss', askFallback: 'deny' },
  );
  assert.equal(settingsOf('{}', 'other'), undefined);
});

test('M-2: an agent says only what is different', () => {
  const text = `{
    agents: {
      defaults: { workspace: "~/notes", model: { primary: "a/one", fallbacks: ["b/two"] }, provider: "a", thinkingDefault: "low", timeoutSeconds: 5, contextTokens: 9000,
        models: { "a/one": { alias: "fast" }, "b/two": {} } },
      list: [
        { id: "home", identity: { name: "Home" } },
        { id: "ops", name: "Ops", default: true, workspace: "work", model: "qwen", provider: "alibaba", maxTurns: 3, systemPromptExtra: "Be brief.",
          memory: { shortTermTurns: 20 }, contextWindow: 32000,
          tools: { profile: "coding", allow: ["read"], deny: ["exec"], maxToolResultTokens: 100, fs: { workspaceOnly: false }, exec: { timeoutSec: 7 } } },
      ],
      entries: { guest: { tools: { exec: { security: "deny" } } } },
    },
    memory: { shortTermTurns: 50 },
    tools: { deny: ["browser"], exec: { mode: "allowlist", timeoutSeconds: 60, safeBins: ["sort"] } },
  }`;
  const config = configOf(text);
  assert.deepEqual(agentIds(config), ['home', 'ops', 'guest']);
  assert.equal(defaultAgent(config), 'ops');
  assert.deepEqual({ ...modelAliases(config) }, { fast: 'a/one' });
  const home = settingsOf(text, 'home')!;
  assert.deepEqual(
    [home.name, home.model, home.provider, home.thinking, home.timeoutMs],
    ['Home', { primary: 'a/one', fallbacks: ['b/two'] }, 'a', 'low', 5_000],
  );
  assert.deepEqual(
    [home.memory.shortTermTurns, home.contextWindow, home.exec.timeoutMs, home.exec.ask],
    [50, 9_000, 60_000, 'off'],
  );
  assert.equal(home.workspace, '/home/anna/.reins/workspace-home');
  const ops = settingsOf(text, 'ops')!;
  assert.deepEqual(
    [ops.name, ops.workspace, ops.model, ops.provider],
    ['Ops', '/home/anna/.reins/work', { primary: 'qwen', fallbacks: [] }, 'alibaba'],
  );
  assert.deepEqual(
    [ops.maxTurns, ops.memory.shortTermTurns, ops.contextWindow, ops.maxToolResultTokens, ops.workspaceOnly],
    [3, 20, 32_000, 100, false],
  );
  assert.deepEqual(ops.exec, { ...home.exec, timeoutMs: 7_000 });
  assert.deepEqual(ops.toolRules, [
    { where: 'tools', alsoAllow: [], deny: ['browser'] },
    { where: 'agents.list "ops".tools', profile: 'coding', allow: ['read'], alsoAllow: [], deny: ['exec'] },
  ]);
  assert.deepEqual(
    [settingsOf(text, 'guest')!.exec.security, settingsOf(text, 'guest')!.exec.safeBins],
    ['deny', ['sort']],
  );
});

const EXEC = [
  { exec: '{}', rule: 'gateway allowlist on-miss' },
  { exec: '{ mode: "deny" }', rule: 'gateway deny off' },
  { exec: '{ mode: "allowlist", host: "gateway" }', rule: 'gateway allowlist off' },
  { exec: '{ mode: "ask" }', rule: 'gateway allowlist on-miss' },
  { exec: '{ mode: "auto", host: "auto" }', rule: 'gateway allowlist on-miss' },
  { exec: '{ mode: "full" }', rule: 'gateway full off' },
  { exec: '{ security: "allowlist", ask: "always" }', rule: 'gateway allowlist always' },
  { exec: '{ security: "allowlist" }', rule: 'gateway allowlist off' },
  { exec: '{ security: "full" }', rule: 'gateway full off' },
  { exec: '{ ask: "off" }', rule: 'gateway allowlist off' },
  { exec: '{ host: "sandbox", mode: "full" }', rule: 'nowhere full off' },
];
for (const { exec, rule } of EXEC) {
  test(`M-39: tools.exec ${exec} means ${rule}`, () => {
    const { host, security, ask } = settingsOf(`{ tools: { exec: ${exec} } }`)!.exec;
    assert.equal(`${host} ${security} ${ask}`, rule);
  });
}

test('exec that runs everything is honoured and reported', () => {
  const { warnings } = checkConfigText('{ tools: { exec: { mode: "full" } } }', {
    file: '/nowhere/reins.json',
    env: {},
  });
  assert.deepEqual(
    warnings.map(({ path }) => path),
    ['tools.exec.mode'],
  );
});

test('where the state is', () => {
  assert.deepEqual(
    [
      PATHS.stateDir,
      PATHS.configFile,
      PATHS.database,
      PATHS.tokenFile,
      PATHS.logFile,
      PATHS.auditFile,
      PATHS.execApprovalsFile,
    ],
    ['', '/reins.json', '/reins.sqlite', '/token', '/logs/gateway.log', '/audit.jsonl', '/exec-approvals.json'].map(
      (name) => `/home/anna/.reins${name}`,
    ),
  );
  assert.equal(PATHS.transcriptOf('ops' as AgentId, 's1'), '/home/anna/.reins/agents/ops/sessions/s1.jsonl');
  assert.equal(PATHS.workspaceFor('ops' as AgentId), '/home/anna/.reins/workspace-ops');
  assert.equal(PATHS.workspaceFor('ops' as AgentId, '~/x'), '/home/anna/x');
  const elsewhere = statePaths({ HOME: '/home/anna', REINS_STATE_DIR: '~/state', REINS_CONFIG: '/etc/reins.json' });
  assert.deepEqual([elsewhere.stateDir, elsewhere.configFile], ['/home/anna/state', '/etc/reins.json']);
});

test('the address to listen on', () => {
  for (const [text, host] of [
    ['{}', '127.0.0.1'],
    ['{ gateway: { bind: "auto" } }', '127.0.0.1'],
    ['{ gateway: { bind: "lan" } }', '0.0.0.0'],
    ['{ gateway: { bind: "custom", customBindHost: "10.0.0.7" } }', '10.0.0.7'],
  ] as const) {
    assert.equal(bindHost(configOf(text).gateway), host);
  }
});
