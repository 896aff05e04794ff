// What Reins costs, measured beside what it is built on: a Node that does nothing, and the model server alone, in the same run.
// Usage: npm run bench [-- --json] [--quick] [--only <row>]. What each row means: bench/README.md.
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { killRow } from './kill-row.ts';
import { longSessionRows } from './long-session-rows.ts';
import { BenchGateway, buildIfStale, Helper, isFresh } from './processes.ts';
import { isMet, type Row } from './row.ts';
import { servingRows } from './serving-rows.ts';
import { startRows, versionRow } from './startup-rows.ts';
import { tableText } from './table.ts';

/** Everything but the kill row runs when nothing is named. */
const USUAL = ['version', 'start', 'memory', 'first', 'turn', 'concurrent', 'growth', 'long'] as const;
const PARTS = [...USUAL, 'kill'] as const;
type Part = (typeof PARTS)[number];

const FULL = {
  versions: 15,
  starts: 7,
  serving: { turns: 100, workers: 20, turnsPerWorker: 10, rounds: 3, turnsInAll: 1_000 },
  long: { stored: 10_000, turns: 50 },
  kills: 200,
};
const QUICK: typeof FULL = {
  versions: 5,
  starts: 3,
  serving: { turns: 20, workers: 20, turnsPerWorker: 5, rounds: 1, turnsInAll: 200 },
  long: { stored: 10_000, turns: 15 },
  kills: 20,
};

const options = readOptions();
if (options) await bench(options);

type Options = { readonly json: boolean; readonly quick: boolean; readonly only: readonly Part[] };

async function bench({ json, quick, only }: Options): Promise<void> {
  const sizes = quick ? QUICK : FULL;
  const isWanted = (part: Part): boolean => (only.length === 0 ? part !== 'kill' : only.includes(part));
  const rows: Row[] = [];
  const failures: { readonly what: string; readonly error: string }[] = [];
  const part = async (what: string, measure: () => Promise<readonly Row[]>): Promise<void> => {
    say(`${what} …`);
    try {
      rows.push(...(await measure()));
    } catch (error) {
      failures.push({ what, error: error instanceof Error ? error.message : String(error) });
    }
  };

  const [loadBefore = 0] = loadavg();
  say('building where sources are newer …');
  buildIfStale();
  await using mock = await Helper.start('mock-model');
  using place = new BenchGateway(mock.url);
  const model = { url: mock.url, token: 'k', model: 'mock' };
  if (isWanted('version')) await part('version', async () => [versionRow({ runs: sizes.versions })]);
  if (isWanted('start'))
    await part('start', () => startRows(place, { starts: sizes.starts, bareRuns: sizes.versions }));
  if ((['memory', 'first', 'turn', 'concurrent', 'growth'] as const).some(isWanted))
    await part('serving', () => servingRows(place, model, sizes.serving, isWanted));
  if (isWanted('long')) await part('long', () => longSessionRows(place, model, sizes.long));
  if (isWanted('kill')) await part('kill', async () => [await killRow(sizes.kills, say)]);
  say('');

  if (!isFresh())
    failures.push({ what: 'build', error: 'the sources changed during the run: the figures mix two versions' });
  const facts = {
    date: new Date().toISOString(),
    node: process.version,
    machine: `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB`,
    // Of the minute before the run. Well above zero, others had the processors too, and the figures are not to be kept.
    loadBefore: Math.round(loadBefore * 10) / 10,
  };
  if (json)
    console.log(
      JSON.stringify({ ...facts, rows: rows.map((row) => ({ ...row, met: isMet(row) })), failures }, null, 2),
    );
  else print(rows, facts);
  for (const { what, error } of failures) console.error(`✗ ${what}: ${error}`);
  process.exitCode = failures.length > 0 ? 1 : 0;
}

function print(
  rows: readonly Row[],
  facts: { readonly date: string; readonly node: string; readonly machine: string; readonly loadBefore: number },
): void {
  console.log(
    `Reins bench, ${facts.date.slice(0, 10)}, Node ${facts.node}, ${facts.machine}, load before ${facts.loadBefore}\n`,
  );
  console.log(tableText(rows, process.stdout));
  for (const row of rows) if (row.note !== undefined) console.log(`\n${row.name}: ${row.note}`);
}

/** Progress, for a person who watches. */
function say(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

function readOptions(): Options | undefined {
  try {
    const { values } = parseArgs({
      options: {
        json: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
      },
    });
    const unknown = values.only.find((name) => !PARTS.some((part) => part === name));
    if (unknown !== undefined) throw new Error(`there is no row "${unknown}"`);
    return { json: values.json, quick: values.quick, only: PARTS.filter((part) => values.only.includes(part)) };
  } catch (error) {
    console.error(
      `✗ ${error instanceof Error ? error.message : error} — rows: ${PARTS.join(', ')}; flags: --json, --quick`,
    );
    process.exitCode = 2;
    return undefined;
  }
}
