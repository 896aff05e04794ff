export type ParsedPipeline = {
  readonly commands: readonly (readonly string[])[];
  readonly when: 'always' | 'after-success' | 'after-failure';
};

export type ParsedLine =
  | { readonly ok: true; readonly pipelines: readonly ParsedPipeline[] }
  /** Why an allow-list can say nothing about this line. */
  | { readonly ok: false; readonly reason: string };

const CHARACTERS_MAX = 8_192;
const WORDS_MAX = 1_000;
/** Plain in a word: nothing that any shell would read as more than itself. */
const PLAIN = /^[A-Za-z0-9_\-./:,=+@%^]$/;
/** Never, not even in quotes: what a terminal, a log or a person reads as something else, and what ends a line. */
const HIDDEN =
  /[\u0000-\u0008\u000a-\u001f\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]/;

/**
 * Reads a command line by a grammar so small that it means the same to every shell: words, single and double quotes, `|`, `&&`, `||` and
 * `;`. Everything else is a miss (security model T8). Linear in the line's length.
 */
export function parseCommandLine(line: string): ParsedLine {
  if (line.length > CHARACTERS_MAX) return miss(`it is longer than ${CHARACTERS_MAX} characters`);
  const hidden = HIDDEN.exec(line);
  if (hidden) return miss(`it holds the character U+${hidden[0].codePointAt(0)!.toString(16).padStart(4, '0')}`);
  return new LineReader(line).read();
}

class LineReader {
  readonly #line: string;
  readonly #pipelines: ParsedPipeline[] = [];
  #commands: (readonly string[])[] = [];
  #words: string[] = [];
  #word: string | undefined;
  #when: ParsedPipeline['when'] = 'always';
  #count = 0;
  #at = 0;

  constructor(line: string) {
    this.#line = line;
  }

  read(): ParsedLine {
    while (this.#at < this.#line.length) {
      const fault = this.#step(this.#line[this.#at]!);
      if (fault) return miss(fault);
      if (this.#count > WORDS_MAX) return miss(`it has more than ${WORDS_MAX} words`);
    }
    this.#endWord();
    // One `;` at the end is harmless; any other operator there wants something more.
    const trailing =
      this.#words.length === 0 && this.#commands.length === 0 && this.#when === 'always' && this.#pipelines.length > 0;
    if (!trailing) {
      const fault = this.#endPipeline('always');
      if (fault) return miss(fault);
    }
    return { ok: true, pipelines: this.#pipelines };
  }

  #step(character: string): string | undefined {
    if (character === ' ' || character === '\t') {
      this.#endWord();
      this.#at++;
    } else if (character === "'") return this.#quoted("'", /[^']/);
    else if (character === '"') return this.#quoted('"', /[^"$`\\!]/);
    else if (character === ';') return this.#operator(1, () => this.#endPipeline('always'));
    else if (character === '|' && this.#line[this.#at + 1] === '|')
      return this.#operator(2, () => this.#endPipeline('after-failure'));
    else if (character === '|') return this.#operator(1, () => this.#endCommand());
    else if (character === '&' && this.#line[this.#at + 1] === '&')
      return this.#operator(2, () => this.#endPipeline('after-success'));
    else if (PLAIN.test(character) || character.codePointAt(0)! > 0xa0) {
      this.#word = (this.#word ?? '') + character;
      this.#at++;
    } else return `it holds ${JSON.stringify(character)} outside quotes`;
    return undefined;
  }

  #quoted(quote: string, allowed: RegExp): string | undefined {
    const end = this.#line.indexOf(quote, this.#at + 1);
    if (end < 0) return `the quote ${quote} is not closed`;
    const text = this.#line.slice(this.#at + 1, end);
    for (const character of text)
      if (!allowed.test(character)) return `it holds ${JSON.stringify(character)} in double quotes`;
    this.#word = (this.#word ?? '') + text;
    this.#at = end + 1;
    return undefined;
  }

  #operator(length: number, end: () => string | undefined): string | undefined {
    this.#endWord();
    this.#at += length;
    return end();
  }

  #endWord(): void {
    if (this.#word === undefined) return;
    this.#words.push(this.#word);
    this.#word = undefined;
    this.#count++;
  }

  #endCommand(): string | undefined {
    const [name] = this.#words;
    if (name === undefined) return 'a command is missing beside an operator';
    // `NAME=value command` sets a variable for the command, which could change what it loads.
    if (/^[A-Za-z_][A-Za-z0-9_]*\+?=/.test(name)) return 'it sets a variable before a command';
    if (name === '') return 'the name of a command is empty';
    this.#commands.push(this.#words);
    this.#words = [];
    return undefined;
  }

  #endPipeline(next: ParsedPipeline['when']): string | undefined {
    const fault = this.#endCommand();
    if (fault) return fault;
    this.#pipelines.push({ commands: this.#commands, when: this.#when });
    this.#commands = [];
    this.#when = next;
    return undefined;
  }
}

const miss = (reason: string): ParsedLine => ({ ok: false, reason });
