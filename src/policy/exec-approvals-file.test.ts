import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentId } from '#domain';
import { ExecApprovalsFile } from './exec-approvals-file.ts';

const ANNA = agentId('anna');

function fileOf(content: unknown) {
  let text = content === undefined || typeof content === 'string' ? content : JSON.stringify(content);
  const saved: string[] = [];
  const file = new ExecApprovalsFile({
    load: async () => text,
    save: async (next) => {
      text = next;
      saved.push(next);
    },
  });
  return { file, saved, content: () => JSON.parse(text ?? 'null') };
}

test('no file says nothing', async () => {
  assert.deepEqual(await fileOf(undefined).file.forAgent(ANNA), { allowlist: [] });
});

test('an agent goes before everyone, everyone before the defaults', async () => {
  const { file } = fileOf({
    version: 1,
    socket: { path: '/s' },
    defaults: { security: 'deny', ask: 'always', askFallback: 'full' },
    agents: {
      '*': { ask: 'off', allowlist: [{ pattern: 'cat' }] },
      anna: {
        security: 'allowlist',
        allowlist: [{ id: '1', pattern: '/usr/bin/*', lastUsedAt: 1, note: 'x' }, 'echo'],
      },
    },
  });
  assert.deepEqual(await file.forAgent(ANNA), {
    security: 'allowlist',
    ask: 'off',
    askFallback: 'full',
    allowlist: [{ pattern: 'cat' }, { pattern: '/usr/bin/*' }, { pattern: 'echo' }],
  });
  assert.deepEqual(await file.forAgent(agentId('ben')), {
    security: 'deny',
    ask: 'off',
    askFallback: 'full',
    allowlist: [{ pattern: 'cat' }],
  });
});

const damages: readonly { readonly what: string; readonly content: unknown }[] = [
  { what: 'an empty file', content: '' },
  { what: 'a cut file', content: '{"version":1,"agents":{' },
  { what: 'a list', content: [] },
  { what: 'another version', content: { version: 2 } },
  { what: 'agents that are a list', content: { version: 1, agents: [] } },
  { what: 'defaults that are a word', content: { version: 1, defaults: 'deny' } },
  { what: 'an agent that is a word', content: { version: 1, agents: { anna: 'deny' } } },
  { what: 'everyone being a list', content: { version: 1, agents: { '*': [] } } },
  { what: 'an allow-list that is none', content: { version: 1, agents: { anna: { allowlist: { pattern: 'echo' } } } } },
  { what: 'an unknown security', content: { version: 1, defaults: { security: 'strict' } } },
  { what: 'an unknown ask', content: { version: 1, agents: { anna: { ask: true } } } },
  { what: 'a name that reaches a prototype', content: '{"version":1,"agents":{"__proto__":{"security":"full"}}}' },
];
for (const { what, content } of damages) {
  test(`fail closed: ${what} is refused and not written over`, async () => {
    const { file, saved } = fileOf(content);
    await assert.rejects(file.forAgent(ANNA), { code: 'CONFIG_UNREADABLE' });
    await assert.rejects(file.remember(ANNA, [{ pattern: '/usr/bin/cat', argvHash: 'a' }], 5), {
      code: 'CONFIG_UNREADABLE',
    });
    assert.deepEqual(saved, []);
  });
}

const entries: readonly { readonly entry: unknown; readonly read: readonly unknown[] }[] = [
  { entry: { pattern: 'cat', argvHash: 'd' }, read: [{ pattern: 'cat', argvHash: 'd' }] },
  { entry: { pattern: 'cat', argvHash: 7 }, read: [] },
  { entry: { pattern: 'cat', argvHash: '' }, read: [] },
  { entry: { pattern: 'cat', argPattern: '^x$' }, read: [] },
  { entry: { pattern: 'cat', argvDigest: 'd' }, read: [] },
  { entry: { pattern: '' }, read: [] },
  { entry: { pattern: 'x'.repeat(5_000) }, read: [] },
  { entry: {}, read: [] },
  { entry: 7, read: [] },
];
for (const { entry, read } of entries) {
  test(`an entry never allows more than it says: ${JSON.stringify(entry).slice(0, 60)}`, async () => {
    const { file } = fileOf({ version: 1, agents: { anna: { allowlist: [entry] } } });
    assert.deepEqual((await file.forAgent(ANNA)).allowlist, read);
  });
}

test('remembering adds once, and keeps whatever else stands in the file', async () => {
  const before = {
    version: 1,
    socket: { path: '/s' },
    defaults: { ask: 'on-miss', later: true },
    agents: { ben: { security: 'deny' }, anna: { note: 'mine', allowlist: [{ pattern: 'cat', odd: 1 }, 7] } },
  };
  const { file, saved, content } = fileOf(before);
  const entry = { pattern: '/usr/bin/touch', argvHash: 'd' };
  await Promise.all([file.remember(ANNA, [entry], 5), file.remember(ANNA, [entry, { ...entry, argvHash: 'e' }], 6)]);
  await file.remember(ANNA, [entry], 7);
  assert.equal(saved.length, 2);
  const { agents, ...rest } = content();
  const [first, second, ...added] = agents.anna.allowlist;
  assert.deepEqual(rest, { version: 1, socket: { path: '/s' }, defaults: { ask: 'on-miss', later: true } });
  assert.deepEqual(
    [agents.ben, agents.anna.note, first, second],
    [{ security: 'deny' }, 'mine', { pattern: 'cat', odd: 1 }, 7],
  );
  assert.deepEqual(
    added.map(({ id, ...entry }: { readonly id: string }) => ({ ...entry, hasId: id.length > 0 })),
    [
      { pattern: '/usr/bin/touch', argvHash: 'd', lastUsedAt: 5, source: 'allow-always', hasId: true },
      { pattern: '/usr/bin/touch', argvHash: 'e', lastUsedAt: 6, source: 'allow-always', hasId: true },
    ],
  );
  assert.deepEqual((await file.forAgent(ANNA)).allowlist.at(-1), { pattern: '/usr/bin/touch', argvHash: 'e' });
});

test('T21: a full list takes no more, and says so', async () => {
  const { file, saved } = fileOf({
    version: 1,
    agents: { anna: { allowlist: Array(1_000).fill({ pattern: 'cat' }) } },
  });
  await assert.rejects(file.remember(ANNA, [{ pattern: '/x', argvHash: 'd' }], 5), { code: 'CONFIG_INVALID' });
  assert.deepEqual(saved, []);
});

test('a write that failed does not stop the next one', async () => {
  let text = '{}';
  let failures = 1;
  const file = new ExecApprovalsFile({
    load: async () => text,
    save: async (next) => {
      if (failures-- > 0) throw new Error('disk full');
      text = next;
    },
  });
  const entry = { pattern: '/x', argvHash: 'd' };
  await assert.rejects(file.remember(ANNA, [entry], 5), /disk full/);
  await file.remember(ANNA, [entry], 6);
  assert.equal((await file.forAgent(ANNA)).allowlist.length, 1);
});
