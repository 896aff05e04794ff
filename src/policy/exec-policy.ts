import { type Clock, messageOf, printable } from '#base';
import type { ExecGate, ExecRequest, ExecVerdict } from '#contract';
import type { AgentId } from '#domain';
import { type BindingPorts, bindingOf } from './approval-binding.ts';
import type { Approvals } from './approvals.ts';
import { type ParsedLine, parseCommandLine } from './command-line.ts';
import {
  type AllowEntry,
  type AllowlistAnswer,
  type AllowlistPorts,
  entryFor,
  matchAllowlist,
} from './exec-allowlist.ts';
import type { ExecApprovalsFile } from './exec-approvals-file.ts';
import { type ExecAskFallback, type ExecEffects, type ExecRule, effectsOf } from './exec-rule.ts';

export type ExecPolicyOptions = {
  readonly approvals: Approvals;
  readonly file: ExecApprovalsFile;
  /** Asked for each command, so that a changed config counts at once; `refused` says why nothing runs for this agent. */
  readonly rule: (agent: AgentId) => ExecRule | { readonly refused: string };
  readonly now: Clock['now'];
  /** Takes one record for each question that was asked, and for what went wrong meanwhile; must not throw. */
  readonly audit: (record: Readonly<Record<string, unknown>>) => void;
} & AllowlistPorts &
  BindingPorts;

/** How config and file stand to one command at one moment. */
type Standing = ExecEffects & {
  readonly fallback: ExecAskFallback;
  readonly isExplicitFull: boolean;
  readonly answer: AllowlistAnswer;
};

/** Of the command and what is set for it together, as a person sees them. */
const SHOWN_CHARACTERS_MAX = 4_096;

/**
 * May this command run? Config and `exec-approvals.json` together, the stricter of both; then the allow-list; then, for the operator's
 * own runs, the operator. Nobody else is ever asked on somebody's behalf. What cannot be decided is refused.
 */
export function execPolicy(options: ExecPolicyOptions): ExecGate {
  return {
    async authorise(request, signal) {
      try {
        return await authorise(request, signal, options);
      } catch (error) {
        signal.throwIfAborted();
        // The model learns that, not why: a fault of the file system would tell it about files.
        options.audit({ ...recordOf(request, options), type: 'exec-check-failed', error: messageOf(error) });
        return denied('the command could not be checked');
      }
    },
  };
}

async function authorise(request: ExecRequest, signal: AbortSignal, options: ExecPolicyOptions): Promise<ExecVerdict> {
  signal.throwIfAborted();
  const { command, owner } = request;
  // No process can be told these: it would get something else than what was decided.
  if (command.includes('\0') || !command.isWellFormed())
    return denied('the command holds a character that cannot be run');
  const line = parseCommandLine(command);
  const standing = await standingOf(request, line, options);
  if ('refused' in standing) return denied(standing.refused);
  const { answer } = standing;
  const effect = answer.allowed ? standing.listed : standing.unlisted;
  if (effect === 'run' && answer.allowed) return { allowed: true, plan: answer.plan, by: 'allowlist' };
  if (effect === 'run' && (owner || standing.isExplicitFull)) return asShell(command, 'config');
  const reason = answer.allowed ? 'every command needs an approval' : answer.reason;
  if (effect === 'refuse') return denied(reason);
  if (!owner) return denied(`${reason}, and only the operator may approve or lift that`);
  return await askOwner({ request, line, standing, reason }, signal, options);
}

/** @returns `refused` when nothing may run at all, also when the file is damaged */
async function standingOf(
  request: ExecRequest,
  line: ParsedLine,
  options: ExecPolicyOptions,
): Promise<Standing | { readonly refused: string }> {
  const rule = options.rule(request.agent);
  if ('refused' in rule) return rule;
  const stored = await options.file.forAgent(request.agent).catch((error: unknown) => ({ refused: messageOf(error) }));
  if ('refused' in stored) return stored;
  const effects = effectsOf(rule, stored);
  if (effects.listed === 'refuse') return { refused: 'commands are switched off (tools.exec)' };
  const answer = await matchAllowlist(line, stored.allowlist, request.cwd, options);
  return { ...effects, isExplicitFull: rule.isExplicit && rule.security === 'full', answer };
}

type Question = {
  readonly request: ExecRequest;
  readonly line: ParsedLine;
  readonly standing: Standing;
  readonly reason: string;
};

