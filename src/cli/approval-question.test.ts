import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APPROVAL_DECISIONS, type ApprovalDecision } from '#domain';
import { decisionOf, questionPrompt } from './approval-question.ts';

const all = { command: 'make', allowedDecisions: APPROVAL_DECISIONS };
const never = { command: 'sh', allowedDecisions: ['allow-once', 'deny'] as const };

const cases: readonly [string, typeof all | typeof never, ApprovalDecision | undefined][] = [
  ['y', all, 'allow-once'],
  [' YES ', all, 'allow-once'],
  ['always', all, 'allow-always'],
  ['a', never, undefined],
  ['n', all, 'deny'],
  ['', all, 'deny'],
  ['yess', all, undefined],
  ['allow', all, undefined],
];
for (const [line, question, expect] of cases) {
  test(`M-39: "${line}" for ${question.command} means ${expect ?? 'ask again'}`, () =>
    assert.equal(decisionOf(line, question), expect));
}

test('M-39: only what was offered is asked for', () => {
  assert.equal(questionPrompt(never), 'Run it? (y = once, n = no) ');
});
