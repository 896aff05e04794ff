import { stripVTControlCharacters, styleText } from 'node:util';
import { type Figure, isMet, type Row } from './row.ts';

const HEAD = ['', 'figure', 'Reins', 'compared with', 'comparison', 'target'];

/** The rows as aligned lines. `styleText` leaves the colours out where the output is no terminal. */
export function tableText(rows: readonly Row[], output: NodeJS.WriteStream): string {
  const paint = (style: Parameters<typeof styleText>[0], text: string) => styleText(style, text, { stream: output });
  const lines = rows.map((row) => {
    const met = isMet(row);
    return [
      met === undefined ? ' ' : met ? paint('green', '✓') : paint('red', '✗'),
      row.name,
      text(row.measured),
      row.reference ? `${text(row.reference)} ${row.reference.what}` : '',
      row.compared ? paint(met === false ? 'red' : 'bold', text(row.compared)) : '',
      paint('dim', targetText(row)),
    ];
  });
  const all = [HEAD.map((word) => paint('underline', word)), ...lines];
  const widths = HEAD.map((_, i) => Math.max(...all.map((cells) => width(cells[i]!))));
  return all
    .map((cells) =>
      cells
        .map((cell, i) => cell + ' '.repeat(widths[i]! - width(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const width = (cell: string): number => stripVTControlCharacters(cell).length;

function text({ value, unit }: Figure): string {
  const digits = unit === '×' || (unit === 'ms' && Math.abs(value) < 100) ? 2 : unit === '%' || unit === 'ms' ? 0 : 1;
  const number = unit === '' ? String(value) : value.toFixed(digits);
  return unit === '×' || unit === '' ? number + unit : `${number} ${unit}`;
}

function targetText({ target, compared, measured }: Row): string {
  if (!target) return '';
  const { unit } = compared ?? measured;
  return 'atMost' in target ? `≤ ${target.atMost}${unit === '×' ? '' : ' '}${unit}` : `≥ ${target.atLeast} ${unit}`;
}
