import assert from 'node:assert/strict';
import { chmodSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isGatewayError } from '#base';
import {
  ensureGatewayToken,
  loadConfig,
  patchConfigText,
  REDACTED,
  readGatewayToken,
  redactConfig,
  resolveSecret,
  type SecretRef,
  writeConfig,
} from './index.ts';
import { patternFault } from './redact-pattern.ts';

const SECRET = 'canary-secret/+=7f3a';

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'reins-secrets-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('B18: no copy of the config shows a secret, in no encoding; the file keeps its reference', (t) => {
  const stateDir = folder(t);
  const file = join(stateDir, 'reins.json');
  const env = { TG_TOKEN: SECRET };
  writeFileSync(
    file,
    `{ // mine\n channels: { telegram: { botToken: "\${TG_TOKEN}", greeting: "hi \${TG_TOKEN}" } } }\n`,
  );
  const before = loadConfig({ stateDir, env });
  writeConfig({ file, text: patchConfigText(before.raw, { gateway: { port: 2 } }), expectedHash: before.hash, env });
  assert.ok(readFileSync(file, 'utf8').includes(`botToken: "\${TG_TOKEN}"`));
  const after = loadConfig({ stateDir, env });
  assert.equal(after.config.gateway.port, 2);
  const { config, parsed, resolved, warnings, notices, secrets } = after;
  const shown = JSON.stringify(
    [config, parsed, resolved].map((copy) => redactConfig(copy, secrets)).concat([warnings, notices] as never),
  );
  for (const form of [SECRET, Buffer.from(SECRET).toString('base64'), encodeURIComponent(SECRET)])
    assert.ok(!shown.includes(form), form);
  assert.ok(shown.includes(`\${TG_TOKEN}`), 'a reference tells no secret');
});

test('T19: what is a secret is hidden wherever it stands; everything else is shown', () => {
  const open = {
    gateway: { port: 1, mode: 'local' },
    agents: { defaults: { model: 'a/b' } },
    session: { mainKey: 'main' },
    bindings: [{ agentId: 'x' }],
  };
  assert.deepEqual(redactConfig(open), open);
  const hidden = {
    gateway: { auth: { token: SECRET, password: SECRET, tokne: SECRET }, remote: { token: SECRET } },
    models: { providers: { p: { apiKey: SECRET, headers: { 'x-team': SECRET }, models: [] } } },
    channels: {
      x: { accounts: [{ botToken: SECRET, appSecret: SECRET, signingSecrets: [SECRET], encryptKey: SECRET }] },
    },
    env: { vars: { ANY: SECRET }, NAME: SECRET },
    skills: { entries: { s: { env: { A: SECRET }, apiKey: SECRET } } },
    hooks: {
      token: SECRET,
      url: `https://user:${encodeURIComponent(SECRET)}@example.com/?token=${encodeURIComponent(SECRET)}`,
    },
  };
  const shown = JSON.stringify(redactConfig(hidden));
  assert.ok(!shown.includes(SECRET) && !shown.includes(encodeURIComponent(SECRET)), shown);
  assert.equal(redactConfig(hidden).gateway.auth.token, REDACTED);
  const refs = { gateway: { auth: { token: { source: 'env', id: 'T' } } }, channels: { x: { token: `\${T}` } } };
  assert.deepEqual(redactConfig(refs), refs);
});

test('M-62: a reference leads to the secret in the environment, a file, or a place in a file', (t) => {
  const stateDir = folder(t);
  const file = (name: string, text: string) => writeFileSync(join(stateDir, name), text, { mode: 0o600 });
  file('one', `${SECRET}\n`);
  file('all.json', JSON.stringify({ model: { 'a/b': SECRET } }));
  const places = {
    env: { KEY: SECRET },
    configFile: join(stateDir, 'reins.json'),
    providers: {
      vault: { source: 'file', path: 'all.json', mode: 'json' },
      line: { source: 'file', path: 'one', mode: 'singleValue' },
    } as const,
  };
  const refs: SecretRef[] = [
    { source: 'env', id: 'KEY' },
    { source: 'env', provider: 'default', id: 'KEY' },
    { source: 'file', id: 'one' },
    { source: 'file', provider: 'vault', id: '/model/a~1b' },
    { source: 'file', provider: 'line', id: 'value' },
  ];
  for (const ref of refs) assert.equal(resolveSecret(ref, places), SECRET, JSON.stringify(ref));
  assert.equal(resolveSecret('as it is', places), 'as it is');
  assert.equal(resolveSecret(undefined, places), undefined);
});

