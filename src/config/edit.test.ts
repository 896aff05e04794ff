import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isGatewayError } from '#base';
import {
  type ConfigPath,
  formatConfigPath,
  getConfigValue,
  type JsonValue,
  parseConfigPath,
  patchConfigText,
  REDACTED,
  setConfigValue,
  unsetConfigValue,
} from './index.ts';
import { parseJson5, plainValue } from './json5-source.ts';

const valueIn = (text: string): JsonValue => {
  const source = parseJson5(text, 'test');
  assert.ok('body' in source, text);
  const { value, faults } = plainValue(source.body);
  assert.deepEqual(faults, []);
  return JSON.parse(JSON.stringify(value)) as JsonValue;
};

const CASES: readonly { name: string; before: string; path: string; value?: JsonValue; after: string }[] = [
  {
    name: 'a value is replaced',
    before: '{\n  // port\n  port: 1, // old\n}\n',
    path: 'port',
    value: 2,
    after: '{\n  // port\n  port: 2, // old\n}\n',
  },
  {
    name: 'a key is added after a trailing comma and its comment',
    before: '{\n  a: 1, // one\n  // end\n}\n',
    path: 'b',
    value: 'x',
    after: '{\n  a: 1, // one\n  // end\n  b: "x",\n}\n',
  },
  {
    name: 'a key is added where no comma trails',
    before: '{\n  "a": 1 // one\n}\n',
    path: 'b',
    value: true,
    after: '{\n  "a": 1, // one\n  "b": true\n}\n',
  },
  {
    name: 'parents are made',
    before: '{}\n',
    path: 'gateway.auth.mode',
    value: 'token',
    after: '{\n  "gateway": {\n    "auth": { "mode": "token" }\n  }\n}\n',
  },
  { name: 'an empty text becomes an object', before: '', path: 'a', value: 1, after: '{\n  "a": 1\n}\n' },
  {
    name: 'on one line it stays on one line',
    before: "{a:{b:1}, 'c':2}",
    path: 'a.d',
    value: 3,
    after: "{a:{b:1, d: 3}, 'c':2}",
  },
  {
    name: 'an entry is added to a list',
    before: '{\n\tl: [\n\t\t1,\n\t\t2\n\t]\n}',
    path: 'l[2]',
    value: { x: [] },
    after: '{\n\tl: [\n\t\t1,\n\t\t2,\n\t\t{ x: [] }\n\t]\n}',
  },
  {
    name: 'an entry of a list is replaced',
    before: '{l:[1,2 /* two */,3]}',
    path: 'l[1]',
    value: null,
    after: '{l:[1,null /* two */,3]}',
  },
  { name: 'a key in quotes', before: '{ p: { "a.b": 1 } }', path: 'p["a.b"]', value: 2, after: '{ p: { "a.b": 2 } }' },
  {
    name: 'line ends of Windows stay',
    before: '{\r\n  a: 1\r\n}\r\n',
    path: 'b',
    value: 2,
    after: '{\r\n  a: 1,\r\n  b: 2\r\n}\r\n',
  },
  {
    name: 'a line is taken out',
    before: '{\n  a: 1,\n  b: 2, // two\n  c: 3\n}\n',
    path: 'a',
    after: '{\n  b: 2, // two\n  c: 3\n}\n',
  },
  {
    name: 'a comment beside a key that is taken out stays',
    before: '{\n  a: 1, // keep\n  b: 2\n}\n',
    path: 'a',
    after: '{\n  // keep\n  b: 2\n}\n',
  },
  {
    name: 'the last key goes with the comma before it',
    before: '{\n  "a": 1,\n  "b": 2\n}\n',
    path: 'b',
    after: '{\n  "a": 1\n}\n',
  },
  { name: 'the only key goes', before: '{ "a": 1 }', path: 'a', after: '{ }' },
  { name: 'what is not there is not taken out', before: '{ a: 1 }', path: 'b.c', after: '{ a: 1 }' },
  { name: 'an entry is taken out', before: '{ l: [1, 2, 3] }', path: 'l[0]', after: '{ l: [2, 3] }' },
];

for (const { name, before, path, value, after } of CASES) {
  test(`an edit keeps every other byte: ${name}`, () => {
    assert.equal(value === undefined ? unsetConfigValue(before, path) : setConfigValue(before, path, value), after);
  });
}

