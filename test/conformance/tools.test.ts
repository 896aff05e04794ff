import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BUILTIN_TOOL_NAMES } from '#tools';
import { workbench } from '../tools/workbench.ts';
import { toolConformance } from './tool.ts';

const put = (name: string, text: string) => (bench: { readonly workspace: string }) =>
  writeFileSync(join(bench.workspace, name), text);
const HUGE_TEXT = '0123456789\n'.repeat(400_000);

toolConformance({
  name: 'read',
  effect: 'reads',
  prepare: (bench) => {
    put('a.txt', 'one\ntwo\n')(bench);
    put('huge.txt', HUGE_TEXT)(bench);
  },
  good: [{ path: 'a.txt' }, { path: 'a.txt', offset: '2', limit: 1 }, { path: 'a.txt', limit: 100_000 }],
  bad: [{}, { path: 5, offset: 'x' }, { path: 'a.txt', offset: -1 }, { path: ['a.txt', 'b.txt'] }],
  huge: { path: 'huge.txt' },
});

toolConformance({
  name: 'write',
  effect: 'writes',
  prepare: () => undefined,
  good: [
    { path: 'a/b/c.txt', content: 'x' },
    { path: 'empty', content: '' },
  ],
  bad: [{ path: 'a.txt' }, { content: 'x' }, { path: 'a.txt', content: { a: 1 } }],
  huge: { path: 'huge.txt', content: HUGE_TEXT },
});

toolConformance({
  name: 'edit',
  effect: 'writes',
  prepare: put('a.txt', 'one\ntwo\n'),
  good: [
    { path: 'a.txt', edits: [{ oldText: 'one', newText: '1' }] },
    { path: 'a.txt', oldText: 'one', newText: '1' },
    { path: 'a.txt', edits: { oldText: 'one', newText: '1' } },
    { path: 'a.txt', edits: '[{"oldText":"two","newText":"2"}]' },
  ],
  bad: [
    { path: 'a.txt' },
    { path: 'a.txt', edits: [] },
    { path: 'a.txt', edits: [{ oldText: 'one' }] },
    { path: 'a.txt', edits: 'not JSON' },
    { path: 'a.txt', oldText: 'one' },
  ],
  huge: { path: 'a.txt', edits: [{ oldText: 'one', newText: HUGE_TEXT }] },
});

toolConformance({
  name: 'exec',
  effect: 'writes',
  prepare: () => undefined,
  good: [{ command: 'echo hello' }, { command: 'true', yieldMs: 500_000, timeout: 1e9, env: { A: 'b' }, workdir: '.' }],
  bad: [{}, { command: '' }, { command: 'true', env: { A: { b: 1 } } }, { command: 'true', timeout: -1 }],
  huge: { command: 'seq 1 500000' },
  endless: { command: 'sleep 60 & sleep 60' },
});

toolConformance({
  name: 'process',
  effect: 'writes',
  prepare: () => undefined,
  good: [{ action: 'list' }, { action: 'clear' }],
  bad: [{}, { action: 'restart' }, { action: 'send-keys', hex: ['xyz'] }, { action: 'log', limit: -2 }],
  huge: { action: 'list' },
});

test('the names of the built-in tools are those of the tools, in the same order', async () => {
  const bench = await workbench();
  assert.deepEqual([...bench.tools.keys()], [...BUILTIN_TOOL_NAMES]);
  await bench.close();
});
