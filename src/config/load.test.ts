import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type GatewayError, isGatewayError } from '#base';
import { agentSettings, bindingsOf, formatIssue, type Issue, loadConfig, statePaths } from './index.ts';

const CANARY = 'CANARY-5b1d';

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'reins-config-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A state folder that holds this config. */
function state(t: TestContext, text: string): { stateDir: string; file: string; write: (text: string) => void } {
  const stateDir = folder(t);
  const file = join(stateDir, 'reins.json');
  const write = (next: string) => writeFileSync(file, next, { mode: 0o600 });
  write(text);
  return { stateDir, file, write };
}

const load = (stateDir: string, env: Record<string, string> = {}) => loadConfig({ stateDir, env });

function refusal(stateDir: string, env: Record<string, string> = {}): GatewayError & { issues: readonly Issue[] } {
  try {
    load(stateDir, env);
  } catch (error) {
    if (isGatewayError(error)) {
      return Object.assign(error, { issues: error.detail['issues'] as readonly Issue[] });
    }
    throw error;
  }
  return assert.fail('the config was taken');
}

const SAMPLES = [
  {
    name: 'a yardstick config with comments',
    text: `{
      // The configuration that a benchmark uses.
      "gateway": {
        "mode": "local", "port": 19200, "bind": "loopback",
        "auth": { "mode": "token", "token": "example-token-0123456789" },
        "http": { "endpoints": { "chatCompletions": { "enabled": true } } }
      },
      "agents": { "defaults": { "model": "mock/mock" } },
      "models": { "providers": { "mock": {
        "baseUrl": "http://127.0.0.1:19001/v1", "apiKey": "k", "api": "openai-completions",
        "models": [ { "id": "mock", "name": "mock", "contextWindow": 128000, "maxTokens": 4096 } ]
      } } }
    }`,
    expect: ['gateway.port 19200', 'models.providers.mock.models[0].contextWindow 128000'],
  },
  {
    name: 'M-2: an agent with its own window and memory',
    text: '{ "agents": { "list": [ { "id": "assistant", "contextWindow": 32000, "memory": { "shortTermTurns": 20 } } ] } }',
    expect: ['agents.list[0].contextWindow 32000', 'agents.list[0].memory.shortTermTurns 20'],
  },
  {
    name: 'M-17, M-20: memory for everyone',
    text: '{ "memory": { "shortTermTurns": 20, "compressionEnabled": true, "compressionTrigger": 30 } }',
    expect: ['memory.shortTermTurns 20', 'memory.compressionEnabled true', 'memory.compressionTrigger 30'],
  },
  {
    name: 'M-19: the bound for tool results',
    text: '{ "tools": { "maxToolResultTokens": 4096, "truncationMessage": "[{original} → {kept}]" } }',
    expect: ['tools.maxToolResultTokens 4096', 'tools.truncationMessage "[{original} → {kept}]"'],
  },
  {
    name: 'M-26: model and provider apart',
    text: '{ "agents": { "list": [ { "id": "finance-agent", "model": "claude-x", "provider": "anthropic" }, { "id": "ops-agent", "model": "qwen-y", "provider": "alibaba" } ] } }',
    expect: ['agents.list[0].provider "anthropic"', 'agents.list[1].model "qwen-y"'],
  },
  {
    name: 'M-4: bindings in the flat form',
    text: '{ "bindings": [ { "channel": "telegram", "accountId": "your_account", "agentId": "ops-agent" } ] }',
    expect: ['bindings[0].agentId "ops-agent"'],
  },
  {
    name: 'M-56: agents that may see and message each other',
    text: '{ "agents": { "list": [ { "id": "coordinator", "tools": { "allow": ["sessions_spawn", "group:plugins"], "sessions": { "visibility": "all" }, "agentToAgent": true } } ] } }',
    expect: ['agents.list[0].tools.allow ["sessions_spawn","group:plugins"]', 'agents.list[0].tools.agentToAgent true'],
  },
  {
    name: 'M-3: a channel that this version does not have',
    text: '{ "channels": { "telegram": { "botToken": "xxxxxx", "allowlist": ["@your_account"] } } }',
    expect: ['channels.telegram.botToken "xxxxxx"'],
  },
] as const;

