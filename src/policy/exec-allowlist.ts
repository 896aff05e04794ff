import { printableLine } from '#base';
import type { ExecPipeline, ExecPlan, ExecStep } from '#contract';
import type { ParsedLine } from './command-line.ts';
import { fitsGlob } from './glob.ts';
import { isOfTheShell, runsOtherCode, startsByOption } from './programs.ts';

/**
 * A line of an allow-list: a bare name, or a path in which `*` does not cross a slash. With `argvHash` it is one executable with exactly
 * those words.
 */
export type AllowEntry = { readonly pattern: string; readonly argvHash?: string };

export type AllowlistPorts = {
  /** The real path of what a name runs, or undefined. A bare name goes by the search path, a name with a slash from `cwd`. */
  readonly resolve: (name: string, cwd: string) => Promise<string | undefined>;
  /** Whether an agent could have put a file at this real path. */
  readonly isAgentWritable: (path: string) => boolean;
  /** A digest that differs for every other list of words. */
  readonly argvDigest: (argv: readonly string[]) => string;
};

export type AllowlistAnswer =
  | { readonly allowed: true; readonly plan: ExecPlan }
  /** The same words whether or not a file exists. */
  | { readonly allowed: false; readonly reason: string };

/** Whether every command of a line is listed, and then what exactly to spawn: the real paths that were decided on, without a shell. */
export async function matchAllowlist(
  line: ParsedLine,
  entries: readonly AllowEntry[],
  cwd: string,
  ports: AllowlistPorts,
): Promise<AllowlistAnswer> {
  if (!line.ok)
    return { allowed: false, reason: `the command is not simple enough for the allow-list: ${line.reason}` };
  const commands = line.pipelines.flatMap((pipeline) => pipeline.commands);
  const unlistable = commands.map(unlistableByName).find((reason) => reason !== undefined);
  if (unlistable !== undefined) return { allowed: false, reason: unlistable };
  const pipelines: ExecPipeline[] = [];
  for (const pipeline of line.pipelines) {
    const steps: ExecStep[] = [];
    for (const argv of pipeline.commands) {
      const file = await listedFile(argv, entries, cwd, ports);
      if (file === undefined) return { allowed: false, reason: unlistedReason(commands) };
      steps.push({ argv, file });
    }
    pipelines.push({ steps, when: pipeline.when });
  }
  return { allowed: true, plan: { kind: 'argv', pipelines } };
}

/** The entry that lets exactly this command pass from now on, or undefined where none may: then it is asked for every time. */
export async function entryFor(
  argv: readonly string[],
  cwd: string,
  ports: AllowlistPorts,
): Promise<AllowEntry | undefined> {
  if (unlistableByName(argv) !== undefined) return undefined;
  const file = await trustworthyFile(argv, cwd, ports);
  return file === undefined ? undefined : { pattern: file, argvHash: ports.argvDigest(argv) };
}

async function listedFile(
  argv: readonly string[],
  entries: readonly AllowEntry[],
  cwd: string,
  ports: AllowlistPorts,
): Promise<string | undefined> {
  const file = await trustworthyFile(argv, cwd, ports);
  if (file === undefined) return undefined;
  const [name = ''] = argv;
  const isListed = entries.some(({ pattern, argvHash }) => {
    if (argvHash !== undefined) return pattern === file && argvHash === ports.argvDigest(argv);
    // A bare name speaks of the search path only: `./echo` is not `echo`.
    return pattern.includes('/') ? fitsGlob(pattern, file, '/') : pattern === name;
  });
  return isListed ? file : undefined;
}

async function trustworthyFile(
  [name = '']: readonly string[],
  cwd: string,
  ports: AllowlistPorts,
): Promise<string | undefined> {
  const file = await ports.resolve(name, cwd);
  // The file behind the name counts too: a link named `ls` to a shell is a shell.
  return file === undefined || ports.isAgentWritable(file) || runsOtherCode(file) ? undefined : file;
}

/** Decided by the words alone, so that the answer can say why without telling anything about files. */
function unlistableByName(argv: readonly string[]): string | undefined {
  const [name = ''] = argv;
  if (isOfTheShell(name)) return `${shown(argv)} only has a meaning in a shell, and an allow-list starts none`;
  if (runsOtherCode(name)) return `${shown(argv)} runs what it is told to, so it is never on the allow-list by itself`;
  if (startsByOption(argv)) return `an option of ${shown(argv)} starts another program`;
  return undefined;
}

/** Of several commands it names all: to single one out would tell that the files of those before it exist. */
function unlistedReason(commands: readonly (readonly string[])[]): string {
  const [first = [], ...others] = commands;
  if (others.length === 0) return `${shown(first)} is not on the allow-list`;
  return `not every command of the line is on the allow-list: ${printableLine(commands.map(shown).join(', '), 400)}`;
}

const shown = ([name = '']: readonly string[]) => `"${printableLine(name, 80)}"`;
