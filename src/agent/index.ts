export { ArgumentChecker } from './argument-checker.ts';
export { ContextMemory, type DerivedContext, deriveContext, type WindowRule } from './derive-context.ts';
export { type LoopInput, type LoopLimits, type LoopPorts, runLoop } from './loop.ts';
export { promptEntries, userEntry } from './prompt-entries.ts';
export { openCalls, type RunState, recoveryEntries, runStateOf } from './run-state.ts';
export { isShutdown, SHUTDOWN } from './run-tools.ts';
export { systemPrompt, WORKSPACE_FILES } from './system-prompt.ts';
export { boundResult, type ResultBound } from './tool-result-bound.ts';
