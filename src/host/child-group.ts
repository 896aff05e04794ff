import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { messageOf } from '#base';

export type ProcessEnd = {
  /** 0 to 255, or null when a signal ended it. 127: it could not be started. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** It left processes behind, which were ended. */
  readonly leftovers: boolean;
};

export type ChildOptions = {
  readonly file: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where its input comes from: nothing, whoever writes to it, or the output of the child before it. */
  readonly input: 'none' | 'open' | Readable;
  /** False when the next child reads it. */
  readonly readsOutput: boolean;
  onBytes(stream: 'out' | 'err', bytes: Buffer): void;
};

/** How long what an ended process left behind may go on before it is ended. */
const LEFTOVERS_MS = 250;
const CHECKS_MAX = 20;
const INPUT_WAITING_BYTES_MAX = 1_000_000;
const NOT_STARTED: ProcessEnd = { code: 127, signal: null, leftovers: false };

/**
 * A child as the leader of a process group of its own, so that a signal reaches what it started too. What is still in the group when the
 * leader has ended is ended as well: nothing runs on that nobody can see. A program that makes a session of its own leaves the group.
 */
export class ChildGroup {
  /** Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  readonly #child: ChildProcess | undefined;
  #isHeld: boolean;
  #bytesSeen = 0;

  constructor(options: ChildOptions) {
    const { file, argv, input } = options;
    let child: ChildProcess;
    try {
      child = spawn(file, argv.slice(1), {
        ...(argv[0] === undefined ? {} : { argv0: argv[0] }),
        cwd: options.cwd,
        env: { ...options.env },
        detached: true,
        stdio: [input === 'none' ? 'ignore' : input === 'open' ? 'pipe' : input, 'pipe', 'pipe'],
        windowsHide: true,
      });
    } catch (error) {
      // E.g. a NUL in an argument, or too many open files.
      options.onBytes('err', notStarted(argv[0] ?? file, error));
      this.#isHeld = false;
      this.ended = Promise.resolve(NOT_STARTED);
      return;
    }
    this.#child = child;
    this.#isHeld = child.pid !== undefined;
    // A process that ends without reading its input breaks the pipe; that is its business.
    child.stdin?.on('error', () => undefined);
    const listen = (stream: 'out' | 'err', source: Readable | null) =>
      source?.on('data', (bytes: Buffer) => {
        this.#bytesSeen += bytes.length;
        options.onBytes(stream, bytes);
      });
    if (options.readsOutput) listen('out', child.stdout);
    listen('err', child.stderr);
    this.ended = this.#watch(child, options);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** What the next child reads. It must be let go of (`destroy`) here once that child has it. */
  get output(): Readable | undefined {
    return this.#child?.stdout ?? undefined;
  }

  /** `full`: the process does not read what it already got. `closed`: it takes no input (any more). */
  write(bytes: Uint8Array): 'written' | 'full' | 'closed' {
    const input = this.#child?.stdin;
    if (!input?.writable) return 'closed';
    if (input.writableLength + bytes.length > INPUT_WAITING_BYTES_MAX) return 'full';
    input.write(bytes);
    return 'written';
  }

  endInput(): void {
    this.#child?.stdin?.end();
  }

  kill(signal: NodeJS.Signals): void {
    // Once the group has ended its number may belong to somebody else's.
    if (this.#isHeld) this.#signalGroup(signal);
  }

  #watch(child: ChildProcess, options: ChildOptions): Promise<ProcessEnd> {
    return new Promise((resolve) => {
      const settle = (end: ProcessEnd) => {
        this.#isHeld = false;
        resolve(end);
      };
      child.once('error', (error) => {
        if (child.pid !== undefined) return;
        options.onBytes('err', notStarted(options.argv[0] ?? options.file, error));
        settle(NOT_STARTED);
      });
      child.once('exit', (code, signal) => {
        // No other process can have got the number in the moment since the leader ended, and while a group exists none can get it.
        const leftovers = this.#signalGroup('SIGTERM');
        const isQuiet = this.#quiet(child);
        if (!leftovers) return void isQuiet.then(() => settle({ code, signal, leftovers }));
        setTimeout(() => {
          this.#signalGroup('SIGKILL');
          void isQuiet.then(() => settle({ code, signal, leftovers }));
        }, LEFTOVERS_MS);
      });
    });
  }

  /**
   * Resolves when all output is here. Somebody who left the group may hold the pipes for ever: then as soon as nothing comes any more,
   * which is known only after the event loop has looked at the pipes again.
   */
  #quiet(child: ChildProcess): Promise<void> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout;
      let checks = 0;
      const wait = () => {
        const before = this.#bytesSeen;
        timer = setTimeout(() => {
          setImmediate(() =>
            setImmediate(() => (this.#bytesSeen === before || ++checks >= CHECKS_MAX ? letGo(child) : wait())),
          );
        }, LEFTOVERS_MS);
      };
      child.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      wait();
    });
  }

  /** Whether there was somebody in the group to signal. */
  #signalGroup(signal: NodeJS.Signals): boolean {
    const pid = this.#child?.pid;
    if (pid === undefined) return false;
    try {
      process.kill(-pid, signal);
      return true;
    } catch {
      // The group ended between the check and the signal.
      return false;
    }
  }
}

/** As a shell would say it; the code alone, because the system's message names the wrong thing when the folder is missing. */
function notStarted(name: string, error: unknown): Buffer {
  return Buffer.from(`${name}: could not be started (${(error as NodeJS.ErrnoException).code ?? messageOf(error)})\n`);
}

/** Stops listening, which closes the pipes and with them the child. */
function letGo(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
  child.stdin?.destroy();
}
