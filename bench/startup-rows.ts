import { GatewayProcess } from '../test/crash/gateway-process.ts';
import { type BenchGateway, LAUNCHER, runMs } from './processes.ts';
import { figure, type Row } from './row.ts';
import { median } from './statistics.ts';

const bareNode = (): number => runMs(process.execPath, ['-e', '0']);

/** `reins --version` beside a Node that does nothing, in turn, so that a busy moment of the machine hits both. */
export function versionRow({ runs }: { readonly runs: number }): Row {
  const bare: number[] = [];
  const version: number[] = [];
  for (let i = 0; i < runs; i++) {
    bare.push(bareNode());
    version.push(runMs(LAUNCHER, ['--version']));
  }
  return {
    id: 'version',
    name: 'reins --version',
    measured: figure(median(version), 'ms'),
    reference: { ...figure(median(bare), 'ms'), what: 'node -e 0' },
    compared: figure(median(version) / median(bare), '×'),
    target: { atMost: 1.5 },
  };
}

/** From the spawn to the first 200 of `/readyz`: the state folder is there, as after any first start. */
export async function startRows(
  place: BenchGateway,
  { starts, bareRuns }: { readonly starts: number; readonly bareRuns: number },
): Promise<readonly Row[]> {
  const startMs = async (): Promise<number> => {
    await using gateway = await GatewayProcess.start(place);
    const ms = await gateway.ready;
    await gateway.terminate();
    return ms;
  };
  const first = await startMs();
  const bare: number[] = [];
  const ready: number[] = [];
  for (let i = 0; i < starts; i++) {
    for (let j = 0; j < Math.ceil(bareRuns / starts); j++) bare.push(bareNode());
    ready.push(await startMs());
  }
  const reference = { ...figure(median(bare), 'ms'), what: 'node -e 0' };
  return [
    {
      id: 'start',
      name: 'start to ready',
      measured: figure(median(ready), 'ms'),
      reference,
      compared: figure(median(ready) / median(bare), '×'),
      target: { atMost: 8 },
    },
    {
      id: 'start',
      name: 'very first start to ready',
      measured: figure(first, 'ms'),
      reference,
      compared: figure(first / median(bare), '×'),
      note: 'makes the state folder; after a build also the compile cache',
    },
  ];
}
