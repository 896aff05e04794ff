import { dirname } from 'node:path';
import { GatewayError, isGatewayError, isRecord, parseJson } from '#base';
import { readOwnedFile } from './owned-file.ts';
import type { Config } from './schema.ts';
import type { Environment } from './substitute.ts';

/** Where a secret is. */
export type SecretRef = {
  readonly source: 'env' | 'file' | 'exec';
  readonly provider?: string;
  readonly id: string;
};

export type SecretPlaces = {
  readonly env: Environment;
  /** The config file: secret files are in its folder. */
  readonly configFile: string;
  readonly providers: Config['secrets']['providers'];
};

const BYTES_MAX = 64 * 1024;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/**
 * The secret, read now: call it when it is needed, so that a changed secret counts at once. Text is the secret itself.
 * @returns undefined only when nothing was given
 * @throws {GatewayError} `SECRET_UNAVAILABLE` naming the reference, never the content. No other credential may take its place.
 */
export function resolveSecret(given: string | SecretRef | undefined, places: SecretPlaces): string | undefined {
  if (given === undefined || typeof given === 'string') return given;
  const { source, provider = 'default', id } = given;
  const named = Object.hasOwn(places.providers, provider) ? places.providers[provider] : undefined;
  if (named === undefined && provider !== 'default') {
    throw unavailable(given, `names secrets.providers.${provider}, which is not there`);
  }
  if (named !== undefined && named.source !== source) {
    throw unavailable(given, `has source "${source}", and secrets.providers.${provider} has "${named.source}"`);
  }
  if (source === 'exec') throw unavailable(given, 'has source "exec", which this version does not run');
  if (source === 'env') return fromEnvironment(given, places.env);
  const name = named === undefined ? id : named.path;
  if (name === undefined) throw unavailable(given, `needs secrets.providers.${provider}.path`);
  const text = fileText(given, name, places);
  return named?.mode === 'json' ? atPointer(given, text) : nonEmpty(given, text.trim());
}

function fromEnvironment(ref: SecretRef, env: Environment): string {
  if (!VARIABLE_NAME.test(ref.id)) throw unavailable(ref, 'is not the name of a variable');
  const value = env[ref.id];
  if (!value) throw unavailable(ref, 'is not set in the environment', `Set ${ref.id} where the gateway is started.`);
  return value;
}

function fileText(ref: SecretRef, name: string, { configFile }: SecretPlaces): string {
  const folder = dirname(configFile);
  try {
    return readOwnedFile({ name, from: folder, folder, bytesMax: BYTES_MAX }).text;
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    throw unavailable(ref, `cannot be read: ${error.message}`, error.next, error);
  }
}

function atPointer(ref: SecretRef, text: string): string {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    // Without the cause: a parser's message quotes what it read.
    throw unavailable(ref, 'points into a file that is not JSON');
  }
  const steps = ref.id.startsWith('/') ? ref.id.slice(1).split('/') : [ref.id];
  for (const step of steps) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  if (typeof value !== 'string') throw unavailable(ref, 'is no text in the file it points into');
  return nonEmpty(ref, value);
}

function nonEmpty(ref: SecretRef, text: string): string {
  if (text === '') throw unavailable(ref, 'is empty');
  return text;
}

function unavailable(ref: SecretRef, why: string, next?: string, cause?: unknown): GatewayError {
  return new GatewayError('SECRET_UNAVAILABLE', `The secret reference ${ref.source}:${ref.id} ${why}`, {
    next: next ?? 'Correct the reference in the config, or set what it names.',
    detail: { source: ref.source, id: ref.id },
    ...(cause === undefined ? {} : { cause }),
  });
}
