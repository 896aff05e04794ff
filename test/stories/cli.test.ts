// The command line against a real gateway in a process of its own, with a scripted model behind it.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { main } from '#cli';
import { GatewayProcess } from '../crash/gateway-process.ts';
import { type ModelServer, startModelServer } from '../world/index.ts';

const TOKEN = 'story-token-A1b2C3d4E5f6G7h8';

/** One call of `reins`; `said(text)` waits until the text stands on its stdout or stderr. */
class Play {
  readonly stdin = new PassThrough();
  readonly signals = new EventEmitter();
  readonly finished: Promise<number>;
  out = '';
  err = '';
  readonly #changed = new EventEmitter();

  constructor(argv: readonly string[], env: NodeJS.ProcessEnv, terminal: 'terminal' | 'pipe' = 'pipe') {
    const stream = (name: 'out' | 'err') =>
      new PassThrough().on('data', (part) => {
        this[name] += part;
        this.#changed.emit('change');
      });
    this.finished = main(argv, {
      env,
      stdin: this.stdin,
      stdout: Object.assign(stream('out'), terminal === 'terminal' ? { isTTY: true, columns: 80 } : {}),
      stderr: stream('err'),
      signals: this.signals,
      exitNow: (code) => assert.fail(`ended at once with ${code}`),
    });
  }

  async said(text: string): Promise<void> {
    while (!`${this.out}\n${this.err}`.includes(text)) await once(this.#changed, 'change');
  }
}

describe('the command line and a gateway', () => {
  let root: string;
  let model: ModelServer;
  let gateway: GatewayProcess;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    root = realpathSync(mkdtempSync(join(tmpdir(), 'reins-story-')));
    const stateDir = join(root, 'state');
    mkdirSync(stateDir, { mode: 0o700 });
    model = await startModelServer();
    const config = {
      gateway: { auth: { token: TOKEN } },
      agents: { defaults: { model: 'script/one' } },
      models: {
        providers: {
          script: { baseUrl: `${model.url}/v1`, apiKey: 'none', api: 'openai-completions', models: [{ id: 'one' }] },
        },
      },
    };
    writeFileSync(join(stateDir, 'reins.json'), JSON.stringify(config), { mode: 0o600 });
    gateway = await GatewayProcess.start({ stateDir, logFile: join(root, 'output.log') });
    await gateway.ready;
    env = { HOME: root, REINS_STATE_DIR: stateDir, REINS_GATEWAY_PORT: new URL(gateway.url).port, NO_COLOR: '1' };
  });
  after(async () => {
    await gateway?.terminate();
    await model?.close();
    rmSync(root, { recursive: true, force: true });
  });

  const play = async (argv: readonly string[], more: NodeJS.ProcessEnv = {}) => {
    const call = new Play(argv, { ...env, ...more });
    call.stdin.end();
    const code = await call.finished;
    return { code, out: call.out, err: call.err };
  };

  test('M-59: agent streams the answer while it is written', async () => {
    const more = Promise.withResolvers<void>();
    model.script([{ text: ['Good ', 'morning.'], pauses: [{ afterEvents: 2, until: more.promise }] }]);
    const call = new Play(['agent', '--message', 'hello', '--session', 'stream'], env);
    await call.said('Good ');
    assert.equal(call.out, 'Good ');
    more.resolve();
    assert.equal(await call.finished, 0, call.err);
    assert.deepEqual({ out: call.out, err: call.err }, { out: 'Good morning.\n', err: '' });
  });

  test('M-59: agent --json is one document, the tool turn included', async () => {
    model.script([
      { text: 'I look.', toolCalls: [{ name: 'write', arguments: { path: 'note.txt', content: 'x' } }] },
      { text: 'Written.' },
    ]);
    const { code, out, err } = await play(['agent', '-m', 'write a note', '--session', 'json', '--json']);
    assert.deepEqual({ code, err }, { code: 0, err: '' });
    const { ok, sessionKey, outcome, texts, text, provider, model: name } = JSON.parse(out);
    assert.deepEqual(
      { ok, sessionKey, outcome, texts, text, provider, name },
      {
        ok: true,
        sessionKey: 'agent:main:json',
        outcome: 'answered',
        texts: ['I look.', 'Written.'],
        text: 'I look.\n\nWritten.',
        provider: 'script',
        name: 'one',
      },
    );
  });

  test('M-59: a model that refuses the key is one clear line and exit code 1', async () => {
    model.script([{ error: { status: 401, message: 'bad key' } }]);
    const { code, err } = await play(['agent', '-m', 'hello', '--session', 'refused']);
    assert.equal(code, 1);
    assert.match(err, /^✗ .+ — .+\n$/);
    model.script([{ error: { status: 401, message: 'bad key' } }]);
    const { out } = await play(['agent', '-m', 'hello', '--session', 'refused', '--json']);
    assert.equal(JSON.parse(out).error.code, 'MODEL_AUTH');
  });

