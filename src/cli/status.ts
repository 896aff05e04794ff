import { isRecord, printableLine } from '#base';
import { durationText } from './duration.ts';
import { EXIT } from './fault.ts';
import { connectGateway } from './gateway-link.ts';
import { ownVersion } from './own-version.ts';
import type { CommandContext } from './program.ts';

/** `reins status`: exit code 0 when the gateway answers and is well, 3 when none answers. */
export async function status(context: CommandContext, { json }: { readonly json?: boolean }): Promise<number> {
  using link = await connectGateway(context);
  const [answer, list] = await Promise.all([
    link.client.request('status', {}),
    link.client.request('sessions.list', { limit: 1 }),
  ]);
  const { snapshot, server } = link.hello;
  const health = recordIn(snapshot, 'health');
  const defaults = recordIn(list, 'defaults');
  const load = recordIn(answer, 'load');
  const eventLoop = recordIn(health, 'eventLoop');
  const facts = {
    ok: health['ok'] !== false,
    url: link.address.url,
    version: server.version,
    uptimeMs: numberIn(snapshot, 'uptimeMs'),
    model: typeof defaults['model'] === 'string' ? `${defaults['modelProvider']}/${defaults['model']}` : undefined,
    sessions: list.totalCount,
    runs: { running: numberIn(load, 'running'), waiting: numberIn(load, 'waiting') },
    approvalsWaiting: isRecord(answer) ? numberIn(answer, 'approvals') : undefined,
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
  row('Sessions', String(facts.sessions));
  row(
    'Runs',
    facts.runs.running === undefined ? undefined : `${facts.runs.running} running, ${facts.runs.waiting ?? 0} waiting`,
  );
  row(
    'Asks',
    facts.approvalsWaiting
      ? `${facts.approvalsWaiting} waiting for your answer: reins chat, or the web chat`
      : undefined,
  );
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
