import { runKills } from '../test/crash/harness.ts';
import { figure, type Row } from './row.ts';

/**
 * The long form of test/crash/kill.test.ts. `REINS_KILLS` and `REINS_SEED` set another number of deaths and other moments.
 * @throws when the story could not be played to its end
 */
export async function killRow(usual: number, say: (text: string) => void): Promise<Row> {
  const kills = Number(process.env['REINS_KILLS'] ?? usual);
  const seed = Number(process.env['REINS_SEED'] ?? 1);
  const report = await runKills({ kills, seed, progress: (done) => say(`kill ${done} of ${kills} …`) });
  const { problems, moments, outcomes } = report;
  const counted = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  const note = [
    `seed ${seed}, ${report.seconds} s; deaths: ${counted(moments)}`,
    `${report.messages} messages, ${report.answers} answered, ${report.resent} sent again, ${report.repeatsEqual} repeats answered alike`,
    `${report.toolCalls} tool calls: ${counted(outcomes)}; ${report.setAside} transcripts with a torn line`,
    ...problems.slice(0, 10).map((problem) => `✗ ${problem}`),
  ].join('\n  ');
  return {
    id: 'kill',
    name: 'kill -9 at random moments',
    measured: figure(kills, ''),
    reference: { ...figure(report.messages, ''), what: 'messages' },
    compared: figure(problems.length, ''),
    target: { atMost: 0 },
    note: `\n  ${note}`,
  };
}
