import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agreedProtocol, ConnectParams, METHODS, type MethodName, ParamsChecker } from '#protocol';

const checker = new ParamsChecker();
const connect = { minProtocol: 3, maxProtocol: 4, client: { id: 'cli', version: '1', platform: 'linux', mode: 'cli' } };

const connects: readonly [name: string, params: unknown, fault: string | RegExp | undefined][] = [
  ['the least', connect, undefined],
  ['a scope that nobody knows, for the grant to drop', { ...connect, scopes: ['operator.moon'] }, undefined],
  ['a foreign property', { ...connect, foo: 1 }, "at root: unexpected property 'foo'"],
  [
    'a foreign client',
    { ...connect, client: { ...connect.client, id: 'my-app' } },
    'at /client/id: must be equal to one of the allowed values',
  ],
  [
    'a mode of the docs only',
    { ...connect, client: { ...connect.client, mode: 'operator' } },
    'at /client/mode: must be equal to one of the allowed values',
  ],
  [
    'a device without its nonce',
    { ...connect, device: { id: 'a', publicKey: 'b', signature: 'c', signedAt: 1 } },
    "at /device: must have required property 'nonce'",
  ],
  [
    'nothing',
    {},
    "must have required property 'minProtocol'; must have required property 'maxProtocol'; must have required property 'client'",
  ],
  ['no object', null, 'at root: must be object'],
  [
    'a name that would draw on a terminal',
    { ...connect, 'a\u001b]0;x\u0007\nb': 1 },
    "at root: unexpected property 'a\\u{1b}]0;x\\u{7}\\u{a}b'",
  ],
  ['a long name', { ...connect, ['x'.repeat(9_000)]: 1 }, /^at root: unexpected property 'x{63}…'$/],
];
for (const [name, params, fault] of connects)
  test(`M-58: connect params: ${name}`, () => {
    const said = checker.faultOf(ConnectParams, params);
    if (fault instanceof RegExp) assert.match(said ?? '', fault);
    else assert.equal(said, fault);
  });

const calls: readonly [method: MethodName, params: unknown, fault: string | undefined][] = [
  ['chat.send', { sessionKey: 'main', message: 'hi', idempotencyKey: 'k', deliver: false }, undefined],
  ['chat.send', { sessionKey: 'main', message: 'hi' }, "must have required property 'idempotencyKey'"],
  ['sessions.list', { bogus: true }, "at root: unexpected property 'bogus'"],
  ['exec.approval.resolve', { id: 'a', decision: 'yes' }, 'at /decision: must be equal to one of the allowed values'],
  // What the server owns is refused, not ignored (security model T4).
  ...['isOwner', 'senderId', 'approved', 'provenance', 'runId'].map((name): [MethodName, unknown, string] => [
    'chat.send',
    { sessionKey: 'main', message: 'hi', idempotencyKey: 'k', [name]: true },
    `at root: unexpected property '${name}'`,
  ]),
];
for (const [method, params, fault] of calls)
  test(`M-58: ${method} ${JSON.stringify(params)}: ${fault ?? 'fine'}`, () =>
    assert.equal(checker.faultOf(METHODS[method].params, params), fault));

test('M-58: a long list of faults is cut', () => {
  const params = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x${i}`, i]));
  assert.equal(checker.faultOf(METHODS['sessions.list'].params, params)?.split('; ').length, 8);
});

const ranges: readonly [min: number, max: number, agreed: number | undefined][] = [
  [3, 3, 3],
  [4, 4, 4],
  [3, 4, 4],
  [2, 9, 4],
  [1, 2, undefined],
  [5, 9, undefined],
  [4, 3, undefined],
];
test('M-58: a client gets the highest version in its range', () => {
  for (const [minProtocol, maxProtocol, agreed] of ranges)
    assert.equal(agreedProtocol({ minProtocol, maxProtocol }), agreed, `${minProtocol}..${maxProtocol}`);
});
