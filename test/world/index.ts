export { ManualClock } from './clock.ts';
