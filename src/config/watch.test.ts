import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ManualClock } from '#world';
import { type ConfigEvent, ConfigWatch, formatIssue, loadConfig, writeConfig } from './index.ts';

function watched(t: TestContext, text: string) {
  const stateDir = mkdtempSync(join(tmpdir(), 'reins-watch-'));
  const file = join(stateDir, 'reins.json');
  writeFileSync(file, text);
  const clock = new ManualClock();
  const events: ConfigEvent[] = [];
  const initial = loadConfig({ stateDir, env: {} });
  const watch = new ConfigWatch({ stateDir, env: {}, initial, clock, onEvent: (event) => events.push(event) });
  t.after(() => {
    watch.close();
    rmSync(stateDir, { recursive: true, force: true });
  });
  return {
    stateDir,
    file,
    watch,
    clock,
    write: (next: string) => writeFileSync(file, next),
    told: () =>
      events
        .splice(0)
        .map((event) =>
          event.type === 'config-refused' ? `${event.type} ${event.issues.map(formatIssue).join()}` : event.type,
        ),
    model: () => watch.current.config.agents.defaults.model,
  };
}

const withModel = (model: string) => `{ agents: { defaults: { model: "${model}" } } }`;

test('N-01: a valid change is in force within 2 s, once', async (t) => {
  const w = watched(t, withModel('a/1'));
  await w.clock.advance(5_000);
  assert.deepEqual(w.told(), []);
  w.write(withModel('a/2'));
  await w.clock.advance(2_000);
  assert.deepEqual(w.told(), ['config-change']);
  assert.equal(w.model(), 'a/2');
  w.write(withModel('a/2'));
  await w.clock.advance(5_000);
  assert.deepEqual(w.told(), [], 'the same content is no change');
});

test('N-01: a file written in two halves 300 ms apart is taken once, whole', async (t) => {
  for (const [half, rest] of [
    ['{ agents: { defaults: { model: "a', '/2" } } }'],
    ['', withModel('a/2')],
  ] as const) {
    const w = watched(t, withModel('a/1'));
    await w.clock.advance(1_000);
    for (const early of [0, 100, 200, 399]) {
      await w.clock.advance(early);
      w.write(half);
      await w.clock.advance(300);
      assert.equal(w.model(), 'a/1');
      w.write(half + rest);
      await w.clock.advance(2_000);
      assert.deepEqual(w.told(), ['config-change'], `${early} ms after a look`);
      w.write(withModel('a/1'));
      await w.clock.advance(2_000);
      w.told();
    }
  }
});

test('N-01: a file with a fault is told once with its place, and what was in force stays; mending it is told too', async (t) => {
  const w = watched(t, withModel('a/1'));
  const bad = '{\n\n\n\n\n\n,,agents: {} }';
  w.write(bad);
  await w.clock.advance(20_000);
  assert.deepEqual(w.told(), [
    `config-refused ${w.file}:7:1 a comma is not expected here. Look there for a missing or doubled comma, quote or bracket.`,
  ]);
  assert.equal(w.model(), 'a/1');
  assert.equal(readFileSync(w.file, 'utf8'), bad);
  w.write(withModel('a/1'));
  await w.clock.advance(2_000);
  assert.deepEqual(w.told(), ['config-restored']);
  w.write('{ gateway: { port: -1 } }');
  await w.clock.advance(2_000);
  w.write(withModel('a/3'));
  await w.clock.advance(2_000);
  assert.deepEqual(
    w.told().map((text) => text.split(' ')[0]),
    ['config-refused', 'config-change'],
  );
  assert.equal(w.model(), 'a/3');
});

test('B15: a change that would expose the gateway is refused while it runs', async (t) => {
  const w = watched(t, '{}');
  w.write('{ gateway: { bind: "lan", auth: { mode: "none" } } }');
  await w.clock.advance(3_000);
  assert.match(w.told().join(), /^config-refused .*gateway\.auth/);
  assert.equal(w.watch.current.config.gateway.bind, 'loopback');
});

test('a file that is replaced by a rename, that vanishes, and that comes back', async (t) => {
  const w = watched(t, withModel('a/1'));
  writeFileSync(`${w.file}.new`, withModel('a/2'));
  renameSync(`${w.file}.new`, w.file);
  await w.clock.advance(2_000);
  assert.deepEqual([w.told(), w.model()], [['config-change'], 'a/2']);
  rmSync(w.file);
  await w.clock.advance(5_000);
  assert.match(w.told().join(), /^config-refused .* is gone/);
  assert.equal(w.model(), 'a/2');
  w.write(withModel('a/4'));
  await w.clock.advance(2_000);
  assert.deepEqual([w.told(), w.model()], [['config-change'], 'a/4']);
});

test('an included file counts like the file itself', async (t) => {
  const w = watched(t, '{}');
  writeFileSync(join(w.stateDir, 'part.json5'), '{ defaults: { model: "a/5" } }', { mode: 0o600 });
  w.write('{ agents: { $include: "part.json5" } }');
  await w.clock.advance(2_000);
  assert.deepEqual([w.told(), w.model()], [['config-change'], 'a/5']);
  writeFileSync(join(w.stateDir, 'part.json5'), '{ defaults: { model: "a/6" } }', { mode: 0o600 });
  await w.clock.advance(2_000);
  assert.deepEqual([w.told(), w.model()], [['config-change'], 'a/6']);
});

test('whoever writes the file through the gateway has it in force at once, and it is not told twice', async (t) => {
  const w = watched(t, withModel('a/1'));
  writeConfig({ file: w.file, text: withModel('a/7'), expectedHash: w.watch.current.hash, env: {} });
  w.watch.check();
  assert.deepEqual([w.told(), w.model()], [['config-change'], 'a/7']);
  await w.clock.advance(5_000);
  assert.deepEqual(w.told(), []);
});

test('a closed watch holds no timer', (t) => {
  const w = watched(t, '{}');
  w.watch.close();
  assert.equal(w.clock.waiting, 0);
});