for (const { name, text, expect } of SAMPLES) {
  test(`a config sample loads as it is written: ${name}`, (t) => {
    const { stateDir, file } = state(t, text);
    const { config, source, issues } = load(stateDir);
    assert.deepEqual({ source, issues }, { source: 'file', issues: [] });
    for (const line of expect) {
      const [path = '', ...value] = line.split(' ');
      const found = path.split(/[.[\]]+/).filter((step) => step !== '');
      const at = found.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], config);
      assert.equal(JSON.stringify(at), value.join(' '), path);
    }
    assert.equal(readFileSync(file, 'utf8'), text, 'the file was written');
  });
}

test('without a file everything has its default, and the whole config is frozen', (t) => {
  const { config, source, exists, warnings, hash } = load(folder(t));
  assert.deepEqual({ source, exists, warnings, hash }, { source: 'defaults', exists: false, warnings: [], hash: '' });
  assert.equal(config.gateway.bind, 'loopback');
  assert.equal(config.gateway.auth.mode, 'token');
  assert.equal(config.session.dmScope, 'per-channel-peer');
  assert.equal(config.tools.fs.workspaceOnly, true);
  const open: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    if (!Object.isFrozen(value)) open.push(path);
    for (const [key, child] of Object.entries(value)) visit(child, `${path}.${key}`);
  };
  visit(config, 'config');
  assert.deepEqual(open, []);
});

const FAULTS = [
  {
    name: 'a doubled comma on line 7',
    text: '{\n\n\n\n\n"gateway": {},\n,,\n}',
    says: ':7:1 a comma is not expected here',
  },
  {
    name: 'a file cut in half',
    text: '{ "gateway": { "port": 1',
    says: ':1:25 the file ends in the middle of a value',
  },
  { name: 'an empty file', text: '  \n', says: ':1:1 the file is empty' },
  { name: 'a list at the top', text: '[]', says: ':1:1 must be an object { … }, and is a list' },
  {
    name: 'a port that is none',
    text: '{\n  gateway: {\n    port: 70000 } }',
    says: ':3:11 gateway.port must be a whole number from 0 to 65535, and is 70000',
  },
  {
    name: 'text for a number',
    text: '{ gateway: { port: "x" } }',
    says: ':1:20 gateway.port must be a whole number from 0 to 65535, and is text',
  },
  {
    name: 'a word that is not one of the choices',
    text: '{ gateway: { bind: "lam" } }',
    says: ':1:20 gateway.bind must be one of "loopback", "lan", "tailnet", "auto", "custom". Did you mean "lan"?',
  },
  { name: 'null', text: '{ logging: null }', says: ':1:12 logging must be an object { … }, and is null' },
  {
    name: 'T22: a key twice',
    text: '{ gateway: {\n port: 1,\n port: 2 } }',
    says: ':3:2 gateway.port stands here twice. Keep one of the two.',
  },
  { name: 'T22: __proto__', text: '{ "__proto__": { "x": 1 } }', says: ':1:3 __proto__ is a key that is not allowed' },
  {
    name: 'T22: constructor, deep inside a part nothing describes',
    text: '{ channels: { a: { constructor: {} } } }',
    says: ':1:20 channels.a.constructor is a key that is not allowed',
  },
  {
    name: 'T22: nested too deep',
    text: `{ channels: ${'['.repeat(80)}${']'.repeat(80)} }`,
    says: ':1:1 nested deeper than 64 levels',
  },
  {
    name: 'Infinity',
    text: '{ channels: { a: -Infinity } }',
    says: ':1:18 channels.a must be a number that can be written in JSON',
  },
  { name: 'an agent without an id', text: '{ agents: { list: [ {} ] } }', says: ':1:21 agents.list[0].id is missing' },
  {
    name: 'an agent id that cannot be a folder',
    text: '{ agents: { list: [ { id: "../x" } ] } }',
    says: ':1:27 agents.list[0].id cannot be an agent id',
  },
  {
    name: 'two agents with one id',
    text: '{ agents: { list: [ { id: "a" }, { id: "a" } ] } }',
    says: ':1:40 agents.list[1].id is the id of an agent above',
  },
  {
    name: 'two default agents',
    text: '{ agents: { list: [ { id: "a", default: true }, { id: "b", default: true } ] } }',
    says: ':1:69 agents.list[1].default is set for an agent above already',
  },
  {
    name: 'a model that is none',
    text: '{ agents: { defaults: { model: { primary: "a/", fallbacks: [] } } } }',
    says: ':1:43 agents.defaults.model.primary is not in the form provider/model',
  },
  {
    name: 'both forms of the exec rule',
    text: '{ tools: { exec: { mode: "full", security: "deny" } } }',
    says: ':1:26 tools.exec.mode stands beside its older form',
  },
  {
    name: 'an alias beside its own name',
    text: '{ tools: { exec: { timeoutSec: 5, timeoutSeconds: 6 } } }',
    says: 'tools.exec.timeoutSeconds is another name of "timeoutSec"',
  },
  {
    name: 'a provider with a password in its address',
    text: '{ models: { providers: { x: { baseUrl: "http://u:p@h/v1" } } } }',
    says: 'models.providers.x.baseUrl must not hold a user name or password',
  },
  {
    name: 'an origin with a wildcard',
    text: '{ gateway: { controlUi: { allowedOrigins: ["*"] } } }',
    says: 'gateway.controlUi.allowedOrigins[0] must be one origin without a path',
  },
  {
    name: 'a proxy range that is none',
    text: '{ gateway: { trustedProxies: ["10.0.0.0/40"] } }',
    says: 'gateway.trustedProxies[0] must be an IP address',
  },
  {
    name: 'trusted-proxy without a proxy',
    text: '{ gateway: { auth: { mode: "trusted-proxy", trustedProxy: { userHeader: "x-user" } } } }',
    says: 'gateway.trustedProxies must name the proxy',
  },
  {
    name: 'mode password without one',
    text: '{ gateway: { auth: { mode: "password" } } }',
    says: 'gateway.auth.password is missing',
  },
  {
    name: 'a time zone that is none',
    text: '{ agents: { defaults: { userTimezone: "Mars/Crater" } } }',
    says: 'agents.defaults.userTimezone is not a time zone',
  },
  {
    name: 'a variable that is not set',
    text: `{ gateway: {\n auth: { token: "\${NOT_THERE}" } } }`,
    says: ':2:17 gateway.auth.token needs the environment variable NOT_THERE, which is not set',
  },
  {
    name: 'the placeholder of a hidden secret',
    text: '{ gateway: { auth: { token: "__OPENCLAW_REDACTED__" } } }',
    says: 'holds __OPENCLAW_REDACTED__',
  },
] as const;

