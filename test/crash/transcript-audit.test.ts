// The judge of the crash tests on trial: each way in which a transcript can be wrong must be seen, and a right one must pass.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pairingFault } from './scripted-model.ts';
import { auditTranscripts } from './transcript-audit.ts';

const header = { type: 'session', version: 3, id: 's', timestamp: '2026-11-30T12:00:00.000Z', cwd: '/' };
const text = (words: string) => [{ type: 'text', text: words }];
const asks = (runId?: string) => ({ role: 'user', content: text('do it'), ...(runId === undefined ? {} : { runId }) });
const calls = (...ids: readonly string[]) => ({
  role: 'assistant',
  stopReason: 'toolUse',
  content: ids.map((id) => ({ type: 'toolCall', id, name: 'exec', arguments: { command: id } })),
});
const result = (toolCallId: string) => ({ role: 'toolResult', toolCallId, content: text('ok'), isError: false });
const answers = (stopReason = 'stop') => ({ role: 'assistant', stopReason, content: text('done') });

/** Entries in a row, each the child of the one before it. */
const chained = (...messages: readonly object[]) =>
  messages.map((message, i) => ({ type: 'message', id: `e${i}`, parentId: i === 0 ? null : `e${i - 1}`, message }));

const right = chained(asks('r1'), calls('c1', 'c2'), result('c2'), result('c1'), answers(), asks('r2'), answers());

const cases: readonly { readonly name: string; readonly lines: readonly unknown[]; readonly problem: RegExp | null }[] =
  [
    { name: 'a right one', lines: [header, ...right], problem: null },
    {
      name: 'a torn line',
      lines: [header, ...right.slice(0, 4), '{"type":"mess', ...right.slice(4)],
      problem: /not JSON/,
    },
    { name: 'no header', lines: right, problem: /no header/ },
    { name: 'two headers', lines: [header, header, ...right], problem: /second header/ },
    { name: 'a lost line', lines: [header, ...right.toSpliced(2, 1)], problem: /does not follow/ },
    { name: 'an id twice', lines: [header, ...right, { ...right[6], parentId: 'e6' }], problem: /occurs twice/ },
    {
      name: 'a call without result',
      lines: [header, ...chained(asks('r1'), calls('c1'), answers())],
      problem: /no result of c1/,
    },
    {
      name: 'a call without result at the end',
      lines: [header, ...chained(asks('r1'), calls('c1'))],
      problem: /no result of c1 at the end/,
    },
    {
      name: 'a second result',
      lines: [header, ...chained(asks('r1'), calls('c1'), result('c1'), result('c1'), answers())],
      problem: /has no call, or is its second/,
    },
    {
      name: 'a message twice',
      lines: [header, ...chained(asks('r1'), answers(), asks('r1'), answers())],
      problem: /is there twice/,
    },
    { name: 'two answers', lines: [header, ...chained(asks('r1'), answers(), answers())], problem: /two answers/ },
    { name: 'no answer', lines: [header, ...chained(asks('r1'))], problem: /r1 has no answer/ },
    { name: 'a failed answer', lines: [header, ...chained(asks('r1'), answers('error'))], problem: /ended with error/ },
    { name: 'a message of no run', lines: [header, ...chained(asks(), answers())], problem: /has no run/ },
  ];

for (const { name, lines, problem } of cases) {
  test(`transcript audit: ${name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'reins-audit-'));
    try {
      const body = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
      writeFileSync(join(folder, 's.jsonl'), body);
      const { problems } = auditTranscripts(folder);
      if (problem === null) assert.deepEqual(problems, []);
      else assert.match(problems.join('\n'), problem);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

const call = (...ids: readonly string[]) => ({
  role: 'assistant',
  tool_calls: ids.map((id) => ({ id, function: { name: 'exec', arguments: '{}' } })),
});
const tool = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'ok' });
const user = { role: 'user', content: 'go on' };

const requests: readonly {
  readonly name: string;
  readonly messages: Parameters<typeof pairingFault>[0];
  readonly fault: RegExp | null;
}[] = [
  { name: 'paired', messages: [user, call('a', 'b'), tool('b'), tool('a'), user], fault: null },
  { name: 'a result without call', messages: [user, tool('a')], fault: /no call before it/ },
  { name: 'a result too late', messages: [user, call('a'), user, tool('a')], fault: /no result directly after it/ },
  { name: 'a result twice', messages: [user, call('a'), tool('a'), tool('a')], fault: /no call before it/ },
  { name: 'an open call', messages: [user, call('a', 'b'), tool('a')], fault: /call b has no result/ },
  { name: 'an id twice', messages: [user, call('a'), tool('a'), call('a'), tool('a')], fault: /occurs twice/ },
];

for (const { name, messages, fault } of requests) {
  test(`strict pairing: ${name}`, () => {
    const found = pairingFault(messages);
    if (fault === null) assert.equal(found, undefined);
    else assert.match(found ?? '', fault);
  });
}
