import { GatewayError } from '#base';

export type Edit = { readonly oldText: string; readonly newText: string };
export type EditedText = { readonly text: string; readonly hunks: readonly Hunk[] };
/** One change, for people: lines that went and lines that came, and where. */
export type Hunk = { readonly line: number; readonly removed: readonly string[]; readonly added: readonly string[] };

/**
 * All edits at once, each against the text as it was. Every `oldText` must be there exactly once and none may overlap; else nothing is
 * changed. Line ends of the file stay: an edit written with LF fits a file with CRLF.
 * @throws {GatewayError} `EDIT_MISMATCH` naming the edit
 */
export function applyEdits(text: string, edits: readonly Edit[]): EditedText {
  const usesCrlf = text.includes('\r\n') && !/(?<!\r)\n/.test(text);
  const adapt = (part: string) => (usesCrlf ? part.replaceAll(/\r?\n/g, '\r\n') : part);
  const places = edits.map((edit, i) => {
    const oldText = adapt(edit.oldText);
    return { start: findOnce(text, oldText, i + 1), oldText, newText: adapt(edit.newText), number: i + 1 };
  });
  places.sort((a, b) => a.start - b.start);
  let result = '';
  let end = 0;
  const hunks: Hunk[] = [];
  for (const place of places) {
    if (place.start < end) throw mismatch(`Edit ${place.number} overlaps another one`, 'Join the two into one edit.');
    result += text.slice(end, place.start) + place.newText;
    end = place.start + place.oldText.length;
    hunks.push({ line: countLines(text, place.start), removed: lines(place.oldText), added: lines(place.newText) });
  }
  result += text.slice(end);
  if (result === text) throw mismatch('The edits change nothing', 'Check whether they were made before.');
  return { text: result, hunks };
}

function findOnce(text: string, oldText: string, number: number): number {
  if (oldText === '') throw mismatch(`Edit ${number} has an empty oldText`, 'Use write for a new file.');
  const start = text.indexOf(oldText);
  if (start < 0)
    throw mismatch(
      `Edit ${number}: its oldText is not in the file${nearest(text, oldText)}`,
      'Read the file and copy the text exactly, with its white space.',
    );
  let count = 1;
  for (let at = text.indexOf(oldText, start + 1); at >= 0 && count < 100; at = text.indexOf(oldText, at + 1)) count++;
  if (count > 1)
    throw mismatch(
      `Edit ${number}: its oldText is ${count} times in the file`,
      'Add lines around it, so that it is there once.',
    );
  return start;
}

/** The line that most likely was meant: the same but for white space, or with the same first words. */
function nearest(text: string, oldText: string): string {
  const wanted = (oldText.split('\n').find((line) => line.trim() !== '') ?? '').trim();
  if (wanted === '') return '';
  const squeeze = (line: string) => line.replaceAll(/\s+/g, '');
  const all = text.split('\n').slice(0, 20_000);
  const place = all.findIndex((line) => squeeze(line) === squeeze(wanted));
  const found = place >= 0 ? place : all.findIndex((line) => line.trim().startsWith(wanted.slice(0, 20)));
  return found < 0 ? '' : `; line ${found + 1} is near: ${JSON.stringify(all[found]!.slice(0, 200))}`;
}

const lines = (text: string): readonly string[] => text.split(/\r?\n/);
const countLines = (text: string, until: number): number => text.slice(0, until).split('\n').length;
const mismatch = (message: string, next: string) =>
  new GatewayError('EDIT_MISMATCH', `${message}. Nothing was changed`, { next });
