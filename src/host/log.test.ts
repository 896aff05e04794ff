import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, mock, test } from 'node:test';
import { type LogOptions, openLog, silentLog } from './index.ts';

const place = mkdtempSync(join(tmpdir(), 'host-log-'));
after(() => rmSync(place, { recursive: true, force: true }));

let count = 0;
function logged(options: Partial<LogOptions> = {}) {
  const file = join(place, `${++count}.log`);
  const log = openLog({ file, level: 'debug', ...options });
  const raw = () => readFileSync(file, 'utf8');
  const lines = () =>
    raw()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, file, raw, lines };
}

/** What goes to standard error meanwhile. */
function stderrOf(action: () => void): string {
  let text = '';
  const spy = mock.method(process.stderr, 'write', (part: string) => {
    text += part;
    return true;
  });
  try {
    action();
  } finally {
    spy.mock.restore();
  }
  return text;
}

test('a line is one JSON object with time, level, message and fields; lower levels are left out', () => {
  const { log, lines, file } = logged({ level: 'warn' });
  log.info('no');
  log.warn('disk is filling', { used: 0.93, path: '/var', nothing: undefined, is: true, none: null });
  log.error('full');
  const [warn, error, ...rest] = lines();
  assert.deepEqual(rest, []);
  assert.match(String(warn?.['ts']), /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.deepEqual(
    { ...warn, ts: 0 },
    { ts: 0, level: 'warn', message: 'disk is filling', used: 0.93, path: '/var', is: true, none: null },
  );
  assert.equal(error?.['message'], 'full');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  log.close();
});

test('B12: what could be read as another line or as a command to a terminal is escaped', () => {
  const nasty = 'x\u001b]0;owned\u0007\n[gateway] auth ok user=admin\u202Eb';
  const { log, raw, lines } = logged();
  log.info(nasty, { agent: nasty, list: [nasty], [nasty]: 1 });
  log.close();
  assert.doesNotMatch(raw().replaceAll('\n', ''), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
  assert.equal(raw().split('\n').length, 2, 'one line and its end');
  for (const line of lines()) assert.doesNotMatch(JSON.stringify(Object.values(line)), /[\u001b\u202e]|^\[gateway\]/m);
  const shown = stderrOf(() => openLog({ level: 'info', console: 'pretty' }).info(nasty, { agent: nasty }));
  assert.doesNotMatch(shown.trimEnd(), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
});

test('a registered secret is in no line: not as it is, not encoded, not cut, not in a nested field', () => {
  const secret = 'p"ss\\wörd/+secret';
  const { log, raw } = logged();
  log.child({ source: 'child' }).addSecret(secret);
  log.info(`key ${secret}`, {
    plain: secret,
    base64: Buffer.from(secret).toString('base64'),
    base64url: Buffer.from(secret).toString('base64url'),
    url: `https://x.example/?k=${encodeURIComponent(secret)}`,
    nested: { inner: [secret] },
    cut: 'a'.repeat(3_990) + secret,
    error: new Error(`bad ${secret}`),
  });
  log.close();
  for (const trace of ['ss\\', 'wörd', 'cCJzc1x3', 'p%22ss', 'p\\"', 'p"ss']) assert.ok(!raw().includes(trace), trace);
  assert.equal(raw().split('[redacted]').length, 9);
});

test('fields are bounded, keep off the names of the line itself, and never make logging fail', () => {
  const { log, lines } = logged();
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  log.info('m'.repeat(9_000), {
    level: 'fake',
    ts: 'fake',
    long: '😀'.repeat(9_000),
    cycle,
    big: 10n,
    error: new Error('why'),
  });
  log.info('many', Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`f${i}`, i])));
  log.close();
  const [line, many] = lines();
  assert.equal(line?.['level'], 'info');
  assert.equal(line?.['level_'], 'fake');
  assert.equal(line?.['error'], 'why');
  assert.ok(String(line?.['message']).length <= 4_000);
  assert.ok(String(line?.['long']).length <= 4_000 && String(line?.['long']).isWellFormed());
  assert.ok(Object.keys(many ?? {}).length < 60);
});

test('a child adds its fields and shares file and level; closing it closes nothing', () => {
  const { log, lines } = logged({ level: 'info' });
  const child = log.child({ run: 'r1', part: 'a' });
  child.info('one', { part: 'b' });
  child.debug('no');
  child.close();
  log.info('two');
  assert.deepEqual(
    lines().map(({ message, run, part }) => ({ message, run, part })),
    [
      { message: 'one', run: 'r1', part: 'b' },
      { message: 'two', run: undefined, part: undefined },
    ],
  );
  log.close();
});

test('at its size the file becomes the old file, of which there is one; no line is lost in between', () => {
  const { log, file } = logged({ bytesMax: 1_000 });
  for (let i = 0; i < 40; i++) log.info(`line ${i}`, { text: 'x'.repeat(50) });
  log.close();
  const name = file.slice(place.length + 1);
  assert.deepEqual(
    readdirSync(place)
      .filter((f) => f.startsWith(name))
      .sort(),
    [name, `${name}.1`],
  );
  assert.ok(statSync(file).size <= 1_200 && statSync(`${file}.1`).size <= 1_200);
  assert.equal(statSync(`${file}.1`).mode & 0o777, 0o600);
  const numbers = [`${file}.1`, file].flatMap((f) =>
    [...readFileSync(f, 'utf8').matchAll(/"line (\d+)"/g)].map((m) => Number(m[1])),
  );
  assert.equal(numbers.at(-1), 39);
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => 40 - numbers.length + i),
  );
});

test('a log that cannot write says its line on standard error and does not throw', () => {
  const log = openLog({ file: '/dev/full', level: 'info' });
  const said = stderrOf(() => log.info('important'));
  assert.match(said, /cannot be written .*"important"/);
  log.close();
});

test('console: json gives the same line; off, the default, gives none; NO_COLOR and no terminal give no colours', () => {
  const { log, raw } = logged({ console: 'json' });
  assert.equal(
    stderrOf(() => log.info('hello', { a: 1 })),
    raw(),
  );
  log.close();
  assert.equal(
    stderrOf(() => logged().log.info('hello')),
    '',
  );
  const pretty = stderrOf(() => openLog({ level: 'info', console: 'pretty' }).warn('hello', { a: 1, stack: 'no' }));
  assert.match(pretty, /^\d\d:\d\d:\d\d warn {2}hello {2}a=1\n$/);
  assert.equal(
    stderrOf(() => silentLog.child({}).error('nothing')),
    '',
  );
});
