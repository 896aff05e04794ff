// A person's first day: one word of the story is one test, each through the real gateway.
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import OpenAI from 'openai';
import type { GatewayClient } from '../../src/client/index.ts';
import { answerOf, openHouse, TOKEN } from './house.ts';

const OFFLINE = { config: { agents: { defaults: {} }, models: { providers: {} } } };

/** Sends a message as the web chat does and resolves with the final chat event; `onApproval` answers each question. */
async function chat(
  client: GatewayClient,
  message: string,
  key: string,
  sessionKey = 'main',
): Promise<{ readonly text: string; readonly state: string }> {
  return await new Promise((resolve, reject) => {
    const leave = client.on('chat', (event) => {
      if (event.runId !== key || event.state === 'delta') return;
      leave();
      const content = (event.message?.content ?? []) as { text?: string }[];
      resolve({ text: content.map((block) => block.text ?? '').join(''), state: event.state });
    });
    client.request('chat.send', { sessionKey, message, idempotencyKey: key }).catch(reject);
  });
}

test('M-10: with no model at all the guide writes a file by a real tool, and all of it is on disk', async (t) => {
  const house = await openHouse(t, OFFLINE);
  assert.equal(house.reins.model.offline, true);
  const client = await house.client();
  const { text, state } = await chat(client, 'write hello to notes.txt', 'k1');
  assert.equal(state, 'final');
  assert.match(text, /No model is configured/, 'it says what it is');
  assert.equal(await readFile(join(house.workspace, 'notes.txt'), 'utf8'), 'hello\n');
  assert.equal(statSync(join(house.workspace, 'notes.txt')).mode & 0o777, 0o600);
  const entries = await house.transcripts();
  assert.equal(entries[0]?.['type'], 'session');
  assert.ok(entries.some((e) => e['type'] === 'message' && (e['message'] as { role: string }).role === 'toolResult'));
  await house.restart();
  const again = await house.client();
  const { messages } = await again.request('chat.history', { sessionKey: 'main' });
  assert.deepEqual(
    messages.map((m) => m.role),
    ['user', 'assistant', 'toolResult', 'assistant'],
  );
  const [first] = messages;
  assert.deepEqual(
    first?.content,
    [{ type: 'text', text: 'write hello to notes.txt' }],
    'the stamp is for the model only',
  );
});

test('M-39: a command waits for the owner: yes runs it, no does not, and the model is told', async (t) => {
  const house = await openHouse(t, OFFLINE);
  const client = await house.client();
  const decide = (decision: 'allow-once' | 'deny') =>
    new Promise<string>((resolve) => {
      const leave = client.on('exec.approval.requested', (approval) => {
        leave();
        client.request('exec.approval.resolve', { id: approval.id, decision }).then(
          () => resolve(approval.request.command),
          () => resolve('failed'),
        );
      });
    });
  const yes = decide('allow-once');
  const allowed = await chat(client, 'run `echo yes-it-ran`', 'k1');
  assert.equal(await yes, 'echo yes-it-ran');
  assert.match(allowed.text, /yes-it-ran/);
  const no = decide('deny');
  const refused = await chat(client, 'run `touch refused.txt`', 'k2');
  assert.equal(await no, 'touch refused.txt');
  assert.throws(() => statSync(join(house.workspace, 'refused.txt')));
  assert.match(refused.text, /refused/i);
  const audit = await readFile(join(house.stateDir, 'audit.jsonl'), 'utf8');
  const decisions = audit
    .split('\n')
    .filter((l) => l.includes('"approval"'))
    .map((l) => (JSON.parse(l) as { decision: string }).decision);
  assert.deepEqual(decisions, ['allow-once', 'deny']);
});

