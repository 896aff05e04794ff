import { newId, systemClock } from '#base';
import { defaultAgent, formatIssue, loadConfig, statePaths } from '#config';
import {
  type Approval,
  type ApprovalDecision,
  agentId,
  agentOf,
  mainSessionKey,
  type RunNotice,
  type RunResult,
  resolveSessionKey,
  type ThinkingLevel,
} from '#domain';
import { ensurePrivateFolder, openLog } from '#host';
import { openCore } from './core.ts';

export type LocalRun = {
  readonly env: NodeJS.ProcessEnv;
  readonly message: string;
  readonly session?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly thinking?: ThinkingLevel;
  readonly timeoutMs?: number;
  onNotice(notice: RunNotice): void;
  /** `nobody`: there is no person to ask. Asked for every run of the session, also for one that an earlier process left. */
  onApproval(approval: Approval): Promise<ApprovalDecision | 'nobody'>;
  readonly signal: AbortSignal;
};

/**
 * One message, answered in this process: the same stores, lanes and loop as the gateway's, without its port. What an earlier process
 * left unanswered in this session is finished first.
 * @throws {GatewayError} `STATE_IN_USE` while a gateway runs on the same state folder, and what keeps a gateway from starting
 */
export async function runLocal(options: LocalRun): Promise<RunResult> {
  process.umask(0o077);
  const { env } = options;
  const paths = statePaths(env);
  ensurePrivateFolder(paths.stateDir);
  ensurePrivateFolder(paths.logsDir);
  const loaded = loadConfig({ stateDir: paths.stateDir, env });
  const log = openLog({ file: paths.logFile, level: 'info', console: 'off' });
  for (const secret of loaded.secrets) log.addSecret(secret);
  for (const warning of loaded.warnings) log.warn(formatIssue(warning));
  const core = await openCore({ env, paths, config: () => loaded.config, log, clock: systemClock });
  try {
    const fallback = defaultAgent(loaded.config);
    const wanted = options.agent === undefined ? fallback : agentId(options.agent);
    const sessionKey =
      options.session === undefined ? mainSessionKey(wanted) : resolveSessionKey(options.session, wanted);
    if (core.models.choose([options.model, undefined]).profile.api === 'offline') await core.findLocalModels();
    await core.dispatcher.start();
    const runId = newId();
    core.dispatcher.subscribe((notice) => {
      if (notice.runId === runId) options.onNotice(notice);
    });
    core.approvals.subscribe((approval) => {
      if (approval.sessionKey !== sessionKey || approval.decision !== undefined) return;
      // Whoever does not answer has refused.
      options.onApproval(approval).then(
        (decision) => {
          if (decision === 'nobody') core.approvals.callOff(approval.id, 'there is nobody to ask here');
          else core.approvals.resolve(approval.id, decision, 'terminal');
        },
        (error) => log.warn('An approval was not answered', { error: String(error) }),
      );
    });
    const { finished } = await core.dispatcher.submit({
      idempotencyKey: runId,
      channel: 'cli',
      surface: 'cli',
      chatType: 'direct',
      sender: { id: 'operator', owner: true },
      sessionKey,
      agent: agentOf(sessionKey) ?? wanted,
      text: options.message,
      images: [],
      // Its answer is waited for: it is not put into a run that an earlier process left, but comes after it.
      queue: 'followup',
      receivedAt: systemClock.now(),
      options: {
        ...(options.model === undefined ? {} : { model: options.model }),
        ...(options.thinking === undefined ? {} : { thinking: options.thinking }),
        ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
      },
    });
    const stop = () => core.dispatcher.abort(sessionKey, runId);
    options.signal.addEventListener('abort', stop, { once: true });
    if (options.signal.aborted) stop();
    return await finished;
  } finally {
    await core.close();
    log.close();
  }
}
