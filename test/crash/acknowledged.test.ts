// What `chat.send` acknowledged is on disk. Messages pour in over WebSocket; the gateway is killed in the middle of it, again and
// again; every message whose acknowledgement arrived must be in a transcript exactly once, with an answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayClient } from '#client';
import { ask, newPlace, type Place, TOKEN } from './gateway-place.ts';
import { GatewayProcess } from './gateway-process.ts';
import { ScriptedModel, textOfWire, type WireMessage } from './scripted-model.ts';
import { SeededRandom } from './seeded-random.ts';
import { auditTranscripts } from './transcript-audit.ts';

const KILLS = Number(process.env['REINS_KILLS'] ?? 8);
const SEED = Number(process.env['REINS_SEED'] ?? 1);
const VISITORS = ['anna', 'ben', 'cleo', 'dan', 'eva', 'finn'] as const;
/** Acknowledgements after which a life ends, at most; the kill falls into the writes that follow. */
const ACKNOWLEDGED_MAX = 12;

const script = (messages: readonly WireMessage[]) => ({ text: `noted: ${textOfWire(messages.at(-1)!).slice(-40)}` });

test('P-01 database: after kills during writes every acknowledged message is there, once, and answered', async (t) => {
  await using model = await ScriptedModel.start(script);
  using place = newPlace(model.url);
  const random = new SeededRandom(SEED);
  const acknowledged = new Set<string>();
  const keys = numbered();
  for (let life = 0; life < KILLS; life++)
    await pour(place, 1 + Math.floor(random.below(ACKNOWLEDGED_MAX)), keys, acknowledged);

  await using gateway = await GatewayProcess.start(place);
  await gateway.ready;
  // A message over HTTP has a run of its own, after everything that came before it in its session.
  for (const visitor of VISITORS) {
    const key = keys();
    const reply = await ask(gateway.url, { text: `note ${key}`, visitor, key, form: 'whole' });
    assert.deepEqual(reply, { status: 200, text: `noted: note ${key}` });
    acknowledged.add(key);
  }
  assert.equal((await gateway.terminate()).code, 0);
  const { problems, answers } = auditTranscripts(place.sessionsDir);
  assert.deepEqual(problems, []);
  assert.deepEqual(model.violations, []);
  const lost = [...acknowledged].filter((key) => answers.get(key)?.length !== 1);
  t.diagnostic(`${KILLS} kills, ${acknowledged.size} acknowledged, ${answers.size} stored, ${lost.length} lost`);
  assert.deepEqual(lost, []);
});

/** One life: all sessions get messages at once, each one after another, until so many are acknowledged; then the kill, in the midst. */
async function pour(
  place: Place,
  acknowledgements: number,
  keys: () => string,
  acknowledged: Set<string>,
): Promise<void> {
  await using gateway = await GatewayProcess.start(place);
  await gateway.ready;
  using client = clientOf(gateway);
  await client.connect();
  let left = acknowledgements;
  const enough = Promise.withResolvers<void>();
  const session = async (visitor: string): Promise<void> => {
    for (;;) {
      const key = keys();
      const params = { sessionKey: `agent:main:openai-user:${visitor}`, message: `note ${key}`, idempotencyKey: key };
      try {
        await client.request('chat.send', params);
      } catch (error) {
        // The kill, which is all that may end this.
        if (left > 0) enough.reject(error);
        return;
      }
      acknowledged.add(key);
      left--;
      if (left === 0) enough.resolve();
    }
  };
  const pouring = VISITORS.map(session);
  await enough.promise;
  await gateway.kill();
  client.close();
  await Promise.all(pouring);
}

function clientOf(gateway: GatewayProcess): GatewayClient {
  return new GatewayClient({
    url: gateway.url.replace('http', 'ws'),
    token: TOKEN,
    clientId: 'gateway-client',
    mode: 'backend',
    scopes: ['operator.read', 'operator.write'],
    version: '0',
    platform: process.platform,
    attemptsMax: 1,
  });
}

function numbered(): () => string {
  let last = 0;
  return () => `note-${++last}`;
}
