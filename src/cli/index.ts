export { main } from './main.ts';
export type { Surroundings } from './terminal.ts';
