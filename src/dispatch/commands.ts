import type { SessionRow } from '#sessions';

/** Words that people send to the gateway itself, not to the model. */
export type ChatCommand = 'new' | 'reset' | 'stop' | 'status' | 'help';

const COMMANDS: Readonly<Record<ChatCommand, string>> = {
  new: 'start a new session; the old conversation stays on disk',
  reset: 'the same as /new',
  stop: 'stop what is running in this session',
  status: 'show model, tokens and cost of this session',
  help: 'show this list',
};

/**
 * The command that a message is, or undefined for one that goes to the model.
 * @param resetTriggers the words that start a session over; without them `/new` and `/reset` are words like any other
 */
export function chatCommand(text: string, resetTriggers: readonly string[]): ChatCommand | undefined {
  const said = text.trim().toLowerCase();
  if (resetTriggers.some((trigger) => trigger.trim().toLowerCase() === said)) return 'new';
  const word = /^\/([a-z]+)$/.exec(said)?.[1];
  return word === 'stop' || word === 'status' || word === 'help' ? word : undefined;
}

export const commandList = (): readonly { readonly name: ChatCommand; readonly description: string }[] =>
  Object.entries(COMMANDS).map(([name, description]) => ({ name: name as ChatCommand, description }));

export function helpText(): string {
  return [
    'Send one of these alone:',
    ...commandList().map(({ name, description }) => `- \`/${name}\`: ${description}`),
  ].join('\n');
}

export function statusText(session: SessionRow, facts: { readonly model: string; readonly waiting: number }): string {
  const rows = [
    ['Session', session.label ?? session.key],
    ['Model', facts.model],
    ['Thinking', session.thinkingLevel ?? 'default'],
    ['Last prompt', `${session.totalTokens} tokens${session.contextTokens ? ` of ${session.contextTokens}` : ''}`],
    ['Last run', `${session.inputTokens} in, ${session.outputTokens} out, $${session.costUsd.toFixed(4)}`],
    ['Waiting', String(facts.waiting)],
  ];
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n');
}