for (const { name, text, says } of FAULTS) {
  test(`a config with a fault is refused, with its place: ${name}`, (t) => {
    const { stateDir, file } = state(t, text);
    const error = refusal(stateDir);
    const lines = error.issues.map(formatIssue);
    assert.ok(
      lines.some((line) => line.startsWith(`${file}`) && line.includes(says)),
      lines.join('\n'),
    );
    assert.match(error.code, /^CONFIG_(INVALID|UNREADABLE)$/);
    assert.ok(error.next);
    assert.equal(readFileSync(file, 'utf8'), text);
    assert.equal(({} as { x?: number }).x, undefined);
  });
}

test("N-01: what was last good is used while the file has a fault, and its bytes stay the owner's", (t) => {
  const good = '{\n  // mine\n  agents: { defaults: { model: "a/b" } },\n}\n';
  const { stateDir, file, write } = state(t, good);
  load(stateDir);
  const copy = join(stateDir, 'reins.json.last-good');
  assert.equal(readFileSync(copy, 'utf8'), good);
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  const bad = '{\n  // mine\n\n\n\n\n  ,,agents: {} }';
  write(bad);
  const loaded = load(stateDir);
  assert.equal(loaded.source, 'last-good');
  assert.equal(loaded.config.agents.defaults.model, 'a/b');
  assert.deepEqual(
    loaded.issues.map(({ file: at, line, column }) => ({ at, line, column })),
    [{ at: file, line: 7, column: 3 }],
  );
  assert.equal(readFileSync(file, 'utf8'), bad);
  assert.equal(readFileSync(copy, 'utf8'), good, 'a bad file must not become the good copy');
  assert.equal(loaded.raw, bad);
});

test('N-01: an unknown key is a warning with its place and the nearest name, and everything else counts', (t) => {
  const { stateDir, file } = state(t, '{ agents: { list: [ { id: "a", modle: "x/y",\n  maxTurns: 3 } ] } }');
  const { config, source, warnings } = load(stateDir);
  assert.equal(source, 'file');
  assert.equal(config.agents.list[0]?.maxTurns, 3);
  assert.deepEqual(warnings.map(formatIssue), [
    `${file}:1:32 agents.list[0].modle is not a known setting and is ignored. Did you mean "model"?`,
  ]);
});

