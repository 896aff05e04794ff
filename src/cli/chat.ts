import { createInterface, type Interface } from 'node:readline';
import { isGatewayError, newId } from '#base';
import type { AgentEvent, ApprovalRecord } from '#client';
import { APPROVAL_DECISIONS, agentId, type SessionKey, type ThinkingLevel } from '#domain';
import { decisionOf, type Question, questionPrompt, showQuestion } from './approval-question.ts';
import { EXIT, faultLine, faultOf } from './fault.ts';
import { connectGateway, type GatewayLink, sessionKeyFor } from './gateway-link.ts';
import type { CommandContext } from './program.ts';
import { outcomeOfResponse } from './run-outcome.ts';
import { RunView } from './run-view.ts';
import type { Terminal } from './terminal.ts';
import { wireRunListener } from './wire-run.ts';

type Options = { readonly session?: string; readonly agent?: string; readonly thinking?: ThinkingLevel };

/** `reins chat`: a conversation in this terminal. Also takes its lines from a pipe, one message a line. */
export async function chat(context: CommandContext, options: Options): Promise<number> {
  if (options.agent !== undefined) agentId(options.agent);
  using link = await connectGateway(context, { whenLost: 'keep' });
  const { terminal } = context;
  const sessionKey = sessionKeyFor(link, options);
  if (terminal.interactive) {
    terminal.line(terminal.paint('dim', `Session ${sessionKey}. /help lists commands, Ctrl-C stops a run or leaves.`));
  }
  return await new ChatScreen(context, link, sessionKey, options).talk();
}

/** Lines typed while a run is under way wait their turn; more than this are refused. */
const WAITING_MAX = 32;
/** Presses of Ctrl-C this close together are one: a terminal and npm may both tell of it. */
const ECHO_MS = 500;

type Run = {
  readonly runId: string;
  readonly view: RunView;
  readonly listen: (event: AgentEvent) => void;
  stopping: boolean;
};
type Asked = { readonly id: string; readonly question: Question };

class ChatScreen {
  readonly #context: CommandContext;
  readonly #terminal: Terminal;
  readonly #link: GatewayLink;
  readonly #sessionKey: SessionKey;
  readonly #thinking: ThinkingLevel | undefined;
  readonly #reader: Interface;
  readonly #waiting: string[] = [];
  readonly #questions: Asked[] = [];
  readonly #left = Promise.withResolvers<number>();
  #run: Run | undefined;
  #inputEnded = false;
  #interruptedAt = Number.NEGATIVE_INFINITY;

