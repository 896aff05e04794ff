import {
  ArgumentChecker,
  ContextMemory,
  promptEntries,
  type RunState,
  recoveryEntries,
  runLoop,
  runStateOf,
  systemPrompt,
  userEntry,
} from '#agent';
import { type Clock, estimateTokens, isGatewayError, LruMap, messageOf } from '#base';
import type { ExecGate, ModelApi, ModelProfile, Provider, Tool } from '#contract';
import { type AgentId, inboundMeta, type NewEntry, NO_USAGE, type RunResult, type TranscriptEntry } from '#domain';
import { type ChosenModel, type Models, usageOf } from '#models';
import type { SessionRow, Transcript } from '#sessions';
import { type ActiveRun, Deadline } from './active-run.ts';
import type { AgentRunSettings } from './agent-run.ts';

export type ConverseOptions = {
  readonly clock: Clock;
  readonly models: Models;
  readonly provider: (api: ModelApi) => Promise<Provider>;
  readonly tools: () => Promise<readonly Tool[]>;
  readonly execGate: ExecGate;
  /** Name and text of an agent's workspace files. */
  readonly workspaceTexts: (agent: AgentId) => Promise<readonly { readonly name: string; readonly text: string }[]>;
  /** IANA name of the time zone that models are told. */
  readonly zone: string;
};

/** Tokens of a model's window that neither history nor the answer may use: estimates are estimates. */
const WINDOW_MARGIN = 0.05;
/** The part of the window that is kept for the answer, at most. */
const ANSWER_SHARE = 0.25;
const SYSTEMS_MAX = 64;

/** Takes one run through its session's transcript: from the person's words to the end of the loop. */
export class Conversation {
  readonly #options: ConverseOptions;
  readonly #checker = new ArgumentChecker();
  readonly #memory = new ContextMemory();
  readonly #systemTokens = new LruMap<string, number>({ max: SYSTEMS_MAX });
  readonly #toolTokens = new WeakMap<Tool, number>();

  constructor(options: ConverseOptions) {
    this.#options = options;
  }

