import { GatewayError } from '#base';

export type Edit = { readonly oldText: string; readonly newText: string };
/** `start` and `oldText` are places in the text as it was. */
export type Replacement = { readonly start: number; readonly oldText: string; readonly newText: string };
/** `replacements` in the order of the text. */
export type EditedText = { readonly text: string; readonly replacements: readonly Replacement[] };

const COUNTED_MAX = 100;
const LINES_LOOKED_AT_MAX = 20_000;
const SHOWN_LINE_CHARACTERS_MAX = 200;
const BEGINNING_CHARACTERS = 20;

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
  for (const [i, place] of places.entries()) {
    if (place.start < end)
      throw mismatch(`Edits ${places[i - 1]?.number} and ${place.number} overlap`, 'Join the two into one edit.');
    result += text.slice(end, place.start) + place.newText;
    end = place.start + place.oldText.length;
  }
  result += text.slice(end);
  if (result === text) throw mismatch('The edits change nothing', 'Check whether they were made before.');
  return { text: result, replacements: places.map(({ number: _, ...replacement }) => replacement) };
}

function findOnce(text: string, oldText: string, number: number): number {
  if (oldText === '') throw mismatch(`Edit ${number} has an empty oldText`, 'Use write for a new file.');
  const start = text.indexOf(oldText);
  if (start < 0) {
    const found = nearestLine(text, oldText);
    const hint = found === undefined ? '' : `; line ${found.number} is near: ${JSON.stringify(found.line)}`;
    const next = 'Read the file and copy the text exactly, with its white space.';
    throw mismatch(`Edit ${number}: its oldText is not in the file${hint}`, next);
  }
  const places = [start];
  for (let at = start; places.length < COUNTED_MAX; ) {
    at = text.indexOf(oldText, at + 1);
    if (at < 0) break;
    places.push(at);
  }
  if (places.length > 1) {
    const lines = places.slice(0, 5).map((at) => text.slice(0, at).split('\n').length);
    const more = places.length > lines.length ? ', …' : '';
    throw mismatch(
      `Edit ${number}: its oldText is ${places.length} times in the file (lines ${lines.join(', ')}${more})`,
      'Add lines around it, so that it is there once.',
    );
  }
  return start;
}

/** The line that most likely was meant: the same but for white space, or with the same first words. */
function nearestLine(text: string, oldText: string): { readonly number: number; readonly line: string } | undefined {
  const wanted = (oldText.split('\n').find((line) => line.trim() !== '') ?? '').trim();
  if (wanted === '') return undefined;
  const squeeze = (line: string) => line.replaceAll(/\s+/g, '');
  const all = text.split('\n', LINES_LOOKED_AT_MAX);
  const same = all.findIndex((line) => squeeze(line) === squeeze(wanted));
  const beginning = wanted.slice(0, BEGINNING_CHARACTERS);
  const place = same >= 0 ? same : all.findIndex((line) => line.trim().startsWith(beginning));
  const line = all[place];
  return line === undefined ? undefined : { number: place + 1, line: line.slice(0, SHOWN_LINE_CHARACTERS_MAX) };
}

const mismatch = (message: string, next: string) =>
  new GatewayError('EDIT_MISMATCH', `${message}. Nothing was changed. ${next}`, { next });
