import { estimateTokenCount } from 'tokenx';

const LONG_TEXT = 20_000;

/** A fast estimate of how many tokens `text` is for a typical model; within about 10 % for prose, code and CJK. */
export function estimateTokens(text: string): number {
  if (text.length <= LONG_TEXT) return estimateTokenCount(text);
  // Long text is sampled from both ends: the estimate is linear, and a turn must not wait for megabytes to be scanned.
  const half = LONG_TEXT / 2;
  const sample = estimateTokenCount(text.slice(0, half)) + estimateTokenCount(text.slice(-half));
  return Math.ceil((sample * text.length) / LONG_TEXT);
}
