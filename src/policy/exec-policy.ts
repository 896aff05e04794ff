import { messageOf, printable } from '#base';
import type { ExecGate, ExecRequest, ExecVerdict } from '#contract';
import type { AgentId, Approval } from '#domain';
import type { Approvals } from './approvals.ts';
import { parseCommandLine } from './command-line.ts';
import { type AllowEntry, type AllowlistAnswer, type AllowlistPorts, matchAllowlist } from './exec-allowlist.ts';
import type { ExecApprovalsFile, ExecAsk, ExecSecurity } from './exec-approvals-file.ts';
import { runsOtherCode } from './programs.ts';

export type ExecRule = {
  readonly security: ExecSecurity;
  readonly ask: ExecAsk;
  /** True when the config itself says `full`: then it counts for everyone who may talk to the agent. */
  readonly isExplicit: boolean;
};

export type ExecPolicyOptions = {
  readonly approvals: Approvals;
  readonly file: ExecApprovalsFile;
  readonly rule: (agent: AgentId) => ExecRule | { readonly refused: string };
  /** What an executable or a script is at this moment: device, inode, size, times and digest as one text; undefined when it is gone. */
  readonly fingerprint: (path: string) => Promise<string | undefined>;
  readonly now: () => number;
  readonly audit: (record: Readonly<Record<string, unknown>>) => void;
} & AllowlistPorts;

const SHOWN_CHARACTERS_MAX = 4_096;
const STRICTNESS: Readonly<Record<ExecSecurity, number>> = { deny: 0, allowlist: 1, full: 2 };
const EAGERNESS: Readonly<Record<ExecAsk, number>> = { off: 0, 'on-miss': 1, always: 2 };

/**
 * May this command run? Config and `exec-approvals.json` together, the stricter of both; then the allow-list; then, for the operator's
 * own runs, the operator. Nobody else is ever asked on somebody's behalf. Fails closed.
 */
export function execPolicy(options: ExecPolicyOptions): ExecGate {
  return { authorise: (request, signal) => authorise(request, signal, options) };
}

async function authorise(request: ExecRequest, signal: AbortSignal, options: ExecPolicyOptions): Promise<ExecVerdict> {
  const configured = options.rule(request.agent);
  if ('refused' in configured) return denied(configured.refused);
  let rule: ExecRule;
  let entries: readonly AllowEntry[];
  try {
    const stored = await options.file.forAgent(request.agent);
    rule = stricter(configured, stored);
    entries = stored.allowlist;
  } catch (error) {
    return denied(messageOf(error));
  }
  if (rule.security === 'deny') return denied('commands are switched off (tools.exec)');
  const listed = await matchAllowlist(parseCommandLine(request.command), entries, request.cwd, options);
  if (rule.ask !== 'always') {
    if (listed.allowed) return { allowed: true, plan: listed.plan, by: 'allowlist' };
    if (rule.security === 'full' && (request.owner || rule.isExplicit)) {
      return { allowed: true, plan: { kind: 'shell', command: request.command }, by: 'config' };
    }
  }
  if (!request.owner)
    return denied(
      `${listed.allowed ? 'every command needs an approval' : listed.reason}, and only the operator can approve it`,
    );
  if (rule.ask === 'off') return denied(listed.allowed ? 'it needs an approval and asking is off' : listed.reason);
  return await askOwner(request, listed, entries, signal, options);
}

function stricter(config: ExecRule, file: { readonly security?: ExecSecurity; readonly ask?: ExecAsk }): ExecRule {
  const security =
    file.security !== undefined && STRICTNESS[file.security] < STRICTNESS[config.security]
      ? file.security
      : config.security;
  const ask = file.ask !== undefined && EAGERNESS[file.ask] > EAGERNESS[config.ask] ? file.ask : config.ask;
  return { security, ask, isExplicit: config.isExplicit };
}

