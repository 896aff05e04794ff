import type { Clock } from '#base';
import type { Tool } from '#contract';
import type { Processes } from '#host';
import { execTool } from './exec.ts';
import { processTool } from './process.ts';
import { ProcessTable } from './process-table.ts';

/** exec and process: two tools over one table of processes. */
export function execTools(options: {
  readonly processes: Processes;
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
}): readonly Tool[] {
  const table = new ProcessTable(options);
  return [execTool({ ...options, table }), processTool({ ...options, table })];
}
