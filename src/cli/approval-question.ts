import { printable } from '#base';
import type { ApprovalDecision } from '#domain';
import type { Terminal } from './terminal.ts';

export type Question = {
  readonly command: string;
  readonly cwd?: string;
  readonly reason?: string;
  readonly allowedDecisions: readonly ApprovalDecision[];
};

const WORDS: Readonly<Record<ApprovalDecision, readonly string[]>> = {
  'allow-once': ['y', 'yes', 'o', 'once'],
  'allow-always': ['a', 'always'],
  deny: ['n', 'no', 'd', 'deny', ''],
};
const OFFERS: Readonly<Record<ApprovalDecision, string>> = {
  'allow-once': 'y = once',
  'allow-always': 'a = always',
  deny: 'n = no',
};

/** Shows the whole command as it will run; a character that could hide something is shown by its number. */
export function showQuestion(terminal: Terminal, question: Question): void {
  terminal.line(terminal.paint('yellow', 'The agent asks to run:'));
  for (const line of printable(question.command).split('\n')) terminal.line(`  ${terminal.paint('bold', line)}`);
  if (question.cwd) terminal.line(`  in ${printable(question.cwd)}`);
  if (question.reason) terminal.line(`  asked because: ${printable(question.reason)}`);
}

/** `Run it? (y = once, a = always, n = no) `. */
export const questionPrompt = (question: Question): string =>
  `Run it? (${question.allowedDecisions.map((decision) => OFFERS[decision]).join(', ')}) `;

/** What a person's line decides, or undefined where it is none of what was offered. Silence is a no. */
export function decisionOf(line: string, question: Question): ApprovalDecision | undefined {
  const word = line.trim().toLowerCase();
  return question.allowedDecisions.find((decision) => WORDS[decision].includes(word));
}