test('what this version does not act on is accepted with one notice', (t) => {
  const { stateDir } = state(
    t,
    '{ channels: { x: {} }, plugins: { allow: [] }, agents: { defaults: { heartbeat: { every: "30m" } } } }',
  );
  const { warnings, notices } = load(stateDir);
  assert.deepEqual(warnings, []);
  assert.deepEqual(notices, ['Accepted, has no effect in this version: agents.defaults.heartbeat, channels, plugins']);
});

test('B15: no authentication beyond loopback is refused at the start, also where a good copy exists', (t) => {
  const { stateDir, write } = state(t, '{}');
  load(stateDir);
  write('{ gateway: { bind: "lan", auth: { mode: "none" } } }');
  const error = refusal(stateDir);
  assert.equal(error.code, 'CONFIG_INVALID');
  assert.match(error.message, /gateway\.auth/);
  for (const control of [
    '{ gateway: { auth: { mode: "none" } } }',
    '{ gateway: { bind: "custom", customBindHost: "127.0.0.2", auth: { mode: "none" } } }',
    '{ gateway: { bind: "lan" } }',
  ]) {
    write(control);
    assert.equal(load(stateDir).source, 'file', control);
  }
});

test('B16: what $include names must be in the config folder, regular and ours; no content is shown', (t) => {
  const outside = folder(t);
  writeFileSync(join(outside, 'secret'), `{ list: ["${CANARY}"] }`);
  const { stateDir, write } = state(t, '{ agents: { defaults: { model: "old/one" } } }');
  load(stateDir);
  symlinkSync(join(outside, 'secret'), join(stateDir, 'link.json5'));
  writeFileSync(join(stateDir, 'open.json5'), '{}');
  chmodSync(join(stateDir, 'open.json5'), 0o666);
  mkdirSync(join(stateDir, 'folder.json5'));
  writeFileSync(join(stateDir, 'broken.json5'), `{ "${CANARY}": ${CANARY} }`, { mode: 0o600 });
  writeFileSync(join(stateDir, 'loop.json5'), '{ $include: "loop.json5" }', { mode: 0o600 });
  const cases = [
    { name: './link.json5', says: 'leads out of the folder' },
    { name: '../../../../../../etc/passwd', says: 'leads out of the folder' },
    { name: '/etc/passwd', says: 'leads out of the folder' },
    { name: 'absent.json5', says: 'does not exist' },
    { name: 'open.json5', says: 'can be written by others' },
    { name: 'folder.json5', says: 'is not a regular file' },
    { name: 'broken.json5', says: 'broken.json5, which has a fault at 1:18' },
    { name: 'loop.json5', says: 'from within itself' },
  ];
  for (const { name, says } of cases) {
    write(`{ agents: { $include: ${JSON.stringify(name)} } }`);
    const { source, config, issues } = load(stateDir);
    assert.equal(source, 'last-good', name);
    assert.equal(config.agents.defaults.model, 'old/one');
    const text = issues.map(formatIssue).join('\n');
    assert.ok(text.includes(says), `${name}: ${text}`);
    assert.doesNotMatch(text, new RegExp(`${CANARY}|root:`));
  }
});

test('B16: the control: files of the config folder are included, over each other, with places in the file they are in', (t) => {
  const { stateDir, write } = state(
    t,
    '{ agents: { $include: ["base.json5", "sub/more.json5"], defaults: { maxTurns: 3 } } }',
  );
  mkdirSync(join(stateDir, 'sub'), { mode: 0o700 });
  writeFileSync(join(stateDir, 'base.json5'), '{ defaults: { model: "a/b", maxTurns: 1 } }', { mode: 0o600 });
  const more = join(stateDir, 'sub', 'more.json5');
  writeFileSync(more, '{ defaults: { timeoutSeconds: 9, maxTurns: 2 } }', { mode: 0o600 });
  const { config, files } = load(stateDir);
  const { model, maxTurns, timeoutSeconds } = config.agents.defaults;
  assert.deepEqual({ model, maxTurns, timeoutSeconds }, { model: 'a/b', maxTurns: 3, timeoutSeconds: 9 });
  assert.equal(files.length, 3);
  // The good copy is whole by itself: it must work when an included file is what broke.
  writeFileSync(more, '{\n  defaults: { timeoutSeconds: "soon" } }', { mode: 0o600 });
  const { source, issues, config: kept } = load(stateDir);
  assert.equal(source, 'last-good');
  assert.equal(kept.agents.defaults.timeoutSeconds, 9);
  assert.match(issues.map(formatIssue).join(), /more\.json5:2:31 agents\.defaults\.timeoutSeconds must be/);
  write('{ agents: { $include: 7 } }');
  assert.match(load(stateDir).issues.map(formatIssue).join(), /must be the name of a file/);
});

