import { chmod, lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from './finding.ts';

const OTHERS_WRITE = 0o022;
const OTHERS_READ = 0o055;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** What is looked at of a state folder; past it the rest is reported as not looked at. */
const ENTRIES_MAX = 20_000;

export type FileCheckOptions = {
  readonly stateDir: string;
  readonly configFile: string;
  readonly tokenFile: string;
  /** Files of one kind are told together; this many are named. */
  readonly namedMax?: number;
  readonly mend: 'yes' | 'no';
  /** This user's id. */
  readonly uid: number;
};

/** Owner and modes of everything in the state folder, and of a config file that is elsewhere. Follows no links. */
export async function checkFiles(options: FileCheckOptions): Promise<Finding[]> {
  const { stateDir, configFile } = options;
  const top = await factsOf(stateDir);
  if (!top) {
    return [
      { checkId: 'fs.state_dir.missing', severity: 'info', path: stateDir, reason: 'It is made at the first start.' },
    ];
  }
  if (top.isSymbolicLink()) {
    const fix = 'Put the real folder there, or point REINS_STATE_DIR at it.';
    return [
      { checkId: 'fs.state_dir.symlink', severity: 'warn', path: stateDir, reason: 'The state folder is a link.', fix },
    ];
  }
  if (!top.isDirectory()) {
    const fix = 'Move that file away, or set REINS_STATE_DIR.';
    return [
      {
        checkId: 'fs.state_dir.not_a_folder',
        severity: 'critical',
        path: stateDir,
        reason: 'It is not a folder.',
        fix,
      },
    ];
  }
  const { entries, cut } = await entriesUnder(stateDir);
  const elsewhere = configFile.startsWith(`${stateDir}/`) ? [] : [configFile];
  const findings: Finding[] = [];
  const loose: Entry[] = [];
  for (const path of [stateDir, ...entries, ...elsewhere]) {
    const facts = await factsOf(path);
    if (!facts || facts.isSymbolicLink()) continue;
    const entry = {
      path,
      mode: facts.mode & 0o777,
      kind: facts.isDirectory() ? ('folder' as const) : ('file' as const),
    };
    if (facts.uid !== options.uid) findings.push(foreign(entry, facts.uid, options));
    else if (entry.mode & (OTHERS_WRITE | OTHERS_READ)) loose.push(entry);
  }
  findings.push(...(await looseFindings(loose, options)));
  if (cut) {
    const reason = `Only the first ${ENTRIES_MAX} files of the state folder were looked at.`;
    findings.push({ checkId: 'fs.state.large', severity: 'info', path: stateDir, reason });
  }
  return findings;
}

type Entry = { readonly path: string; readonly mode: number; readonly kind: 'file' | 'folder' };

async function factsOf(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    // Gone since it was listed, or never there: nothing to say of it.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function entriesUnder(folder: string): Promise<{ readonly entries: string[]; readonly cut: boolean }> {
  const entries: string[] = [];
  const pending = [folder];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    // A workspace is the person's own folder: its modes are theirs to choose, and it lies behind the closed state folder.
    if (/\/workspace(-[a-z0-9_-]+)?$/.test(next)) continue;
    for (const entry of await readdir(next, { withFileTypes: true })) {
      if (entries.length >= ENTRIES_MAX) return { entries, cut: true };
      const path = join(next, entry.name);
      entries.push(path);
      if (entry.isDirectory()) pending.push(path);
    }
  }
  return { entries, cut: false };
}

function foreign(entry: Entry, uid: number, { stateDir, uid: own }: FileCheckOptions): Finding {
  return {
    checkId: entry.path === stateDir ? 'fs.state_dir.owner' : 'fs.state.owner',
    severity: 'critical',
    path: entry.path,
    reason: `It belongs to user ${uid}, and Reins runs as user ${own}.`,
    fix: `sudo chown -R ${own} ${quoted(stateDir)}`,
  };
}

async function looseFindings(loose: readonly Entry[], options: FileCheckOptions): Promise<Finding[]> {
  const { stateDir, namedMax = 5 } = options;
  // Behind a state folder that nobody else may enter, the mode of a file inside opens nothing yet; it is told all the same, but
  // together, and the named files one by one.
  const named = new Set([stateDir, options.configFile, options.tokenFile]);
  const findings = await Promise.all(
    loose.filter((entry) => named.has(entry.path)).map((entry) => oneLoose(entry, options)),
  );
  const rest = loose.filter((entry) => !named.has(entry.path));
  if (rest.length === 0) return findings;
  const writable = rest.some((entry) => entry.mode & OTHERS_WRITE);
  if (options.mend === 'yes') for (const entry of rest) await tighten(entry);
  const listed = rest.slice(0, namedMax).map((entry) => entry.path.slice(stateDir.length + 1));
  const more = rest.length > namedMax ? `, and ${rest.length - namedMax} more` : '';
  findings.push({
    checkId: writable ? 'fs.state.perms_writable' : 'fs.state.perms_readable',
    severity: 'warn',
    path: stateDir,
    reason: `Other users may ${writable ? 'change' : 'read'} files inside, such as ${listed.join(', ')}${more}.`,
    ...mended(options, 'reins doctor --fix'),
  });
  return findings;
}

async function oneLoose(entry: Entry, options: FileCheckOptions): Promise<Finding> {
  const name = entry.path === options.stateDir ? 'state_dir' : entry.path === options.configFile ? 'config' : 'token';
  const writable = (entry.mode & OTHERS_WRITE) !== 0;
  const mode = entry.kind === 'folder' ? FOLDER_MODE : FILE_MODE;
  if (options.mend === 'yes') await tighten(entry);
  return {
    checkId: `fs.${name}.${writable ? 'perms_writable' : 'perms_readable'}`,
    // A state folder that others can only read tells names; the config and the token are secrets.
    severity: writable || name !== 'state_dir' ? 'critical' : 'warn',
    path: entry.path,
    reason: `Other users may ${writable ? 'change' : 'read'} it (mode ${entry.mode.toString(8)}).`,
    ...mended(options, `chmod ${mode.toString(8)} ${quoted(entry.path)}, or reins doctor --fix`),
  };
}

/** Takes away what others may do, and nothing from the owner. */
async function tighten(entry: Entry): Promise<void> {
  await chmod(entry.path, entry.mode & 0o700);
}

const mended = (options: FileCheckOptions, fix: string) =>
  options.mend === 'yes' ? ({ fix, fixed: true } as const) : { fix };

const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`);
