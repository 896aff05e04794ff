export { Approvals } from './approvals.ts';
export { type ParsedLine, parseCommandLine } from './command-line.ts';
export { type AllowEntry, type AllowlistPorts, matchAllowlist } from './exec-allowlist.ts';
export {
  EXEC_ASK,
  EXEC_SECURITY,
  type ExecApprovals,
  ExecApprovalsFile,
  type ExecAsk,
  type ExecSecurity,
} from './exec-approvals-file.ts';
export { type ExecPolicyOptions, type ExecRule, execPolicy } from './exec-policy.ts';
export { type SenderDecision, senderMayStartRun } from './sender-policy.ts';
export {
  allowedTools,
  decideTool,
  TOOL_GROUPS,
  type ToolDecision,
  type ToolProfile,
  type ToolRules,
} from './tool-policy.ts';
