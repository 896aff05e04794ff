import { runStateOf, SHUTDOWN } from '#agent';
import { GatewayError, isGatewayError, messageOf, newId } from '#base';
import type { Channel } from '#contract';
import {
  type AgentId,
  answerText,
  type Envelope,
  NO_USAGE,
  type QueueMode,
  type RunNotice,
  type RunResult,
  type SessionKey,
} from '#domain';
import type { Models } from '#models';
import { senderMayStartRun } from '#policy';
import { afterRun, type LaneLimits, Lanes, type SessionRow, type Sessions } from '#sessions';
import type { Database } from '#store';
import { ActiveRun } from './active-run.ts';
import type { AgentRunSettings } from './agent-run.ts';
import { type ChatCommand, chatCommand, helpText, statusText } from './commands.ts';
import { Conversation, type ConverseOptions } from './converse.ts';
import { Inbox, type InboxRow } from './inbox.ts';
import { Outbox } from './outbox.ts';
import type { Dispatch, Submission } from './submission.ts';
import { recordUsage } from './usage.ts';

export type DispatcherOptions = Omit<ConverseOptions, 'models'> & {
  readonly database: Database;
  readonly sessions: Sessions;
  readonly models: Models;
  readonly lanes: LaneLimits;
  readonly settings: (agent: AgentId) => AgentRunSettings | undefined;
  readonly channel: (id: string) => Channel | undefined;
  readonly queueMode: () => QueueMode;
  /** Messages that start a session over, as they are written. */
  readonly resetTriggers: () => readonly string[];
  /** How long an answer stands in for a repeated message. */
  readonly idempotencyWindowMs: () => number;
  /** SHA-256 of a text, hex. */
  readonly digest: (text: string) => string;
  readonly log: (level: 'info' | 'warn' | 'error', message: string, fields?: Readonly<Record<string, unknown>>) => void;
  /** One line of the audit log; no message text. */
  readonly audit: (record: Readonly<Record<string, unknown>>) => void;
};

const TEXT_CHARACTERS_MAX = 1_000_000;
const KEY_CHARACTERS_MAX = 256;
const PRUNE_EVERY_MS = 5 * 60_000;
/** How long a gateway that goes down lets its runs finish. */
const SHUTDOWN_GRACE_MS = 4_000;