test('M-12: the agent method streams text and tools, then answers a second time', async (t) => {
  const house = await openHouse(t);
  house.model.script([
    { text: 'Let me look.', toolCalls: [{ id: 'c1', name: 'read', arguments: { path: 'a.txt' } }] },
    { text: 'It says: hello' },
  ]);
  writeFileSync(join(house.workspace, 'a.txt'), 'hello');
  const client = await house.client();
  const streams: string[] = [];
  client.on('agent', ({ stream, data }) =>
    streams.push(stream === 'tool' || stream === 'lifecycle' ? `${stream}:${data['phase']}` : stream),
  );
  const { result } = await client.run({ message: 'look', idempotencyKey: 'r1', sessionKey: 'main' });
  assert.deepEqual(
    (result as { payloads: { text: string }[] }).payloads.map((p) => p.text),
    ['Let me look.', 'It says: hello'],
  );
  const order = streams.filter((s, i) => s !== streams[i - 1]);
  assert.deepEqual(order, [
    'lifecycle:start',
    'assistant',
    'tool:start',
    'item',
    'tool:result',
    'item',
    'assistant',
    'lifecycle:end',
  ]);
});

test('M-5: the same key over HTTP gets the first answer and runs nothing, also after a restart', async (t) => {
  const house = await openHouse(t);
  house.model.script([{ text: 'once' }]);
  assert.equal(await answerOf(await house.ask('hello', { key: 'k' })), 'once');
  assert.equal(await answerOf(await house.ask('hello', { key: 'k' })), 'once');
  await house.restart();
  assert.equal(await answerOf(await house.ask('hello', { key: 'k' })), 'once');
  assert.equal(house.model.count, 1);
  assert.equal((await house.ask('other', { key: 'k' })).status, 409);
});

test('M-58: the official OpenAI client talks to an agent, streamed and not', async (t) => {
  const house = await openHouse(t);
  const openai = new OpenAI({ baseURL: `${house.url}/v1`, apiKey: TOKEN, maxRetries: 0 });
  house.model.script([
    { text: 'plain answer' },
    { text: 'a streamed answer of several words' },
    { error: 'rate_limited', http: { status: 401 } } as never,
  ]);
  const plain = await openai.chat.completions.create({
    model: 'reins',
    user: 'ben',
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'hi' },
    ],
  });
  assert.equal(plain.choices[0]?.message.content, 'plain answer');
  assert.match(house.model.requests[0]?.system ?? '', /Be kind\.$/);
  const stream = await openai.chat.completions.create({
    model: 'reins/main',
    user: 'ben',
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: 'again' }],
  });
  let text = '';
  let tokens = 0;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    tokens = chunk.usage?.total_tokens ?? tokens;
  }
  assert.equal(text, 'a streamed answer of several words');
  assert.ok(tokens > 0);
  await assert.rejects(
    openai.chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content: 'x' }] }),
    /Use `reins`/,
  );
  await assert.rejects(
    openai.chat.completions.create({ model: 'reins/nobody', messages: [{ role: 'user', content: 'x' }] }),
    /no agent "nobody"/,
  );
  await assert.rejects(openai.chat.completions.create({ model: 'reins', messages: [] }), /Missing user message/);
});

test('D-01: a cut answer is asked for again and shown once; one that only lacks [DONE] is not', async (t) => {
  const house = await openHouse(t);
  house.model.script([
    { text: 'whole', done: 'omit' },
    { text: 'The answer is', finish: null, done: 'omit' },
    { text: 'The answer is 42' },
  ]);
  assert.equal(await answerOf(await house.ask('one')), 'whole');
  assert.equal(house.model.count, 1);
  assert.equal(await answerOf(await house.ask('two')), 'The answer is 42');
  assert.equal(house.model.count, 3);
});

test('D-01: a call that was cut in its arguments is not run; the next one is, once', async (t) => {
  const house = await openHouse(t);
  const write = { id: 'c1', name: 'write', arguments: { path: 'n.txt', content: 'full content' } };
  house.model.script([
    { toolCalls: [write], endAt: 420, done: 'omit' },
    { toolCalls: [write] },
    { text: 'written' },
    { text: 'next' },
  ]);
  assert.equal(await answerOf(await house.ask('go')), 'written');
  assert.equal(readFileSync(join(house.workspace, 'n.txt'), 'utf8'), 'full content');
  const runs = (await house.transcripts()).filter((e) => e['customType'] === 'reins:tool-start');
  assert.equal(runs.length, 1);
  assert.equal(await answerOf(await house.ask('and now')), 'next', 'the strict model takes the history');
});

