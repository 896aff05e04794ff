export type { SessionPatch, SessionQuery, SessionRow } from './session-row.ts';
