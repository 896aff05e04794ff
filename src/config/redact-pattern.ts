const LENGTH_MAX = 200;
/** Ways a pattern may branch, in all: each can double the work on a text that almost matches. */
const CHOICES_MAX = 16;
const UNBOUNDED_MAX = 8;
const REPEAT_MAX = 200;

/**
 * Why an operator's expression is not used, or undefined when it may be (security model T23). It must not be able to run away: nothing
 * repeated without end inside a repetition, few choices, no back reference, no look-around, and short.
 * The scan is its own, because running a bad expression to find out is what must not happen.
 */
export function patternFault(pattern: string): string | undefined {
  if (pattern.length > LENGTH_MAX) return `is longer than ${LENGTH_MAX} characters`;
  try {
    new RegExp(pattern, 'g');
  } catch {
    return 'is not a regular expression';
  }
  return repetitionFault(pattern);
}

/** What a piece of the pattern can do: match without end, and branch in so many ways. */
type Piece = { unbounded: number; choices: number };

const plain = (): Piece => ({ unbounded: 0, choices: 0 });

function repetitionFault(pattern: string): string | undefined {
  const groups: Piece[] = [plain()];
  /** What a quantifier here would repeat; already counted in its group. */
  let last = plain();
  for (let at = 0; at < pattern.length; at++) {
    const rest = pattern.slice(at);
    const quantifier = /^(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/.exec(rest);
    const group = groups.at(-1)!;
    if (quantifier) {
      const { min, max } = rangeOf(quantifier);
      if (max > 1 && last.unbounded > 0) return 'repeats something that is repeated';
      if (max === Infinity && last.choices > 0) return 'repeats something that has choices';
      if (max !== Infinity && max > REPEAT_MAX) return `repeats more than ${REPEAT_MAX} times`;
      if (max === Infinity) group.unbounded++;
      else group.choices += last.choices * (max - 1) + (max - min);
      if (group.choices > CHOICES_MAX) return 'has too many choices';
      last = plain();
      at += quantifier[0].length - 1;
      continue;
    }
    if (rest.startsWith('\\')) {
      if (/^\\(?:[1-9]|k<)/.test(rest)) return 'has a back reference';
      at++;
      last = plain();
    } else if (rest.startsWith('[')) {
      at += classLength(rest) - 1;
      last = plain();
    } else if (rest.startsWith('(')) {
      if (/^\(\?<?[=!]/.test(rest)) return 'looks ahead or behind';
      groups.push(plain());
      at += /^\((?:\?:|\?<[^>]*>)?/.exec(rest)![0].length - 1;
    } else if (rest.startsWith(')')) {
      last = groups.pop() ?? plain();
      if (groups.length === 0) groups.push(plain());
      groups.at(-1)!.unbounded += last.unbounded;
      groups.at(-1)!.choices += last.choices;
    } else if (rest.startsWith('|')) group.choices++;
    else last = plain();
  }
  const { unbounded, choices } = groups[0]!;
  if (choices > CHOICES_MAX) return 'has too many choices';
  return unbounded > UNBOUNDED_MAX ? 'has too many repetitions' : undefined;
}

function rangeOf([text, low, comma, high]: RegExpExecArray): { readonly min: number; readonly max: number } {
  if (low === undefined) return { min: text.startsWith('+') ? 1 : 0, max: text.startsWith('?') ? 1 : Infinity };
  const min = Number(low);
  if (comma === undefined) return { min, max: min };
  return { min, max: high === '' || high === undefined ? Infinity : Number(high) };
}

/** Length of the character class that the text starts with. */
function classLength(text: string): number {
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === ']' && at > 1) return at + 1;
  }
  return text.length;
}
