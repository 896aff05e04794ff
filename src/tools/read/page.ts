import { cutAtCharacter } from '#base';

export type Page = {
  readonly text: string;
  /** Lines of the whole file. */
  readonly lines: number;
  /** First and last line shown, counted from 1; 0 when none is. */
  readonly from: number;
  readonly to: number;
};

export type PageBounds = {
  readonly linesMax: number;
  readonly charactersMax: number;
  readonly lineCharactersMax: number;
};

/** Whole lines from `offset` on, within the bounds; where there are more, the last line says how to go on. At least one line is shown. */
export function pageOf(text: string, offset: number, bounds: PageBounds): Page {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const none = { lines: lines.length, from: 0, to: 0 };
  if (lines.length === 0) return { ...none, text: '(The file is empty.)' };
  if (offset > lines.length) {
    const count = lines.length === 1 ? '1 line' : `${lines.length} lines`;
    return { ...none, text: `(The file has ${count}; there is none from line ${offset} on.)` };
  }
  const shown: string[] = [];
  let characters = 0;
  for (const line of lines.slice(offset - 1, offset - 1 + bounds.linesMax)) {
    const cut = boundLine(line, bounds.lineCharactersMax);
    characters += cut.length + 1;
    if (characters > bounds.charactersMax && shown.length > 0) break;
    shown.push(cut);
  }
  const to = offset - 1 + shown.length;
  const rest = lines.length - to;
  const note = rest > 0 ? `\n(${rest} more ${rest === 1 ? 'line' : 'lines'}. Go on with offset ${to + 1}.)` : '';
  return { text: shown.join('\n') + note, lines: lines.length, from: offset, to };
}

function boundLine(line: string, charactersMax: number): string {
  if (line.length <= charactersMax) return line;
  const kept = cutAtCharacter(line, charactersMax);
  return `${kept} [${line.length - kept.length} more characters in this line]`;
}
