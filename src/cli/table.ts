import { cutAtCharacter, printableLine } from '#base';

/** `shrinks`: may lose its end to `…` where the terminal is narrow; the others stay whole. */
export type Column = { readonly title: string; readonly align?: 'left' | 'right'; readonly shrinks?: 'yes' };

const GAP = 2;
const SHRUNK_MIN = 8;

/**
 * Rows of text as lines of at most `width` columns. Where even shrunk columns do not fit, each row becomes a block of
 * `title: value` lines, which wrap wherever they must. Cells may come from outside: control characters are shown, not sent.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  const cells = rows.map((row) => columns.map((_, index) => printableLine(row[index] ?? '')));
  const widths = columns.map((column, index) =>
    cells.reduce((widest, row) => Math.max(widest, textWidth(row[index]!)), textWidth(column.title)),
  );
  const gaps = GAP * (columns.length - 1);
  let excess = widths.reduce((sum, one) => sum + one, gaps) - width;
  while (excess > 0) {
    const widest = widths.reduce(
      (best, one, index) => (columns[index]!.shrinks && one > (widths[best] ?? SHRUNK_MIN) ? index : best),
      -1,
    );
    if (widest < 0 || widths[widest]! <= SHRUNK_MIN) return blockLines(columns, cells, width);
    widths[widest]!--;
    excess--;
  }
  const line = (row: readonly string[]) =>
    row
      .map((text, index) => pad(cutToWidth(text, widths[index]!), widths[index]!, columns[index]!.align))
      .join(' '.repeat(GAP))
      .trimEnd();
  return [line(columns.map((column) => column.title)), ...cells.map(line)];
}

function blockLines(columns: readonly Column[], cells: readonly (readonly string[])[], width: number): string[] {
  return cells.flatMap((row, index) => [
    ...(index === 0 ? [] : ['']),
    ...columns.map((column, position) => cutToWidth(`${column.title}: ${row[position]}`, width)),
  ]);
}

function pad(text: string, width: number, align: Column['align']): string {
  const space = ' '.repeat(Math.max(0, width - textWidth(text)));
  return align === 'right' ? space + text : text + space;
}

function cutToWidth(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let cut = cutAtCharacter(text, Math.max(0, width - 1));
  while (textWidth(cut) > width - 1) cut = cutAtCharacter(cut, cut.length - 1);
  return `${cut}…`;
}

const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;
const NARROW_ONLY = /^[\u0020-\u007e]*$/;
const WITHOUT_WIDTH = /\p{Mark}/u;

/** Columns that a terminal takes for `text`, near enough for CJK and emoji. */
export function textWidth(text: string): number {
  if (NARROW_ONLY.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += WITHOUT_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}
