import { createHash, createPublicKey, verify } from 'node:crypto';
import type { ConnectParams } from '#protocol';

export type DeviceFault = {
  readonly code:
    | 'DEVICE_AUTH_NONCE_MISMATCH'
    | 'DEVICE_AUTH_SIGNATURE_INVALID'
    | 'DEVICE_AUTH_SIGNATURE_EXPIRED'
    | 'DEVICE_AUTH_DEVICE_ID_MISMATCH'
    | 'DEVICE_AUTH_PUBLIC_KEY_INVALID';
  readonly reason: string;
};

const SKEW_MS_MAX = 2 * 60_000;
const KEY_BYTES = 32;
/** The fixed beginning of an Ed25519 public key in DER form (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * Whether a client holds the key of the device that it names: the id is the key's fingerprint and the signature (form v2 or v3) covers
 * this socket's nonce, role, scopes and token. Undefined when all holds.
 */
export function deviceFault(params: ConnectParams, nonce: string, now: number): DeviceFault | undefined {
  const { device } = params;
  if (!device) return undefined;
  const raw = Buffer.from(device.publicKey, 'base64url');
  if (raw.length !== KEY_BYTES) return { code: 'DEVICE_AUTH_PUBLIC_KEY_INVALID', reason: 'device-public-key' };
  if (createHash('sha256').update(raw).digest('hex') !== device.id) {
    return { code: 'DEVICE_AUTH_DEVICE_ID_MISMATCH', reason: 'device-id-mismatch' };
  }
  if (device.nonce !== nonce) return { code: 'DEVICE_AUTH_NONCE_MISMATCH', reason: 'device-nonce-mismatch' };
  if (Math.abs(now - device.signedAt) > SKEW_MS_MAX)
    return { code: 'DEVICE_AUTH_SIGNATURE_EXPIRED', reason: 'device-signature-stale' };
  const key = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, raw]), format: 'der', type: 'spki' });
  const signature = Buffer.from(device.signature, 'base64url');
  const isValid = signedTexts(params, device).some((text) => verify(null, Buffer.from(text), key, signature));
  return isValid ? undefined : { code: 'DEVICE_AUTH_SIGNATURE_INVALID', reason: 'device-signature' };
}

/** The two forms a signature may have: v3 is v2 with platform and device family at the end. */
export function signedTexts(
  params: ConnectParams,
  device: NonNullable<ConnectParams['device']>,
): readonly [v2: string, v3: string] {
  const token = params.auth?.token ?? params.auth?.deviceToken ?? params.auth?.bootstrapToken ?? '';
  const fields = [
    device.id,
    params.client.id,
    params.client.mode,
    params.role ?? 'operator',
    (params.scopes ?? []).join(','),
    String(device.signedAt),
    token,
    device.nonce,
  ];
  const plain = (text: string | undefined) => (text ?? '').trim().toLowerCase();
  return [
    ['v2', ...fields].join('|'),
    ['v3', ...fields, plain(params.client.platform), plain(params.client.deviceFamily)].join('|'),
  ];
}
