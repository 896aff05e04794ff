import type { ExecRequest } from '#contract';
import { parseCommandLine } from './command-line.ts';
import type { AllowlistPorts } from './exec-allowlist.ts';
import { runsOtherCode } from './programs.ts';

export type BindingPorts = Pick<AllowlistPorts, 'resolve'> & {
  /**
   * What stands at a path at this moment, as one text. A file: real path, device, inode, size, times and a digest of its bytes. A folder:
   * real path, device and inode. Undefined where there is neither.
   */
  readonly fingerprint: (path: string) => Promise<string | undefined>;
};

/** Words that may name what is run. */
type Candidates = {
  readonly programs: ReadonlySet<string>;
  /** Where the program runs other code: its scripts are among these. */
  readonly operands: ReadonlySet<string>;
};

const LOOKUPS_MAX = 4_096;
const FOLDER_CHANGES_MAX = 8;

/**
 * What a command would run, as it is now; an approval is for exactly this (security model T9). It holds the folder, the programs, and
 * the operands of interpreters and the like, where scripts stand. Operands of other programs do not count: `tail app.log` is the same
 * command after the log grew.
 * @returns undefined when the command names too many files to look at them all
 * @throws the signal's reason
 */
export async function bindingOf(
  request: Pick<ExecRequest, 'command' | 'cwd'>,
  ports: BindingPorts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { command, cwd } = request;
  const line = parseCommandLine(command);
  const commands = line.ok ? line.pipelines.flatMap((pipeline) => pipeline.commands) : [];
  const words = line.ok ? commands.flat() : looseWords(command);
  const { programs, operands } = line.ok ? await candidatesIn(commands, cwd, ports) : looseCandidates(words);
  const folders = foldersOf(words, cwd);
  if (folders === undefined || (programs.size + operands.size) * folders.length > LOOKUPS_MAX) return undefined;
  const facts: string[] = [];
  const add = async (kind: string, word: string, path: string) => {
    signal.throwIfAborted();
    facts.push(JSON.stringify([kind, word, path, (await ports.fingerprint(path)) ?? null]));
  };
  await add('folder', '', cwd);
  for (const folder of folders) {
    for (const word of programs) {
      // The search path is the same from everywhere.
      const file = folder === cwd || word.includes('/') ? await ports.resolve(word, folder) : undefined;
      if (file !== undefined) await add('program', word, file);
    }
    for (const word of operands) await add('operand', word, pathFrom(folder, word));
  }
  return facts.join('\n');
}

async function candidatesIn(
  commands: readonly (readonly string[])[],
  cwd: string,
  ports: BindingPorts,
): Promise<Candidates> {
  const programs = new Set<string>();
  const operands = new Set<string>();
  for (const argv of commands) {
    const [name = ''] = argv;
    programs.add(name);
    const file = await ports.resolve(name, cwd);
    const takesScripts = runsOtherCode(name) || name === '.' || name === 'source' || runsOtherCode(file ?? name);
    if (takesScripts) for (const operand of argv.slice(1).flatMap(operandsIn)) operands.add(operand);
  }
  return { programs, operands };
}

/** In a line that only a shell can read, any word may name a program, and be what the next one takes for a script. */
function looseCandidates(words: readonly string[]): Candidates {
  const takesScripts = words.some((word) => runsOtherCode(word) || word === '.' || word === 'source');
  return { programs: new Set(words), operands: new Set(takesScripts ? words.flatMap(operandsIn) : []) };
}

/** `--require=./a.js` names a file too. */
function operandsIn(word: string): readonly string[] {
  if (!word.startsWith('-')) return word === '' ? [] : [word];
  const at = word.indexOf('=');
  return at < 0 || at === word.length - 1 ? [] : [word.slice(at + 1)];
}

/** Where the words of a line may start from: its folder, and what it changes to, as in `cd sub && sh run.sh`. */
function foldersOf(words: readonly string[], cwd: string): readonly string[] | undefined {
  const folders = new Set([cwd]);
  let changes = 0;
  let current = cwd;
  for (const [i, word] of words.entries()) {
    const target = words[i + 1];
    if ((word !== 'cd' && word !== 'pushd' && word !== '-C') || target === undefined) continue;
    if (++changes > FOLDER_CHANGES_MAX) return undefined;
    folders.add(pathFrom(cwd, target));
    current = pathFrom(current, target);
    folders.add(current);
  }
  return [...folders];
}

/** Once with everything that separates taken away, once only by its quotes, for names with spaces. */
function looseWords(command: string): readonly string[] {
  const bare = command.split(/[\s;|&<>(){}"'`$\\]+/);
  const quoted = command.split(/["']/);
  return [...bare, ...quoted].filter((word) => word !== '');
}

const pathFrom = (folder: string, path: string) => (path.startsWith('/') ? path : `${folder}/${path}`);
