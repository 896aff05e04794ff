// Case P-01: a transcript that was damaged while the gateway was down. One session of 50 messages is made once by a real gateway; each
// case damages a copy of the state folder and goes on talking, over a restart.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ask, newPlace, type Place } from './gateway-place.ts';
import { GatewayProcess } from './gateway-process.ts';
import { ScriptedModel, textOfWire, type WireMessage } from './scripted-model.ts';
import { readEntries, type StoredEntry, storedText } from './transcript-audit.ts';

const EXCHANGES = 25;
const VISITOR = 'paula';
const ZEROS = Buffer.alloc(1_728);

/** Answers with the words it was asked, so that every message of the conversation is told apart. */
const echo = (messages: readonly WireMessage[]) => ({ text: `heard ${textOfWire(messages.at(-1)!)}` });

let model: ScriptedModel;
let original: Place;
let transcriptName: string;

before(async () => {
  model = await ScriptedModel.start(echo);
  original = newPlace(model.url);
  await using gateway = await GatewayProcess.start(original);
  await gateway.ready;
  for (let n = 1; n <= EXCHANGES; n++) await say(gateway, `word ${n}.`);
  assert.equal((await gateway.terminate()).code, 0);
  const [name, ...others] = transcriptsIn(original.sessionsDir);
  assert.ok(name !== undefined && others.length === 0, 'one session, one transcript');
  transcriptName = name;
  assert.equal(texts(readEntries(join(original.sessionsDir, name), assert.fail)).length, EXCHANGES * 2);
});

after(async () => {
  original[Symbol.dispose]();
  await model[Symbol.asyncDispose]();
});

type Damaged = { readonly bytes: Buffer /** What must be kept aside. */; readonly lost: Buffer };

const cases: readonly { readonly name: string; readonly damage: (intact: Buffer) => Damaged }[] = [
  {
    name: 'a: the last line cut in half',
    damage: (intact) => {
      const start = intact.lastIndexOf(10, intact.length - 2) + 1;
      const cut = start + Math.floor((intact.length - start) / 2);
      return { bytes: intact.subarray(0, cut), lost: intact.subarray(start, cut) };
    },
  },
  {
    name: 'b: 1,728 zero bytes at the end',
    damage: (intact) => ({ bytes: Buffer.concat([intact, ZEROS]), lost: ZEROS }),
  },
  {
    name: 'c: the first line cut',
    damage: (intact) => {
      const end = intact.indexOf(10);
      const cut = Math.floor(end / 2);
      return { bytes: Buffer.concat([intact.subarray(0, cut), intact.subarray(end)]), lost: intact.subarray(0, cut) };
    },
  },
  {
    name: 'd: line 20 replaced',
    damage: (intact) => {
      const lines = intact.toString('utf8').split('\n');
      lines[19] = '{"x';
      return { bytes: Buffer.from(lines.join('\n')), lost: Buffer.from('{"x') };
    },
  },
];

for (const { name, damage } of cases) {
  test(`P-01 ${name}: what is intact is sent, kept and readable; the rest is put aside and reported once`, async () => {
    using place = copyOf(original);
    const path = join(place.sessionsDir, transcriptName);
    const { bytes, lost } = damage(readFileSync(path));
    writeFileSync(path, bytes);
    const intact = intactLines(bytes);
    const expected = intact.flatMap((line) => texts([JSON.parse(line) as StoredEntry]));
    assert.ok(expected.length >= EXCHANGES * 2 - 1);

    const goOn = await lifeWith(place, 'go on.');
    assert.deepEqual(wordsOf(goOn), [...expected, 'go on.']);
    const again = await lifeWith(place, 'again.');
    assert.deepEqual(wordsOf(again), [...expected, 'go on.', 'heard go on.', 'again.']);
    assert.deepEqual(model.violations, []);

    const now = readFileSync(path, 'utf8').split('\n');
    assert.deepEqual(
      intact.filter((line) => !now.includes(line)),
      [],
      'an intact line is gone from disk',
    );
    const entries = readEntries(path, assert.fail);
    assert.deepEqual(texts(entries).slice(-4), ['go on.', 'heard go on.', 'again.', 'heard again.']);
    const aside = readdirSync(place.sessionsDir).filter(
      (file) => file !== transcriptName && file.startsWith(transcriptName),
    );
    assert.equal(aside.length, 1, `kept aside: ${aside}`);
    assert.ok(readFileSync(join(place.sessionsDir, aside[0]!)).includes(lost), 'the damaged bytes are not kept');
    const log = readFileSync(place.logFile, 'utf8');
    const warnings = log.split('\n').filter((line) => line.includes(transcriptName));
    assert.equal(warnings.length, 1, log);
    assert.match(warnings[0]!, /warn/i);
    assert.match(warnings[0]!.replace(transcriptName, ''), /\b1\b/, 'the count');
  });
}

/** A gateway from its start to its end, with one message; what the model was sent. */
async function lifeWith(place: Place, text: string): Promise<readonly WireMessage[]> {
  await using gateway = await GatewayProcess.start(place);
  await gateway.ready;
  const before = model.requests.length;
  await say(gateway, text);
  assert.equal(model.requests.length, before + 1);
  assert.equal((await gateway.terminate()).code, 0);
  return model.requests.at(-1)!;
}

async function say(gateway: GatewayProcess, text: string): Promise<void> {
  const reply = await ask(gateway.url, { text, visitor: VISITOR, key: text.replaceAll(/\W/g, '-'), form: 'whole' });
  assert.deepEqual(reply, { status: 200, text: `heard ${text}` });
}

function copyOf(place: Place): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reins-damage-')));
  const stateDir = join(root, 'state');
  cpSync(place.stateDir, stateDir, { recursive: true });
  return {
    ...place,
    stateDir,
    sessionsDir: place.sessionsDir.replace(place.stateDir, stateDir),
    logFile: join(root, 'output.log'),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

const transcriptsIn = (folder: string) => readdirSync(folder).filter((file) => file.endsWith('.jsonl'));

function intactLines(bytes: Buffer): readonly string[] {
  return bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => {
      try {
        return typeof (JSON.parse(line) as StoredEntry).id === 'string';
      } catch {
        return false;
      }
    });
}

const texts = (entries: readonly StoredEntry[]): readonly string[] =>
  entries.flatMap((entry) => (entry.message ? [storedText(entry.message)] : []));

/** The words of a request in order, however a vendor's format groups them into messages. */
const wordsOf = (messages: readonly WireMessage[]): readonly string[] =>
  messages
    .filter((message) => message.role === 'user' || message.role === 'assistant')
    .flatMap((message) =>
      [...textOfWire(message).matchAll(/(?:heard )?(?:word \d+|go on|again)\./g)].map(([words]) => words),
    );
