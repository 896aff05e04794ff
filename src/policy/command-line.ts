// The strict grammar of an allow-list. What it reads means the same to every shell and to a spawn without one; what it cannot read is
// no error but a miss: an allow-list has nothing to say about it (security model T8).

/** Commands joined by `|`, each its words with the name first. `when` is as in the contract's `ExecPipeline`. */
export type ParsedPipeline = {
  readonly commands: readonly (readonly string[])[];
  readonly when: 'always' | 'after-success' | 'after-failure';
};

export type ParsedLine =
  | { readonly ok: true; readonly pipelines: readonly ParsedPipeline[] }
  /** Why an allow-list can say nothing about this line, to follow "the command is not simple enough: ". */
  | { readonly ok: false; readonly reason: string };

const CHARACTERS_MAX = 8_192;
const WORDS_MAX = 1_000;
/** Plain in a word: nothing that any shell would read as more than itself. */
const PLAIN = /^[A-Za-z0-9_\-./:,=+@%^]$/;
/**
 * Never, not even in quotes: what ends a line, every blank but the space, and what a terminal, a log or a person would not see or would see
 * as something else. `\p{C}` holds the controls, the invisible formats and lone surrogates, which would reach a program as another character.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;
/** A shell reads these as grammar where the name of a command stands. */
const RESERVED = new Set(
  'if then else elif fi do done case esac while until for function select coproc time'.split(' '),
);

/**
 * Reads a command line by a grammar of words, single and double quotes, `|`, `&&`, `||` and `;` (one `;` may end the line). Everything
 * else is a miss. Linear in the line's length, which is bounded.
 */
export function parseCommandLine(line: string): ParsedLine {
  if (line.length > CHARACTERS_MAX) return miss(`it is longer than ${CHARACTERS_MAX} characters`);
  const hidden = HIDDEN.exec(line);
  if (hidden) return miss(`it holds the character U+${codeOf(hidden[0])}`);
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
    if (character === ' ') {
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
    // Beyond ASCII no character means anything to a shell; the hidden ones are out already.
    else if (PLAIN.test(character) || character.charCodeAt(0) > 0x7f) {
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
    if (RESERVED.has(name)) return `"${name}" is a word of the shell's grammar`;
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

const codeOf = (character: string) => character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');

const miss = (reason: string): ParsedLine => ({ ok: false, reason });
