// A gateway that is told to stop (SIGTERM) while a tool runs: it waits a moment for the tool, and what does not finish in that moment
// goes on in the next life.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask, newPlace, type Place, type Question, type Reply } from './gateway-place.ts';
import { GatewayProcess } from './gateway-process.ts';
import { ScriptedModel, textOfWire, type WireMessage } from './scripted-model.ts';
import { auditTranscripts } from './transcript-audit.ts';

/** Says that it has begun, then waits to be released: the test decides when the tool is under way and when it ends. */
const COMMAND = 'echo begun >> trace.txt; while [ ! -e release ]; do sleep 0.02; done; echo ended >> trace.txt';
const question: Question = { text: 'do it', visitor: 'quinn', key: 'run-stop', form: 'whole' };

/** One call, then whatever the gateway says of it is the model's last word. */
const script = (messages: readonly WireMessage[]) => {
  const last = messages.at(-1)!;
  const result = messages.findLast((message) => message.role === 'tool');
  if (!result) return { text: '', calls: [{ name: 'exec', arguments: { command: COMMAND } }] };
  const isUnknown = textOfWire(result).startsWith('Outcome unknown');
  return { text: isUnknown ? `unclear, and told so: ${textOfWire(last).includes('restarted')}` : 'it is done' };
};

test('M-16: a tool that ends while the gateway goes down is waited for, and its message is answered before the end', async () => {
  await using model = await ScriptedModel.start(script);
  using place = newPlace(model.url);
  const first = await stopped(place, 'release');
  assert.deepEqual(first, { status: 200, text: 'it is done' });
  assert.deepEqual(await nextLife(place), first);
  assert.equal(model.requests.length, 2);
  assert.equal(readFileSync(join(place.workspace, 'trace.txt'), 'utf8'), 'begun\nended\n');
  assertOneAnswer(place, 'ok');
});

test('M-16: a tool that does not end in time is stopped; its run goes on after the restart, told that the outcome is unknown', async () => {
  await using model = await ScriptedModel.start(script);
  using place = newPlace(model.url);
  const first = await stopped(place, 'hold');
  assert.notEqual(first?.status, 200, 'there is no answer before the restart');
  const answer = await nextLife(place);
  assert.deepEqual(answer, { status: 200, text: 'unclear, and told so: true' });
  assert.deepEqual(await nextLife(place), answer);
  assert.equal(model.requests.length, 2);
  assert.deepEqual(model.violations, []);
  // Neither repeated, nor still at work for a gateway that is gone.
  writeFileSync(join(place.workspace, 'release'), '');
  assert.equal(readFileSync(join(place.workspace, 'trace.txt'), 'utf8'), 'begun\n');
  assertOneAnswer(place, 'unknown-outcome');
});

/** Asks, stops the gateway once the tool has begun, and gives what the visitor got by then, if anything. */
async function stopped(place: Place, tool: 'release' | 'hold'): Promise<Reply | undefined> {
  await using gateway = await GatewayProcess.start(place);
  await gateway.ready;
  const begun = whenThere(place.workspace, 'trace.txt');
  const reply = ask(gateway.url, question).catch(() => undefined);
  await begun;
  const end = gateway.terminate();
  if (tool === 'release') writeFileSync(join(place.workspace, 'release'), '');
  assert.deepEqual(await end, { code: 0, signal: null });
  return await reply;
}

async function nextLife(place: Place): Promise<Reply> {
  await using gateway = await GatewayProcess.start(place);
  await gateway.ready;
  const reply = await ask(gateway.url, question);
  assert.equal((await gateway.terminate()).code, 0);
  return reply;
}

function assertOneAnswer(place: Place, outcome: string): void {
  const audit = auditTranscripts(place.sessionsDir);
  assert.deepEqual(audit.problems, []);
  assert.equal(audit.answers.get(question.key)?.length, 1);
  assert.deepEqual(
    audit.calls.map((call) => call.outcome),
    [outcome],
  );
}

async function whenThere(folder: string, name: string): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  await new Promise<void>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`${name} did not come`)), { once: true });
    const watcher = watch(folder, { signal }, () => {
      if (!existsSync(join(folder, name))) return;
      watcher.close();
      resolve();
    });
  });
}
