import type { EventEmitter } from 'node:events';
import { styleText } from 'node:util';
import { printable } from '#base';

/** What a command gets from outside: in production the process's own, in tests made up. */
export type Surroundings = {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** Emits `SIGINT` and `SIGTERM`. */
  readonly signals: Pick<EventEmitter, 'on' | 'off'>;
  /** Ends the process at once: the answer to a second signal. */
  readonly exitNow: (code: number) => void;
};

export const processSurroundings = (): Surroundings => ({
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signals: process,
  exitNow: (code) => process.exit(code),
});

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'underline';

/** Where a command writes: results to stdout, everything said about them to stderr. */
export class Terminal {
  /** Columns that a line may take; without a terminal lines are as long as they are, so that programs get them whole. */
  readonly width: number;
  /** True when a person looks at stdout. */
  readonly interactive: boolean;
  readonly #surroundings: Surroundings;
  readonly #colored: boolean;

  constructor(surroundings: Surroundings) {
    const { env, stdout } = surroundings;
    this.#surroundings = surroundings;
    this.interactive = stdout.isTTY === true;
    const columns = stdout.columns ?? Number.parseInt(env['COLUMNS'] ?? '', 10);
    this.width = this.interactive && columns > 0 ? columns : Number.POSITIVE_INFINITY;
    this.#colored = wantsColor(env, this.interactive);
  }

  line(text = ''): void {
    this.write(`${text}\n`);
  }

  write(text: string): void {
    this.#surroundings.stdout.write(text);
  }

  /** Beside the result: progress, warnings, hints. */
  note(text: string): void {
    this.#surroundings.stderr.write(`${text}\n`);
  }

  /** The command's one JSON document. */
  json(document: unknown): void {
    this.line(JSON.stringify(document, undefined, this.interactive ? 2 : undefined));
  }

  paint(style: Style, text: string): string {
    return this.#colored ? styleText(style, text, { validateStream: false }) : text;
  }
}

function wantsColor(env: NodeJS.ProcessEnv, interactive: boolean): boolean {
  if (env['NO_COLOR']) return false;
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined && forced !== '') return forced !== '0' && forced !== 'false';
  return interactive && env['TERM'] !== 'dumb';
}

const TAB_OR_RETURN = /\t|\r\n?/g;

/**
 * Text from a model or a tool as a terminal may show it: no control or invisible character gets through, but line feeds, tabs (as
 * spaces) and returns (as line feeds) stay what they mean.
 */
export const safeText = (text: string): string =>
  printable(text.replace(TAB_OR_RETURN, (found) => (found === '\t' ? '    ' : '\n')));