test('C-01: a call in odd pieces over cut packets is written byte for byte', async (t) => {
  const house = await openHouse(t);
  const content = 'naïve 😀 漢\n';
  house.model.script([
    {
      toolCalls: [
        {
          id: 'call_a',
          name: 'write',
          arguments: { path: 'note.txt', content },
          pieceLength: 3,
          laterDeltas: 'empty-strings',
        },
      ],
      commentsBefore: [3],
    } as never,
    { text: 'done' },
    { toolCalls: [{ id: 'call_b', name: 'process', arguments: { action: 'list' } }] },
    { text: 'done again' },
  ]);
  assert.equal(await answerOf(await house.ask('go')), 'done');
  assert.equal((await readFile(join(house.workspace, 'note.txt'))).toString('hex'), '6e61c3af766520f09f988020e6bca20a');
  assert.equal(await answerOf(await house.ask('go again')), 'done again');
  assert.ok(!JSON.stringify(await house.transcripts()).includes('\ufffd'));
  assert.ok(!house.model.requests.some((r) => r.bodyText.includes('\ufffd')));
});

test('M-2: workspace files are in the prompt, in their order, and what changes comes last', async (t) => {
  const house = await openHouse(t);
  for (const name of ['MEMORY.md', 'AGENTS.md', 'SOUL.md', 'USER.md'])
    writeFileSync(join(house.workspace, name), `text of ${name}`);
  house.model.script([{ text: 'one' }, { text: 'two' }]);
  await house.ask('first');
  await house.ask('second');
  const [one, two] = house.model.requests;
  const order = ['AGENTS.md', 'SOUL.md', 'USER.md', 'MEMORY.md'].map(
    (name) => one?.system.indexOf(`text of ${name}`) ?? -1,
  );
  assert.deepEqual(
    order,
    [...order].sort((a, b) => a - b),
  );
  assert.ok(order.every((place) => place > 0));
  assert.equal(two?.system, one?.system, 'the same byte for byte');
  assert.match(one?.system ?? '', /"schema":"reins.inbound_meta.v1","channel":"http"/);
  const messages = (n: number) => JSON.stringify(house.model.requests[n]?.body['messages']);
  assert.ok(messages(1).startsWith(messages(0).slice(0, -1)), 'what was sent before is sent again byte for byte');
});

test('M-62: state is private: folders 0700, files 0600, and the token is not in the log', async (t) => {
  const house = await openHouse(t);
  house.model.script([{ text: 'ok' }]);
  await house.ask('hello');
  const { readdirSync } = await import('node:fs');
  for (const entry of readdirSync(house.stateDir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const mode = statSync(path).mode & 0o777;
    assert.equal(mode, entry.isDirectory() ? 0o700 : 0o600, `${path} is ${mode.toString(8)}`);
  }
  assert.ok(!(await readFile(join(house.stateDir, 'logs', 'gateway.log'), 'utf8')).includes(TOKEN));
});

test('M-58: a port in use and a state folder in use are one clear line each', async (t) => {
  const house = await openHouse(t);
  const { startReins } = await import('../../src/app/index.ts');
  const { PATH = '' } = process.env;
  await assert.rejects(
    startReins({ env: { PATH, HOME: house.stateDir, REINS_STATE_DIR: house.stateDir }, console: 'off' }),
    { code: 'STATE_IN_USE' },
  );
  const other = join(house.stateDir, 'other');
  await assert.rejects(
    startReins({ env: { PATH, HOME: other, REINS_STATE_DIR: other }, port: house.port, console: 'off' }),
    { code: 'PORT_IN_USE' },
  );
});
