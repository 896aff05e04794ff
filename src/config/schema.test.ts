import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { Check } from 'typebox/value';
import { isGatewayError } from '#base';
import { assertConfigKey, ConfigSchema, configJsonSchema, configKeyAt, configKeys, loadConfig } from './index.ts';
import { nodeOf, readBySchema, type SchemaNode } from './read-by-schema.ts';
import { SECRET_NAME } from './redact.ts';

/** Every key of the schema with its path, also those inside lists, records and choices. */
function everyKey(): { path: string; schema: SchemaNode }[] {
  const found: { path: string; schema: SchemaNode }[] = [];
  const visit = (schema: SchemaNode, path: string): void => {
    for (const [name, child] of Object.entries(schema.properties ?? {})) {
      found.push({ path: `${path}.${name}`, schema: child });
      visit(child, `${path}.${name}`);
    }
    for (const child of Object.values(schema.patternProperties ?? {})) visit(child, `${path}.<id>`);
    for (const child of schema.anyOf ?? []) visit(child, path);
    if (schema.items) visit(schema.items, `${path}[]`);
  };
  visit(nodeOf(ConfigSchema), 'config');
  return found;
}

test('every key says what it means, and every number its unit or what it counts', () => {
  const keys = everyKey();
  assert.ok(keys.length > 200);
  assert.deepEqual(
    keys.filter(({ schema }) => !schema.description).map(({ path }) => path),
    [],
  );
  const numbers = keys.filter(({ schema }) => schema.type === 'integer' || schema.type === 'number');
  const unit = /seconds|minutes|hour|tokens|dollars|port|How many|Failed attempts|Exchanges/;
  assert.deepEqual(
    numbers.filter(({ schema }) => !unit.test(schema.description ?? '')).map(({ path }) => path),
    [],
  );
});

test('T19: a key that is named like a secret is marked as one', () => {
  const holdsText = (schema: SchemaNode): boolean => schema.type === 'string' || (schema.anyOf ?? []).some(holdsText);
  const unmarked = everyKey().filter(
    ({ path, schema }) => SECRET_NAME.test(path.split('.').at(-1) ?? '') && holdsText(schema) && !schema['x-secret'],
  );
  assert.deepEqual(unmarked, []);
  const marked = everyKey().filter(({ schema }) => schema['x-secret']);
  assert.ok(marked.length >= 6);
});

test('an array, an object or a value that may be left out has a default or is optional', () => {
  const { value, faults } = readBySchema(ConfigSchema, {});
  assert.deepEqual(faults, []);
  assert.ok(Check(ConfigSchema, value));
});

// Goal: the reader in this folder and TypeBox must agree on what is a config. Method: take the config of defaults with values from
// outside put at places of the schema, and compare the verdicts of both; what is accepted must be whole by TypeBox's own check.
test('the reader accepts exactly what TypeBox accepts of the schema for files', () => {
  const schema = configJsonSchema();
  const places = [
    'gateway.port',
    'gateway.bind',
    'gateway.auth.token',
    'agents.defaults.model',
    'agents.list',
    'memory',
    'bindings',
  ]
    .concat([
      'session.reset.mode',
      'logging.redactPatterns',
      'models.providers',
      'tools.exec.timeoutSec',
      'gateway.trustedProxies',
    ])
    .map((place) => place.split('.'));
  const leaf = fc.oneof(
    fc.constantFrom('lan', 'daily', 'env', '', 'x', null, true, 0, 1, 80, 1.5, -1, 70_000, 1e9),
    fc.constantFrom({}, [], ['x'], [{}], [{ id: 'a' }], [{ agentId: 'a' }], { primary: 'a/b' }, { fallbacks: [1] }),
    fc.constantFrom({ source: 'env', id: 'X' }, { source: 'x', id: 'X' }, { source: 'env' }, { shortTermTurns: 3 }),
    fc.constantFrom(
      { a: { models: [{ id: 'm', cost: {} }] } },
      { a: { models: [{}] } },
      { 'a b': {} },
      { a: { headers: { h: 1 } } },
    ),
    fc.jsonValue({ maxDepth: 2 }),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...places), leaf), { maxLength: 3 }), (changes) => {
      const given: Record<string, unknown> = {};
      for (const [place, value] of changes) {
        let node = given;
        for (const step of place.slice(0, -1)) {
          if (typeof node[step] !== 'object' || node[step] === null || Array.isArray(node[step])) node[step] = {};
          node = node[step] as Record<string, unknown>;
        }
        node[place.at(-1)!] = value;
      }
      const reading = readBySchema(ConfigSchema, given);
      assert.equal(reading.faults.length === 0, Check(schema as never, given), JSON.stringify(given));
      if (reading.faults.length === 0) assert.ok(Check(ConfigSchema, reading.value), JSON.stringify(given));
    }),
    { numRuns: 500 },
  );
});

test('the JSON Schema for editors takes a whole config and asks for nothing that has a default', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reins-schema-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const text = '{ agents: { list: [{ id: "a" }] }, models: { providers: { p: {} } } }';
  writeFileSync(join(folder, 'reins.json'), text);
  const { parsed } = loadConfig({ stateDir: folder, env: {} });
  assert.ok(Check(configJsonSchema() as never, parsed));
  assert.ok(Check(configJsonSchema() as never, {}));
  assert.equal(configJsonSchema()['required'], undefined);
});

test('docs/config.md is what the schema says; run `node scripts/config-docs.ts` when it is not', async () => {
  const root = join(import.meta.dirname, '..', '..');
  const { configPage } = (await import(join(root, 'scripts', 'config-docs.ts'))) as { configPage(): string };
  assert.equal(readFileSync(join(root, 'docs', 'config.md'), 'utf8'), configPage());
});

test('a key is described by its path, a wrong one with the nearest name', () => {
  const port = assertConfigKey('gateway.port');
  assert.deepEqual({ default: port.default, later: port.isLater }, { default: 18_789, later: false });
  assert.equal(configKeyAt('agents.list[0].timeoutSeconds')?.default, undefined, 'an agent inherits it');
  assert.equal(configKeyAt('models.providers.my-server.apiKey')?.isSecret, true);
  assert.equal(configKeyAt('channels.telegram.botToken')?.path, 'channels.telegram.botToken');
  assert.equal(configKeyAt('agents.defaults.contextTokens')?.aliases[0], 'contextTokens');
  assert.ok(configKeys().some(({ path }) => path === 'agents.list[].id'));
  for (const [given, near] of [
    ['gatway.port', 'gateway.port'],
    ['gateway.prot', 'gateway.port'],
    ['agents.list[0].modle', 'agents.list[0].model'],
  ] as const) {
    assert.throws(
      () => assertConfigKey(given),
      (error) => isGatewayError(error, 'CONFIG_KEY_UNKNOWN') && error.next === `Did you mean ${near}?`,
    );
  }
});