  constructor(context: CommandContext, link: GatewayLink, sessionKey: SessionKey, options: Options) {
    this.#context = context;
    this.#terminal = context.terminal;
    this.#link = link;
    this.#sessionKey = sessionKey;
    this.#thinking = options.thinking;
    const { stdin, stdout } = context.surroundings;
    this.#reader = createInterface({
      input: stdin,
      ...(this.#terminal.interactive ? { output: stdout } : {}),
      terminal: this.#terminal.interactive && stdin.isTTY === true,
    });
  }

  /** Until the person leaves, the input ends and was answered, or the gateway refuses for good. */
  async talk(): Promise<number> {
    const { signals } = this.#context.surroundings;
    const onInterrupt = () => this.#interrupted();
    const onTerminate = () => this.#left.resolve(EXIT.terminated);
    this.#listen();
    this.#reader.on('line', (line) => this.#typed(line));
    this.#reader.on('SIGINT', onInterrupt);
    this.#reader.on('close', () => {
      this.#inputEnded = true;
      this.#next();
    });
    signals.on('SIGINT', onInterrupt);
    signals.on('SIGTERM', onTerminate);
    this.#next();
    try {
      return await this.#left.promise;
    } finally {
      signals.off('SIGINT', onInterrupt);
      signals.off('SIGTERM', onTerminate);
      this.#reader.close();
    }
  }

  #listen(): void {
    const { client } = this.#link;
    client.on('agent', (event) => {
      if (event.runId === this.#run?.runId) this.#run.listen(event);
    });
    client.on('exec.approval.requested', (record) => this.#asked(record));
    client.on('exec.approval.resolved', ({ id, decision }) => this.#answeredElsewhere(id, decision));
    client.onState((state) => {
      if (state.status === 'reconnecting' && state.attempt === 1)
        this.#say('yellow', '! connection lost, trying again…');
      if (state.status === 'connected') this.#say('dim', 'connected again');
      if (state.status === 'refused') this.#fail(state.error);
    });
  }

  #typed(line: string): void {
    if (this.#questions.length > 0) {
      this.#decide(line);
      return;
    }
    const text = line.trim();
    if (text === '/quit' || text === '/exit') {
      this.#left.resolve(EXIT.done);
    } else if (this.#run && text === '/stop') {
      this.#stopRun(this.#run);
    } else if (text === '') {
      if (!this.#run) this.#prompt();
    } else if (this.#waiting.length >= WAITING_MAX) {
      this.#terminal.note(faultLine('Too many lines wait for an answer', 'wait for one, or stop the run with /stop'));
    } else {
      this.#waiting.push(line);
      if (!this.#run) this.#next();
    }
  }

  /** What to do when nothing is under way: the next line that waits, the prompt, or the end. */
  #next(): void {
    if (this.#run || this.#questions.length > 0) return;
    const line = this.#waiting.shift();
    if (line !== undefined) {
      this.#ask(line).catch((thrown: unknown) => this.#fail(thrown));
    } else if (this.#inputEnded) this.#left.resolve(EXIT.done);
    else this.#prompt();
  }

  #prompt(): void {
    if (!this.#terminal.interactive || this.#inputEnded) return;
    const asked = this.#questions[0];
    this.#reader.setPrompt(asked ? questionPrompt(asked.question) : this.#terminal.paint('bold', '› '));
    this.#reader.prompt(true);
  }

  async #ask(message: string): Promise<void> {
    const view = new RunView({ terminal: this.#terminal, details: this.#terminal.interactive ? 'stdout' : 'none' });
    const run: Run = { runId: newId(), view, listen: wireRunListener(view), stopping: false };
    this.#run = run;
    const place = { runId: run.runId, sessionKey: this.#sessionKey };
    try {
      const response = await this.#link.client.run({
        message,
        idempotencyKey: run.runId,
        sessionKey: this.#sessionKey,
        ...(this.#thinking === undefined ? {} : { thinking: this.#thinking }),
      });
      const outcome = outcomeOfResponse(place, response);
      view.end(outcome.texts);
      if (outcome.outcome === 'aborted') this.#say('yellow', '■ stopped');
    } catch (thrown) {
      view.end([]);
      if (isGatewayError(thrown, 'RUN_ABORTED')) this.#say('yellow', '■ stopped');
      else {
        const { message: what, next } = faultOf(thrown);
        this.#terminal.note(faultLine(what, next));
      }
    } finally {
      this.#run = undefined;
    }
    if (this.#terminal.interactive) this.#terminal.line();
    this.#next();
  }

  #stopRun(run: Run): void {
    run.stopping = true;
    this.#link.client
      .request('chat.abort', { sessionKey: this.#sessionKey, runId: run.runId })
      .catch((thrown: unknown) =>
        this.#terminal.note(faultLine(`The run could not be stopped: ${faultOf(thrown).message}`, 'Ctrl-C leaves')),
      );
  }

  /** Ctrl-C: stops the run, the next one leaves; without a run it leaves. */
  #interrupted(): void {
    const now = performance.now();
    if (now - this.#interruptedAt < ECHO_MS) return;
    this.#interruptedAt = now;
    if (!this.#run || this.#run.stopping) {
      this.#left.resolve(this.#run ? EXIT.interrupted : EXIT.done);
      return;
    }
    this.#stopRun(this.#run);
    this.#run.view.interrupt();
    this.#say('dim', 'stopping; Ctrl-C again leaves');
  }

  #asked({ id, request }: ApprovalRecord): void {
    if (request.sessionKey !== this.#sessionKey) return;
    const question: Question = {
      command: request.command,
      ...(request.cwd === undefined ? {} : { cwd: request.cwd }),
      ...(request.warningText === undefined ? {} : { reason: request.warningText }),
      allowedDecisions: request.allowedDecisions ?? APPROVAL_DECISIONS,
    };
    if (this.#inputEnded) {
      this.#terminal.note(`! waits for your answer in the web chat: ${request.command}`);
      return;
    }
    this.#questions.push({ id, question });
    if (this.#questions.length === 1) this.#showQuestion();
  }

  #showQuestion(): void {
    const asked = this.#questions[0];
    if (!asked) {
      this.#next();
      return;
    }
    this.#run?.view.interrupt();
    showQuestion(this.#terminal, asked.question);
    this.#prompt();
  }

  #decide(line: string): void {
    const asked = this.#questions[0]!;
    const decision = decisionOf(line, asked.question);
    if (decision === undefined) {
      this.#prompt();
      return;
    }
    this.#questions.shift();
    this.#link.client.request('exec.approval.resolve', { id: asked.id, decision }).catch((thrown: unknown) => {
      const { message, next } = faultOf(thrown);
      this.#terminal.note(faultLine(message, next));
    });
    this.#showQuestion();
  }

  #answeredElsewhere(id: string, decision: string): void {
    const place = this.#questions.findIndex((asked) => asked.id === id);
    if (place < 0) return;
    this.#questions.splice(place, 1);
    this.#say('dim', `answered elsewhere: ${decision}`);
    if (place === 0) this.#showQuestion();
  }

  #say(style: 'dim' | 'yellow', text: string): void {
    this.#run?.view.interrupt();
    this.#terminal.note(this.#terminal.paint(style, text));
  }

  #fail(thrown: unknown): void {
    const { message, next } = faultOf(thrown);
    this.#terminal.note(faultLine(message, next));
    this.#left.resolve(EXIT.failed);
  }
}
