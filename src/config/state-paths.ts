import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type AgentId, DEFAULT_AGENT } from '#domain';
import type { Environment } from './substitute.ts';

/** Where everything is that a gateway keeps. Absolute paths; nothing here makes or looks at a file. */
export type StatePaths = {
  readonly stateDir: string;
  /** The owner's config; `REINS_CONFIG` puts it elsewhere. */
  readonly configFile: string;
  /** The bytes of the config that was last good. */
  readonly lastGoodFile: string;
  readonly database: string;
  readonly logsDir: string;
  readonly logFile: string;
  readonly auditFile: string;
  readonly execApprovalsFile: string;
  /** The gateway token that was made at the first start. */
  readonly tokenFile: string;
  readonly agentsDir: string;
  /** Transcripts of an agent. */
  sessionsDirOf(agent: AgentId): string;
  transcriptOf(agent: AgentId, sessionId: string): string;
  /** The folder of an agent's files: what the config says, else `workspace`, for further agents `workspace-<id>`. */
  workspaceFor(agent: AgentId, configured?: string): string;
  /** A path from the config: `~` is the home folder, a relative path starts in the state folder. */
  fromConfig(path: string): string;
};

/** @param env `REINS_STATE_DIR` (default `~/.reins`), `REINS_CONFIG` (default `reins.json` in it), `HOME` */
export function statePaths(env: Environment): StatePaths {
  const home = env['HOME'] || homedir();
  const stateDir = resolve(expandHome(env['REINS_STATE_DIR'] || '~/.reins', home));
  const inState = (...parts: readonly string[]) => join(stateDir, ...parts);
  const fromConfig = (path: string) => resolve(stateDir, expandHome(path, home));
  const sessionsDirOf = (agent: AgentId) => inState('agents', agent, 'sessions');
  return {
    stateDir,
    configFile: env['REINS_CONFIG'] ? resolve(expandHome(env['REINS_CONFIG'], home)) : inState('reins.json'),
    lastGoodFile: inState('reins.json.last-good'),
    database: inState('reins.sqlite'),
    logsDir: inState('logs'),
    logFile: inState('logs', 'gateway.log'),
    auditFile: inState('audit.jsonl'),
    execApprovalsFile: inState('exec-approvals.json'),
    tokenFile: inState('token'),
    agentsDir: inState('agents'),
    sessionsDirOf,
    transcriptOf: (agent, sessionId) => join(sessionsDirOf(agent), `${sessionId}.jsonl`),
    workspaceFor: (agent, configured) =>
      configured === undefined
        ? inState(agent === DEFAULT_AGENT ? 'workspace' : `workspace-${agent}`)
        : fromConfig(configured),
    fromConfig,
  };
}

const expandHome = (path: string, home: string): string => {
  if (path === '~') return home;
  return path.startsWith('~/') ? join(home, path.slice(2)) : path;
};
