// The loop against a scripted provider: what it asks, what it records, how it ends. Wire formats are tested with the providers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as Type from 'typebox';
import { GatewayError } from '#base';
import type { ModelEvent, ModelFailureCode, ModelProfile, ModelRequest, Tool, ToolResult } from '#contract';
import { type NewEntry, NO_COST, NO_USAGE, type RunEvent, type RunResult, type TranscriptEntry, textOf } from '#domain';
import { ManualClock } from '#world';
import { ArgumentChecker } from './argument-checker.ts';
import { ContextMemory } from './derive-context.ts';
import { type LoopInput, runLoop } from './loop.ts';
import { SHUTDOWN } from './run-tools.ts';

const profile: ModelProfile = {
  provider: 'world',
  id: 'm',
  name: 'M',
  api: 'openai-completions',
  contextWindow: 10_000,
  maxTokens: 1_000,
  reasoning: false,
  input: ['text'],
  cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
};
const counts = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 };

const say = (text: string): ModelEvent[] => [
  { type: 'text-delta', text },
  { type: 'finish', content: [{ type: 'text', text }], stopReason: 'stop', usage: counts },
];
const call = (...calls: [id: string, name: string, args?: Record<string, unknown>][]): ModelEvent[] => [
  {
    type: 'finish',
    content: calls.map(([id, name, args]) => ({ type: 'toolCall' as const, id, name, arguments: args ?? {} })),
    stopReason: 'toolUse',
    usage: counts,
  },
];
const fail = (code: ModelFailureCode, retryAfterMs?: number): ModelEvent[] => [
  { type: 'text-delta', text: 'half' },
  {
    type: 'failure',
    failure: { code, message: 'said the provider', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
  },
];

function tool(name: string, execute: Tool['execute'], effect: Tool['effect'] = 'reads'): Tool {
  return {
    name,
    label: name,
    description: name,
    parameters: Type.Object({ n: Type.Optional(Type.Number()) }),
    effect,
    execute,
  };
}
const textOfResult = (text: string): ToolResult => ({ content: [{ type: 'text', text }] });
const echo = tool('echo', (args) => Promise.resolve(textOfResult(`echo ${JSON.stringify(args)}`)));

type Play = {
  readonly replies: readonly (
    | ModelEvent[]
    | ((request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>)
  )[];
  readonly tools?: readonly Tool[];
  readonly limits?: LoopInput['limits'];
  readonly steer?: readonly string[];
  readonly before?: (clock: ManualClock, controller: AbortController) => void;
};

async function play({ replies, tools = [echo], limits = { turns: 10, identicalTurns: 4 }, steer = [], before }: Play) {
  const clock = new ManualClock();
  const controller = new AbortController();
  const branch: TranscriptEntry[] = [];
  const events: RunEvent[] = [];
  const requests: ModelRequest[] = [];
  const append = (...entries: readonly NewEntry[]) => {
    const placed = entries.map(
      (entry, i) =>
        ({
          ...entry,
          id: `e${branch.length + i}`,
          parentId: null,
          timestamp: '2026-01-01T00:00:00Z',
        }) as TranscriptEntry,
    );
    branch.push(...placed);
    return placed;
  };
  append({ type: 'message', message: { role: 'user', content: 'go', timestamp: 1, runId: 'r' } });
  const waiting = [...steer];
  before?.(clock, controller);
  const ended = runLoop(
    {
      profile,
      provider: {
        api: profile.api,
        async *stream(request, signal) {
          const reply = replies[requests.push(structuredClone({ ...request, tools: [] })) - 1];
          assert.ok(reply, `request ${requests.length} was not expected`);
          yield* typeof reply === 'function' ? reply(request, signal) : reply;
        },
      },
      access: () => Promise.resolve({ baseUrl: 'http://world' }),
      thinking: 'off',
      system: 'system',
      tools,
      window: { exchanges: 50, tokens: 5_000 },
      limits,
      bound: { tokensMax: 100, truncationMessage: '[cut: {original} to {kept}]' },
      before: { turns: 0, texts: [], usage: NO_USAGE },
    },
    {
      clock,
      checker: new ArgumentChecker(),
      memory: new ContextMemory(),
      branch: () => branch,
      append,
      messageSeq: () => branch.filter((e) => e.type === 'message').length,
      emit: (event) => events.push(event),
      priced: (c) => ({ ...c, totalTokens: c.input + c.output, cost: NO_COST }),
      steered: () =>
        requests.length === 0
          ? []
          : waiting
              .splice(0)
              .map((text) => ({ type: 'message', message: { role: 'user', content: text, timestamp: 2 } })),
      contextFor: (callId, progress) => ({
        agent: 'main' as never,
        sessionKey: 'agent:main:main' as never,
        runId: 'r',
        callId,
        workspace: '/w',
        owner: true,
        signal: controller.signal,
        progress,
        ports: { exec: { authorise: () => Promise.resolve({ allowed: false, reason: 'not here' }) } },
      }),
    },
    controller.signal,
  );
  let result: RunResult | undefined | 'pending' = 'pending';
  void ended.then((r) => {
    result = r;
  });
  // Waits inside the loop are on the manual clock: it moves on until the run has ended.
  for (let i = 0; i < 200 && result === 'pending'; i++) await clock.advance(500);
  return { result: await ended, branch, events, requests };
}

/** The transcript in shorthand. */
const story = (branch: readonly TranscriptEntry[]) =>
  branch
    .flatMap((e) => {
      if (e.type === 'custom') return [`(${e.customType.replace('reins:', '')})`];
      if (e.type !== 'message') return [`[${e.type}]`];
      const m = e.message;
      if (m.role === 'toolResult') return [`${m.isError ? '!' : '='}${m.toolCallId}`];
      const calls = m.role === 'assistant' ? m.content.flatMap((b) => (b.type === 'toolCall' ? [`+${b.id}`] : [])) : [];
      return [
        `${m.role[0]}:${textOf(m)}${calls.join('')}${m.role === 'assistant' && !['stop', 'toolUse'].includes(m.stopReason) ? `/${m.stopReason}` : ''}`,
      ];
    })
    .join(' ');

test('M-10: model, tool, model, until it asks for nothing more', async () => {
  const { result, branch, requests, events } = await play({ replies: [call(['c1', 'echo', { n: 1 }]), say('done')] });
  assert.equal(story(branch), 'u:go a:+c1 =c1 a:done');
  assert.equal(result?.outcome, 'answered');
  assert.deepEqual(result?.texts, ['done']);
  assert.equal(result?.usage.totalTokens, 30);
  assert.deepEqual(
    requests[1]?.messages.map((m) => m.role),
    ['user', 'assistant', 'toolResult'],
  );
  assert.deepEqual(
    events.filter((e) => e.type !== 'message' && e.type !== 'text-delta').map((e) => e.type),
    ['turn-start', 'turn-end', 'tool-start', 'tool-end', 'turn-start', 'turn-end'],
  );
});

test('M-36: null for what is left out is no argument, and null for what is needed is refused', async () => {
  const seen: unknown[] = [];
  const picky: Tool = {
    ...tool('picky', (args) => {
      seen.push(args);
      return Promise.resolve(textOfResult('ok'));
    }),
    parameters: Type.Object({ text: Type.String(), folder: Type.Optional(Type.String()) }),
  };
  const { branch } = await play({
    replies: [call(['c1', 'picky', { text: 'a', folder: null }], ['c2', 'picky', { text: null }]), say('done')],
    tools: [picky],
  });
  assert.deepEqual(seen, [{ text: 'a' }]);
  assert.match(JSON.stringify(branch), /text must not be null/);
});

test('M-11: calls of one turn run at the same time; the model gets the results in call order', async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const started: number[] = [];
  const slow = tool('slow', async ({ n }) => {
    started.push(Number(n));
    // The first call cannot end before the second has: only calls that run at the same time come through.
    if (n === 0) await gates[1]!.promise;
    else gates[1]!.resolve();
    return textOfResult(`slow ${n}`);
  });
  const { branch, requests } = await play({
    replies: [call(['c0', 'slow', { n: 0 }], ['c1', 'slow', { n: 1 }]), say('done')],
    tools: [slow],
  });
  assert.deepEqual(started, [0, 1]);
  assert.equal(story(branch), 'u:go a:+c0+c1 =c1 =c0 a:done', 'each result is recorded as it comes');
  assert.deepEqual(
    requests[1]?.messages.slice(2).map((m) => m.role === 'toolResult' && m.toolCallId),
    ['c0', 'c1'],
  );
});

test('M-36: a thrown error, bad arguments and an unknown tool become results that the model can use', async () => {
  const thrower = tool('thrower', () => Promise.reject(new Error('it broke')));
  const { branch, result } = await play({
    replies: [
      call(['c1', 'thrower'], ['c2', 'echo', { n: 'many' }], ['c3', 'nothing'], ['c4', 'echo', { n: '7' }]),
      say('done'),
    ],
    tools: [thrower, echo],
  });
  assert.equal(result?.outcome, 'answered');
  const texts = new Map(
    branch.flatMap((e) =>
      e.type === 'message' && e.message.role === 'toolResult'
        ? [[e.message.toolCallId, textOf(e.message)] as const]
        : [],
    ),
  );
  assert.equal(texts.get('c1'), 'it broke');
  assert.match(texts.get('c2') ?? '', /arguments of echo are not valid: n .*number.*It takes \{n\?\}/);
  assert.match(texts.get('c3') ?? '', /no tool "nothing". Available: thrower, echo/);
  assert.equal(texts.get('c4'), 'echo {"n":7}', 'what can be read only one way is taken that way');
});

test('M-16: the start of a call with effects is recorded before it', async () => {
  const writer = tool('writer', () => Promise.resolve(textOfResult('wrote')), 'writes');
  const { branch } = await play({ replies: [call(['c1', 'writer']), say('done')], tools: [writer] });
  assert.equal(story(branch), 'u:go a:+c1 (tool-start) =c1 a:done');
});

test('M-16: a call that waits for an approval has not started', async () => {
  const asking = tool(
    'asking',
    async (_args, { ports, signal }) => {
      const verdict = await ports.exec.authorise({} as never, signal);
      return textOfResult(verdict.allowed ? 'ran' : verdict.reason);
    },
    'writes-when-allowed',
  );
  const { branch } = await play({ replies: [call(['c1', 'asking']), say('done')], tools: [asking] });
  assert.equal(story(branch), 'u:go a:+c1 =c1 a:done', 'refused: no start');
});

test('M-19: a result over the bound is cut and says so', async () => {
  const big = tool('big', () => Promise.resolve(textOfResult('line of words\n'.repeat(1000))));
  const { branch } = await play({ replies: [call(['c1', 'big']), say('done')], tools: [big] });
  const entry = branch.find((e) => e.type === 'message' && e.message.role === 'toolResult');
  const text = entry?.type === 'message' ? textOf(entry.message) : '';
  assert.match(text, /\[cut: \d{4,} to \d+\]$/);
  assert.ok(text.length < 1_000);
});

test('M-8: a message that arrives meanwhile is seen at the next turn', async () => {
  const { branch, requests } = await play({ replies: [call(['c1', 'echo']), say('both')], steer: ['and this'] });
  assert.equal(story(branch), 'u:go a:+c1 =c1 u:and this a:both');
  assert.equal(requests[1]?.messages.at(-1)?.role, 'user');
});

const retries = [
  {
    name: 'a cut stream is asked for again',
    replies: [fail('MODEL_STREAM_CUT'), say('whole')],
    story: 'u:go a:whole',
    retried: 1,
  },
  {
    name: 'an overloaded model is asked three times',
    replies: [fail('MODEL_OVERLOADED'), fail('MODEL_OVERLOADED'), say('ok')],
    story: 'u:go a:ok',
    retried: 2,
  },
  {
    name: 'a short Retry-After is waited for',
    replies: [fail('MODEL_RATE_LIMITED', 2_000), say('ok')],
    story: 'u:go a:ok',
    retried: 1,
  },
  {
    name: 'a long Retry-After is not',
    replies: [fail('MODEL_RATE_LIMITED', 7_200_000)],
    story: 'u:go a:/error',
    retried: 0,
  },
  { name: 'a refused key is not tried again', replies: [fail('MODEL_AUTH')], story: 'u:go a:/error', retried: 0 },
  {
    name: 'three cuts are enough',
    replies: [fail('MODEL_STREAM_CUT'), fail('MODEL_STREAM_CUT'), fail('MODEL_STREAM_CUT')],
    story: 'u:go a:/error',
    retried: 2,
  },
];
for (const { name, replies, story: expected, retried } of retries) {
  test(`D-01: ${name}`, async () => {
    const { branch, events, requests } = await play({ replies });
    assert.equal(story(branch), expected);
    assert.equal(requests.length, replies.length);
    assert.equal(events.filter((e) => e.type === 'turn-retry').length, retried);
  });
}

test('D-01: a call that was cut by the length limit is not run and is asked for in smaller steps', async () => {
  const cut: ModelEvent[] = [{ type: 'finish', content: [], stopReason: 'length', usage: counts, cutCalls: 1 }];
  const { branch, requests } = await play({ replies: [cut, say('smaller')] });
  assert.equal(requests.length, 2);
  assert.match(JSON.stringify(requests[1]?.messages.at(-1)), /was not run/);
  assert.match(story(branch), /\[custom_message\] a:smaller$/);
});

test('M-21: after an overflow the next request is at least a fifth smaller', async () => {
  const { requests } = await play({
    replies: [
      call(['c1', 'echo', { n: 1 }]),
      call(['c2', 'echo', { n: 2 }]),
      fail('MODEL_CONTEXT_OVERFLOW'),
      say('ok'),
    ],
  });
  const size = (i: number) => JSON.stringify(requests[i]?.messages).length;
  assert.ok(size(3) <= size(2) * 0.8, `${size(3)} of ${size(2)}`);
});

test('M-10: limits: turns and repeated calls end the run with an answer that says so', async () => {
  const many = await play({
    replies: Array.from({ length: 3 }, (_, i) => call([`c${i}`, 'echo', { n: i }])),
    limits: { turns: 3, identicalTurns: 9 },
  });
  assert.equal(many.result?.error?.code, 'RUN_TURN_LIMIT');
  assert.match(story(many.branch), /=c2 a:I stopped after 3 turns/);
  const same = await play({
    replies: Array.from({ length: 3 }, (_, i) => call([`c${i}`, 'echo', { n: 1 }])),
    limits: { turns: 9, identicalTurns: 3 },
  });
  assert.equal(same.result?.error?.code, 'RUN_LOOP');
  assert.match(story(same.branch), /a:\+c2 !c2 a:I stopped because/);
});

test('M-8: an abort in the middle of an answer keeps what was seen', async () => {
  const { result, branch } = await play({
    replies: [
      async function* (_request, signal) {
        yield { type: 'text-delta', text: 'half an ' };
        yield { type: 'text-delta', text: 'answer' };
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        yield { type: 'failure', failure: { code: 'RUN_ABORTED', message: 'stopped' } };
      },
    ],
    before: (clock, controller) =>
      clock.after(1_000, () => controller.abort(new GatewayError('RUN_ABORTED', 'Stopped'))),
  });
  assert.equal(result?.outcome, 'aborted');
  assert.equal(story(branch), 'u:go a:half an answer/aborted');
});

test('M-8: an abort while a tool runs leaves a valid transcript', async () => {
  const hanging = tool(
    'hanging',
    (_args, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
  );
  const { result, branch } = await play({
    replies: [call(['c1', 'hanging'], ['c2', 'echo'])],
    tools: [hanging, echo],
    before: (clock, controller) =>
      clock.after(1_000, () => controller.abort(new GatewayError('RUN_ABORTED', 'Stopped'))),
  });
  assert.equal(result?.outcome, 'aborted');
  assert.equal(story(branch), 'u:go a:+c1+c2 =c2 !c1 a:/aborted');
});

test('M-10: the time limit fails the run and says what to do', async () => {
  const { result } = await play({
    replies: [
      async function* (_request, signal) {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      },
    ],
    before: (clock, controller) =>
      clock.after(1_000, () =>
        controller.abort(new GatewayError('RUN_TIMEOUT', 'The run was stopped after 1 s', { next: 'Go on' })),
      ),
  });
  assert.deepEqual(result?.error, { code: 'RUN_TIMEOUT', message: 'The run was stopped after 1 s', next: 'Go on' });
});

test('M-16: a gateway that goes down records nothing more: the run goes on after the restart', async () => {
  const hanging = tool(
    'hanging',
    (_args, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('killed')), { once: true })),
    'writes',
  );
  const { result, branch } = await play({
    replies: [call(['c1', 'hanging'])],
    tools: [hanging],
    before: (clock, controller) => clock.after(1_000, () => controller.abort(SHUTDOWN)),
  });
  assert.equal(result, undefined);
  assert.equal(story(branch), 'u:go a:+c1 (tool-start)');
});
