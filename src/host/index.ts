export { AppendFile } from './append-file.ts';
export { type FileMode, writeFileAtomic, writeFileAtomicSync } from './atomic-file.ts';
export { checkedOverrides, childEnvironment } from './child-environment.ts';
export { LOG_LEVELS, type Log, type LogFields, type LogLevel, type LogOptions, openLog, silentLog } from './log.ts';
export { OutputBuffer } from './output-buffer.ts';
export { ensurePrivateFolder } from './private-folder.ts';
export {
  type ProcessEnd,
  Processes,
  type RunningProcess,
  resolveExecutable,
  type SpawnOptions,
  type SpawnPlan,
} from './processes.ts';
export { type FileFacts, openWorkspace, type WorkspaceFiles } from './workspace-files.ts';
