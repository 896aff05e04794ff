import { printableLine } from '#base';
import type { RunEvent, ToolOutcome, UserContent } from '#domain';
import { safeText, type Terminal } from './terminal.ts';

const ARGUMENTS_SHOWN_MAX = 100;
const OUTCOME_SHOWN_MAX = 160;

export type RunViewOptions = {
  readonly terminal: Terminal;
  /** Where thinking and tools are told: with the answer, beside it, or not at all. The answer itself always goes to stdout. */
  readonly details: 'stdout' | 'stderr' | 'none';
};

/** A run as it goes, on a terminal or into a pipe: the answer's text once and in order, thinking dimmed, one line a tool step. */
export class RunView {
  readonly #terminal: Terminal;
  readonly #details: RunViewOptions['details'];
  /** What was printed of the message that is being written. */
  #printed = '';
  #turn = -1;
  #anyText = false;
  #place: 'line-start' | 'in-text' | 'in-thinking' = 'line-start';

  constructor(options: RunViewOptions) {
    this.#terminal = options.terminal;
    this.#details = options.details;
  }

  /**
   * The text of turn `turn` so far, whole: where an answer broke off and is written again, what is already there is not repeated as
   * long as the new one agrees with it.
   */
  answer(turn: number, text: string): void {
    if (turn !== this.#turn) {
      this.#turn = turn;
      this.#printed = '';
    }
    if (text === '' || this.#printed.startsWith(text)) return;
    if (!text.startsWith(this.#printed)) this.#printed = '';
    const isNewMessage = this.#printed === '';
    if (isNewMessage && this.#anyText) {
      this.#toLineStart();
      this.#terminal.line();
    } else if (this.#place === 'in-thinking') this.#toLineStart();
    this.#terminal.write(safeText(text.slice(this.#printed.length)));
    this.#place = text.endsWith('\n') ? 'line-start' : 'in-text';
    this.#printed = text;
    this.#anyText = true;
  }

  thinking(text: string): void {
    if (this.#details !== 'stdout' || text === '') return;
    if (this.#place === 'in-text') this.#toLineStart();
    this.#terminal.write(this.#terminal.paint('dim', safeText(text)));
    this.#place = text.endsWith('\n') ? 'line-start' : 'in-thinking';
  }

  toolStart(name: string, args: unknown): void {
    this.#detail('dim', `· ${name} ${printableLine(argumentsText(args), ARGUMENTS_SHOWN_MAX)}`);
  }

  toolEnd(name: string, outcome: ToolOutcome, content: readonly UserContent[]): void {
    if (outcome === 'ok') this.#detail('dim', `✓ ${name}`);
    else this.#detail('yellow', `✗ ${name} ${outcome}: ${printableLine(firstText(content), OUTCOME_SHOWN_MAX)}`);
  }

  /** The run is over. `texts` is the whole answer: what no delta brought is printed now. */
  end(texts: readonly string[]): void {
    const whole = texts.filter((text) => text !== '');
    if (!this.#anyText && whole.length > 0) {
      this.#toLineStart();
      this.#terminal.write(safeText(whole.join('\n\n')));
      this.#place = 'in-text';
    }
    this.#toLineStart();
  }

  /** Makes room for a line of somebody else's. */
  interrupt(): void {
    this.#toLineStart();
  }

  #detail(style: 'dim' | 'yellow', text: string): void {
    if (this.#details === 'none') return;
    if (this.#details === 'stderr') {
      if (this.#terminal.interactive) this.#toLineStart();
      this.#terminal.note(this.#terminal.paint(style, text));
      return;
    }
    this.#toLineStart();
    this.#terminal.line(this.#terminal.paint(style, text));
  }

  #toLineStart(): void {
    if (this.#place !== 'line-start') this.#terminal.line();
    this.#place = 'line-start';
  }
}

/** Tells a view of a run that happens in this process. */
export function localRunListener(view: RunView): (event: RunEvent) => void {
  let turn = -1;
  let text = '';
  return (event) => {
    switch (event.type) {
      case 'turn-retry':
        text = '';
        break;
      case 'text-delta':
        text = event.turn === turn ? text + event.text : event.text;
        turn = event.turn;
        view.answer(turn, text);
        break;
      case 'thinking-delta':
        view.thinking(event.text);
        break;
      case 'tool-start':
        view.toolStart(event.call.name, event.call.arguments);
        break;
      case 'tool-end':
        view.toolEnd(event.call.name, event.outcome, event.content);
        break;
    }
  };
}

function argumentsText(args: unknown): string {
  if (typeof args !== 'object' || args === null) return '';
  const values = Object.values(args);
  const only = values.length === 1 ? values[0] : undefined;
  return typeof only === 'string' ? only : JSON.stringify(args);
}

function firstText(content: readonly UserContent[]): string {
  const block = content.find((one) => one.type === 'text');
  return block?.type === 'text' ? (block.text.trim().split('\n', 1)[0] ?? '') : '';
}
