// The command line as a person meets it: words in, lines and an exit code out. State folders are temporary; nothing listens.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { main } from './index.ts';

type Played = { readonly code: number; readonly out: string; readonly err: string };

/** `columns` makes stdout a terminal of that width. */
type Stage = { readonly env?: NodeJS.ProcessEnv; readonly stdin?: string; readonly columns?: number };

async function play(argv: readonly string[], { env = {}, stdin = '', columns }: Stage = {}): Promise<Played> {
  const texts = { out: '', err: '' };
  const stream = (name: keyof typeof texts) => new PassThrough().on('data', (part) => (texts[name] += part));
  const input = new PassThrough();
  input.end(stdin);
  const code = await main(argv, {
    env,
    stdin: input,
    stdout: Object.assign(stream('out'), columns === undefined ? {} : { isTTY: true, columns }),
    stderr: stream('err'),
    signals: process,
    exitNow: () => assert.fail('no command ends the process by itself'),
  });
  return { code, ...texts };
}

/** A state folder of its own, with a port where nobody listens. */
async function home(t: TestContext, config?: string): Promise<NodeJS.ProcessEnv> {
  const folder = mkdtempSync(join(tmpdir(), 'reins-cli-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  if (config !== undefined) writeFileSync(join(folder, 'reins.json'), config, { mode: 0o600 });
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return { HOME: folder, REINS_STATE_DIR: folder, REINS_GATEWAY_PORT: String(port) };
}

const configFile = (env: NodeJS.ProcessEnv) => join(env['REINS_STATE_DIR']!, 'reins.json');

const WRONG: readonly { readonly argv: readonly string[]; readonly expect: RegExp }[] = [
  { argv: ['stauts'], expect: /^✗ unknown command 'stauts' — did you mean status\?\n$/ },
  { argv: ['frobnicate'], expect: /^✗ unknown command 'frobnicate' — reins --help shows what there is\n$/ },
  { argv: ['status', '--jsno'], expect: /^✗ unknown option '--jsno' — did you mean --json\?\n$/ },
  { argv: ['sessions', 'shwo', 'main'], expect: /^✗ unknown command 'sessions shwo' — did you mean show\?\n$/ },
  { argv: ['config', 'gte'], expect: /^✗ unknown command 'config gte' — did you mean get\?\n$/ },
  { argv: ['sessions', 'show'], expect: /^✗ missing required argument 'key' — / },
  { argv: ['status', 'now'], expect: /^✗ too many arguments for 'status'\. Expected 0 arguments but got 1/ },
  { argv: ['agent', '--timeout', '0'], expect: /^✗ .*'--timeout <seconds>'.* whole number from 1 to 86400/ },
  { argv: ['agent', '--timeout', '1e3'], expect: /^✗ .* whole number/ },
  { argv: ['agent', '--thinking', 'hard', '-m', 'x'], expect: /^✗ .*off, minimal, low, medium, high, xhigh/ },
  { argv: ['start', '--port', '70000'], expect: /^✗ .* whole number from 0 to 65535/ },
  { argv: ['agent'], expect: /^✗ there is no message — give one with --message, or on stdin\n$/ },
  { argv: ['agent', '--message', '  '], expect: /^✗ there is no message — / },
];

for (const { argv, expect } of WRONG) {
  test(`M-59: reins ${argv.join(' ')} is a wrong command line`, async (t) => {
    const { code, out, err } = await play(argv, { env: await home(t) });
    assert.match(err, expect);
    assert.equal(err.split('\n').length, 2, 'one line');
    assert.deepEqual({ code, out }, { code: 2, out: '' });
  });
}

test('M-59: with --json a wrong command line is one document on stdout', async (t) => {
  const { code, out, err } = await play(['sessions', 'shwo', '--json'], { env: await home(t) });
  assert.deepEqual({ code, err }, { code: 2, err: '' });
  assert.deepEqual(JSON.parse(out), {
    ok: false,
    error: { code: 'USAGE', message: "unknown command 'sessions shwo'", next: 'did you mean show?' },
  });
});

const HELP: readonly (readonly string[])[] = [
  ['--help'],
  ['help'],
  ['agent', '--help'],
  ['help', 'sessions'],
  ['sessions', 'list', '-h'],
];
for (const argv of HELP) {
  test(`M-59: reins ${argv.join(' ')} prints help to stdout`, async () => {
    const { code, out, err } = await play(argv, { columns: 70 });
    assert.deepEqual({ code, err }, { code: 0, err: '' });
    assert.match(out, /^Usage: reins/);
    for (const line of out.split('\n')) assert.ok(line.length <= 70, line);
  });
}

test('M-59: help names every command, and docs/cli.md does too', async () => {
  const { out } = await play(['--help']);
  const named = [...out.matchAll(/^ {2}([a-z]+)(?= )/gm)].map(([, name]) => name).filter((name) => name !== 'help');
  assert.deepEqual(named, ['start', 'gateway', 'agent', 'chat', 'status', 'sessions', 'config', 'doctor']);
  const page = readFileSync(join(import.meta.dirname, '../../docs/cli.md'), 'utf8');
  for (const name of named) assert.match(page, new RegExp(`^\\| \`reins ${name}\\b`, 'm'));
});

test('M-59: no command at all shows help and counts as wrong', async () => {
  const { code, out, err } = await play([]);
  assert.equal(code, 2);
  assert.match(out + err, /^Usage: reins/);
});

test('M-59: --version is the version of package.json', async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
  assert.deepEqual(await play(['--version']), { code: 0, out: `${version}\n`, err: '' });
});

const NEED_GATEWAY: readonly (readonly string[])[] = [
  ['status'],
  ['sessions'],
  ['sessions', 'show', 'main'],
  ['sessions', 'reset', 'main'],
  ['sessions', 'delete', 'main'],
  ['chat'],
  ['agent', '-m', 'hello'],
];
for (const argv of NEED_GATEWAY) {
  test(`M-59: without a gateway reins ${argv.join(' ')} says so, with the next step`, async (t) => {
    const env = await home(t);
    const { code, out, err } = await play(argv, { env });
    const local = argv[0] === 'agent' ? ' \\(or run without one: reins agent --local\\)' : '';
    const address = `http://127\\.0\\.0\\.1:${env['REINS_GATEWAY_PORT']}`;
    assert.match(err, new RegExp(`^✗ No gateway answers at ${address} — start one with: reins start${local}\\n$`));
    assert.deepEqual({ code, out }, { code: 3, out: '' });
  });
}

test('M-59: a message on stdin is bounded', async (t) => {
  const { code, err } = await play(['agent'], { env: await home(t), stdin: 'x'.repeat(1024 * 1024 + 1) });
  assert.equal(code, 1);
  assert.match(err, /^✗ The message on stdin is larger than 1 MiB — /);
});

test('M-59: --debug adds the stack and its causes', async (t) => {
  const { err } = await play(['status', '--debug'], { env: await home(t) });
  assert.match(err, /^✗ No gateway answers.*\nGatewayError: No gateway answers.*\n {4}at /);
});

test('config set keeps comments, makes the file private, and get shows what is in effect', async (t) => {
  const env = await home(t, '// mine\n{ gateway: { port: 1 }, /* note */ }\n');
  assert.equal((await play(['config', 'set', 'agents.defaults.timeoutSeconds', '30'], { env })).code, 0);
  assert.match(readFileSync(configFile(env), 'utf8'), /^\/\/ mine\n\{ gateway: \{ port: 1 \},[\s\S]*\/\* note \*\//);
  assert.equal(statSync(configFile(env)).mode & 0o777, 0o600);
  assert.equal((await play(['config', 'get', 'agents.defaults.timeoutSeconds'], { env })).out, '30\n');
  assert.equal((await play(['config', 'unset', 'agents.defaults.timeoutSeconds'], { env })).code, 0);
  assert.equal((await play(['config', 'get', 'agents.defaults.timeoutSeconds'], { env })).out, '600\n');
});

const SET: readonly { readonly key: string; readonly value: string; readonly written: unknown }[] = [
  { key: 'agents.defaults.model', value: 'openai/gpt-5.1', written: 'openai/gpt-5.1' },
  { key: 'gateway.auth.token', value: '123456789012345678901234', written: '123456789012345678901234' },
  { key: 'tools.deny', value: "['exec', 'write']", written: ['exec', 'write'] },
  { key: 'gateway.http.endpoints.chatCompletions.enabled', value: 'true', written: true },
];
for (const { key, value, written } of SET) {
  test(`config set ${key} takes ${value} as ${JSON.stringify(written)}`, async (t) => {
    const env = await home(t);
    const { code, err } = await play(['config', 'set', key, value], { env });
    assert.equal(code, 0, err);
    const found = key
      .split('.')
      .reduce<unknown>(
        (node, step) => (node as Record<string, unknown>)[step],
        JSON.parse(readFileSync(configFile(env), 'utf8')),
      );
    assert.deepEqual(found, written);
  });
}

const REFUSED: readonly { readonly argv: readonly string[]; readonly code: number; readonly expect: RegExp }[] = [
  {
    argv: ['set', 'gateway.prot', '1'],
    code: 1,
    expect: /^✗ There is no setting gateway\.prot — Did you mean gateway\.port\?\n$/,
  },
  { argv: ['set', 'gateway.port', 'many'], code: 1, expect: /^✗ .*gateway\.port must be a whole number/ },
  { argv: ['set', 'tools.deny', '[exec'], code: 2, expect: /^✗ the value is not JSON5: / },
  { argv: ['set', '__proto__.x', '1'], code: 1, expect: /^✗ .*not allowed/ },
  { argv: ['unset', 'gateway.port'], code: 1, expect: /^✗ gateway\.port is not set in the config file — / },
  { argv: ['get', 'gateway.auth.token'], code: 1, expect: /^✗ gateway\.auth\.token is not set — / },
];
for (const { argv, code, expect } of REFUSED) {
  test(`config ${argv.join(' ')} is refused and changes nothing`, async (t) => {
    const env = await home(t, '{}\n');
    const result = await play(['config', ...argv], { env });
    assert.match(result.err, expect);
    assert.equal(result.code, code);
    assert.equal(readFileSync(configFile(env), 'utf8'), '{}\n');
  });
}

test('config get never shows a secret', async (t) => {
  const env = await home(t, '{ gateway: { auth: { token: "s3cret-token-of-mine-0123456789" } } }');
  for (const argv of [
    ['config', 'get'],
    ['config', 'get', '--json'],
    ['config', 'get', 'gateway.auth.token'],
  ]) {
    const { code, out } = await play(argv, { env });
    assert.equal(code, 0);
    assert.doesNotMatch(out, /s3cret/);
  }
});

test('config validate names file, line and column of everything that is wrong', async (t) => {
  const env = await home(t, '{\n  gateway: { port: "x", prot: 1 },\n}');
  const { code, out } = await play(['config', 'validate'], { env });
  assert.equal(code, 1);
  assert.match(out, /✗ .*reins\.json:2:20 gateway\.port /);
  const { out: json } = await play(['config', 'validate', '--json'], { env });
  assert.equal(JSON.parse(json).issues[0].line, 2);
});

test('M-62: doctor finds nothing critical in a fresh state folder', async (t) => {
  const env = await home(t);
  const { code, out } = await play(['doctor', '--json'], { env });
  const report = JSON.parse(out);
  assert.deepEqual({ code, ok: report.ok }, { code: 0, ok: true }, out);
  const ids = report.findings.map((finding: { checkId: string }) => finding.checkId);
  for (const id of ['runtime.node', 'tools.exec.policy', 'gateway.stopped', 'model.by_environment'])
    assert.ok(ids.includes(id), id);
});

const DOCTOR: readonly {
  readonly name: string;
  readonly config: string;
  readonly expect: string;
  readonly code: number;
}[] = [
  { name: 'a config with a mistake', config: '{ gateway: { port: "x" } }', expect: 'critical config.invalid', code: 1 },
  { name: 'a misspelt key', config: '{ gatewai: {} }', expect: 'warn config.warning', code: 0 },
  {
    name: 'no authentication',
    config: '{ gateway: { auth: { mode: "none" } } }',
    expect: 'critical gateway.loopback_no_auth',
    code: 1,
  },
  {
    name: 'a gateway for the whole network',
    config: '{ gateway: { bind: "lan" } }',
    expect: 'warn gateway.bind_not_loopback',
    code: 0,
  },
  {
    name: 'a short token',
    config: '{ gateway: { auth: { token: "abc-abc-abc-abc-abc-abc-abc" } } }',
    expect: 'warn gateway.token_too_short',
    code: 0,
  },
  {
    name: 'a secret in the config',
    config: '{ gateway: { auth: { token: "A1b2C3d4E5f6G7h8I9j0K1l2" } } }',
    expect: 'warn secrets.plaintext',
    code: 0,
  },
  {
    name: 'an agent that may run anything',
    config: '{ tools: { exec: { mode: "full" } } }',
    expect: 'warn tools.exec.security_full_configured',
    code: 0,
  },
  {
    name: 'a model whose server is down',
    config:
      '{ agents: { defaults: { model: "lab/big" } }, models: { providers: { lab: { baseUrl: "http://127.0.0.1:9/v1", api: "openai-completions", models: [{ id: "big" }] } } } }',
    expect: 'warn model.unreachable',
    code: 0,
  },
];
for (const { name, config, expect, code } of DOCTOR) {
  test(`M-62: doctor on ${name}`, async (t) => {
    const env = await home(t, config);
    const result = await play(['doctor', '--json'], { env });
    const findings: { severity: string; checkId: string }[] = JSON.parse(result.out).findings;
    const told = findings.map((finding) => `${finding.severity} ${finding.checkId}`);
    assert.ok(told.includes(expect), told.join('\n'));
    assert.equal(result.code, code);
    assert.doesNotMatch(result.out, /A1b2C3|abc-abc/, 'a secret is never shown');
  });
}

test('M-62: doctor tells another program on the port from our gateway', async (t) => {
  const env = await home(t);
  const server = createServer((socket) => socket.destroy()).listen(Number(env['REINS_GATEWAY_PORT']), '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { code, out } = await play(['doctor'], { env });
  assert.match(out, /✗ .*Another program listens there.*\[gateway\.port_taken\]/);
  assert.equal(code, 1);
});

test('colours and widths follow the terminal and NO_COLOR', async (t) => {
  const env = await home(t);
  const escapeSequence = '\u001b[';
  assert.ok((await play(['doctor'], { env, columns: 80 })).out.includes(escapeSequence));
  assert.ok(!(await play(['doctor'], { env: { ...env, NO_COLOR: '1' }, columns: 80 })).out.includes(escapeSequence));
  assert.ok(!(await play(['doctor'], { env: { ...env, TERM: 'dumb' }, columns: 80 })).out.includes(escapeSequence));
  assert.ok(!(await play(['doctor'], { env })).out.includes(escapeSequence));
});
