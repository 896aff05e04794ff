// One gateway from its start on: its memory, its first turn, many turns beside the model's own, and its memory afterwards.
import { type BenchGateway, Helper, residentMiB } from './processes.ts';
import { figure, type Row, type Unit } from './row.ts';
import { median, quantile } from './statistics.ts';
import { type Target, type TurnTimes, turn } from './turn.ts';

export type ServingSizes = {
  /** Turns in one session, and as many in new ones. */
  readonly turns: number;
  readonly workers: number;
  readonly turnsPerWorker: number;
  readonly rounds: number;
  /** Turns that the gateway has served when its memory is looked at again. */
  readonly turnsInAll: number;
};
export type ServingPart = 'memory' | 'first' | 'turn' | 'concurrent' | 'growth';

/** How long a process is left alone before its memory is read. */
const SETTLE_MS = 2_000;
const TOP_UP_WORKERS = 4;

export async function servingRows(
  place: BenchGateway,
  mock: Target,
  sizes: ServingSizes,
  isWanted: (part: ServingPart) => boolean,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  await using gateway = await place.start();
  let served = 0;
  const target = place.target(gateway);
  const reins = async (user: string): Promise<TurnTimes> => {
    served++;
    return await turn(target, user);
  };
  const straight = (user: string) => turn(mock, user);

  await settle();
  const memoryBefore = residentMiB(gateway.pid);
  if (isWanted('memory')) rows.push(await memoryRow(memoryBefore));
  // The mock is warm before the gateway's first turn, which is to show the gateway's own cold paths only.
  for (let i = 0; i < 20; i++) await straight('warm');
  const first = await reins('first');
  if (isWanted('first')) {
    const model = await straight('first');
    rows.push(beside('first', 'first turn after the start', first.total, model.total, undefined));
  }
  if (isWanted('turn')) rows.push(...(await turnRows(reins, straight, sizes)));
  if (isWanted('concurrent')) rows.push(await concurrentRow(reins, straight, sizes));
  if (isWanted('growth')) {
    await atOnce(TOP_UP_WORKERS, Math.ceil((sizes.turnsInAll - served) / TOP_UP_WORKERS), reins);
    await settle();
    const memoryAfter = residentMiB(gateway.pid);
    rows.push({
      id: 'growth',
      name: `memory after ${served} turns`,
      measured: figure(memoryAfter, 'MiB'),
      reference: { ...figure(memoryBefore, 'MiB'), what: 'once ready' },
      compared: figure((memoryAfter / memoryBefore - 1) * 100, '%'),
      target: { atMost: 30 },
    });
  }
  return rows;
}

const settle = () => new Promise<void>((resolve) => setTimeout(resolve, SETTLE_MS));

async function memoryRow(measured: number): Promise<Row> {
  await using bare = await Helper.start('bare-server');
  // The gateway answered once as well: /readyz.
  await (await fetch(bare.url)).text();
  await settle();
  const reference = residentMiB(bare.pid);
  return {
    id: 'memory',
    name: 'memory once ready, all processes',
    measured: figure(measured, 'MiB'),
    reference: { ...figure(reference, 'MiB'), what: 'bare Node HTTP server' },
    compared: figure(measured / reference, '×'),
    target: { atMost: 2 },
  };
}

type Ask = (user: string) => Promise<TurnTimes>;

/** Each turn through the gateway is followed by one without it, so that a busy moment of the machine hits both. */
async function turnRows(reins: Ask, straight: Ask, { turns }: ServingSizes): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const kinds = [
    { id: 'turn-same', name: 'turn in one session', user: () => 'same' },
    { id: 'turn-new', name: 'turn in a new session', user: (i: number) => `new-${i}` },
  ];
  for (const { id, name, user } of kinds) {
    const ours: TurnTimes[] = [];
    const model: TurnTimes[] = [];
    for (let i = 0; i < turns; i++) {
      ours.push(await reins(user(i)));
      model.push(await straight(user(i)));
    }
    const at = (share: number, times: readonly TurnTimes[]) =>
      quantile(
        times.map((time) => time.total),
        share,
      );
    const firstText = (times: readonly TurnTimes[]) => median(times.map((time) => time.firstText));
    rows.push(
      beside(id, `${name}, p50`, at(0.5, ours), at(0.5, model), 6),
      beside(id, `${name}, p95`, at(0.95, ours), at(0.95, model), undefined),
      beside(id, `${name}, first text, p50`, firstText(ours), firstText(model), undefined),
    );
  }
  return rows;
}

function beside(id: string, name: string, ours: number, model: number, atMost: number | undefined): Row {
  return {
    id,
    name,
    measured: figure(ours, 'ms'),
    reference: { ...figure(model, 'ms'), what: 'model alone' },
    compared: figure(ours - model, 'ms'),
    ...(atMost === undefined ? {} : { target: { atMost } }),
  };
}

async function concurrentRow(reins: Ask, straight: Ask, sizes: ServingSizes): Promise<Row> {
  const { workers, turnsPerWorker, rounds } = sizes;
  const unit: Unit = 'turns/s';
  const ours: number[] = [];
  const model: number[] = [];
  for (let round = 0; round < rounds; round++) {
    ours.push(await atOnce(workers, turnsPerWorker, reins));
    model.push(await atOnce(workers, turnsPerWorker, straight));
  }
  return {
    id: 'concurrent',
    name: `${workers} at once`,
    measured: figure(median(ours), unit),
    reference: { ...figure(median(model), unit), what: 'model alone' },
    target: { atLeast: 150 },
    note: `median of ${rounds} rounds; best ${Math.round(Math.max(...ours))}, worst ${Math.round(Math.min(...ours))}`,
  };
}

/** Every worker has a session of its own. @returns turns per second */
async function atOnce(workers: number, turnsPerWorker: number, ask: Ask): Promise<number> {
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      for (let i = 0; i < turnsPerWorker; i++) await ask(`worker-${worker}`);
    }),
  );
  return (workers * turnsPerWorker) / ((performance.now() - startedAt) / 1_000);
}
