import { isRecord, printableLine } from '#base';
import { durationText } from './duration.ts';
import { EXIT } from './fault.ts';
import { connectGateway } from './gateway-link.ts';
import { ownVersion } from './own-version.ts';
import type { CommandContext } from './program.ts';

const SESSIONS_COUNTED_MAX = 1_000;

/** `reins status`: exit code 0 when the gateway answers and is well, 3 when none answers. */
export async function status(context: CommandContext, { json }: { readonly json?: boolean }): Promise<number> {
  using link = await connectGateway(context);
  const [answer, list] = await Promise.all([
    link.client.request('health', {}),
    link.client.request('sessions.list', { limit: SESSIONS_COUNTED_MAX }),
  ]);
  const { snapshot, server } = link.hello;
  const health = isRecord(answer) ? answer : {};
  const defaults = recordIn(list as unknown, 'defaults');
  const eventLoop = recordIn(health, 'eventLoop');
  const facts = {
    ok: health['ok'] !== false,
    url: link.address.url,
    version: server.version,
    uptimeMs: numberIn(snapshot, 'uptimeMs'),
    model: typeof defaults['model'] === 'string' ? `${defaults['modelProvider']}/${defaults['model']}` : undefined,
    sessions: { total: list.totalCount, running: list.sessions.filter((row) => row.hasActiveRun).length },
    load: {
      degraded: eventLoop['degraded'] === true,
      delayP99Ms: numberIn(eventLoop, 'delayP99Ms'),
      utilization: numberIn(eventLoop, 'utilization'),
    },
    stateDir: link.address.stateDir,
  };
  const { terminal } = context;
  if (json) {
    terminal.json(facts);
    return facts.ok ? EXIT.done : EXIT.failed;
  }
  const row = (name: string, value: string | undefined) => {
    if (value !== undefined) terminal.line(`${terminal.paint('bold', name.padEnd(9))} ${printableLine(value)}`);
  };
  const other = server.version === ownVersion() ? '' : ` (this command is ${ownVersion()})`;
  row('Gateway', `${facts.ok ? 'runs' : 'runs, with faults'} at ${facts.url}, version ${server.version}${other}`);
  row('Uptime', facts.uptimeMs === undefined ? undefined : durationText(facts.uptimeMs));
  row('Model', facts.model);
  row('Sessions', `${facts.sessions.total}, ${facts.sessions.running} running`);
  row('Load', loadText(facts.load));
  row('State', facts.stateDir);
  return facts.ok ? EXIT.done : EXIT.failed;
}

function loadText(load: {
  degraded: boolean;
  delayP99Ms: number | undefined;
  utilization: number | undefined;
}): string | undefined {
  if (load.utilization === undefined && load.delayP99Ms === undefined) return undefined;
  const busy = load.utilization === undefined ? '' : `${Math.round(load.utilization * 100)} % busy`;
  const delay = load.delayP99Ms === undefined ? '' : `answers late by ${Math.round(load.delayP99Ms)} ms at most`;
  return [busy, delay, load.degraded ? 'overloaded' : ''].filter((part) => part !== '').join(', ');
}

function recordIn(value: unknown, key: string): Readonly<Record<string, unknown>> {
  const inner = isRecord(value) ? value[key] : undefined;
  return isRecord(inner) ? inner : {};
}

function numberIn(value: Readonly<Record<string, unknown>>, key: string): number | undefined {
  return typeof value[key] === 'number' ? value[key] : undefined;
}