async function askOwner(
  request: ExecRequest,
  listed: AllowlistAnswer,
  entries: readonly AllowEntry[],
  signal: AbortSignal,
  options: ExecPolicyOptions,
): Promise<ExecVerdict> {
  // What cannot be shown whole cannot be approved.
  if (printable(request.command).length > SHOWN_CHARACTERS_MAX) {
    return denied(
      `the command is longer than ${SHOWN_CHARACTERS_MAX} characters and cannot be shown whole for an approval; put it in a script file`,
    );
  }
  const rememberable = await rememberableEntries(request, options);
  const before = await fingerprints(request, options);
  const env = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
  const approval = await options.approvals.ask(
    {
      runId: request.runId,
      callId: request.callId,
      sessionKey: request.sessionKey,
      agent: request.agent,
      command: request.command,
      cwd: request.cwd,
      reason: [
        listed.allowed ? 'every command is asked for' : listed.reason,
        ...(env.length > 0 ? [`with ${env.join(' ')}`] : []),
      ].join('; '),
      allowedDecisions: rememberable.length > 0 ? ['allow-once', 'allow-always', 'deny'] : ['allow-once', 'deny'],
    },
    signal,
  );
  if (!approval) return denied('too many approvals are waiting already');
  record(approval, options);
  if (approval.decision !== 'allow-once' && approval.decision !== 'allow-always') return denied(refusalText(approval));
  // The approval was for what was there when it was asked: what changed since is something else.
  if ((await fingerprints(request, options)) !== before)
    return denied('a program or script of the command changed while the approval was waiting');
  if (approval.decision === 'allow-always') {
    for (const entry of rememberable) {
      if (!entries.some((e) => e.pattern === entry.pattern && e.argvDigest === entry.argvDigest)) {
        await options.file.remember(request.agent, entry, options.now());
      }
    }
  }
  return {
    allowed: true,
    plan: listed.allowed ? listed.plan : { kind: 'shell', command: request.command },
    by: 'approval',
  };
}

/** One entry for each command of the line, or none where any of them may not be remembered: a shell or an interpreter always asks again. */
async function rememberableEntries(request: ExecRequest, options: ExecPolicyOptions): Promise<readonly AllowEntry[]> {
  const line = parseCommandLine(request.command);
  if (!line.ok) return [];
  const entries: AllowEntry[] = [];
  for (const argv of line.pipelines.flatMap(({ commands }) => commands)) {
    const [name = ''] = argv;
    const file = await options.resolve(name, request.cwd);
    if (file === undefined || options.isAgentWritable(file) || runsOtherCode(name) || runsOtherCode(file)) return [];
    entries.push({ pattern: file, argvDigest: options.argvDigest(argv) });
  }
  return entries;
}

/** Every file that a simple line names, as it is now: programs, and operands such as scripts. */
async function fingerprints(request: ExecRequest, options: ExecPolicyOptions): Promise<string> {
  const line = parseCommandLine(request.command);
  const words = line.ok
    ? line.pipelines.flatMap(({ commands }) => commands.flat())
    : request.command.split(/[\s;|&<>()"'`$]+/).filter((word) => word !== '');
  const found = await Promise.all(
    words.slice(0, 200).map(async (word) => {
      const program = await options.resolve(word, request.cwd);
      const operand = word.startsWith('-')
        ? undefined
        : await options.fingerprint(word.startsWith('/') ? word : `${request.cwd}/${word}`);
      return `${word}\0${program === undefined ? '' : `${program}\0${await options.fingerprint(program)}`}\0${operand ?? ''}`;
    }),
  );
  return found.join('\n');
}

function record(approval: Approval, options: ExecPolicyOptions): void {
  options.audit({
    ts: new Date(options.now()).toISOString(),
    type: 'approval',
    id: approval.id,
    run: approval.runId,
    session: approval.sessionKey,
    agent: approval.agent,
    command: approval.command,
    decision: approval.decision,
    by: approval.resolvedBy,
  });
}

const refusalText = (approval: Approval): string =>
  approval.decision === 'expired' ? `nobody approved it (${approval.resolvedBy ?? 'expired'})` : 'a person refused it';

const denied = (reason: string): ExecVerdict => ({ allowed: false, reason });
