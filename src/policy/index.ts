export { Approvals } from './approvals.ts';
export { type ParsedLine, type ParsedPipeline, parseCommandLine } from './command-line.ts';
export { type AllowEntry, type AllowlistPorts, matchAllowlist } from './exec-allowlist.ts';
export { type ExecApprovals, ExecApprovalsFile } from './exec-approvals-file.ts';
export { type ExecPolicyOptions, execPolicy } from './exec-policy.ts';
export {
  EXEC_ASK,
  EXEC_ASK_FALLBACK,
  EXEC_EFFECTS,
  EXEC_SECURITY,
  type ExecAsk,
  type ExecAskFallback,
  type ExecRule,
  type ExecSecurity,
  effectsOf,
} from './exec-rule.ts';
export { type SenderDecision, type SenderRule, senderMayStartRun } from './sender-policy.ts';
export {
  allowedTools,
  decideTool,
  OWNER_TOOLS,
  TOOL_GROUPS,
  type ToolDecision,
  type ToolFacts,
  type ToolProfile,
  type ToolRules,
} from './tool-policy.ts';
