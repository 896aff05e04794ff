// Goal: whatever the moment of the gateway's death, every message is answered exactly once and nothing that had an effect happens
// twice. Method: visitors send tasks that leave traces, all the time; meanwhile the gateway's process group is killed at moments drawn
// from a seed and started again; at the end the transcripts, the traces and repeated questions must tell the same story.
import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask, newPlace, type Place, type Question, type Reply } from './gateway-place.ts';
import { GatewayProcess } from './gateway-process.ts';
import { ScriptedModel } from './scripted-model.ts';
import { SeededRandom } from './seeded-random.ts';
import { finalPart, stepIn, TASK_FORMS, TRACE_FILE, taskDone, taskScript, taskText } from './tasks.ts';
import { type AuditedCall, auditTranscripts } from './transcript-audit.ts';

export type KillOptions = {
  readonly kills: number;
  /** The same seed draws the same moments; what happens at them still depends on the machine. */
  readonly seed: number;
  readonly progress?: (killsDone: number) => void;
};

export type KillReport = {
  readonly kills: number;
  /** How many deaths fell where. */
  readonly moments: Readonly<Record<Moment, number>>;
  readonly messages: number;
  readonly answers: number;
  /** Questions sent again because the connection broke or the gateway was down. */
  readonly resent: number;
  /** Answered questions asked again under their key, and answered with the same words. */
  readonly repeatsEqual: number;
  readonly toolCalls: number;
  readonly outcomes: Readonly<Record<AuditedCall['outcome'], number>>;
  /** Transcripts with a torn line that was put aside. */
  readonly setAside: number;
  readonly seconds: number;
  /** In words; empty when everything held. */
  readonly problems: readonly string[];
};

/**
 * What a death comes after, and the longest random delay between the two, in milliseconds: the spawn of a gateway, its being ready, a
 * request to the model, an answer of the model, an effect of a tool. After a spawn the delay reaches a little past the last start's
 * length, so that these deaths fall into the start itself and into the recovery from the death before.
 */
const MOMENTS = { spawn: 'start', ready: 60, request: 15, answered: 10, effect: 60 } as const;
const PAST_START = 1.2;
/** Requests, answers and effects that a life may see before its death, at most: some lives are to get things done. */
const SEEN_MAX = 8;
export type Moment = keyof typeof MOMENTS;

const VISITORS = ['anna', 'ben', 'cleo', 'dan', 'eva', 'finn'] as const;
const AT_ONCE = 4;
/** A moment that does not come means that the gateway hangs. */
const MOMENT_MS_MAX = 60_000;
const PROBLEMS_MAX = 50;

/** Runs the whole story and says what did not hold. */
export async function runKills(options: KillOptions): Promise<KillReport> {
  await using model = await ScriptedModel.start(taskScript);
  using place = newPlace(model.url);
  const story = new Story(options, place, model);
  return await story.play();
}

class Story {
  readonly #options: KillOptions;
  readonly #place: Place;
  readonly #model: ScriptedModel;
  readonly #random: SeededRandom;
  readonly #problems: string[] = [];
  readonly #answered = new Map<string, { readonly question: Question; readonly reply: Reply }>();
  readonly #moments: Record<Moment, number> = { spawn: 0, ready: 0, request: 0, answered: 0, effect: 0 };
  /** The life that visitors may talk to; while there is none, the promise of the next. */
  #gateway: Promise<GatewayProcess>;
  #killing = true;
  #asked = 0;
  #resent = 0;
  #repeatsEqual = 0;

  constructor(options: KillOptions, place: Place, model: ScriptedModel) {
    this.#options = options;
    this.#place = place;
    this.#model = model;
    this.#random = new SeededRandom(options.seed);
    this.#gateway = this.#nextLife();
    writeFileSync(join(place.workspace, TRACE_FILE), '');
  }

