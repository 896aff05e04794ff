import type { Clock } from '#base';
import type { Tool } from '#contract';
import type { Processes } from '#host';

export type BuiltinToolsOptions = {
  readonly processes: Processes;
  readonly clock: Clock;
  /** Where the passed-on part of a command's environment comes from. */
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** The names of the built-in tools in the order in which models see them, known without loading any. */
export const BUILTIN_TOOL_NAMES = ['read', 'write', 'edit', 'exec', 'process'] as const;

/** The built-in tools, always in this order: a model's prompt must not change by itself. Loaded when the first run needs them. */
export async function builtinTools(options: BuiltinToolsOptions): Promise<readonly Tool[]> {
  const [{ read }, { write }, { edit }, { execTools }] = await Promise.all([
    import('./read/index.ts'),
    import('./write/index.ts'),
    import('./edit/index.ts'),
    import('./exec/index.ts'),
  ]);
  return [read, write, edit, ...execTools(options)];
}
