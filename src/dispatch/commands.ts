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

/** The command that a message is, or undefined for one that goes to the model. */
export function chatCommand(text: string): ChatCommand | undefined {
  const word = /^\/([a-z]+)\s*$/i.exec(text.trim())?.[1]?.toLowerCase();
  return word !== undefined && Object.hasOwn(COMMANDS, word) ? (word as ChatCommand) : undefined;
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
