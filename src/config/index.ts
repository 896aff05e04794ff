export {
  type AgentSettings,
  agentIds,
  agentSettings,
  type Binding,
  bindingsOf,
  defaultAgent,
  type ExecSettings,
  modelAliases,
  type ToolRules,
} from './agent-settings.ts';
export { bindHost, bindsLoopbackOnly } from './bind-host.ts';
export { type ConfigPath, formatConfigPath, parseConfigPath } from './config-path.ts';
export { assertConfigKey, type ConfigKey, configJsonSchema, configKeyAt, configKeys } from './describe-keys.ts';
export { getConfigValue, type JsonValue, patchConfigText, setConfigValue, unsetConfigValue } from './edit.ts';
export { ensureGatewayToken, readGatewayToken } from './gateway-token.ts';
export { formatIssue, type Issue } from './issue.ts';
export { checkConfigText, type LoadedConfig, type LoadOptions, loadConfig, readConfigText } from './load.ts';
export { REDACTED, redactConfig } from './redact.ts';
export { type Config, ConfigSchema } from './schema.ts';
export { resolveSecret, type SecretPlaces, type SecretRef } from './secret-ref.ts';
export { type StatePaths, statePaths } from './state-paths.ts';
export type { Environment } from './substitute.ts';
export { type ConfigEvent, ConfigWatch, type WatchOptions } from './watch.ts';
export { writeConfig } from './write.ts';
