export type { Channel, Delivery } from './channel.ts';
export type { ExecGate, ExecPipeline, ExecPlan, ExecRequest, ExecStep, ExecVerdict } from './exec-gate.ts';
export {
  MODEL_APIS,
  type ModelApi,
  type ModelEvent,
  type ModelFailure,
  type ModelFailureCode,
  type ModelProfile,
  type ModelRequest,
  type Provider,
  type ProviderAccess,
  type TokenCounts,
  type ToolSpec,
} from './provider.ts';
export { type Tool, type ToolContext, type ToolPorts, type ToolResult, textResult } from './tool.ts';