test('M-62, T19: a reference that leads nowhere is an error that names it and shows no content', (t) => {
  const stateDir = folder(t);
  const outside = join(folder(t), 'key');
  writeFileSync(outside, SECRET, { mode: 0o600 });
  symlinkSync(outside, join(stateDir, 'link'));
  writeFileSync(join(stateDir, 'open'), SECRET);
  chmodSync(join(stateDir, 'open'), 0o622);
  writeFileSync(join(stateDir, 'text'), SECRET, { mode: 0o600 });
  writeFileSync(join(stateDir, 'empty'), ' \n', { mode: 0o600 });
  const places = {
    env: { EMPTY: '' },
    configFile: join(stateDir, 'reins.json'),
    providers: { vault: { source: 'file', path: 'text', mode: 'json' } } as const,
  };
  const cases: readonly [SecretRef, RegExp][] = [
    [{ source: 'env', id: 'ABSENT' }, /env:ABSENT is not set/],
    [{ source: 'env', id: 'EMPTY' }, /env:EMPTY is not set/],
    [{ source: 'env', id: 'a b' }, /is not the name of a variable/],
    [{ source: 'file', id: 'absent' }, /does not exist/],
    [{ source: 'file', id: outside }, /leads out of the folder/],
    [{ source: 'file', id: 'link' }, /leads out of the folder/],
    [{ source: 'file', id: 'open' }, /can be written by others/],
    [{ source: 'file', id: '.' }, /leads out of the folder|not a regular file/],
    [{ source: 'file', id: 'empty' }, /is empty/],
    [{ source: 'file', provider: 'vault', id: '/x' }, /is not JSON/],
    [{ source: 'file', provider: 'none', id: '/x' }, /secrets\.providers\.none, which is not there/],
    [{ source: 'env', provider: 'vault', id: 'X' }, /has source "env", and secrets\.providers\.vault has "file"/],
    [{ source: 'exec', id: 'print-it' }, /exec:print-it has source "exec", which this version does not run/],
  ];
  for (const [ref, says] of cases) {
    assert.throws(
      () => resolveSecret(ref, places),
      (error) =>
        isGatewayError(error, 'SECRET_UNAVAILABLE') &&
        says.test(error.message) &&
        error.next !== undefined &&
        !error.message.includes(SECRET),
      JSON.stringify(ref),
    );
  }
});

const PATTERNS: readonly [string, string | undefined][] = [
  ['key-[0-9]+', undefined],
  ['\\bTOKEN\\s*[=:]\\s*\\S+', undefined],
  ['(?:\\d{4}[ -]?){3}\\d{4}', undefined],
  ['[a+]+(b)?', undefined],
  ['\\(a+\\)+', undefined],
  ['https?://\\S+', undefined],
  ['(a+)+$', 'repeats something that is repeated'],
  ['(?:a*)*', 'repeats something that is repeated'],
  ['(?<n>a+){2,}', 'repeats something that is repeated'],
  ['((a+)b)+', 'repeats something that is repeated'],
  ['(a|a)+$', 'repeats something that has choices'],
  ['(a?)+', 'repeats something that has choices'],
  ['(a?){30}', 'has too many choices'],
  ['a?'.repeat(30), 'has too many choices'],
  ['(a{2,9}){9}', 'has too many choices'],
  ['a*'.repeat(9), 'has too many repetitions'],
  ['(a)\\1', 'has a back reference'],
  ['(?=a)b', 'looks ahead or behind'],
  ['(?<!a)b', 'looks ahead or behind'],
  ['a{999}', 'repeats more than 200 times'],
  ['(', 'is not a regular expression'],
  ['a'.repeat(201), 'is longer than 200 characters'],
];
for (const [pattern, fault] of PATTERNS) {
  test(`B17: the pattern ${pattern.slice(0, 30)} ${fault ?? 'may be used'}`, () =>
    assert.equal(patternFault(pattern), fault));
}

test('B17: the patterns that may be used come to an end on what almost matches', () => {
  const text = `${'a'.repeat(40)}!`.repeat(50);
  for (const [pattern, fault] of PATTERNS) {
    if (fault === undefined) assert.equal(typeof new RegExp(pattern, 'g').test(text), 'boolean', pattern);
  }
});

test('the gateway token is made once, 0600, and never by two starts differently', (t) => {
  const file = join(folder(t), 'state', 'token');
  assert.equal(readGatewayToken(file), undefined);
  const token = ensureGatewayToken(file);
  assert.match(token, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(ensureGatewayToken(file), token);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  chmodSync(file, 0o644);
  assert.equal(readGatewayToken(file), token);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  rmSync(file);
  symlinkSync('/etc/hostname', file);
  assert.throws(
    () => readGatewayToken(file),
    (error) => isGatewayError(error, 'FILE_REFUSED'),
  );
});

test('a write names what it was made from, is private, and never leaves a config that cannot be used', (t) => {
  const stateDir = folder(t);
  const real = join(stateDir, 'real.json');
  const file = join(stateDir, 'reins.json');
  const env = {};
  writeConfig({ file: real, text: '{ a: 1 }', expectedHash: '', env });
  assert.equal(statSync(real).mode & 0o777, 0o600);
  symlinkSync(real, file);
  const { hash } = loadConfig({ stateDir, env });
  const written = writeConfig({ file, text: '{ gateway: { port: 3 } }', expectedHash: hash, env });
  assert.equal(written.config.gateway.port, 3);
  assert.equal(loadConfig({ stateDir, env }).hash, written.hash);
  assert.ok(lstatSync(file).isSymbolicLink());
  const text = readFileSync(file, 'utf8');
  assert.throws(
    () => writeConfig({ file, text: '{}', expectedHash: hash, env }),
    (error) => isGatewayError(error, 'CONFIG_CHANGED'),
  );
  assert.throws(
    () => writeConfig({ file, text: '{}', expectedHash: '', env }),
    (error) => isGatewayError(error, 'CONFIG_CHANGED'),
  );
  assert.throws(
    () => writeConfig({ file, text: '{ gateway: { port: -3 } }', expectedHash: written.hash, env }),
    (error) => isGatewayError(error, 'CONFIG_INVALID'),
  );
  assert.throws(
    () => writeConfig({ file, text: '{', expectedHash: written.hash, env }),
    (error) => isGatewayError(error, 'CONFIG_UNREADABLE'),
  );
  assert.equal(readFileSync(file, 'utf8'), text);
});