  /**
   * @param takeSteered messages that wait in the session's lane and are to be seen by this run
   * @returns undefined when the gateway goes down: the run goes on after the restart
   */
  async run(
    run: ActiveRun,
    session: SessionRow,
    settings: AgentRunSettings,
    transcript: Transcript,
    takeSteered: () => readonly ActiveRun[],
  ): Promise<RunResult | undefined> {
    const state: RunState = run.resumed ? runStateOf(transcript.branch, run.id) : { at: 'not-started' };
    if (state.at === 'ended') return resultOf(state);
    run.emit({ type: 'run-start', at: this.#options.clock.now(), resumed: run.resumed });
    const chosen = this.#chosen(run, session, settings);
    if (!('profile' in chosen)) return this.#unanswerable(run, transcript, chosen);
    const { profile } = chosen;
    const thinking =
      run.envelope.options?.thinking ??
      session.thinkingLevel ??
      settings.thinking ??
      (profile.reasoning ? 'low' : 'off');
    const append = (...entries: readonly NewEntry[]) => transcript.append(this.#options.clock.now(), ...entries);
    if (state.at === 'under-way') append(...recoveryEntries(transcript.branch, this.#options.clock.now()));
    else
      this.#tell(
        run,
        transcript,
        append(...promptEntries(transcript.branch, run.envelope, { profile, thinking, zone: this.#options.zone })),
      );

    const [provider, allTools, files] = await Promise.all([
      this.#options.provider(profile.api),
      this.#options.tools(),
      this.#options.workspaceTexts(settings.agent),
    ]);
    const tools = settings.toolsFor(allTools, { sender: run.envelope.sender, channel: run.envelope.channel });
    const system = systemPrompt({
      agentName: settings.name,
      workspace: settings.workspace,
      toolNames: tools.map((tool) => tool.name),
      files,
      meta: inboundMeta(run.envelope),
      extra: [settings.systemExtra, run.envelope.options?.extraSystem ?? ''].filter((text) => text !== '').join('\n\n'),
    });
    const deadline = new Deadline({
      clock: this.#options.clock,
      timeoutMs: run.envelope.options?.timeoutMs ?? settings.timeoutMs,
      expire: (reason) => run.abort(reason),
    });
    // Whoever waits for a person does not use up the agent's time; a time that this very message asked for is all time.
    const { execGate } = this.#options;
    const isAsked = run.envelope.options?.timeoutMs !== undefined;
    const pausing: ExecGate = { authorise: (...args) => deadline.pausedFor(() => execGate.authorise(...args)) };
    const ports = { exec: isAsked ? execGate : pausing };
    try {
      return await runLoop(
        {
          profile,
          provider,
          access: () => this.#options.models.access(profile),
          thinking,
          system,
          tools,
          window: {
            exchanges: settings.exchanges,
            tokens: historyTokens(profile, settings, this.#fixedTokens(system, tools)),
          },
          limits: settings.limits,
          bound: settings.bound,
          before: state.at === 'under-way' ? state : { turns: 0, texts: [], usage: NO_USAGE },
        },
        {
          clock: this.#options.clock,
          checker: this.#checker,
          memory: this.#memory,
          branch: () => transcript.branch,
          append,
          messageSeq: () => transcript.messageCount,
          emit: (event) => run.emit(event),
          priced: (counts) => usageOf(counts, profile),
          steered: () => takeSteered().map((other) => userEntry(other.envelope, this.#options.zone)),
          contextFor: (callId, progress) => ({
            agent: settings.agent,
            sessionKey: run.envelope.sessionKey,
            runId: run.id,
            callId,
            workspace: settings.workspace,
            owner: run.envelope.sender.owner,
            signal: run.signal,
            progress,
            ports,
          }),
        },
        run.signal,
      );
    } finally {
      deadline.close();
    }
  }

  /** Tokens of what every request has in front; the same text is not counted twice. */
  #fixedTokens(system: string, tools: readonly Tool[]): number {
    let tokens = this.#systemTokens.get(system);
    if (tokens === undefined) {
      tokens = estimateTokens(system);
      this.#systemTokens.set(system, tokens);
    }
    for (const tool of tools) {
      let weight = this.#toolTokens.get(tool);
      if (weight === undefined) {
        weight = estimateTokens(tool.description) + estimateTokens(JSON.stringify(tool.parameters));
        this.#toolTokens.set(tool, weight);
      }
      tokens += weight;
    }
    return tokens;
  }

  #chosen(run: ActiveRun, session: SessionRow, settings: AgentRunSettings): ChosenModel | { readonly error: unknown } {
    try {
      return this.#options.models.choose(
        [run.envelope.options?.model, session.modelOverride, settings.model],
        settings.provider,
      );
    } catch (error) {
      return { error };
    }
  }

  /** The person's words and the reason why nothing answers them are kept, so that the conversation shows both. */
  #unanswerable(run: ActiveRun, transcript: Transcript, { error }: { readonly error: unknown }): RunResult {
    const message = isGatewayError(error) && error.next ? `${error.message}. ${error.next}` : messageOf(error);
    const now = this.#options.clock.now();
    const failure = {
      api: 'none',
      provider: 'reins',
      model: 'none',
      usage: NO_USAGE,
      stopReason: 'error',
      timestamp: now,
    } as const;
    this.#tell(
      run,
      transcript,
      transcript.append(now, userEntry(run.envelope, this.#options.zone), {
        type: 'message',
        message: { role: 'assistant', content: [], errorMessage: message, ...failure },
      }),
    );
    const code = isGatewayError(error) ? error.code : 'RUN_FAILED';
    return {
      outcome: 'failed',
      texts: [],
      usage: NO_USAGE,
      provider: 'reins',
      model: 'none',
      turns: 0,
      error: { code, message },
    };
  }

  #tell(run: ActiveRun, transcript: Transcript, entries: readonly TranscriptEntry[]): void {
    const messages = entries.filter((entry) => entry.type === 'message');
    messages.forEach((entry, i) => {
      const seq = transcript.messageCount - (messages.length - 1 - i);
      run.emit({ type: 'message', entryId: entry.id, message: entry.message, seq });
    });
  }
}

/** The result of a run whose end an earlier process recorded but did not report. */
function resultOf(state: Extract<RunState, { at: 'ended' }>): RunResult {
  const { last } = state;
  const outcome = last.stopReason === 'error' ? 'failed' : last.stopReason === 'aborted' ? 'aborted' : 'answered';
  return {
    outcome,
    texts: state.texts,
    usage: last.usage,
    provider: last.provider,
    model: last.model,
    turns: state.turns,
    ...(outcome === 'failed'
      ? { error: { code: 'RUN_FAILED' as const, message: last.errorMessage ?? 'The model failed' } }
      : {}),
  };
}

function historyTokens(profile: ModelProfile, settings: AgentRunSettings, fixedTokens: number): number {
  const window = Math.min(profile.contextWindow, settings.contextWindow ?? profile.contextWindow);
  const answer = Math.min(profile.maxTokens, window * ANSWER_SHARE);
  return Math.max(1_000, Math.floor(window * (1 - WINDOW_MARGIN) - answer - fixedTokens));
}
