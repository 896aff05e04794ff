// The published vectors: what a client of either form signs, byte for byte.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { ConnectParams } from '#protocol';
import { deviceFault, signedTexts } from './device-signature.ts';

type Vector = { readonly signedText: string; readonly signature: string };
const vectors = JSON.parse(
  readFileSync(new URL('../../test/gateway/device-signature-vectors.json', import.meta.url), 'utf8'),
) as { readonly publicKey: string; readonly deviceId: string; readonly v2: Vector; readonly v3: Vector };

const NONCE = '11111111-2222-4333-8444-555555555555';
const SIGNED_AT = 1_700_000_000_000;

const params = (signature: string, client: Partial<ConnectParams['client']> = {}): ConnectParams => ({
  minProtocol: 3,
  maxProtocol: 3,
  client: { id: 'cli', version: '1', platform: ' Linux ', mode: 'cli', deviceFamily: 'Server', ...client },
  role: 'operator',
  scopes: ['operator.read', 'operator.write'],
  auth: { token: 'example-token' },
  device: { id: vectors.deviceId, publicKey: vectors.publicKey, signature, signedAt: SIGNED_AT, nonce: NONCE },
});

for (const form of ['v2', 'v3'] as const) {
  test(`M-58: the vector of form ${form} is signed text and a good signature`, () => {
    const given = params(vectors[form].signature);
    assert.ok(given.device && signedTexts(given, given.device).includes(vectors[form].signedText));
    assert.equal(deviceFault(given, NONCE, SIGNED_AT), undefined);
  });
}

const faults: readonly [name: string, make: () => ReturnType<typeof deviceFault>, code: string | undefined][] = [
  ['no device', () => deviceFault({ ...params('x'), device: undefined } as never, NONCE, 0), undefined],
  [
    'a v3 signature with another platform',
    () => deviceFault(params(vectors.v3.signature, { platform: 'darwin' }), NONCE, SIGNED_AT),
    'DEVICE_AUTH_SIGNATURE_INVALID',
  ],
  [
    'a v2 signature does not cover the platform',
    () => deviceFault(params(vectors.v2.signature, { platform: 'darwin' }), NONCE, SIGNED_AT),
    undefined,
  ],
  [
    'another client',
    () => deviceFault(params(vectors.v2.signature, { id: 'webchat' }), NONCE, SIGNED_AT),
    'DEVICE_AUTH_SIGNATURE_INVALID',
  ],
  ['no base64', () => deviceFault(params('%%%'), NONCE, SIGNED_AT), 'DEVICE_AUTH_SIGNATURE_INVALID'],
  [
    'a nonce of another socket',
    () => deviceFault(params(vectors.v3.signature), 'other', SIGNED_AT),
    'DEVICE_AUTH_NONCE_MISMATCH',
  ],
  [
    'two minutes later it still counts',
    () => deviceFault(params(vectors.v3.signature), NONCE, SIGNED_AT + 120_000),
    undefined,
  ],
  [
    'a moment after that it does not',
    () => deviceFault(params(vectors.v3.signature), NONCE, SIGNED_AT + 120_001),
    'DEVICE_AUTH_SIGNATURE_EXPIRED',
  ],
  [
    'nor does one from the future',
    () => deviceFault(params(vectors.v3.signature), NONCE, SIGNED_AT - 120_001),
    'DEVICE_AUTH_SIGNATURE_EXPIRED',
  ],
];
for (const [name, make, code] of faults)
  test(`M-58: device signature: ${name}`, () => assert.equal(make()?.code, code));
