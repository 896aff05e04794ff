import { type Clock, GatewayError, systemClock } from '#base';
import { ChildGroup, type ProcessEnd } from './child-group.ts';
import { OutputBuffer } from './output-buffer.ts';

/** What may be spawned, as it was decided; the contract's `ExecPlan` has this form. */
export type SpawnPlan =
  | { readonly kind: 'shell'; readonly command: string }
  | {
      readonly kind: 'argv';
      readonly pipelines: readonly {
        readonly steps: readonly SpawnStep[];
        readonly when: 'always' | 'after-success' | 'after-failure';
      }[];
    };

/** `file` is the path that is run, `argv` what it is told, its own name first. */
export type SpawnStep = { readonly argv: readonly string[]; readonly file: string };

export type SpawnOptions = {
  /** Absolute. */
  readonly cwd: string;
  /** The whole environment; see `childEnvironment`. */
  readonly env: Readonly<Record<string, string>>;
  /** Of output, kept at most. */
  readonly charactersMax: number;
  /** `open`: `write` feeds it. Default `none`: there is nothing to read, so that nothing waits for it. */
  readonly input?: 'none' | 'open';
  onOutput?(text: string): void;
};

/** One running plan: a shell, or pipelines one after the other, each process in a group of its own so that its children end with it. */
export interface RunningProcess {
  readonly output: OutputBuffer;
  readonly pid: number | undefined;
  /** Resolves at the end of the last pipeline; never rejects. */
  readonly ended: Promise<ProcessEnd>;
  readonly isRunning: boolean;
  /** `full`: the process does not read what it already got. `closed`: it takes no input (any more). */
  write(bytes: Uint8Array): 'written' | 'full' | 'closed';
  endInput(): void;
  /** Signals the group of each process that we still hold; no further pipeline starts after one that was ended so. */
  kill(signal?: NodeJS.Signals): void;
}

const SHELL = '/bin/sh';
const KILL_AFTER_MS = 2_000;
/** After these no further pipeline starts, whatever the one that got it made of it. */
const ENDING = new Set<NodeJS.Signals>(['SIGTERM', 'SIGKILL']);

/** The one spawn door. Whoever opens it closes it: `closeAll` ends what still runs. */
export class Processes {
  readonly #clock: Clock;
  readonly #running = new Set<PlanProcess>();
  #isClosed = false;

  constructor({ clock = systemClock }: { readonly clock?: Clock } = {}) {
    this.#clock = clock;
  }

  /** @throws {GatewayError} `GATEWAY_STOPPING` after `closeAll` */
  start(plan: SpawnPlan, options: SpawnOptions): RunningProcess {
    if (this.#isClosed) throw new GatewayError('GATEWAY_STOPPING', 'The gateway is going down and starts no commands');
    const running = new PlanProcess(plan, options);
    this.#running.add(running);
    void running.ended.then(() => this.#running.delete(running));
    return running;
  }

  get count(): number {
    return this.#running.size;
  }

  /** Ends everything, hard where it does not end in 2 s; nothing starts any more. Resolves when all have ended. */
  async closeAll(): Promise<void> {
    this.#isClosed = true;
    const ends = Promise.all([...this.#running].map((running) => running.ended));
    for (const running of this.#running) running.kill('SIGTERM');
    const cancel = this.#clock.after(KILL_AFTER_MS, () => {
      for (const running of this.#running) running.kill('SIGKILL');
    });
    await ends;
    cancel();
  }
}

class PlanProcess implements RunningProcess {
  readonly output: OutputBuffer;
  readonly ended: Promise<ProcessEnd>;
  readonly #options: SpawnOptions;
  #children: readonly ChildGroup[] = [];
  #endedBy: NodeJS.Signals | undefined;
  #sent: NodeJS.Signals | undefined;
  isRunning = true;

  constructor(plan: SpawnPlan, options: SpawnOptions) {
    this.#options = options;
    this.output = new OutputBuffer({ charactersMax: options.charactersMax });
    this.ended = this.#run(plan).then((end) => {
      this.isRunning = false;
      this.output.end();
      return end;
    });
  }

  get pid(): number | undefined {
    return this.#children[0]?.pid;
  }

  write(bytes: Uint8Array): 'written' | 'full' | 'closed' {
    return this.#children[0]?.write(bytes) ?? 'closed';
  }

  endInput(): void {
    this.#children[0]?.endInput();
  }

  kill(signal: NodeJS.Signals = 'SIGTERM'): void {
    if (!this.isRunning) return;
    this.#sent = signal;
    if (ENDING.has(signal)) this.#endedBy = signal;
    for (const child of this.#children) child.kill(signal);
  }

  async #run(plan: SpawnPlan): Promise<ProcessEnd> {
    if (plan.kind === 'shell') return await this.#pipe([{ file: SHELL, argv: ['sh', '-c', plan.command] }]);
    let end: ProcessEnd = { code: 0, signal: null, leftovers: false };
    for (const { steps, when } of plan.pipelines) {
      const succeeded = end.code === 0;
      if ((when === 'after-success' && !succeeded) || (when === 'after-failure' && succeeded)) continue;
      if (this.#endedBy) return { code: null, signal: this.#endedBy, leftovers: end.leftovers };
      end = await this.#pipe(steps);
      // As with ctrl-C in a shell: what was interrupted takes the rest of the line with it.
      if (end.signal !== null && end.signal === this.#sent) return end;
    }
    return end;
  }

  /** Runs commands joined by pipes; the last one's end counts, as in a shell. */
  async #pipe(steps: readonly SpawnStep[]): Promise<ProcessEnd> {
    const children: ChildGroup[] = [];
    for (const [i, { file, argv }] of steps.entries()) {
      const before = children.at(-1);
      const input = before === undefined ? (this.#options.input ?? 'none') : (before.output ?? 'none');
      const readsOutput = i === steps.length - 1;
      const onBytes = (stream: 'out' | 'err', bytes: Buffer) => this.#take(`${i}${stream}`, bytes);
      children.push(
        new ChildGroup({ file, argv, cwd: this.#options.cwd, env: this.#options.env, input, readsOutput, onBytes }),
      );
      // The pipe belongs to the two children now. Held here too, the writer would not learn that its reader has ended. Nothing was
      // read from it yet: that would take a turn of the event loop.
      before?.output?.destroy();
    }
    this.#children = children;
    const ends = await Promise.all(children.map((child) => child.ended));
    const last = ends.at(-1) ?? { code: 127, signal: null };
    return { ...last, leftovers: ends.some((end) => end.leftovers) };
  }

  #take(stream: string, bytes: Buffer): void {
    const text = this.output.push(stream, bytes);
    if (text !== '') this.#options.onOutput?.(text);
  }
}
