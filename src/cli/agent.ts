import { GatewayError, isGatewayError, newId, printableLine } from '#base';
import type { ApprovalRecord } from '#client';
import { APPROVAL_DECISIONS, type ApprovalDecision, agentId, type ThinkingLevel } from '#domain';
import { decisionOf, type Question, questionPrompt, showQuestion } from './approval-question.ts';
import { EXIT, faultLine, faultOf, UsageError } from './fault.ts';
import { connectGateway, type GatewayLink, sessionKeyFor } from './gateway-link.ts';
import { Interruption } from './interruption.ts';
import type { CommandContext } from './program.ts';
import { outcomeOfFailure, outcomeOfResponse, outcomeOfResult, type RunOutcome } from './run-outcome.ts';
import { localRunListener, RunView } from './run-view.ts';
import { Terminal } from './terminal.ts';
import { wireRunListener } from './wire-run.ts';

export type AgentOptions = {
  readonly message?: string;
  readonly session?: string;
  readonly agent?: string;
  readonly local?: boolean;
  readonly model?: string;
  readonly thinking?: ThinkingLevel;
  /** Seconds. */
  readonly timeout?: number;
  readonly json?: boolean;
};

type Asked = AgentOptions & { readonly message: string };
type Pending = Pick<ApprovalRecord, 'id' | 'request' | 'expiresAtMs'>;
type Place = { readonly runId: string; readonly sessionKey: string };
type Watch = { readonly view: RunView | undefined; readonly interruption: Interruption };

const MESSAGE_BYTES_MAX = 1024 * 1024;
/** How long a stopped run may take to say that it ended. */
const LEAVE_AFTER_MS = 2_000;
const JOINED_AFTER_MS = 500;

/** `reins agent`: one message, its answer streamed to stdout; what else happens goes to stderr where a person sees it. */
export async function agent(context: CommandContext, options: AgentOptions): Promise<number> {
  const { surroundings, terminal } = context;
  if (options.agent !== undefined) agentId(options.agent);
  const message = options.message ?? (await readMessage(context));
  if (message.trim() === '') throw new UsageError('there is no message', 'give one with --message, or on stdin');
  using interruption = new Interruption(surroundings);
  // With --json stdout belongs to the one document.
  const view = options.json
    ? undefined
    : new RunView({ terminal, details: surroundings.stderr.isTTY === true ? 'stderr' : 'none' });
  const run = options.local ? runHere : runOnGateway;
  const outcome = await run(context, { ...options, message }, { view, interruption });
  view?.end(outcome.texts);
  if (options.json) terminal.json({ ok: outcome.outcome === 'answered', ...outcome });
  else if (outcome.error && outcome.outcome !== 'aborted') {
    terminal.note(faultLine(outcome.error.message, outcome.error.next ?? `see docs/errors.md, ${outcome.error.code}`));
  }
  if (outcome.outcome === 'answered') return EXIT.done;
  if (outcome.outcome === 'failed') return EXIT.failed;
  if (!options.json) terminal.note('■ stopped');
  return interruption.exitCode;
}

async function runHere(context: CommandContext, asked: Asked, { view, interruption }: Watch): Promise<RunOutcome> {
  const { runLocal } = await import('#app');
  const listen = view && localRunListener(view);
  const place = { runId: '', sessionKey: asked.session ?? 'main' };
  const result = await runLocal({
    env: context.env,
    message: asked.message,
    ...(asked.session === undefined ? {} : { session: asked.session }),
    ...(asked.agent === undefined ? {} : { agent: asked.agent }),
    ...(asked.model === undefined ? {} : { model: asked.model }),
    ...(asked.thinking === undefined ? {} : { thinking: asked.thinking }),
    ...(asked.timeout === undefined ? {} : { timeoutMs: asked.timeout * 1000 }),
    onNotice: (notice) => {
      place.runId = notice.runId;
      place.sessionKey = notice.sessionKey;
      listen?.(notice.event);
    },
    onApproval: (approval) => decide(context, approval, { view, interruption }),
    signal: interruption.signal,
  });
  return outcomeOfResult(place, result);
}

/** Asks the person at this terminal, where there is one. @param gone aborts when somebody else has answered */
async function decide(
  context: CommandContext,
  question: Question & { readonly expiresAt: number },
  watch: Watch,
  gone?: AbortSignal,
): Promise<ApprovalDecision | 'nobody'> {
  const { stdin, stderr } = context.surroundings;
  if (!canAsk(context)) {
    context.terminal.note(`✗ not run, because nobody can be asked here: ${printableLine(question.command, 200)}`);
    return 'nobody';
  }
  watch.view?.interrupt();
  const { createInterface } = await import('node:readline/promises');
  const reader = createInterface({ input: stdin, output: stderr });
  const deadline = AbortSignal.timeout(Math.max(1, question.expiresAt - Date.now()));
  const signal = AbortSignal.any([watch.interruption.signal, deadline, ...(gone ? [gone] : [])]);
  try {
    // On stderr, like every question: stdout may be a file.
    showQuestion(new Terminal({ ...context.surroundings, stdout: stderr }), question);
    for (;;) {
      const decision = decisionOf(await reader.question(questionPrompt(question), { signal }), question);
      if (decision) return decision;
    }
  } catch (thrown) {
    if (signal.aborted) return 'nobody';
    throw thrown;
  } finally {
    reader.close();
  }
}

const canAsk = ({ surroundings: { stdin, stderr } }: CommandContext): boolean =>
  stdin.isTTY === true && stderr.isTTY === true;

