export type { AgentRunSettings } from './agent-run.ts';
export { type ChatCommand, chatCommand, commandList } from './commands.ts';
export { Dispatcher, type DispatcherOptions } from './dispatcher.ts';
export type { Dispatch, Submission } from './submission.ts';
