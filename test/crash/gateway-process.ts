// A gateway as a process group of its own, for tests and figures that end it in every way a process can end.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';

const PROGRAM = join(import.meta.dirname, '..', '..', 'bin', 'reins');
const READY_MS_MAX = 60_000;
const POLL_MS = 3;
const EXIT_MS_MAX = 30_000;

export type GatewayPlace = {
  /** Holds `reins.json`; also the home folder of the process, so that nothing of this machine's user plays a part. */
  readonly stateDir: string;
  /** What the process prints goes to the end of this file. */
  readonly logFile: string;
  /** `bin/reins` of another checkout; absent: this one's. */
  readonly program?: string;
};

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** One life of a gateway. Who starts it ends it: `kill`, `terminate` or `await using`. */
export class GatewayProcess {
  readonly url: string;
  readonly startedAt = performance.now();
  /** Resolves when `/readyz` answered 200, with the milliseconds since the spawn; rejects when the process ended before that. */
  readonly ready: Promise<number>;
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;

  /** Starts `reins gateway` on a free port of 127.0.0.1; it is not ready yet. */
  static async start(place: GatewayPlace): Promise<GatewayProcess> {
    return new GatewayProcess(place, await freePort());
  }

  private constructor(place: GatewayPlace, port: number) {
    this.url = `http://127.0.0.1:${port}`;
    mkdirSync(dirname(place.logFile), { recursive: true });
    const output = openSync(place.logFile, 'a');
    const { PATH = '', TMPDIR, NODE_COMPILE_CACHE } = process.env;
    // Only what a bare service would have: a key or an address in the environment of who runs this must not change the outcome.
    const env = {
      PATH,
      HOME: place.stateDir,
      REINS_STATE_DIR: place.stateDir,
      ...(TMPDIR === undefined ? {} : { TMPDIR }),
      ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
    };
    this.#child = spawn(place.program ?? PROGRAM, ['gateway', '--port', String(port)], {
      detached: true,
      env,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    this.ready = this.#whenReady(place.logFile);
    // A process that is killed before it was ready is not a failure of who does not ask.
    this.ready.catch(() => undefined);
  }

  /** The process id, which is also the id of its group. */
  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('the gateway was not started');
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** SIGKILL to the whole group: no handler runs, nothing is flushed. */
  async kill(): Promise<void> {
    this.#signal(-this.pid, 'SIGKILL');
    await this.exited;
  }

  /** SIGTERM, as a service manager does it, and SIGKILL when that does not end it. */
  async terminate(): Promise<Exit> {
    this.#signal(this.pid, 'SIGTERM');
    const timer = setTimeout(() => this.#signal(-this.pid, 'SIGKILL'), EXIT_MS_MAX);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #signal(target: number, signal: NodeJS.Signals): void {
    if (!this.isRunning) return;
    try {
      process.kill(target, signal);
    } catch (error) {
      // It ended by itself a moment ago.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  async #whenReady(logFile: string): Promise<number> {
    const deadline = this.startedAt + READY_MS_MAX;
    while (performance.now() < deadline) {
      if (await answersReady(`${this.url}/readyz`)) return performance.now() - this.startedAt;
      const ended = await Promise.race([this.exited, after(POLL_MS)]);
      if (ended)
        throw new Error(`the gateway ended before it was ready (${ended.signal ?? ended.code})\n${tail(logFile)}`);
    }
    throw new Error(`the gateway was not ready within ${READY_MS_MAX} ms\n${tail(logFile)}`);
  }
}

function answersReady(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1_000 }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode === 200));
      response.once('error', () => resolve(false));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(false));
  });
}

const after = (ms: number) => new Promise<undefined>((resolve) => setTimeout(resolve, ms, undefined));

function tail(file: string): string {
  return readFileSync(file, 'utf8').split('\n').slice(-20).join('\n');
}

/** A port of 127.0.0.1 that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