async function askOwner(question: Question, signal: AbortSignal, options: ExecPolicyOptions): Promise<ExecVerdict> {
  const { request, line } = question;
  const reason = [question.reason, ...environmentShown(request.env)].join('; ');
  // What cannot be shown whole cannot be approved.
  if (printable(request.command).length + reason.length > SHOWN_CHARACTERS_MAX) {
    return denied(
      `the command with its environment is longer than ${SHOWN_CHARACTERS_MAX} characters and cannot be shown whole for an approval; put it in a script file`,
    );
  }
  const binding = await bindingOf(request, options, signal);
  if (binding === undefined) return denied('the command names too many files to be bound to an approval');
  const entries = await rememberable(question, options);
  const approval = await options.approvals.ask(
    {
      runId: request.runId,
      callId: request.callId,
      sessionKey: request.sessionKey,
      agent: request.agent,
      command: request.command,
      cwd: request.cwd,
      reason,
      allowedDecisions: entries.length > 0 ? ['allow-once', 'allow-always', 'deny'] : ['allow-once', 'deny'],
    },
    signal,
  );
  if (!approval) return denied('too many approvals are waiting already');
  const record = { ...recordOf(request, options), type: 'approval', id: approval.id, by: approval.resolvedBy };
  options.audit({ ...record, decision: approval.decision });
  signal.throwIfAborted();
  if (approval.decision === 'deny') return denied('a person refused it');
  // The answer was for what was there when it was asked, and under rules that still let it be asked. It is used up either way.
  const now = await standingOf(request, line, options);
  if ('refused' in now) return denied(now.refused);
  const { answer } = now;
  if ((answer.allowed ? now.listed : now.unlisted) === 'refuse') return denied('the exec policy changed meanwhile');
  if ((await bindingOf(request, options, signal)) !== binding)
    return denied('a program or script of the command changed while the approval was waiting');
  if (approval.decision === 'expired') {
    if (!(await fallbackAllows(now, question, options)))
      return denied(`nobody approved it: ${approval.resolvedBy ?? 'time ran out'}`);
    return answer.allowed ? { allowed: true, plan: answer.plan, by: 'config' } : asShell(request.command, 'config');
  }
  if (approval.decision === 'allow-always') {
    // Said yes is said yes: when it cannot be kept for the next time, it is asked for again then.
    await options.file
      .remember(request.agent, entries, options.now())
      .catch((error: unknown) => options.audit({ ...record, type: 'approval-not-kept', error: messageOf(error) }));
  }
  return answer.allowed ? { allowed: true, plan: answer.plan, by: 'approval' } : asShell(request.command, 'approval');
}

/** What the rules say for a question without an answer; never that an interpreter may run what the model wrote. */
async function fallbackAllows(
  { answer, fallback }: Standing,
  { request, line }: Question,
  options: ExecPolicyOptions,
): Promise<boolean> {
  if (fallback === 'deny' || answer.allowed) return fallback !== 'deny';
  return fallback === 'full' && (await entriesFor(line, request.cwd, options)) !== undefined;
}

/** The entries that `allow-always` would keep; none where it may not be offered. */
async function rememberable(question: Question, options: ExecPolicyOptions): Promise<readonly AllowEntry[]> {
  const { request, line, standing } = question;
  // With `ask: always` an entry would change nothing; and an entry cannot hold the environment that was approved.
  if (standing.listed === 'ask' || Object.keys(request.env).length > 0) return [];
  return (await entriesFor(line, request.cwd, options)) ?? [];
}

/** One entry for each command of the line, or undefined where one of them has none: a shell or an interpreter always asks again. */
async function entriesFor(
  line: ParsedLine,
  cwd: string,
  options: ExecPolicyOptions,
): Promise<readonly AllowEntry[] | undefined> {
  if (!line.ok) return undefined;
  const entries: AllowEntry[] = [];
  for (const argv of line.pipelines.flatMap(({ commands }) => commands)) {
    const entry = await entryFor(argv, cwd, options);
    if (entry === undefined) return undefined;
    entries.push(entry);
  }
  return entries;
}

/** Quoted, so that no value can look like a further sentence. */
function environmentShown(env: ExecRequest['env']): readonly string[] {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${printable(JSON.stringify(value))}`);
  return variables.length === 0 ? [] : [`with ${variables.join(' ')}`];
}

function recordOf(request: ExecRequest, options: ExecPolicyOptions): Readonly<Record<string, unknown>> {
  const environment = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
  return {
    ts: new Date(options.now()).toISOString(),
    run: request.runId,
    session: request.sessionKey,
    agent: request.agent,
    command: request.command,
    cwd: request.cwd,
    envDigest: options.argvDigest(environment.sort()),
  };
}

const asShell = (command: string, by: 'approval' | 'config'): ExecVerdict => ({
  allowed: true,
  plan: { kind: 'shell', command },
  by,
});

const denied = (reason: string): ExecVerdict => ({ allowed: false, reason });