async function runOnGateway(context: CommandContext, asked: Asked, { view, interruption }: Watch): Promise<RunOutcome> {
  using link = await connectGateway(context, {
    next: 'start one with: reins start (or run without one: reins agent --local)',
    signal: interruption.signal,
  });
  const { client } = link;
  const place = { runId: newId(), sessionKey: sessionKeyFor(link, asked) };
  const listen = view && wireRunListener(view);
  client.on('agent', (event) => {
    if (event.runId === place.runId) listen?.(event);
  });
  const desk = new QuestionDesk(context, link, place, { view, interruption });
  await desk.open();
  const joined = noteWhenJoined(context, link, place.runId);
  const stopped = new AbortController();
  const leave = () => stopped.abort(interruption.signal.reason);
  const stop = () => {
    // The gateway confirms by ending the run. One that it cannot end (another run has taken the message in) is not waited for.
    client.request('chat.abort', place).then(({ aborted }) => {
      if (!aborted) leave();
      else setTimeout(leave, LEAVE_AFTER_MS).unref();
    }, leave);
  };
  interruption.signal.addEventListener('abort', stop, { once: true });
  try {
    const response = await client.run(
      {
        message: asked.message,
        idempotencyKey: place.runId,
        sessionKey: place.sessionKey,
        ...(asked.agent === undefined ? {} : { agentId: asked.agent }),
        ...(asked.thinking === undefined ? {} : { thinking: asked.thinking }),
        ...(asked.model === undefined ? {} : { model: asked.model }),
        ...(asked.timeout === undefined ? {} : { timeout: asked.timeout }),
      },
      { signal: stopped.signal },
    );
    return outcomeOfResponse(place, response);
  } catch (thrown) {
    if (isGatewayError(thrown, 'GATEWAY_UNREACHABLE', 'UNAUTHORIZED')) throw thrown;
    return outcomeOfFailure(place, thrown);
  } finally {
    interruption.signal.removeEventListener('abort', stop);
    joined.done();
    desk.close();
  }
}

/** The questions of a session while its message is waited for: asked here where a person is, else pointed at. */
class QuestionDesk {
  readonly #context: CommandContext;
  readonly #link: GatewayLink;
  readonly #place: Place;
  readonly #watch: Watch;
  readonly #open = new Map<string, AbortController>();
  /** One question at a time has the terminal. */
  #turn: Promise<void> = Promise.resolve();

  constructor(context: CommandContext, link: GatewayLink, place: Place, watch: Watch) {
    this.#context = context;
    this.#link = link;
    this.#place = place;
    this.#watch = watch;
  }

  /** Also those that waited before: until they are answered, nothing else of this session goes on. */
  async open(): Promise<void> {
    const { client } = this.#link;
    client.on('exec.approval.requested', (record) => this.#take(record));
    client.on('exec.approval.resolved', ({ id }) => this.#open.get(id)?.abort());
    for (const record of await client.request('exec.approval.list', {})) this.#take(record);
  }

  close(): void {
    for (const gone of this.#open.values()) gone.abort();
  }

  #take({ id, request, expiresAtMs }: Pending): void {
    if (request.sessionKey !== this.#place.sessionKey || this.#open.has(id)) return;
    const gone = new AbortController();
    this.#open.set(id, gone);
    if (!canAsk(this.#context)) {
      this.#watch.view?.interrupt();
      const whose = request.runId === this.#place.runId ? '' : ' another run of this session';
      const minutes = Math.max(1, Math.round((expiresAtMs - Date.now()) / 60_000));
      this.#context.terminal.note(
        `!${whose} waits for your answer in the web chat or “reins chat”, at most ${minutes} min (Ctrl-C stops): ${printableLine(request.command, 200)}`,
      );
      return;
    }
    this.#turn = this.#turn.then(() => this.#ask({ id, request, expiresAtMs }, gone.signal));
  }

  async #ask({ id, request, expiresAtMs }: Pending, gone: AbortSignal): Promise<void> {
    if (gone.aborted) return;
    const question = {
      command: request.command,
      ...(request.cwd === undefined ? {} : { cwd: request.cwd }),
      ...(request.warningText === undefined ? {} : { reason: request.warningText }),
      allowedDecisions: request.allowedDecisions ?? APPROVAL_DECISIONS,
      expiresAt: expiresAtMs,
    };
    const decision = await decide(this.#context, question, this.#watch, gone);
    if (decision === 'nobody') return;
    await this.#link.client.request('exec.approval.resolve', { id, decision }).catch((thrown: unknown) => {
      const { message, next } = faultOf(thrown);
      this.#context.terminal.note(faultLine(message, next));
    });
  }
}

/** Says so when another run took the message in: its own run ends without a word, and the answer comes with that one's. */
function noteWhenJoined(
  { terminal }: CommandContext,
  { client }: GatewayLink,
  runId: string,
): { readonly done: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const leave = client.on('chat', (event) => {
    if (event.runId !== runId || event.state !== 'final' || event.message !== undefined) return;
    // A run that simply had nothing to say is answered in the same moment.
    timer = setTimeout(() => terminal.note('… added to the run under way; its answer follows'), JOINED_AFTER_MS);
  });
  return {
    done: () => {
      clearTimeout(timer);
      leave();
    },
  };
}

async function readMessage(context: CommandContext): Promise<string> {
  const { stdin } = context.surroundings;
  if (stdin.isTTY) return '';
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stdin) {
    const piece = Buffer.from(part as string | Uint8Array);
    bytes += piece.length;
    if (bytes > MESSAGE_BYTES_MAX) {
      throw new GatewayError('MESSAGE_TOO_LARGE', 'The message on stdin is larger than 1 MiB', {
        next: 'Put long material in a file of the workspace and name it.',
      });
    }
    parts.push(piece);
  }
  return Buffer.concat(parts).toString('utf8');
}
