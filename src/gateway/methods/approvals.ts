import type { Approval } from '#domain';
import { approvalRecord } from '../run-events.ts';
import { RefusedRequest } from '../wire-error.ts';
import type { Methods } from './method.ts';

export const approvalMethods: Methods<
  'exec.approval.list' | 'exec.approval.get' | 'exec.approval.resolve' | 'exec.approval.waitDecision'
> = {
  'exec.approval.list'(_params, { ports }) {
    return ports.approvals.list().map(approvalRecord);
  },

  'exec.approval.get'({ id }, { ports }) {
    const approval = found(ports.approvals.get(id));
    const { agent, command, allowedDecisions, expiresAt } = approval;
    return {
      id,
      commandText: command,
      commandPreview: command.slice(0, 200),
      allowedDecisions,
      host: 'gateway',
      agentId: agent,
      expiresAtMs: expiresAt,
    };
  },

  'exec.approval.resolve'({ id, decision }, { ports, caller }) {
    ports.approvals.resolve(id, decision, caller.name);
    return { ok: true };
  },

  async 'exec.approval.waitDecision'({ id }, { ports, caller }) {
    const approval = found(ports.approvals.get(id));
    const answer = (end: Approval) => ({
      id,
      decision: end.decision === 'expired' ? 'deny' : end.decision,
      createdAtMs: end.createdAt,
      expiresAtMs: end.expiresAt,
    });
    if (approval.decision !== undefined) return answer(approval);
    return await new Promise((resolve, reject) => {
      const end = () => {
        leave();
        caller.gone.removeEventListener('abort', abandon);
      };
      const abandon = () => {
        end();
        reject(new RefusedRequest('connection closed'));
      };
      const leave = ports.approvals.subscribe((changed) => {
        if (changed.id !== id || changed.decision === undefined) return;
        end();
        resolve(answer(changed));
      });
      caller.gone.addEventListener('abort', abandon, { once: true });
    });
  },
};

function found(approval: Approval | undefined): Approval {
  if (approval) return approval;
  throw new RefusedRequest('unknown or expired approval id', { reason: 'APPROVAL_NOT_FOUND' });
}
