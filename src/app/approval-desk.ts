import { createHash } from 'node:crypto';
import { createReadStream, realpathSync } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import { delimiter, resolve, sep } from 'node:path';
import type { Clock } from '#base';
import { agentIds, agentSettings, type Config, type StatePaths } from '#config';
import type { ExecGate } from '#contract';
import type { AgentId } from '#domain';
import { resolveExecutable, writeFileAtomic } from '#host';
import { Approvals, ExecApprovalsFile, execPolicy } from '#policy';

export type ApprovalDesk = { readonly approvals: Approvals; readonly gate: ExecGate };

export type ApprovalDeskOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly paths: StatePaths;
  readonly config: () => Config;
  readonly clock: Clock;
  readonly workspaceOf: (agent: AgentId) => string;
  readonly audit: (record: Readonly<Record<string, unknown>>) => void;
};

const APPROVAL_MS_DEFAULT = 30 * 60_000;
const DIGESTED_BYTES_MAX = 64 * 1024 * 1024;
const SEARCH_PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin';

/** Where commands are decided: the policy, given this machine's eyes and hands. */
export function approvalDesk(options: ApprovalDeskOptions): ApprovalDesk {
  const { env, paths, config, clock, workspaceOf, audit } = options;
  const searchPath = env['PATH'] ?? SEARCH_PATH_DEFAULT;
  const approvals = new Approvals({
    clock,
    expiryMs: () =>
      agentSettings(config(), agentIds(config())[0]!, paths)?.exec.approvalTimeoutMs ?? APPROVAL_MS_DEFAULT,
  });
  const isAgentWritable = (path: string) =>
    agentIds(config()).some((agent) => isInside(path, realOf(workspaceOf(agent))));
  const gate = execPolicy({
    approvals,
    file: new ExecApprovalsFile({
      load: () => readFile(paths.execApprovalsFile, 'utf8').catch(ignoreMissing),
      save: (text) => writeFileAtomic(paths.execApprovalsFile, text, { mode: 0o600 }),
    }),
    rule(agent) {
      const exec = agentSettings(config(), agent, paths)?.exec;
      if (!exec) return { refused: `there is no agent "${agent}"` };
      if (exec.host !== 'gateway') return { refused: 'tools.exec.host names a place that this version does not have' };
      return {
        security: exec.security,
        ask: exec.ask,
        isExplicit: exec.security === 'full',
        askFallback: exec.askFallback,
      };
    },
    // A folder that an agent can write to finds no programs: what stands there under a known name is the agent's, not the system's.
    resolve: (name, cwd) =>
      resolveExecutable(
        name,
        searchPath
          .split(delimiter)
          .filter((folder) => !isAgentWritable(realOf(folder)))
          .join(delimiter),
        cwd,
      ),
    isAgentWritable,
    argvDigest: (argv) => createHash('sha256').update(JSON.stringify(argv)).digest('hex'),
    fingerprint,
    now: () => clock.now(),
    audit,
  });
  return { approvals, gate };
}

/** A file or folder as it is at this moment; undefined for what is neither. */
async function fingerprint(path: string): Promise<string | undefined> {
  try {
    const real = await realpath(path);
    const facts = await stat(real);
    if (facts.isDirectory()) return [real, facts.dev, facts.ino].join('\0');
    if (!facts.isFile()) return undefined;
    const digest = facts.size <= DIGESTED_BYTES_MAX ? await digestOf(real) : 'large';
    return [real, facts.dev, facts.ino, facts.size, facts.mtimeMs, digest].join('\0');
  } catch {
    // Not there, or not readable: that too is a state that must stay the same.
    return undefined;
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  return hash.digest('hex');
}

/** The path with its links followed; as it is where there is nothing. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // It may be made later; then it is looked at again.
    return path;
  }
}

function isInside(path: string, folder: string): boolean {
  const root = resolve(folder);
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}

const ignoreMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error;
};
