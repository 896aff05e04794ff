import { cutAtCharacter } from '#base';
import type { Replacement } from './apply-edits.ts';

const CONTEXT_LINES = 3;
const CHARACTERS_MAX = 20_000;

/** A run of lines `[start, end)` of the old text, counted from 0, that becomes `added`. */
type Change = { readonly start: number; readonly end: number; readonly added: readonly string[] };

/**
 * The replacements as a unified diff with three lines of context, for people and for programs that show changes. Past its bound it ends
 * with a line that says so. `replacements` in the order of the text.
 */
export function unifiedDiff(path: string, text: string, replacements: readonly Replacement[]): string {
  const lines = linesOf(text);
  const changes = changesOf(text, replacements);
  let diff = `--- ${path}\n+++ ${path}\n`;
  let shift = 0;
  for (const hunk of hunksOf(changes)) {
    const from = Math.max(0, (hunk[0]?.start ?? 0) - CONTEXT_LINES);
    const to = Math.min(lines.length, (hunk.at(-1)?.end ?? 0) + CONTEXT_LINES);
    const body = bodyOf(hunk, lines, from, to);
    const removed = body.filter((line) => !line.startsWith('+')).length;
    const added = body.filter((line) => !line.startsWith('-')).length;
    diff += `@@ -${rangeOf(from, removed)} +${rangeOf(from + shift, added)} @@\n${body.join('\n')}\n`;
    shift += added - removed;
    if (diff.length > CHARACTERS_MAX) return `${cutAtCharacter(diff, CHARACTERS_MAX)}\n… (the diff goes on)\n`;
  }
  return diff;
}

/** Replacements as changes of whole lines; those that touch the same line are one change. */
function changesOf(text: string, replacements: readonly Replacement[]): readonly Change[] {
  const changes: Change[] = [];
  for (let i = 0; i < replacements.length; ) {
    const first = replacements[i]!;
    const lineStart = text.lastIndexOf('\n', first.start - 1) + 1;
    let changed = text.slice(lineStart, first.start);
    let at = first.start;
    let lineEnd = at;
    do {
      const { start, oldText, newText } = replacements[i++]!;
      changed += text.slice(at, start) + newText;
      at = start + oldText.length;
      // Where whole lines became whole lines the next one is untouched; else what is left of this line belongs to the change.
      const isWhole = (at === 0 || text[at - 1] === '\n') && (changed === '' || changed.endsWith('\n'));
      lineEnd = isWhole ? at : endOfLine(text, at);
    } while (i < replacements.length && replacements[i]!.start < lineEnd);
    changed += text.slice(at, lineEnd);
    const start = countLines(text.slice(0, lineStart));
    changes.push({ start, end: start + linesOf(text.slice(lineStart, lineEnd)).length, added: linesOf(changed) });
  }
  return changes;
}

function endOfLine(text: string, at: number): number {
  const feed = text.indexOf('\n', at);
  return feed < 0 ? text.length : feed + 1;
}

/** Changes whose contexts would touch stand in one hunk. */
function hunksOf(changes: readonly Change[]): readonly (readonly Change[])[] {
  const hunks: Change[][] = [];
  for (const change of changes) {
    const last = hunks.at(-1);
    if (last && change.start - last.at(-1)!.end <= 2 * CONTEXT_LINES) last.push(change);
    else hunks.push([change]);
  }
  return hunks;
}

function bodyOf(hunk: readonly Change[], lines: readonly string[], from: number, to: number): readonly string[] {
  const marked = (mark: string, part: readonly string[]) => part.map((line) => mark + line);
  let at = from;
  const body = hunk.flatMap(({ start, end, added }) => {
    const before = lines.slice(at, start);
    at = end;
    return [...marked(' ', before), ...marked('-', lines.slice(start, end)), ...marked('+', added)];
  });
  return [...body, ...marked(' ', lines.slice(at, to))];
}

/** By the format's rule an empty range names the line before it. */
const rangeOf = (start: number, count: number): string => `${count === 0 ? start : start + 1},${count}`;

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

const countLines = (before: string): number => before.split('\n').length - 1;
