export { isFresh, type ResetRule } from './freshness.ts';
export { type LaneItem, type LaneLimits, Lanes } from './lanes.ts';
export { afterRun, type SessionPatch, type SessionQuery, type SessionRow } from './session-row.ts';
export { type SessionChange, type SessionFacts, Sessions, type SessionsOptions } from './sessions.ts';
export { Transcript } from './transcript.ts';
