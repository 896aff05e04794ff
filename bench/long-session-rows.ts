// A session that has gone on for a long time, beside one that has not. Its messages are written into its transcript while the gateway
// is down, in the public format, as an import would do it.
import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import type { BenchGateway } from './processes.ts';
import { figure, type Row } from './row.ts';
import { median } from './statistics.ts';
import { type Target, turn } from './turn.ts';

export type LongSessionSizes = { readonly stored: number; readonly turns: number };

export async function longSessionRows(
  place: BenchGateway,
  mock: Target,
  sizes: LongSessionSizes,
): Promise<readonly Row[]> {
  const key = randomUUID();
  {
    await using gateway = await place.start();
    const target = place.target(gateway);
    await turn(target, 'long', key);
    for (let i = 0; i < sizes.turns; i++) await turn(target, 'ordinary');
    const { code } = await gateway.terminate();
    if (code !== 0) throw new Error(`the gateway ended with ${code}`);
  }
  extend(place.transcriptOf(key), sizes.stored);

  await using gateway = await place.start();
  const target = place.target(gateway);
  await turn(target, 'ordinary');
  await turn(mock, 'long');
  const first = await turn(target, 'long');
  const long: number[] = [];
  const ordinary: number[] = [];
  for (let i = 0; i < sizes.turns; i++) {
    long.push((await turn(target, 'long')).total);
    ordinary.push((await turn(target, 'ordinary')).total);
  }
  const reference = { ...figure(median(ordinary), 'ms'), what: 'ordinary session' };
  const stored = sizes.stored.toLocaleString('en');
  return [
    {
      id: 'long',
      name: `turn in a session of ${stored} messages, p50`,
      measured: figure(median(long), 'ms'),
      reference,
      compared: figure(median(long) - median(ordinary), 'ms'),
      target: { atMost: 2 },
    },
    {
      id: 'long',
      name: `first turn there after a restart`,
      measured: figure(first.total, 'ms'),
      reference,
      compared: figure(first.total - median(ordinary), 'ms'),
    },
  ];
}

type Line = { readonly id: string; readonly message?: { readonly role: string } };

/** Adds `count` messages to a transcript by going on with its own last question and answer. */
function extend(path: string, count: number): void {
  const lines = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  const question = lines.findLast((line) => line.message?.role === 'user');
  const answer = lines.findLast((line) => line.message?.role === 'assistant');
  if (!question || !answer) throw new Error(`${path} holds no exchange to go on with`);
  let parentId = lines.at(-1)!.id;
  let text = '';
  for (let n = 0; n < count; n++) {
    const like = n % 2 === 0 ? question : answer;
    // Eight hexadecimal digits that no random id is likely to have.
    const id = (0xf0000000 + n).toString(16);
    const message = n % 2 === 0 ? { ...like.message, runId: `history-${n}` } : like.message;
    text += `${JSON.stringify({ ...like, id, parentId, message })}\n`;
    parentId = id;
  }
  appendFileSync(path, text);
}
