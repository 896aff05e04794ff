// A run as events, and what stands on the terminal afterwards.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { RunEvent } from '#domain';
import { localRunListener, RunView, type RunViewOptions } from './run-view.ts';
import { Terminal } from './terminal.ts';
import { wireRunListener } from './wire-run.ts';

function screen(details: RunViewOptions['details']) {
  const texts = { out: '', err: '' };
  const stream = (name: keyof typeof texts) => new PassThrough().on('data', (part) => (texts[name] += part));
  const terminal = new Terminal({
    env: {},
    stdin: new PassThrough(),
    stdout: stream('out'),
    stderr: stream('err'),
    signals: process,
    exitNow: () => undefined,
  });
  return { texts, view: new RunView({ terminal, details }) };
}

const text = (turn: number, ...parts: string[]): RunEvent[] =>
  parts.map((part) => ({ type: 'text-delta', turn, text: part }));
const tool = (name: string, outcome: 'ok' | 'failed' | 'denied', said = ''): RunEvent[] => {
  const call = { id: 'c1', name, arguments: { command: 'ls -la' } };
  return [
    { type: 'tool-start', turn: 0, call, at: 0 },
    { type: 'tool-end', turn: 0, call, outcome, content: [{ type: 'text', text: said }], startedAt: 0, at: 1 },
  ];
};
const retry: RunEvent = { type: 'turn-retry', turn: 0, reason: 'MODEL_STREAM_CUT' };

const cases: readonly {
  name: string;
  events: readonly RunEvent[];
  details?: RunViewOptions['details'];
  texts?: readonly string[];
  out: string;
  err?: string;
}[] = [
  { name: 'deltas become one answer', events: text(0, 'Hel', 'lo'), out: 'Hello\n' },
  {
    name: 'messages are parted by an empty line',
    events: [...text(0, 'One.'), ...text(1, 'Two.')],
    out: 'One.\n\nTwo.\n',
  },
  {
    name: 'an answer that broke off and comes again the same stands there once',
    events: [...text(0, 'The answer'), retry, ...text(0, 'The ', 'answer is 4')],
    out: 'The answer is 4\n',
  },
  {
    name: 'an answer that comes again otherwise starts on its own',
    events: [...text(0, 'The answer'), retry, ...text(0, 'It is 4')],
    out: 'The answer\n\nIt is 4\n',
  },
  {
    name: 'an answer without deltas is printed at the end',
    events: [],
    texts: ['One.', '', 'Two.'],
    out: 'One.\n\nTwo.\n',
  },
  { name: 'what was streamed is not printed again', events: text(0, 'One.\n'), texts: ['One.\n'], out: 'One.\n' },
  {
    name: 'tools are told beside the answer',
    events: [...text(0, 'Look:'), ...tool('exec', 'ok'), ...text(1, 'Done.')],
    details: 'stderr',
    out: 'Look:\n\nDone.\n',
    err: '· exec ls -la\n✓ exec\n',
  },
  {
    name: 'a failed tool says why, on one line',
    events: tool('exec', 'failed', 'no such file\nmore'),
    details: 'stdout',
    out: '· exec ls -la\n✗ exec failed: no such file\n',
  },
  {
    name: 'thinking is not part of an answer',
    events: [{ type: 'thinking-delta', turn: 0, text: 'hm' }, ...text(0, 'Yes')],
    out: 'Yes\n',
  },
  {
    name: 'thinking stands before the answer on a screen',
    events: [{ type: 'thinking-delta', turn: 0, text: 'hm' }, ...text(0, 'Yes')],
    details: 'stdout',
    out: 'hm\nYes\n',
  },
  {
    name: 'a model cannot steer the terminal',
    events: text(0, 'a\u001b[31mb\r\nc\td'),
    out: 'a\\u{1b}[31mb\nc    d\n',
  },
];

for (const { name, events, details = 'none', texts: answer = [], out, err = '' } of cases) {
  test(`run view: ${name}`, () => {
    const { texts, view } = screen(details);
    const listen = localRunListener(view);
    for (const event of events) listen(event);
    view.end(answer);
    assert.deepEqual(texts, { out, err });
  });
}

test('run view: the same run told by the gateway looks the same', () => {
  const { texts, view } = screen('stdout');
  const listen = wireRunListener(view);
  const event = (stream: string, data: Record<string, unknown>) =>
    listen({ runId: 'r', sessionKey: 's', seq: 1, ts: 0, stream, data });
  event('lifecycle', { phase: 'start' });
  event('thinking', { text: 'h', delta: 'h' });
  event('thinking', { text: 'hm', delta: 'm' });
  event('assistant', { text: 'Look', delta: 'Look' });
  event('assistant', { text: 'Look:', delta: ':' });
  event('tool', { phase: 'start', name: 'exec', toolCallId: 'c1', args: { command: 'ls' } });
  event('tool', {
    phase: 'result',
    name: 'exec',
    toolCallId: 'c1',
    isError: true,
    result: { content: [{ type: 'text', text: 'no' }] },
  });
  event('assistant', { text: 'Lo', delta: 'Lo' });
  event('assistant', { text: 'Lost.', delta: 'st.' });
  view.end(['Look:', 'Lost.']);
  assert.equal(texts.out, 'hm\nLook:\n· exec ls\n✗ exec failed: no\n\nLost.\n');
});
