import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Readable } from 'node:stream';
import { OutputBuffer } from './output-buffer.ts';

/** What may be spawned, as it was decided; the contract's `ExecPlan` has this form. */
export type SpawnPlan =
  | { readonly kind: 'shell'; readonly command: string }
  | {
      readonly kind: 'argv';
      readonly pipelines: readonly {
        readonly steps: readonly { readonly argv: readonly string[]; readonly file: string }[];
        readonly when: 'always' | 'after-success' | 'after-failure';
      }[];
    };

export type SpawnOptions = {
  /** Absolute. */
  readonly cwd: string;
  /** The whole environment; see `childEnvironment`. */
  readonly env: Readonly<Record<string, string>>;
  readonly charactersMax: number;
  onOutput?(text: string): void;
};

export type ProcessEnd = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** One running plan: a shell, or pipelines one after the other, each process in a group of its own so that its children end with it. */
export interface RunningProcess {
  readonly output: OutputBuffer;
  readonly pid: number | undefined;
  /** Resolves at the end of the last pipeline; never rejects. */
  readonly ended: Promise<ProcessEnd>;
  readonly isRunning: boolean;
  /** False when nothing takes input any more. */
  write(text: string): boolean;
  endInput(): void;
  /** Signals the group of each process that we still hold. */
  kill(signal?: NodeJS.Signals): void;
}

const SHELL = '/bin/sh';
/** How long the children of an ended process may keep its pipes open before we stop listening. */
const PIPES_AFTER_EXIT_MS = 250;
const KILL_AFTER_MS = 2_000;
const NOT_STARTED: ProcessEnd = { code: 127, signal: null };

/** The one spawn door. Whoever opens it closes it: `closeAll` ends what still runs. */
export class Processes {
  readonly #running = new Set<PlanProcess>();

  start(plan: SpawnPlan, options: SpawnOptions): RunningProcess {
    const running = new PlanProcess(plan, options);
    this.#running.add(running);
    void running.ended.then(() => this.#running.delete(running));
    return running;
  }

  get count(): number {
    return this.#running.size;
  }

  async closeAll(): Promise<void> {
    const ends = [...this.#running].map((running) => running.ended);
    for (const running of this.#running) running.kill('SIGTERM');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, KILL_AFTER_MS);
    });
    await Promise.race([Promise.all(ends), late]);
    clearTimeout(timer);
    for (const running of this.#running) running.kill('SIGKILL');
    await Promise.all(ends);
  }
}

class PlanProcess implements RunningProcess {
  readonly output: OutputBuffer;
  readonly ended: Promise<ProcessEnd>;
  readonly #options: SpawnOptions;
  #children: readonly ChildProcess[] = [];
  #killed: NodeJS.Signals | undefined;
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

  write(text: string): boolean {
    const input = this.#children[0]?.stdin;
    if (!input?.writable) return false;
    input.write(text);
    return true;
  }

  endInput(): void {
    this.#children[0]?.stdin?.end();
  }

  kill(signal: NodeJS.Signals = 'SIGTERM'): void {
    if (!this.isRunning) return;
    this.#killed = signal;
    for (const child of this.#children) {
      // A child whose end we have seen is not ours any more: its number may belong to another process by now.
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue;
      try {
        process.kill(-child.pid, signal);
      } catch {
        // The group ended between the check and the signal.
        child.kill(signal);
      }
    }
  }

  async #run(plan: SpawnPlan): Promise<ProcessEnd> {
    if (plan.kind === 'shell') return await this.#pipe([{ file: SHELL, argv: ['sh', '-c', plan.command] }]);
    let end: ProcessEnd = { code: 0, signal: null };
    for (const { steps, when } of plan.pipelines) {
      const succeeded = end.code === 0;
      if ((when === 'after-success' && !succeeded) || (when === 'after-failure' && succeeded)) continue;
      if (this.#killed) return { code: null, signal: this.#killed };
      end = await this.#pipe(steps);
    }
    return end;
  }

  /** Runs commands joined by pipes; the last one's end counts, as in a shell. */
  async #pipe(steps: readonly { readonly file: string; readonly argv: readonly string[] }[]): Promise<ProcessEnd> {
    const children = steps.map(({ file, argv }) =>
      spawn(file, argv.slice(1), {
        argv0: argv[0],
        cwd: this.#options.cwd,
        env: { ...this.#options.env },
        detached: true,
        stdio: ['pipe', 'pipe', 'pipe'],
        windowsHide: true,
      }),
    );
    this.#children = children;
    children.forEach((child, i) => {
      // A reader that ends early breaks the pipe of the one before it; that is its business.
      child.stdin?.on('error', () => undefined);
      const next = children[i + 1];
      if (next?.stdin) child.stdout?.pipe(next.stdin);
    });
    const ends = await Promise.all(children.map((child, i) => this.#watch(child, i === children.length - 1)));
    return ends.at(-1) ?? NOT_STARTED;
  }

  #watch(child: ChildProcess, isLast: boolean): Promise<ProcessEnd> {
    const listen = (name: string, stream: Readable | null) =>
      stream?.on('data', (bytes: Buffer) => {
        const text = this.output.push(`${child.pid}${name}`, bytes);
        if (text !== '') this.#options.onOutput?.(text);
      });
    if (isLast) listen('out', child.stdout);
    listen('err', child.stderr);
    return new Promise((resolve) => {
      child.once('error', (error) => {
        this.output.push('spawn', Buffer.from(`${error.message}\n`));
        resolve(NOT_STARTED);
      });
      child.once('close', (code, signal) => resolve({ code, signal }));
      // A child that left grandchildren behind keeps the pipes open for as long as they live; the command itself is over.
      child.once('exit', (code, signal) => {
        setTimeout(() => {
          child.stdout?.destroy();
          child.stderr?.destroy();
          resolve({ code, signal });
        }, PIPES_AFTER_EXIT_MS).unref();
      });
    });
  }
}

/** The real path of what `name` would run by the search path, or undefined. A name with a slash is taken as a path from `cwd`. */
export async function resolveExecutable(name: string, searchPath: string, cwd: string): Promise<string | undefined> {
  if (name === '' || name.includes('\0')) return undefined;
  const candidates = name.includes('/')
    ? [isAbsolute(name) ? name : join(cwd, name)]
    : searchPath.split(delimiter).flatMap((folder) => (isAbsolute(folder) ? [join(folder, name)] : []));
  for (const candidate of candidates) {
    const found = await executableAt(candidate);
    if (found) return found;
  }
  return undefined;
}

async function executableAt(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    const real = await realpath(path);
    return (await stat(real)).isFile() ? real : undefined;
  } catch {
    // Not there or not ours to run: look on.
    return undefined;
  }
}