/** Envelope to admission, lane, run and delivery: the one way in for every message, and the one way out for every answer. */
export class Dispatcher implements Dispatch {
  readonly #options: DispatcherOptions;
  readonly #inbox: Inbox;
  readonly #outbox: Outbox;
  readonly #lanes: Lanes;
  readonly #conversation: Conversation;
  /** Accepted and not finished, by session and key. */
  readonly #active = new Map<string, ActiveRun>();
  readonly #listeners = new Set<(notice: RunNotice) => void>();
  #stopping = false;
  #cancelPrune: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#inbox = new Inbox(options);
    this.#outbox = new Outbox({
      ...options,
      onDeadLetter: (delivery, error) =>
        options.log('error', 'An answer could not be delivered', {
          delivery: delivery.id,
          channel: delivery.channel,
          error,
        }),
      onUnrecorded: (error) =>
        options.log('error', 'What became of a delivery could not be recorded', { error: messageOf(error) }),
    });
    this.#lanes = new Lanes(options.lanes);
    this.#conversation = new Conversation(options);
  }

  /** Takes up what an earlier process accepted and did not finish. Before the first `submit`. @returns how many runs go on */
  async start(): Promise<number> {
    const rows = await this.#inbox.unanswered();
    for (const row of rows) {
      const run = this.#newRun(row.envelope, row.digest, true);
      run.isAdmitted = true;
      run.earlierSessionId = row.sessionId;
      this.#lanes.put(row.envelope.sessionKey, run);
    }
    const deliveries = await this.#outbox.resume();
    if (rows.length + deliveries > 0)
      this.#options.log('info', 'Going on after a restart', { runs: rows.length, deliveries });
    this.#schedulePrune();
    return rows.length;
  }

  async submit(envelope: Envelope): Promise<Submission> {
    this.#check(envelope);
    const digest = this.#options.digest(JSON.stringify([envelope.text, envelope.images.map((image) => image.data)]));
    const known = this.#active.get(slotOf(envelope));
    if (known) {
      assertSame(known.digest, digest, envelope);
      const before = await known.recorded;
      return before ? answered(before, digest) : { runId: known.id, status: 'in_flight', finished: known.finished };
    }
    try {
      this.#lanes.assertRoom(envelope.sessionKey);
    } catch (full) {
      // A repeat needs no room.
      const before = await this.#inbox.find(envelope.idempotencyKey, envelope.sessionKey);
      if (before?.status === 'done') return answered(before, digest);
      throw full;
    }
    const run = this.#newRun(envelope, digest, false);
    const others = this.#othersOf(run);
    run.recorded = this.#record(run);
    run.admitted = run.recorded.then(
      (before) => before === undefined,
      () => false,
    );
    // In its place from now on, so that messages run in the order they came; it waits there until it is on disk.
    this.#lanes.put(envelope.sessionKey, run);
    try {
      const before = await run.recorded;
      if (before) return answered(before, digest);
      // Only a new message stops anything: a repeat of an old one must have no effect.
      if (this.#commandIn(envelope) === 'stop' || run.queue === 'interrupt')
        run.stopped = this.#tellToStop(others).length;
      return { runId: run.id, status: 'started', finished: run.finished };
    } finally {
      if (!run.isAdmitted) {
        this.#active.delete(slotOf(envelope));
        this.#lanes.takeWaiting<ActiveRun>(envelope.sessionKey, (item) => item === run);
      }
    }
  }

  abort(key: SessionKey, runId?: string): readonly string[] {
    const runs = [...this.#active.values()].filter(
      (run) => run.envelope.sessionKey === key && (runId ?? run.id) === run.id && !run.isSteered,
    );
    return this.#tellToStop(runs);
  }

  async wait(runId: string, timeoutMs: number, signal?: AbortSignal): Promise<RunResult | undefined> {
    for (const run of this.#active.values()) {
      if (run.id !== runId) continue;
      const timer = new AbortController();
      const over = this.#options.clock
        .sleep(timeoutMs, signal ? AbortSignal.any([signal, timer.signal]) : timer.signal)
        .then(
          () => undefined,
          () => undefined,
        );
      try {
        return await Promise.race([run.finished, over]);
      } finally {
        timer.abort();
      }
    }
    const row = await this.#inbox.find(runId);
    return row?.status === 'done' ? row.result : undefined;
  }

  activeRun(key: SessionKey): string | undefined {
    return this.#lanes.current(key)?.id;
  }

  subscribe(listener: (notice: RunNotice) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  load(): { readonly running: number; readonly waiting: number } {
    return { running: this.#lanes.running, waiting: this.#lanes.waiting };
  }

  /** Lets runs finish for a moment, then suspends them: they go on after the restart. */
  async close(): Promise<void> {
    this.#stopping = true;
    this.#cancelPrune?.();
    const runs = [...this.#active.values()].map((run) => run.finished);
    const grace = new AbortController();
    const late = this.#options.clock.sleep(SHUTDOWN_GRACE_MS, grace.signal).catch(() => undefined);
    await Promise.race([Promise.all(runs), late]);
    grace.abort();
    for (const run of this.#active.values()) run.abort(SHUTDOWN);
    await this.#idle();
    await this.#outbox.close();
  }

  #check(envelope: Envelope): void {
    if (this.#stopping)
      throw new GatewayError('GATEWAY_STOPPING', 'The gateway is going down', { next: 'Send it again in a moment.' });
    if (!this.#options.settings(envelope.agent)) {
      throw new GatewayError('AGENT_UNKNOWN', `There is no agent "${envelope.agent}"`, {
        next: 'See agents.list in the config.',
      });
    }
    const { allowed, reason } = senderMayStartRun(envelope);
    if (!allowed) throw new GatewayError('UNAUTHORIZED', reason);
    if (envelope.text.trim() === '' && envelope.images.length === 0)
      throw new GatewayError('MESSAGE_INVALID', 'The message is empty');
    if (envelope.text.length > TEXT_CHARACTERS_MAX) {
      throw new GatewayError(
        'MESSAGE_TOO_LARGE',
        `The message has ${envelope.text.length} characters; ${TEXT_CHARACTERS_MAX} are allowed`,
        {
          next: 'Put long material in a file of the workspace and name it.',
        },
      );
    }
    if (envelope.idempotencyKey === '' || envelope.idempotencyKey.length > KEY_CHARACTERS_MAX) {
      throw new GatewayError('MESSAGE_INVALID', `An idempotency key has 1 to ${KEY_CHARACTERS_MAX} characters`);
    }
  }

  #othersOf(run: ActiveRun): readonly ActiveRun[] {
    const { sessionKey } = run.envelope;
    return [...this.#active.values()].filter((other) => other !== run && other.envelope.sessionKey === sessionKey);
  }

  #tellToStop(runs: readonly ActiveRun[]): readonly string[] {
    const told = runs.filter((run) => !run.signal.aborted);
    for (const run of told) {
      run.abort(new GatewayError('RUN_ABORTED', 'Stopped'));
      // One that has not begun is over now: whoever stopped it does not wait for the run before it.
      const isWaiting = run.isAdmitted && !run.resumed;
      if (isWaiting && this.#lanes.takeWaiting<ActiveRun>(run.envelope.sessionKey, (item) => item === run).length > 0) {
        void this.#conclude(run, undefined, { ...note(''), outcome: 'aborted' }, this.#options.clock.now());
      }
    }
    return told.map((run) => run.id);
  }

  async #record(run: ActiveRun): Promise<InboxRow | undefined> {
    const session = await this.#options.sessions.resume(run.envelope.sessionKey, run.envelope);
    run.queue = this.#queueOf(run.envelope, session);
    const before = await this.#inbox.accept(run.envelope, run.digest, session.sessionId);
    if (before === undefined) run.isAdmitted = true;
    return before;
  }

  #queueOf(envelope: Envelope, session?: SessionRow): QueueMode {
    // A caller of the HTTP API waits for its own answer: its message is never put into another one's run.
    if (envelope.channel === 'http') return envelope.queue ?? 'followup';
    return envelope.queue ?? session?.queueMode ?? this.#options.queueMode();
  }

  #newRun(envelope: Envelope, digest: string, resumed: boolean): ActiveRun {
    const run = new ActiveRun({
      envelope,
      digest,
      queue: this.#queueOf(envelope),
      resumed,
      execute: (self) => this.#execute(self),
      publish: (notice) => this.#publish(notice),
    });
    this.#active.set(slotOf(envelope), run);
    return run;
  }

  #publish(notice: RunNotice): void {
    for (const listener of this.#listeners) {
      try {
        listener(notice);
      } catch (error) {
        this.#options.log('error', 'A listener to run events failed', { error: messageOf(error) });
      }
    }
  }

  async #execute(run: ActiveRun): Promise<void> {
    if (!(await run.admitted)) return;
    const startedAt = this.#options.clock.now();
    let session: SessionRow | undefined;
    let result: RunResult | undefined;
    try {
      session = await this.#sessionFor(run);
      session = {
        ...session,
        status: 'running',
        runStartedAt: startedAt,
        updatedAt: startedAt,
        lastInteractionAt: run.envelope.receivedAt,
      };
      const isCurrent = (await this.#options.sessions.get(session.key))?.sessionId === session.sessionId;
      if (isCurrent) this.#options.sessions.remember(session);
      result = await this.#answer(run, session);
    } catch (error) {
      this.#options.log('error', 'A run failed unexpectedly', {
        run: run.id,
        error: messageOf(error),
        stack: (error as Error)?.stack,
      });
      const code = isGatewayError(error) ? error.code : 'RUN_FAILED';
      result = failure({
        code,
        message: isGatewayError(error) ? error.message : 'Something went wrong inside the gateway; see its log',
      });
    }
    if (result === undefined) return this.#suspend(run);
    await this.#conclude(run, session, result, startedAt);
  }

  /** Records the end and tells it. Never rejects. */
  async #conclude(
    run: ActiveRun,
    session: SessionRow | undefined,
    result: RunResult,
    startedAt: number,
  ): Promise<void> {
    try {
      // A session that was reset or deleted meanwhile is not this run's any more.
      const current = await this.#options.sessions.get(run.envelope.sessionKey);
      await this.#finish(run, current?.sessionId === session?.sessionId ? current : undefined, result, startedAt);
    } catch (error) {
      // The answer is in the transcript and the message still counts as unanswered: the next start reports it.
      this.#options.log('error', 'An answer could not be recorded', { run: run.id, error: messageOf(error) });
      this.#end(
        run,
        failure({ code: 'STATE_UNWRITABLE', message: 'The answer could not be recorded: is the disk full?' }),
      );
    }
  }

  /** The session now, but for a run that an earlier process began in a transcript that was reset since: that one, so that nothing is done twice. */
  async #sessionFor(run: ActiveRun): Promise<SessionRow> {
    const session = await this.#options.sessions.resume(run.envelope.sessionKey, run.envelope);
    const sessionId = run.earlierSessionId;
    if (sessionId === undefined || sessionId === session.sessionId) return session;
    const earlier = { ...session, sessionId };
    const state = await this.#options.sessions.withTranscript(earlier, ({ branch }) => runStateOf(branch, run.id));
    return state.at === 'not-started' ? session : earlier;
  }

  async #answer(run: ActiveRun, session: SessionRow): Promise<RunResult | undefined> {
    const command = this.#commandIn(run.envelope);
    if (command) return await this.#command(command, run, session);
    const settings = this.#options.settings(run.envelope.agent);
    if (!settings)
      return failure({ code: 'AGENT_UNKNOWN', message: `There is no agent "${run.envelope.agent}" any more` });
    return await this.#options.sessions.withTranscript(session, (transcript) =>
      this.#conversation.run(run, session, settings, transcript, () => this.#takeSteered(run)),
    );
  }

  #commandIn({ text }: Envelope): ChatCommand | undefined {
    return chatCommand(text, this.#options.resetTriggers());
  }

  async #command(command: ChatCommand, run: ActiveRun, session: SessionRow): Promise<RunResult> {
    run.emit({ type: 'run-start', at: this.#options.clock.now(), resumed: run.resumed });
    const key = run.envelope.sessionKey;
    if (command === 'stop') return note(run.stopped > 0 ? 'Stopped.' : 'Nothing is running.');
    if (command === 'help') return note(helpText());
    if (command === 'status') {
      const model =
        session.modelOverride ??
        (session.model ? `${session.provider}/${session.model}` : this.#options.settings(session.agent)?.model);
      return note(statusText(session, { model: model ?? 'not used yet', waiting: this.#lanes.waiting }));
    }
    await this.#options.sessions.reset(key);
    return note('New session. What was said before stays on disk, but I no longer see it.');
  }

  /** Waiting messages of the same sender that want to be seen by the run under way. */
  #takeSteered(host: ActiveRun): readonly ActiveRun[] {
    const taken = this.#lanes.takeWaiting<ActiveRun>(
      host.envelope.sessionKey,
      (waiting) =>
        waiting.queue === 'steer' &&
        waiting.isAdmitted &&
        !waiting.resumed &&
        !waiting.signal.aborted &&
        waiting.envelope.sender.id === host.envelope.sender.id &&
        this.#commandIn(waiting.envelope) === undefined,
      // What was said after a command belongs to what the command made.
      (waiting) => this.#commandIn(waiting.envelope) !== undefined,
    );
    for (const run of taken) {
      run.isSteered = true;
      host.steered.push(run);
      run.emit({ type: 'run-start', at: this.#options.clock.now(), resumed: false });
      run.emit({ type: 'run-end', at: this.#options.clock.now(), result: note('') });
    }
    return taken;
  }

  async #finish(run: ActiveRun, session: SessionRow | undefined, result: RunResult, startedAt: number): Promise<void> {
    const { envelope } = run;
    const now = this.#options.clock.now();
    const text = answerText(result);
    const delivery =
      this.#options.channel(envelope.channel) && text !== ''
        ? {
            id: newId(),
            runId: run.id,
            channel: envelope.channel,
            to: envelope.sender.id,
            sessionKey: envelope.sessionKey,
            text,
          }
        : undefined;
    const row = session && afterRun(session, result, now);
    const answered = [run, ...run.steered].map((each) => each.id);
    await this.#options.database.transaction().execute(async (transaction) => {
      await this.#inbox.answer(envelope.sessionKey, answered, result, transaction);
      if (delivery) await this.#outbox.promise(delivery, transaction);
      if (row) await this.#options.sessions.write(row, transaction);
      if (result.turns > 0) await recordUsage(run, result, startedAt, now, transaction);
    });
    if (row) this.#options.sessions.remember(row);
    this.#options.audit({
      ts: new Date(now).toISOString(),
      type: 'run-end',
      run: run.id,
      session: envelope.sessionKey,
      agent: envelope.agent,
      channel: envelope.channel,
      sender: envelope.sender.id,
      model: `${result.provider}/${result.model}`,
      outcome: result.outcome,
      turns: result.turns,
      tokens: result.usage.totalTokens,
      costUsd: result.usage.cost.total,
      durationMs: now - startedAt,
      ...(result.error ? { error: result.error.code } : {}),
    });
    if (delivery) this.#outbox.send(delivery);
    this.#end(run, result);
  }

  #end(run: ActiveRun, result: RunResult): void {
    this.#active.delete(slotOf(run.envelope));
    run.emit({ type: 'run-end', at: this.#options.clock.now(), result });
    run.settle(result);
    for (const steered of run.steered) {
      this.#active.delete(slotOf(steered.envelope));
      steered.settle(result);
    }
  }

  /** The message stays unanswered on disk; whoever waits is told to come back. */
  #suspend(run: ActiveRun): void {
    for (const each of [run, ...run.steered]) {
      this.#active.delete(slotOf(each.envelope));
      each.settle(
        failure({
          code: 'GATEWAY_STOPPING',
          message: 'The gateway is going down; the answer follows after its restart',
        }),
      );
    }
  }

  async #idle(): Promise<void> {
    await Promise.all([...this.#active.values()].map((run) => run.finished));
  }

  #schedulePrune(): void {
    this.#cancelPrune = this.#options.clock.after(PRUNE_EVERY_MS, () => {
      const windowMs = this.#options.idempotencyWindowMs();
      Promise.all([this.#inbox.prune(windowMs), this.#outbox.prune(windowMs)]).catch((error) =>
        this.#options.log('warn', 'Old answers could not be removed', { error: messageOf(error) }),
      );
      this.#schedulePrune();
    });
  }
}

const slotOf = (envelope: Envelope): string => `${envelope.sessionKey}\n${envelope.idempotencyKey}`;

/** What a message that came before gets now. */
function answered(before: InboxRow, digest: string): Submission {
  assertSame(before.digest, digest, before.envelope);
  const runId = before.envelope.idempotencyKey;
  if (before.status === 'done') return { runId, status: 'done', finished: Promise.resolve(before.result) };
  throw new GatewayError('GATEWAY_BUSY', 'The message is recorded but its run is not under way', {
    next: 'Send it again.',
  });
}

function assertSame(before: string, now: string, envelope: Envelope): void {
  if (before === now) return;
  throw new GatewayError(
    'IDEMPOTENCY_CONFLICT',
    `The idempotency key ${envelope.idempotencyKey} was used for another message`,
    {
      next: 'Use a new key for a new message.',
    },
  );
}

/** An answer of the gateway itself. */
const note = (text: string): RunResult => ({
  outcome: 'answered',
  texts: text === '' ? [] : [text],
  usage: NO_USAGE,
  provider: 'reins',
  model: 'gateway',
  turns: 0,
});

const failure = (error: NonNullable<RunResult['error']>): RunResult => ({ ...note(''), outcome: 'failed', error });
