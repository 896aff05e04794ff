// Splits a growing text into markdown blocks and keeps the ones that can no longer change, so that a delta costs the length of
// the last block and not that of the whole answer.
import { marked, type Token } from 'marked';

export type Blocks = {
  /** The text that was split, with line breaks as line feeds. */
  readonly text: string;
  readonly tokens: readonly Token[];
  /** How many of `tokens`, from the first, are the very objects of the split before. */
  readonly kept: number;
};

export const NO_BLOCKS: Blocks = { text: '', tokens: [], kept: 0 };

/**
 * Splits `source`; when it continues `before`, only its tail is read again.
 * The last block of `before` may still grow (a list goes on after an empty line), so reading starts again at that block.
 * A link reference that is defined later reaches finished blocks only through {@link wholeBlocks}.
 */
export function nextBlocks(before: Blocks, source: string): Blocks {
  const text = source.replaceAll(/\r\n?/g, '\n');
  if (text === before.text) return { ...before, kept: before.tokens.length };
  if (before.tokens.length === 0 || !text.startsWith(before.text)) return wholeBlocks(text);
  const finished = before.tokens.slice(0, lastBlockIndex(before.tokens));
  const tailStart = finished.reduce((length, token) => length + token.raw.length, 0);
  return { text, tokens: [...finished, ...split(text.slice(tailStart))], kept: finished.length };
}

/** Splits the whole of a finished text. */
export function wholeBlocks(source: string): Blocks {
  const text = source.replaceAll(/\r\n?/g, '\n');
  return { text, tokens: split(text), kept: 0 };
}

function lastBlockIndex(tokens: readonly Token[]): number {
  for (let index = tokens.length - 1; index > 0; index--) if (tokens[index]?.type !== 'space') return index;
  return 0;
}

/** Longer blocks than any answer needs, and nesting that exhausts the stack, are shown as they were written. */
const SPLIT_LENGTH_MAX = 400_000;

function split(text: string): Token[] {
  const asWritten = { type: 'unsplit', raw: text };
  if (text.length > SPLIT_LENGTH_MAX) return [asWritten];
  try {
    return marked.lexer(text);
  } catch (thrown) {
    if (thrown instanceof RangeError) return [asWritten];
    throw thrown;
  }
}