  async play(): Promise<KillReport> {
    const startedAt = performance.now();
    try {
      await this.#gateway;
      await Promise.all([this.#kill(), ...Array.from({ length: AT_ONCE }, (_, i) => this.#visit(i))]);
      await this.#repeatAll();
      const gateway = await this.#gateway;
      const { code } = await gateway.terminate();
      if (code !== 0) this.#problem(`a gateway told to stop ended with ${code}`);
    } finally {
      await this.#gateway.then(
        (gateway) => gateway.kill(),
        // It did not start, which is what the story already failed with.
        () => undefined,
      );
    }
    return this.#report((performance.now() - startedAt) / 1_000);
  }

  async #nextLife(): Promise<GatewayProcess> {
    const gateway = await GatewayProcess.start(this.#place);
    try {
      await gateway.ready;
      return gateway;
    } catch (error) {
      await gateway.kill();
      throw error;
    }
  }

  /** Deaths one after another. A life that is to end before it is ready is never shown to the visitors. */
  async #kill(): Promise<void> {
    try {
      for (let n = 1; n <= this.#options.kills; n++) {
        const moment = this.#random.pick(Object.keys(MOMENTS) as Moment[]);
        const share = this.#random.below(1);
        const gateway = await this.#gateway;
        const longest = MOMENTS[moment];
        const delayMs = share * (longest === 'start' ? PAST_START * (await gateway.ready) : longest);
        if (moment !== 'spawn') {
          if (moment !== 'ready') await this.#seen(moment, 1 + Math.floor(this.#random.below(SEEN_MAX)));
          await after(delayMs);
          this.#gateway = this.#killed(gateway).then(() => this.#nextLife());
        } else {
          this.#gateway = this.#killed(gateway)
            .then(() => this.#shortLife(delayMs))
            .then(() => this.#nextLife());
        }
        this.#moments[moment]++;
        this.#options.progress?.(n);
      }
      await this.#gateway;
    } finally {
      this.#killing = false;
    }
  }

  async #killed(gateway: GatewayProcess): Promise<void> {
    if (!gateway.isRunning) this.#problem('the gateway ended by itself');
    await gateway.kill();
  }

  async #shortLife(delayMs: number): Promise<void> {
    const gateway = await GatewayProcess.start(this.#place);
    await after(delayMs);
    await this.#killed(gateway);
  }

  /** Resolves at the given time that such a moment comes. */
  async #seen(moment: 'request' | 'answered' | 'effect', times: number): Promise<void> {
    const signal = AbortSignal.timeout(MOMENT_MS_MAX);
    const { moments } = this.#model;
    await new Promise<void>((resolve, reject) => {
      let left = times;
      const stop = () => {
        watcher?.close();
        if (moment !== 'effect') moments.off(moment, count);
        signal.removeEventListener('abort', late);
      };
      const count = () => {
        if (--left > 0) return;
        stop();
        resolve();
      };
      const late = () => {
        stop();
        reject(new Error(`no ${moment} came within ${MOMENT_MS_MAX} ms`));
      };
      signal.addEventListener('abort', late, { once: true });
      const watcher = moment === 'effect' ? watch(join(this.#place.workspace, TRACE_FILE), count) : undefined;
      if (moment !== 'effect') moments.on(moment, count);
    });
  }

  async #visit(lane: number): Promise<void> {
    // Each visitor draws from its own seed: the order in which they get their turn is the machine's.
    const random = new SeededRandom(this.#options.seed * 31 + lane + 1);
    while (this.#killing) {
      const number = ++this.#asked;
      const question: Question = {
        text: taskText(number, random.pick(TASK_FORMS)),
        visitor: random.pick(VISITORS),
        key: `run-${number}`,
        form: random.pick(['whole', 'stream']),
      };
      const reply = await this.#untilAnswered(question);
      if (!reply) continue;
      if (finalPart(reply.text) !== taskDone(number)) this.#problem(`${question.text} got "${reply.text}"`);
      this.#answered.set(question.key, { question, reply });
    }
  }

  async #untilAnswered(question: Question): Promise<Reply | undefined> {
    // Each failure needs a death of its own, or two: one before the answer and one that the next attempt runs into.
    for (let attempt = 0; attempt <= this.#options.kills * 2 + 2; attempt++) {
      const gateway = await this.#gateway;
      if (attempt > 0) this.#resent++;
      try {
        const reply = await ask(gateway.url, question);
        if (reply.status === 200) return reply;
        this.#problem(`${question.text} got status ${reply.status}: ${reply.text.slice(0, 200)}`);
        return undefined;
      } catch (error) {
        if (error instanceof DOMException) {
          this.#problem(`${question.text} was not answered in time`);
          return undefined;
        }
        // The connection broke: wait until this life is seen to be over, then ask the next one.
        if (!(await ended(gateway))) this.#problem(`${question.text}: the connection broke and the gateway lived on`);
      }
    }
    this.#problem(`${question.text} was never answered`);
    return undefined;
  }

  /** Every answered question once more, to a gateway that has just been started. */
  async #repeatAll(): Promise<void> {
    await (await this.#gateway).kill();
    this.#gateway = this.#nextLife();
    const gateway = await this.#gateway;
    const before = this.#model.requests.length;
    for (const { question, reply } of this.#answered.values()) {
      const again = await ask(gateway.url, question);
      if (again.status === reply.status && again.text === reply.text) this.#repeatsEqual++;
      else
        this.#problem(`${question.text} first got "${reply.text}", then ${again.status} "${again.text.slice(0, 200)}"`);
    }
    if (this.#model.requests.length !== before) this.#problem('a repeated question was run again');
  }

  #report(seconds: number): KillReport {
    const { problems, answers, calls, setAside } = auditTranscripts(this.#place.sessionsDir);
    for (const problem of problems) this.#problem(problem);
    for (const violation of this.#model.violations) this.#problem(`a request broke the pairing rules: ${violation}`);
    for (const [key, { question }] of this.#answered) {
      const stored = answers.get(key) ?? [];
      if (stored.length !== 1) this.#problem(`${question.text} has ${stored.length} answers in the transcripts`);
    }
    if (answers.size !== this.#answered.size)
      this.#problem(`${answers.size} messages are in the transcripts and ${this.#answered.size} were answered`);
    this.#checkTraces(calls);
    return {
      kills: this.#options.kills,
      moments: this.#moments,
      messages: this.#asked,
      answers: this.#answered.size,
      resent: this.#resent,
      repeatsEqual: this.#repeatsEqual,
      toolCalls: calls.length,
      outcomes: countBy(calls),
      setAside: setAside.length,
      seconds: Math.round(seconds * 10) / 10,
      problems: this.#problems,
    };
  }

  #checkTraces(calls: readonly AuditedCall[]): void {
    const traces = new Map<string, number>();
    for (const line of readFileSync(join(this.#place.workspace, TRACE_FILE), 'utf8').split('\n').slice(0, -1))
      traces.set(line, (traces.get(line) ?? 0) + 1);
    for (const [step, count] of traces) if (count > 1) this.#problem(`step ${step} was carried out ${count} times`);
    const settled = new Map<string, number>();
    for (const call of calls) {
      const step = stepIn(call.arguments);
      if (step === undefined) this.#problem(`a call that nobody scripted: ${call.arguments}`);
      else if (call.outcome === 'failed') this.#problem(`step ${step} failed: ${call.resultText.slice(0, 200)}`);
      else if (call.outcome !== 'not-started') settled.set(step, (settled.get(step) ?? 0) + 1);
      if (step === undefined || call.outcome !== 'ok') continue;
      const done = step.endsWith('.w') ? this.#isWritten(step) : traces.get(step) === 1;
      if (!done) this.#problem(`step ${step} is recorded as done and left no trace`);
    }
    for (const [step, count] of settled) if (count > 1) this.#problem(`step ${step} was settled ${count} times`);
    for (const step of traces.keys()) if (!settled.has(step)) this.#problem(`step ${step} left a trace and no record`);
  }

  #isWritten(step: string): boolean {
    const file = join(this.#place.workspace, 'notes', `${step}.txt`);
    return existsSync(file) && readFileSync(file, 'utf8') === step;
  }

  #problem(what: string): void {
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(what);
  }
}

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Whether the process ends within a moment; a broken connection is seen a little before the death that broke it. */
async function ended(gateway: GatewayProcess): Promise<boolean> {
  return await Promise.race([gateway.exited.then(() => true), after(10_000).then(() => false)]);
}

function countBy(calls: readonly AuditedCall[]): Record<AuditedCall['outcome'], number> {
  const counts = { ok: 0, failed: 0, 'unknown-outcome': 0, 'not-started': 0 };
  for (const call of calls) counts[call.outcome]++;
  return counts;
}
