import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { startModelServer } from '#world';

const post = (url: string, path: string, body: unknown) =>
  fetch(url + path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });

const toolCall = (id: string, args = '{}') => ({ id, type: 'function', function: { name: 'f', arguments: args } });
const asks = (...ids: readonly string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => toolCall(id)),
});
const gives = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'x' });
const person = { role: 'user', content: 'hi' };

const strictCases: readonly (readonly [string, readonly object[], number])[] = [
  ['plain talk', [person], 200],
  ['two calls with two results', [person, asks('a', 'b'), gives('a'), gives('b'), person], 200],
  ['a call without result at the end', [person, asks('a')], 400],
  ['a call without result before a person', [person, asks('a'), person], 400],
  ['a result that comes too late', [person, asks('a'), person, gives('a')], 400],
  ['one of two results', [person, asks('a', 'b'), gives('a'), person], 400],
  ['a result without call', [person, gives('a')], 400],
  ['an id used twice', [person, asks('a'), gives('a'), asks('a'), gives('a')], 400],
  ['a result given twice', [person, asks('a'), gives('a'), gives('a')], 400],
  ['arguments cut', [person, { ...asks(), tool_calls: [toolCall('a', '{"x"')] }, gives('a')], 400],
];
for (const [name, messages, status] of strictCases) {
  test(`world: strict mode: ${name} is ${status}`, async () => {
    await using world = await startModelServer({ strict: 'strict' });
    assert.equal((await post(world.url, '/v1/chat/completions', { model: 'm', messages })).status, status);
  });
}

test('world: strict mode reads the other two formats too', async () => {
  await using world = await startModelServer({ strict: 'strict' });
  const use = { type: 'tool_use', id: 'a', name: 'f', input: {} };
  const anthropic = (last: object) => ({
    messages: [{ role: 'user', content: 'hi' }, { role: 'assistant', content: [use] }, last],
  });
  const gave = {
    role: 'user',
    content: [
      { type: 'tool_result', tool_use_id: 'a', content: 'x' },
      { type: 'text', text: 'go' },
    ],
  };
  assert.equal((await post(world.url, '/v1/messages', anthropic(gave))).status, 200);
  assert.equal((await post(world.url, '/v1/messages', anthropic({ role: 'user', content: 'go' }))).status, 400);
  const gemini = (part: object) => ({
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { id: 'a', name: 'f', args: {} } }] },
      { role: 'user', parts: [part] },
    ],
  });
  const path = '/v1beta/models/g:streamGenerateContent?alt=sse';
  assert.equal(
    (await post(world.url, path, gemini({ functionResponse: { id: 'a', name: 'f', response: {} } }))).status,
    200,
  );
  assert.equal((await post(world.url, path, gemini({ text: 'go' }))).status, 400);
});

test('world: replies follow the script, then the function, and say when there is none', async () => {
  await using world = await startModelServer({ requestsMax: 2 });
  const ask = async () => (await post(world.url, '/v1/chat/completions', { model: 'm', messages: [person] })).text();
  assert.match(await ask(), /pong pong/);
  world.script([{ text: 'first' }]);
  assert.match(await ask(), /first/);
  assert.match(await ask(), /no reply for request 3/);
  world.reply((request) => ({ text: `${request.userText} ${request.number}` }));
  const [answer, fifth] = await Promise.all([ask(), world.arrived(4)]);
  assert.match(answer, /hi 4/);
  assert.equal(fifth.number, 4);
  assert.deepEqual([world.requests.map((r) => r.number), world.count], [[3, 4], 4]);
});

test('world: bytes end, are cut and are gated as told', async () => {
  await using world = await startModelServer();
  const gate = Promise.withResolvers<void>();
  world.script([
    { raw: ['abc', 'def'], endAt: 4 },
    { before: gate.promise, text: 'late' },
    { raw: 'abcdef', resetAt: 2 },
  ]);
  const ask = () => post(world.url, '/v1/chat/completions', { model: 'm', stream: true, messages: [person] });
  assert.equal(await (await ask()).text(), 'abcd');
  const waiting = ask();
  await world.arrived(2);
  gate.resolve();
  assert.match(await (await waiting).text(), /late/);
  await assert.rejects(async () => await (await ask()).text());
});

test('world: as a process it prints its port and says pong twenty times', async () => {
  const main = join(import.meta.dirname, '..', 'world', 'model-server-main.ts');
  const child = spawn(process.execPath, [main, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = await once(createInterface(child.stdout), 'line');
    const port = /^listening (\d+)$/.exec(String(line))?.[1];
    const response = await post(`http://127.0.0.1:${port}`, '/v1/chat/completions', {
      model: 'm',
      stream: true,
      messages: [],
    });
    assert.equal((await response.text()).split('pong ').length - 1, 20);
  } finally {
    child.kill();
    await once(child, 'exit');
  }
});
