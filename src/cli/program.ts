import { type Argument, Command, InvalidArgumentError, Option } from 'commander';
import { nearestName } from '#base';
import { THINKING_LEVELS } from '#domain';
import { UsageError } from './fault.ts';
import { ownVersion } from './own-version.ts';
import type { Surroundings, Terminal } from './terminal.ts';

/** What every command gets. */
export type CommandContext = {
  readonly env: NodeJS.ProcessEnv;
  readonly surroundings: Surroundings;
  readonly terminal: Terminal;
};

type ProgramOptions = CommandContext & { readonly report: (exitCode: number) => void };

/** The commands and their options; what a command does is loaded when it is called. */
export function buildProgram(options: ProgramOptions): Command {
  const { surroundings, terminal, report } = options;
  const context: CommandContext = { env: options.env, surroundings, terminal };
  const program = new Command('reins')
    .description('A self-hosted gateway for AI agents.')
    .exitOverride()
    // An option belongs to the command before it: `config validate --json` is validate's.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => terminal.write(text),
      writeErr: (text) => surroundings.stderr.write(text),
      outputError: () => undefined,
      getOutHelpWidth: () => Math.min(terminal.width, HELP_WIDTH_MAX),
      getErrHelpWidth: () => Math.min(terminal.width, HELP_WIDTH_MAX),
    })
    .configureHelp({
      minWidthToWrap: HELP_TEXT_WIDTH_MIN,
      subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentTerm)].join(' '),
    })
    .helpCommand('help [command]', 'what a command does and takes')
    .helpOption('-h, --help', 'this text')
    .version(ownVersion(), '-v, --version', 'the version')
    .option('--debug', 'show the stack of an error')
    .addHelpText('after', '\nStart with: reins start\nErrors and exit codes: docs/cli.md, docs/errors.md');
  const add = (parent: Command, usage: string, description: string): Command =>
    parent
      .command(usage)
      .description(description)
      .helpOption('-h, --help', 'this text')
      .option('--debug', 'show the stack of an error');
  /** Runs `command` of a lazily loaded module and keeps its exit code. */
  const call =
    <A extends unknown[]>(load: () => Promise<(context: CommandContext, ...rest: A) => Promise<number>>) =>
    async (...rest: A): Promise<void> =>
      report(await (await load())(context, ...rest));

  add(program, 'start', 'run the gateway here and print a link to the web chat')
    .option('--port <number>', 'port to listen on (default: config, then 18789)', portNumber)
    .option('--bind <address>', 'loopback, lan, tailnet, auto or custom (default: config, then loopback)')
    .action(call(async () => (await import('./start.ts')).start));
  add(program, 'gateway', 'run the gateway here, for service managers: no banner, logs only')
    .option('--port <number>', 'port to listen on (default: config, then 18789)', portNumber)
    .option('--bind <address>', 'loopback, lan, tailnet, auto or custom (default: config, then loopback)')
    .option('--json', 'logs as JSON lines')
    .action(call(async () => (await import('./start.ts')).gateway));
  add(program, 'agent', 'send one message and stream the answer')
    .option('-m, --message <text>', 'the message; without it, stdin is read')
    .option('--session <key>', 'session to use (default: main)')
    .option('--agent <id>', 'agent to ask (default: main)')
    .option('--local', 'run here, without a gateway')
    .option('--model <provider/model>', 'model for this run')
    .addOption(new Option('--thinking <level>', 'thinking level for this run').choices(THINKING_LEVELS))
    .option('--timeout <seconds>', 'stop the run after this long', seconds)
    .option('--json', 'one JSON document with the result')
    .action(call(async () => (await import('./agent.ts')).agent));
  add(program, 'chat', 'talk to an agent in this terminal')
    .option('--session <key>', 'session to use (default: main)')
    .option('--agent <id>', 'agent to talk to (default: main)')
    .addOption(new Option('--thinking <level>', 'thinking level').choices(THINKING_LEVELS))
    .action(call(async () => (await import('./chat.ts')).chat));
  add(program, 'status', 'how the gateway is: model, sessions, load, uptime')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./status.ts')).status));

  const sessions = group(add(program, 'sessions', 'list sessions, or show, reset or delete one'));
  add(sessions, 'list', 'list sessions, newest first')
    .option('--limit <number>', 'at most so many (1 to 1000)', limit, 100)
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./sessions.ts')).listSessions));
  add(sessions, 'show <key>', 'one session and the end of its transcript')
    .option('--limit <number>', 'at most so many messages (1 to 1000)', limit, 20)
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./sessions.ts')).showSession));
  add(sessions, 'reset <key>', 'start a session over; the old transcript stays on disk')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./sessions.ts')).resetSession));
  add(sessions, 'delete <key>', 'remove a session')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./sessions.ts')).deleteSession));

  const config = group(add(program, 'config', 'read and change the config file'));
  add(config, 'path', 'where the config file is')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./config.ts')).showPath));
  add(config, 'get [key]', 'a setting in effect, or all of them; secrets are not shown')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./config.ts')).getSetting));
  add(config, 'set <key> <value>', 'change a setting; comments stay. The value is JSON5, or plain text')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./config.ts')).setSetting));
  add(config, 'unset <key>', 'remove a setting, so that its default counts')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./config.ts')).unsetSetting));
  add(config, 'validate', 'check the config file')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./config.ts')).validate));

  add(program, 'doctor', 'check this installation and say what to mend')
    .option('--fix', 'tighten the modes of files that others can read or write')
    .option('--json', 'one JSON document')
    .action(call(async () => (await import('./doctor.ts')).doctor));
  return program;
}

const HELP_WIDTH_MAX = 100;
const HELP_TEXT_WIDTH_MIN = 20;

const argumentTerm = (argument: Argument): string =>
  argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;

/** `reins sessions` lists, `reins config` shows its help; a word that is no command of the group gets the nearest one that is. */
function group(command: Command): Command {
  return command
    .argument('[command]')
    .allowExcessArguments()
    .option('--json', 'one JSON document')
    .usage('[command] [options]')
    .action(async (word: string | undefined, _options: unknown, self: Command) => {
      if (word !== undefined) throw unknownCommand(self, word);
      const first = self.commands.find((one) => one.name() === 'list');
      if (!first) return self.help({ error: true });
      await first.parseAsync(self.opts()['json'] === true ? ['--json'] : [], { from: 'user' });
    });
}

function unknownCommand(command: Command, word: string): UsageError {
  const names = command.commands.map((one) => one.name());
  const near = nearestName(word, names);
  return new UsageError(
    `unknown command '${command.name()} ${word}'`,
    near === undefined ? `use one of ${names.join(', ')}` : `did you mean ${near}?`,
  );
}

function wholeNumber(text: string, min: number, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  return value;
}

const portNumber = (text: string): number => wholeNumber(text, 0, 65_535);
const seconds = (text: string): number => wholeNumber(text, 1, 86_400);
const limit = (text: string): number => wholeNumber(text, 1, 1_000);
