import { isRecord } from '#base';
import { nodeOf, type SchemaNode } from './read-by-schema.ts';
import { ConfigSchema } from './schema.ts';
import { isVariableReference } from './substitute.ts';

/** Stands where a secret was; a config that holds it is never accepted. */
export const REDACTED = '__OPENCLAW_REDACTED__';

/** Names that mean a secret, for keys that the schema does not describe. */
export const SECRET_NAME =
  /(?:token|passw(?:or)?d|passphrase|secret|credential|authorization|cookie|webhook_?url|(?:api|private|access|signing|auth|encrypt(?:ion)?)[_-]?key)s?$/i;

/** Under these, in parts that the schema does not describe, every text counts as a secret. */
const SECRET_GROUPS = new Set(['env', 'headers', 'vars']);
const SECRET_LENGTH_MIN = 4;

/**
 * A copy for showing: every secret is {@link REDACTED}. Takes the config, or the file's value before defaults or substitution.
 * References (`${NAME}`, `{source, id}`) tell no secret and stay.
 * @param secrets further texts that must not be shown, such as `LoadedConfig.secrets`
 */
export function redactConfig<T>(value: T, secrets: readonly string[] = []): T {
  const hidden = secrets.filter((text) => text.length >= SECRET_LENGTH_MIN);
  return walk(nodeOf(ConfigSchema), value, 'open', (text, isSecret) => {
    if (isVariableReference(text)) return text;
    return isSecret || hidden.some((secret) => text.includes(secret)) ? REDACTED : withoutUrlSecrets(text);
  }) as T;
}

/** The texts in a config that are secrets, for the log's masks. */
export function secretsIn(value: unknown): readonly string[] {
  const found = new Set<string>();
  walk(nodeOf(ConfigSchema), value, 'open', (text, isSecret) => {
    if (isSecret && text.length >= SECRET_LENGTH_MIN && !isVariableReference(text)) found.add(text);
    return text;
  });
  return [...found];
}

/** Whether the placeholder of a hidden secret stands anywhere in it. */
export function holdsPlaceholder(value: unknown): boolean {
  let found = false;
  walk(nodeOf(ConfigSchema), value, 'open', (text) => {
    found ||= text.includes(REDACTED);
    return text;
  });
  return found;
}

type Visit = (text: string, isSecret: boolean) => string;
type Standing = 'open' | 'secret';

function walk(schema: SchemaNode | undefined, value: unknown, standing: Standing, visit: Visit): unknown {
  const here: Standing = schema?.['x-secret'] ? 'secret' : standing;
  if (typeof value === 'string') return visit(value, here === 'secret');
  if (Array.isArray(value)) return value.map((item) => walk(schema?.items, item, here, visit));
  if (!isRecord(value)) return value;
  if (here === 'secret' && isSecretRef(value)) return value;
  const branch = schema?.anyOf?.find((option) => option.type === 'object') ?? schema;
  const [item] = Object.values(branch?.patternProperties ?? {});
  const copy: Record<string, unknown> = {};
  for (const [key, child] of Object.entries(value)) {
    const property = propertyOf(branch, key) ?? item;
    // What the schema describes says itself whether it is a secret; elsewhere the name decides.
    const described = property?.type !== undefined || property?.anyOf !== undefined || property?.enum !== undefined;
    const named = !described && (isSecretKey(key) || (property === undefined && hasSecrets(branch)));
    copy[key] = walk(property, child, named ? 'secret' : here, visit);
  }
  return copy;
}

function propertyOf(schema: SchemaNode | undefined, key: string): SchemaNode | undefined {
  if (!schema?.properties) return undefined;
  if (Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return Object.values(schema.properties).find((property) => property['x-aliases']?.includes(key));
}

/** A key that is not known, beside keys that hold secrets, may well be one of them misspelt. */
const hasSecrets = (schema: SchemaNode | undefined): boolean =>
  Object.values(schema?.properties ?? {}).some((property) => property['x-secret'] === true);

const isSecretKey = (key: string): boolean => SECRET_NAME.test(key) || SECRET_GROUPS.has(key);

const isSecretRef = (value: Record<string, unknown>): boolean =>
  typeof value['source'] === 'string' && typeof value['id'] === 'string';

/** Addresses without the user, password and key that they may hold. */
function withoutUrlSecrets(text: string): string {
  return text
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^/?#\s@]+@/gi, `$1${REDACTED}@`)
    .replace(/([?&][^=&#\s]*(?:token|key|secret|password)[^=&#\s]*=)[^&#\s]+/gi, `$1${REDACTED}`);
}
