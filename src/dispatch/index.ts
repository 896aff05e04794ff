export type { Dispatch, Submission } from './submission.ts';
