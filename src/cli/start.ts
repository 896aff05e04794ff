import { flushCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isGatewayError, printableLine } from '#base';
import { EXIT } from './fault.ts';
import { connectGateway } from './gateway-link.ts';
import { Interruption } from './interruption.ts';
import { ownVersion } from './own-version.ts';
import type { CommandContext } from './program.ts';

type Options = { readonly port?: number; readonly bind?: string };

/** `reins start`: the gateway in the foreground, for a person who wants to talk to an agent now. */
export async function start(context: CommandContext, options: Options): Promise<number> {
  try {
    return await serveWithBanner(context, options);
  } catch (thrown) {
    if (!isGatewayError(thrown, 'PORT_IN_USE', 'STATE_IN_USE')) throw thrown;
    return await showRunning(context, thrown);
  }
}

/** The gateway that is in the way may be the very one that was wanted. */
async function showRunning(context: CommandContext, thrown: unknown): Promise<number> {
  try {
    using link = await connectGateway(context);
    const { url, token } = link.address;
    context.terminal.line(
      `Reins ${link.hello.server.version} runs already: ${url}/#token=${encodeURIComponent(token ?? '')}`,
    );
    return EXIT.done;
  } catch (second) {
    // Somebody else's program: what the start said of it is the answer.
    if (isGatewayError(second)) throw thrown;
    throw second;
  }
}

async function serveWithBanner(context: CommandContext, options: Options): Promise<number> {
  const { terminal } = context;
  return await serve(context, options, 'pretty', (reins) => {
    const rows: [string, string][] = [
      ['Open', terminal.paint('underline', reins.link)],
      ['Model', modelText(reins.model)],
      ['', terminal.paint('dim', modelHint(reins.model))],
      ['State', withTilde(reins.stateDir)],
      ['Stop', 'Ctrl-C'],
    ];
    terminal.line(`${terminal.paint('bold', `Reins ${ownVersion()}`)} is ready.\n`);
    for (const [name, value] of rows) terminal.line(`  ${terminal.paint('bold', name.padEnd(7))}${value}`);
    terminal.line();
  });
}

/** `reins gateway`: the same for a service manager; it says where it listens and keeps the token to itself. */
export async function gateway(
  context: CommandContext,
  options: Options & { readonly json?: boolean },
): Promise<number> {
  return await serve(context, options, options.json ? 'json' : 'pretty', (reins) => {
    if (!options.json)
      context.terminal.note(`Reins ${ownVersion()} listens on ${reins.url} with ${modelText(reins.model)}`);
  });
}

type Running = Awaited<ReturnType<typeof import('#app').startReins>>;

async function serve(
  context: CommandContext,
  options: Options,
  console: 'pretty' | 'json',
  announce: (reins: Running) => void,
): Promise<number> {
  using interruption = new Interruption(context.surroundings);
  const { startReins } = await import('#app');
  const reins = await startReins({
    env: context.env,
    console,
    ...(options.port === undefined ? {} : { port: options.port }),
    ...(options.bind === undefined ? {} : { bind: options.bind }),
  });
  announce(reins);
  if (console !== 'json') {
    for (const warning of reins.warnings) context.terminal.note(context.terminal.paint('yellow', `! ${warning}`));
  }
  // A gateway is killed more often than it ends: what was compiled is kept now, for the next start.
  flushCompileCache();
  await Promise.race([reins.closed, interruption.happened()]);
  await reins.close(interruption.name ?? 'closed');
  await reins.closed;
  return EXIT.done;
}

export function modelText(model: { readonly provider: string; readonly model: string; readonly how: string }): string {
  return printableLine(`${model.provider}/${model.model} (${model.how})`);
}

export function modelHint(model: { readonly offline: boolean }): string {
  return model.offline
    ? 'This guide works without a model. Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY and start again.'
    : 'Another one: reins config set agents.defaults.model provider/model';
}

function withTilde(path: string): string {
  const home = homedir();
  return path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
