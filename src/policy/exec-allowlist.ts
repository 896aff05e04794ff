import type { ExecPlan } from '#contract';
import type { ParsedLine } from './command-line.ts';
import { fitsGlob } from './glob.ts';
import { runsOtherCode } from './programs.ts';

/** A line of an allow-list: a bare name, or a path in which `*` does not cross a slash; with a digest, only those very arguments. */
export type AllowEntry = { readonly pattern: string; readonly argvDigest?: string };

export type AllowlistPorts = {
  /** The real path of what a name runs, or undefined. */
  readonly resolve: (name: string, cwd: string) => Promise<string | undefined>;
  /** Whether an agent could have put a file at this real path. */
  readonly isAgentWritable: (path: string) => boolean;
  readonly argvDigest: (argv: readonly string[]) => string;
};

export type AllowlistAnswer =
  | { readonly allowed: true; readonly plan: ExecPlan; readonly files: readonly string[] }
  /** The same words whether or not a file exists. */
  | { readonly allowed: false; readonly reason: string };

/** Whether every command of a line is listed, and then what exactly to spawn. */
export async function matchAllowlist(
  line: ParsedLine,
  entries: readonly AllowEntry[],
  cwd: string,
  ports: AllowlistPorts,
): Promise<AllowlistAnswer> {
  if (!line.ok)
    return { allowed: false, reason: `the command is not simple enough for the allow-list: ${line.reason}` };
  const files: string[] = [];
  const pipelines = [];
  for (const { commands, when } of line.pipelines) {
    const steps = [];
    for (const argv of commands) {
      const file = await allowedFile(argv, entries, cwd, ports);
      if (file === undefined) return { allowed: false, reason: `"${argv[0]}" is not on the allow-list` };
      files.push(file);
      steps.push({ argv, file });
    }
    pipelines.push({ steps, when });
  }
  return { allowed: true, plan: { kind: 'argv', pipelines }, files };
}

async function allowedFile(
  argv: readonly string[],
  entries: readonly AllowEntry[],
  cwd: string,
  ports: AllowlistPorts,
): Promise<string | undefined> {
  const [name = ''] = argv;
  const file = await ports.resolve(name, cwd);
  if (file === undefined || ports.isAgentWritable(file)) return undefined;
  const digest = ports.argvDigest(argv);
  const matches = entries.some((entry) => {
    if (entry.argvDigest !== undefined) return entry.argvDigest === digest && entry.pattern === file;
    // The name it is called by and the file behind it: a link named `ls` to a shell is a shell.
    if (runsOtherCode(name) || runsOtherCode(file)) return false;
    if (!entry.pattern.includes('/')) return !name.includes('/') && entry.pattern === name;
    return fitsGlob(entry.pattern, file, '/');
  });
  return matches ? file : undefined;
}