const key = fc.constantFrom('a', 'b', 'c', 'gateway', 'a.b', 'with space', 'null', 'ключ', '0', '$x', 'it"s');
const scalar = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.constant('// no /* comment'),
);
const { tree } = fc.letrec<{ tree: JsonValue; object: JsonValue }>((tie) => ({
  tree: fc.oneof({ depthSize: 'small' }, scalar, tie('object'), fc.array(tie('tree'), { maxLength: 3 })),
  object: fc.dictionary(key, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
}));
const object = fc.dictionary(key, tree, { maxKeys: 4, noNullPrototype: true });

/** Writes a value in a free style, with a numbered comment at every place where one may stand. */
function inStyle(value: JsonValue, choice: () => number): { text: string; comments: string[] } {
  const comments: string[] = [];
  const gap = (): string => {
    const kind = choice() % 6;
    const name = `c${comments.length}`;
    if (kind === 0) comments.push(name);
    if (kind === 1) comments.push(name);
    return [`/*${name}*/`, ` //${name}\n  `, '', ' ', '\n', '\n    '][kind]!;
  };
  const write = (node: JsonValue): string => {
    if (typeof node !== 'object' || node === null) return JSON.stringify(node);
    const items = Array.isArray(node)
      ? node.map((item: JsonValue) => gap() + write(item) + gap())
      : Object.entries(node as Record<string, JsonValue>).map(([name, child]) => {
          const plain = /^[a-z]+$/.test(name) && name !== 'null' && choice() % 2 === 0;
          return `${gap()}${plain ? name : JSON.stringify(name)}${gap()}:${gap()}${write(child)}${gap()}`;
        });
    const trailing = items.length > 0 && choice() % 2 === 0 ? `,${gap()}` : gap();
    const [open, close] = Array.isArray(node) ? '[]' : '{}';
    return `${open}${items.join(',')}${trailing}${close}`;
  };
  const text = gap() + write(value) + gap();
  return { text, comments };
}

/** What the edit must mean, on plain values. */
function expected(value: JsonValue, path: ConfigPath, change: JsonValue | undefined): JsonValue {
  const copy = structuredClone(value) as Record<string, JsonValue> & JsonValue[];
  let node = copy as Record<string | number, JsonValue>;
  for (const step of path.slice(0, -1)) {
    if (change === undefined && (typeof node[step] !== 'object' || node[step] === null)) return copy;
    node[step] ??= {};
    node = node[step] as Record<string | number, JsonValue>;
  }
  const last = path.at(-1)!;
  if (change !== undefined) node[last] = change;
  else if (Array.isArray(node) && typeof last === 'number') node.splice(last, 1);
  else delete node[last];
  return copy;
}

/** Paths that are in a value, and new keys in its objects. */
function pathsIn(value: JsonValue, path: ConfigPath = []): ConfigPath[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value))
    return value.flatMap((item: JsonValue, i) => [[...path, i], ...pathsIn(item, [...path, i])]);
  const entries = Object.entries(value as Record<string, JsonValue>);
  return [
    [...path, 'new'],
    ...entries.flatMap(([name, child]) => [[...path, name], ...pathsIn(child, [...path, name])]),
  ];
}

test('whatever is set or removed, the text means just that afterwards, and a set keeps every comment', () => {
  fc.assert(
    fc.property(
      object,
      tree,
      fc.infiniteStream(fc.nat(1_000)),
      fc.nat(),
      fc.boolean(),
      (before, change, stream, pick, isSet) => {
        const choice = () => stream.next().value as number;
        const { text, comments } = inStyle(before, choice);
        assert.deepEqual(valueIn(text), before);
        const paths = pathsIn(before);
        const path = paths[pick % paths.length]!;
        const after = isSet ? setConfigValue(text, path, change) : unsetConfigValue(text, path);
        assert.deepEqual(
          valueIn(after),
          JSON.parse(JSON.stringify(expected(before, path, isSet ? change : undefined))),
          `${text}\n→ ${after}`,
        );
        const replaced = isSet && getConfigValue(before, path) !== undefined;
        if (isSet && !replaced)
          for (const comment of comments) assert.ok(after.includes(comment), `${comment} in ${after}`);
        if (isSet) assert.deepEqual(getConfigValue(valueIn(after), path), JSON.parse(JSON.stringify(change)));
      },
    ),
    { numRuns: 600 },
  );
});

test('a path in text is read back as it was written', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string({ minLength: 1, maxLength: 6 }), fc.nat(99)), { minLength: 1, maxLength: 6 }),
      (path) => {
        fc.pre(!path.some((step) => ['__proto__', 'prototype', 'constructor'].includes(String(step))));
        assert.deepEqual(parseConfigPath(formatConfigPath(path)), path);
      },
    ),
  );
});

const REFUSED = [
  '',
  '.',
  'a..b',
  'a.',
  '[x]',
  'a[',
  'a]b',
  'a b',
  '__proto__.x',
  'a.constructor',
  'a["prototype"]',
  `a${'.a'.repeat(40)}`,
];
for (const path of REFUSED) {
  test(`T22: ${JSON.stringify(path.slice(0, 30))} is no path`, () => {
    assert.throws(
      () => setConfigValue('{}', path, 1),
      (error) => isGatewayError(error, 'REQUEST_INVALID'),
    );
  });
}

test('T22: a value with a key that could reach a prototype is not written', () => {
  const value = JSON.parse('{ "x": { "__proto__": {} } }') as JsonValue;
  assert.throws(
    () => setConfigValue('{}', 'a', value),
    (error) => isGatewayError(error, 'REQUEST_INVALID'),
  );
});

test('an edit does not turn one kind of thing into another', () => {
  for (const [text, path] of [
    ['{ a: 1 }', 'a.b'],
    ['{ a: [] }', 'a.b'],
    ['{ a: [] }', 'a[1]'],
    ['{ a: {} }', 'a[0]'],
    ['{}', 'a[3]'],
  ] as const) {
    assert.throws(
      () => setConfigValue(text, path, 1),
      (error) => isGatewayError(error, 'REQUEST_INVALID'),
      path,
    );
  }
  assert.throws(
    () => setConfigValue('{ a: ', 'a', 1),
    (error) => isGatewayError(error, 'CONFIG_UNREADABLE'),
  );
});

test('B18: a merge patch changes what it names; references and hidden secrets stay as they are written', () => {
  const text = `{\n  // mine\n  channels: { telegram: { botToken: "\${TG_TOKEN}", on: true } },\n  gateway: { port: 1 },\n}\n`;
  const patch = {
    gateway: { port: 2, auth: { mode: 'token' } },
    channels: { telegram: { botToken: REDACTED, on: null } },
  };
  assert.equal(
    patchConfigText(text, patch),
    `{\n  // mine\n  channels: { telegram: { botToken: "\${TG_TOKEN}" } },\n  gateway: { port: 2, auth: { mode: "token" } },\n}\n`,
  );
});
