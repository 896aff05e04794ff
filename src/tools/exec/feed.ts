import type { ToolResult } from '#contract';
import { textResult } from '#contract';
import { KEY_NAMES, type KeyPress, keyPress } from './keys.ts';
import { failedResult, stateOf } from './outcome.ts';
import type { KnownProcess } from './process-table.ts';

export type FeedArguments = {
  readonly action: 'write' | 'send-keys' | 'submit' | 'paste';
  readonly data?: string;
  readonly text?: string;
  readonly literal?: string;
  readonly keys?: readonly string[];
  readonly hex?: readonly string[];
  readonly bracketed?: boolean;
  readonly eof?: boolean;
};

const PASTE_START = '\u001b[200~';
const PASTE_END = '\u001b[201~';

/** Gives a process input, or does what a terminal would do for a key. */
export function feed(known: KnownProcess, args: FeedArguments): ToolResult {
  const presses = pressesOf(args);
  if ('unknown' in presses) return failedResult(`The key "${presses.unknown}" is not known. Known: ${KEY_NAMES}.`);
  let given = 0;
  for (const press of presses) {
    if ('signal' in press) known.running.kill(press.signal);
    else if ('isEndOfInput' in press) known.running.endInput();
    else if (press.bytes.length > 0) {
      const outcome = known.running.write(press.bytes);
      if (outcome !== 'written') return failedResult(refusalText(known, outcome, given));
      given += press.bytes.length;
    }
  }
  if (args.eof) known.running.endInput();
  return textResult(`Gave ${given} bytes to process ${known.id}${args.eof ? ' and ended its input' : ''}.`, {
    sessionId: known.id,
    bytes: given,
  });
}

function pressesOf(args: FeedArguments): readonly KeyPress[] | { readonly unknown: string } {
  const bytesOf = (text: string): readonly KeyPress[] => [{ bytes: Buffer.from(text) }];
  if (args.action === 'write') return bytesOf(args.data ?? args.text ?? '');
  if (args.action === 'submit') return bytesOf(`${args.text ?? args.data ?? ''}\n`);
  if (args.action === 'paste') {
    const text = args.text ?? args.data ?? '';
    // The text must not end the paste itself: what follows would count as typed.
    return bytesOf(args.bracketed ? PASTE_START + text.replaceAll(PASTE_END, '') + PASTE_END : text);
  }
  const presses: KeyPress[] = [...bytesOf(args.literal ?? '')];
  for (const name of args.keys ?? []) {
    const press = keyPress(name);
    if (press === undefined) return { unknown: name };
    presses.push(press);
  }
  presses.push({ bytes: Buffer.from((args.hex ?? []).join(''), 'hex') });
  return presses;
}

function refusalText(known: KnownProcess, outcome: 'full' | 'closed', given: number): string {
  const already = given === 0 ? '' : ` It got ${given} bytes before.`;
  if (outcome === 'full')
    return `Process ${known.id} does not read the input that it already has.${already} Try again later.`;
  if (known.end) return `Process ${known.id} takes no input any more (${stateOf(known)}).${already}`;
  return `Process ${known.id} takes no input.${already} A command started with background: true keeps its input open.`;
}
