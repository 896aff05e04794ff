// The processes that the bench measures, and what the kernel knows of them.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { GatewayProcess } from '../test/crash/gateway-process.ts';
import type { Target } from './turn.ts';

export const ROOT = join(import.meta.dirname, '..');
export const LAUNCHER = join(ROOT, 'bin', 'reins');
const STARTUP_MS_MAX = 10_000;

/** The least that a Node HTTP server can be. As plain JavaScript: the loader of TypeScript would count as its memory. */
const BARE_SERVER = `
const server = require('node:http').createServer((request, response) => response.end('ok'));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

/** A helper of the bench that prints the port it listens on. */
export class Helper {
  readonly url: string;
  readonly #child: ChildProcess;

  static async start(what: 'mock-model' | 'bare-server'): Promise<Helper> {
    const args = what === 'bare-server' ? ['-e', BARE_SERVER] : [join(import.meta.dirname, 'mock-model.ts')];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout });
    const [port] = (await once(lines, 'line', { signal: AbortSignal.timeout(STARTUP_MS_MAX) })) as [string];
    lines.close();
    return new Helper(child, Number(port));
  }

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

/** A state folder of its own, removed at the end. */
export class BenchGateway {
  readonly stateDir: string;
  readonly logFile: string;
  readonly token: string;
  readonly #root: string;

  constructor(modelUrl: string) {
    this.#root = realpathSync(mkdtempSync(join(tmpdir(), 'reins-bench-')));
    this.stateDir = join(this.#root, 'state');
    this.logFile = join(this.#root, 'output.log');
    const config = JSON.parse(readFileSync(join(import.meta.dirname, 'reins.json'), 'utf8'));
    config.models.providers.mock.baseUrl = `${modelUrl}/v1`;
    this.token = config.gateway.auth.token;
    mkdirSync(this.stateDir, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.stateDir, 'reins.json'), JSON.stringify(config, null, 2), { mode: 0o600 });
  }

  /** Spawns it and waits until it is ready. */
  async start(): Promise<GatewayProcess> {
    const gateway = await GatewayProcess.start(this);
    await gateway.ready;
    return gateway;
  }

  target(gateway: GatewayProcess): Target {
    return { url: gateway.url, token: this.token, model: 'reins' };
  }

  /** The transcript that holds the run of this key. */
  transcriptOf(key: string): string {
    const found = globSync(join(this.stateDir, 'agents', 'main', 'sessions', '*.jsonl')).find((file) =>
      readFileSync(file, 'utf8').includes(`"${key}"`),
    );
    if (found === undefined) throw new Error(`no transcript holds the run ${key}`);
    return found;
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}

/** How long a program takes from spawn to exit, in milliseconds. */
export function runMs(program: string, args: readonly string[]): number {
  const startedAt = performance.now();
  const { status, error } = spawnSync(program, args, { stdio: 'ignore' });
  const ms = performance.now() - startedAt;
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}`);
  return ms;
}

/** Resident memory of a process and all its descendants, in MiB. */
export function residentMiB(pid: number): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const child = Number(name);
    if (Number.isInteger(child)) parents.set(child, Number(statusField(child, 'PPid') ?? 0));
  }
  const isOurs = (candidate: number): boolean => {
    for (let at: number | undefined = candidate; at; at = parents.get(at)) if (at === pid) return true;
    return false;
  };
  let kilobytes = 0;
  for (const child of parents.keys())
    if (isOurs(child)) kilobytes += Number(statusField(child, 'VmRSS')?.split(' ')[0] ?? 0);
  if (kilobytes === 0) throw new Error(`process ${pid} is gone`);
  return kilobytes / 1_024;
}

function statusField(pid: number, name: string): string | undefined {
  try {
    return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined; // it ended since the folder was read
  }
}

/** Builds the release when its sources are newer; what is measured is what gets installed. */
export function buildIfStale(): 'built' | 'fresh' {
  if (isFresh()) return 'fresh';
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts', 'build.mjs')], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error('the build failed');
  return 'built';
}

/** The launcher falls back to the sources when they are newer than the release: figures of a half and half run mean nothing. */
export function isFresh(): boolean {
  try {
    const built = statSync(join(ROOT, 'dist', 'stamp.json')).mtimeMs;
    const sources = globSync('src/**', { cwd: ROOT }).filter((file) => !/\.test\.tsx?$/.test(file));
    return ['package.json', ...sources].every((file) => statSync(join(ROOT, file)).mtimeMs <= built);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