test('B17: a pattern that could run away is left out, with its index; the others stay', (t) => {
  const { stateDir } = state(t, '{ logging: { redactPatterns: ["key-[0-9]+", "(a+)+$"] } }');
  const { config, source, warnings } = load(stateDir);
  assert.equal(source, 'file');
  assert.deepEqual(config.logging.redactPatterns, ['key-[0-9]+']);
  assert.match(
    warnings.map(formatIssue).join(),
    /:1:45 logging\.redactPatterns\[1\] repeats something that is repeated/,
  );
});

test('the environment wins over the file, and is named when it is wrong', (t) => {
  const { stateDir } = state(t, '{ gateway: { port: 1000, auth: { token: "from-file" } } }');
  const { gateway } = load(stateDir, { REINS_GATEWAY_PORT: '2000', REINS_GATEWAY_TOKEN: 'from-environment' }).config;
  assert.deepEqual({ port: gateway.port, token: gateway.auth.token }, { port: 2000, token: 'from-environment' });
  const error = refusal(folder(t), { REINS_GATEWAY_PORT: 'soon' });
  assert.match(error.message, /REINS_GATEWAY_PORT gateway\.port must be a whole number/);
});

test('variables are put in place, escaped ones stay, and the raw text keeps them', (t) => {
  const text = `{ gateway: { auth: { token: "\${MY_TOKEN}" } }, tools: { truncationMessage: "$\${KEPT} \${MY_TOKEN}!" } }`;
  const { stateDir } = state(t, text);
  const { config, raw, secrets } = load(stateDir, { MY_TOKEN: CANARY });
  assert.equal(config.gateway.auth.token, CANARY);
  assert.equal(config.tools.truncationMessage, `\${KEPT} ${CANARY}!`);
  assert.equal(raw, text);
  assert.deepEqual(secrets, [CANARY]);
});

test('a file elsewhere by REINS_CONFIG; one that is not there is said', (t) => {
  const { stateDir, file } = state(t, '{ agents: { defaults: { maxTurns: 7 } } }');
  const elsewhere = folder(t);
  const loaded = load(elsewhere, { REINS_CONFIG: file });
  assert.equal(loaded.config.agents.defaults.maxTurns, 7);
  assert.equal(statSync(join(elsewhere, 'reins.json.last-good')).mode & 0o777, 0o600);
  const absent = load(stateDir, { REINS_CONFIG: join(elsewhere, 'none.json') });
  assert.match(absent.warnings.map(formatIssue).join(), /none\.json does not exist; defaults are in use/);
});

test('both forms of a binding say the same', (t) => {
  const { stateDir } = state(
    t,
    `{ agents: { list: [{ id: "ops" }] }, bindings: [
    { channel: "telegram", accountId: "one", agentId: "ops" },
    { agentId: "ops", match: { channel: "discord", accountId: "*", peer: { kind: "dm", id: "7" }, guildId: "g", teamId: "t" } },
    { agentId: "opps", match: { channel: "slack" } } ] }`,
  );
  const { config, warnings } = load(stateDir);
  assert.deepEqual(bindingsOf(config), [
    { agentId: 'ops', channel: 'telegram', accountId: 'one' },
    {
      agentId: 'ops',
      channel: 'discord',
      accountId: '*',
      peer: { kind: 'direct', id: '7' },
      guildId: 'g',
      teamId: 't',
    },
    { agentId: 'opps', channel: 'slack' },
  ]);
  assert.match(
    warnings.map(formatIssue).join(),
    /bindings\[2\]\.agentId is not the id of an agent in agents\.list\. Did you mean "ops"\?/,
  );
});

test('names from outside find nothing inherited', (t) => {
  const { stateDir } = state(t, '{ models: { providers: { toString: { models: [] } } } }');
  const { providers } = load(stateDir).config.models;
  assert.equal(providers['valueOf'], undefined);
  assert.deepEqual(Object.keys(providers), ['toString']);
  assert.ok(agentSettings(load(stateDir).config, 'main' as never, statePaths({ REINS_STATE_DIR: stateDir })));
});