  test('M-8: Ctrl-C stops the run in the gateway, and the command says so', async () => {
    model.script([{ text: ['Once upon a time'], hang: 'before-end' }]);
    const call = new Play(['agent', '-m', 'a long story', '--session', 'stop'], env);
    await call.said('Once upon');
    call.signals.emit('SIGINT');
    call.signals.emit('SIGINT');
    assert.equal(await call.finished, 130);
    assert.equal(call.out, 'Once upon a time\n');
    assert.equal(call.err, '■ stopped\n');
  });

  test('M-59: chat takes a message a line, commands too', async () => {
    model.script([{ text: 'First.' }, { text: 'Second.' }]);
    const call = new Play(['chat', '--session', 'lines'], env);
    call.stdin.end('one\ntwo\n/status\n');
    assert.equal(await call.finished, 0, call.err);
    assert.match(call.out, /^First\.\nSecond\.\n/);
    assert.match(call.out, /script\/one/);
  });

  const DECISIONS: readonly { readonly answer: string; readonly told: RegExp }[] = [
    { answer: 'n', told: /✗ exec denied/ },
    { answer: 'y', told: /✓ exec/ },
  ];
  for (const { answer, told } of DECISIONS) {
    test(`M-39: chat asks in place whether a command may run, and takes "${answer}"`, async () => {
      const session = `ask-${answer}`;
      model.script([{ toolCalls: [{ name: 'exec', arguments: { command: 'uname -s' } }] }, { text: 'So be it.' }]);
      const call = new Play(['chat', '--session', session], env, 'terminal');
      call.stdin.write('which system?\n');
      await call.said('Run it?');
      assert.match(call.out, /The agent asks to run:\n {2}uname -s\n/);
      call.stdin.write('perhaps\n');
      call.stdin.write(`${answer}\n`);
      await call.said('So be it.');
      call.stdin.end('/quit\n');
      assert.equal(await call.finished, 0, call.err);
      assert.match(call.out, told);
    });
  }

  test('M-59: Ctrl-C in chat stops the run and the next one leaves', async () => {
    model.script([{ text: ['Endless'], hang: 'before-end' }]);
    const call = new Play(['chat', '--session', 'interrupt'], env, 'terminal');
    call.stdin.write('go\n');
    await call.said('Endless');
    call.signals.emit('SIGINT');
    await call.said('■ stopped');
    call.stdin.end();
    assert.equal(await call.finished, 0);
  });

  test('M-59: status tells how the gateway is', async () => {
    const { code, out } = await play(['status', '--json']);
    const status = JSON.parse(out);
    assert.deepEqual(
      { code, ok: status.ok, model: status.model, url: status.url },
      {
        code: 0,
        ok: true,
        model: 'script/one',
        url: gateway.url,
      },
    );
    assert.match((await play(['status'])).out, /^Gateway +runs at http/);
  });

  test('M-59: sessions are listed, shown, reset and deleted', async () => {
    model.script([{ text: 'Noted.' }]);
    await play(['agent', '-m', 'remember the milk', '--session', 'shopping']);
    const list = await play(['sessions']);
    assert.match(list.out, /^SESSION +TITLE +MODEL +STATE +TOKENS +ACTIVE\n/);
    assert.match(list.out, /^agent:main:shopping +remember the milk /m);
    const shown = await play(['sessions', 'show', 'shopping']);
    assert.match(shown.out, /You\nremember the milk\n\nAgent\nNoted\.\n$/);
    assert.equal((await play(['sessions', 'reset', 'shopping'])).code, 0);
    assert.deepEqual(JSON.parse((await play(['sessions', 'show', 'shopping', '--json'])).out).messages, []);
    assert.equal((await play(['sessions', 'delete', 'shopping'])).code, 0);
    const gone = await play(['sessions', 'show', 'shoping']);
    assert.equal(gone.code, 1);
    assert.match(gone.err, /^✗ There is no session agent:main:shoping — /);
  });

  test('M-59: a wrong token is named with where it came from', async () => {
    const { code, err } = await play(['status'], { REINS_GATEWAY_TOKEN: 'another-token-0123456789' });
    assert.equal(code, 1);
    assert.match(err, /^✗ The gateway at http\S+ does not accept the token from REINS_GATEWAY_TOKEN — /);
  });

  test('M-62: doctor sees the running gateway and its model', async () => {
    const { out } = await play(['doctor', '--json']);
    const found = JSON.parse(out).findings.map((finding: { checkId: string }) => finding.checkId);
    for (const id of ['gateway.running', 'model.chosen']) assert.ok(found.includes(id), id);
  });

  test('M-59: start on the port of a running gateway gives its link', async () => {
    const { code, out } = await play(['start']);
    assert.equal(code, 0);
    assert.equal(
      out,
      `Reins ${JSON.parse((await play(['status', '--json'])).out).version} runs already: ${gateway.url}/#token=${TOKEN}\n`,
    );
  });
});
