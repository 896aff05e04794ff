import { GatewayError, isGatewayError, newId, printableLine } from '#base';
import { type Approval, type ApprovalDecision, agentId, type ThinkingLevel } from '#domain';
import { decisionOf, questionPrompt, showQuestion } from './approval-question.ts';
import { EXIT, faultLine, UsageError } from './fault.ts';
import { connectGateway, sessionKeyFor } from './gateway-link.ts';
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
type Watch = { readonly view: RunView | undefined; readonly interruption: Interruption };

const MESSAGE_BYTES_MAX = 1024 * 1024;

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

/** Asks the person at this terminal. Without one the answer is no: nobody is there who could mean yes. */
async function decide(context: CommandContext, approval: Approval, watch: Watch): Promise<ApprovalDecision> {
  const { stdin, stderr } = context.surroundings;
  if (!stdin.isTTY || !stderr.isTTY) {
    context.terminal.note(`✗ not run, because nobody can be asked here: ${printableLine(approval.command, 200)}`);
    return 'deny';
  }
  watch.view?.interrupt();
  const { createInterface } = await import('node:readline/promises');
  const reader = createInterface({ input: stdin, output: stderr });
  const deadline = AbortSignal.timeout(Math.max(1, approval.expiresAt - Date.now()));
  try {
    // On stderr, like every question: stdout may be a file.
    showQuestion(new Terminal({ ...context.surroundings, stdout: stderr }), approval);
    for (;;) {
      const signal = AbortSignal.any([watch.interruption.signal, deadline]);
      const decision = decisionOf(await reader.question(questionPrompt(approval), { signal }), approval);
      if (decision) return decision;
    }
  } catch (thrown) {
    if (watch.interruption.signal.aborted || deadline.aborted) return 'deny';
    throw thrown;
  } finally {
    reader.close();
  }
}

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
  client.on('exec.approval.requested', ({ request }) => {
    if (request.runId === undefined ? request.sessionKey !== place.sessionKey : request.runId !== place.runId) return;
    view?.interrupt();
    context.terminal.note(`! waits for your answer in the web chat: ${printableLine(request.command, 200)}`);
  });
  const stopped = new AbortController();
  const stop = () => {
    // The gateway confirms by ending the run; if it cannot even be told, waiting for that makes no sense.
    client.request('chat.abort', place).catch((thrown: unknown) => stopped.abort(thrown));
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
  }
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
