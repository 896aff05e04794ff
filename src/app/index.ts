export { type LocalRun, runLocal } from './local.ts';
export { type RunningReins, type StartOptions, startReins } from './start.ts';
