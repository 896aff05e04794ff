import { cutAtCharacter, estimateTokens } from '#base';
import type { UserContent } from '#domain';

export type ResultBound = {
  readonly tokensMax: number;
  /** Says so to the model; `{original}` and `{kept}` become token counts. */
  readonly truncationMessage: string;
};

/** A tool's content, cut to the bound at a line's end where one is near; images stay. */
export function boundResult(content: readonly UserContent[], bound: ResultBound): readonly UserContent[] {
  const original = content.reduce((sum, block) => (block.type === 'text' ? sum + estimateTokens(block.text) : sum), 0);
  if (original <= bound.tokensMax) return content;
  let room = bound.tokensMax;
  const kept: UserContent[] = [];
  for (const block of content) {
    if (block.type !== 'text') kept.push(block);
    else if (room > 0) {
      const text = firstTokens(block.text, room);
      room -= estimateTokens(text);
      kept.push({ ...block, text });
    }
  }
  const note = bound.truncationMessage
    .replaceAll('{original}', String(original))
    .replaceAll('{kept}', String(bound.tokensMax - Math.max(0, room)));
  return [...kept, { type: 'text', text: note }];
}

/** The longest beginning that is estimated at no more than `tokens`, ended at a line where that costs at most a tenth. */
function firstTokens(text: string, tokens: number): string {
  if (estimateTokens(text) <= tokens) return text;
  let low = 0;
  let high = text.length;
  while (high - low > 64) {
    const middle = (low + high) >> 1;
    if (estimateTokens(text.slice(0, middle)) <= tokens) low = middle;
    else high = middle;
  }
  const cut = cutAtCharacter(text, low);
  const line = cut.lastIndexOf('\n');
  return line > cut.length * 0.9 ? cut.slice(0, line + 1) : cut;
}
