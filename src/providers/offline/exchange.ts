import type { ModelRequest } from '#contract';
import { type Message, type ToolCallBlock, type ToolResultMessage, textOf, toolCallsOf, withoutStamp } from '#domain';

/** A call that was made in this exchange and what came back. */
export type Done = { readonly call: ToolCallBlock; readonly result: ToolResultMessage };

/** The newest words of a person and everything that was done about them so far. */
export type Exchange = {
  readonly said: string;
  /** Milliseconds since the epoch. */
  readonly saidAt: number;
  /** Calls and results, a list for each response so far. */
  readonly rounds: readonly (readonly Done[])[];
  /** The guide has answered in this conversation before. */
  readonly isKnown: boolean;
};

export function currentExchange({ messages }: ModelRequest): Exchange {
  const start = personPlace(messages);
  const person = messages[start];
  const rounds: Done[][] = [];
  for (const message of messages.slice(start + 1)) {
    if (message.role === 'assistant' && toolCallsOf(message).length > 0) {
      const results = messages.slice(messages.indexOf(message) + 1);
      rounds.push(toolCallsOf(message).flatMap((call) => doneOf(call, results)));
    }
  }
  return {
    said: person === undefined ? '' : withoutStamp(textOf(person)).trim(),
    saidAt: person?.timestamp ?? 0,
    rounds,
    isKnown: messages.slice(0, Math.max(0, start)).some((m) => m.role === 'assistant' && m.api === 'offline'),
  };
}

/** Notes of the gateway are user messages too; those of people carry the run that they started. */
function personPlace(messages: readonly Message[]): number {
  const ofPerson = messages.findLastIndex((message) => message.role === 'user' && message.runId !== undefined);
  return ofPerson >= 0 ? ofPerson : messages.findLastIndex((message) => message.role === 'user');
}

function doneOf(call: ToolCallBlock, after: readonly Message[]): readonly Done[] {
  const result = after.find((message) => message.role === 'toolResult' && message.toolCallId === call.id);
  return result?.role === 'toolResult' ? [{ call, result }] : [];
}

export const resultText = (result: ToolResultMessage): string => textOf(result).replace(/\n+$/, '');
