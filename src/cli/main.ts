import { CommanderError } from 'commander';
import { EXIT, exitCodeOf, reportFault, UsageError } from './fault.ts';
import { buildProgram } from './program.ts';
import { processSurroundings, type Surroundings, Terminal } from './terminal.ts';

/**
 * The command line, from its words to its exit code: 0 done, 1 failed, 2 wrong command line, 3 no gateway answers, 130 and 143
 * stopped. Never rejects. `argv` is without program and script.
 */
export async function main(
  argv: readonly string[],
  surroundings: Surroundings = processSurroundings(),
): Promise<number> {
  const terminal = new Terminal(surroundings);
  // `reins sessions | head -1`: the reader left, which ends the work and is no failure.
  surroundings.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') terminal.note(`✗ the output cannot be written: ${error.message}`);
    surroundings.exitNow(error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
  });
  const words = beforeDoubleDash(argv);
  const form = {
    json: words.includes('--json') ? 'yes' : 'no',
    debug: words.includes('--debug') ? 'yes' : 'no',
  } as const;
  let code: number = EXIT.done;
  try {
    const program = buildProgram({
      surroundings,
      terminal,
      env: surroundings.env,
      report: (result) => (code = result),
    });
    await program.parseAsync(argv, { from: 'user' });
    return code;
  } catch (thrown) {
    const fault = thrown instanceof CommanderError ? usageFault(thrown) : thrown;
    // Help that was asked for, or shown for want of a command: it has been printed already.
    if (fault === undefined) return (thrown as CommanderError).exitCode === 0 ? EXIT.done : EXIT.usage;
    reportFault(terminal, fault, form);
    return exitCodeOf(fault);
  }
}

function beforeDoubleDash(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end < 0 ? argv : argv.slice(0, end);
}

const ALREADY_PRINTED = new Set(['commander.help', 'commander.helpDisplayed', 'commander.version']);

function usageFault(error: CommanderError): UsageError | undefined {
  if (ALREADY_PRINTED.has(error.code)) return undefined;
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n');
  const near = suggestion?.replace(/^\(D/, 'd').replace(/\)$/, '');
  return new UsageError(message, near ?? 'reins --help shows what there is');
}
