import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { type Clock, isGatewayError, systemClock } from '#base';
import { Interruption } from './interruption.ts';

type Step = readonly ['SIGINT' | 'SIGTERM', number];

const cases: readonly {
  name: string;
  steps: readonly Step[];
  aborted: boolean;
  exits: readonly number[];
  code: number;
}[] = [
  { name: 'nothing happened', steps: [], aborted: false, exits: [], code: 130 },
  { name: 'the first Ctrl-C asks for an orderly end', steps: [['SIGINT', 0]], aborted: true, exits: [], code: 130 },
  {
    name: 'one press that npm and the launcher pass on is still one',
    steps: [
      ['SIGINT', 0],
      ['SIGINT', 3],
      ['SIGINT', 20],
    ],
    aborted: true,
    exits: [],
    code: 130,
  },
  {
    name: 'a second press ends it at once',
    steps: [
      ['SIGINT', 0],
      ['SIGINT', 900],
    ],
    aborted: true,
    exits: [130],
    code: 130,
  },
  {
    name: 'a service manager that loses patience too',
    steps: [
      ['SIGTERM', 0],
      ['SIGTERM', 5_000],
    ],
    aborted: true,
    exits: [143],
    code: 143,
  },
];

for (const { name, steps, aborted, exits, code } of cases) {
  test(`signals: ${name}`, () => {
    const signals = new EventEmitter();
    const exited: number[] = [];
    let now = 0;
    const clock: Clock = { ...systemClock, now: () => now };
    const surroundings = {
      env: {},
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      signals,
      exitNow: (exitCode: number) => exited.push(exitCode),
    };
    const interruption = new Interruption(surroundings, clock);
    for (const [signal, at] of steps) {
      now = at;
      signals.emit(signal);
    }
    assert.equal(interruption.signal.aborted, aborted);
    assert.deepEqual(exited, exits);
    assert.equal(interruption.exitCode, code);
    if (aborted) assert.ok(isGatewayError(interruption.signal.reason, 'RUN_ABORTED'));
    interruption[Symbol.dispose]();
    assert.equal(signals.listenerCount('SIGINT') + signals.listenerCount('SIGTERM'), 0);
  });
}
