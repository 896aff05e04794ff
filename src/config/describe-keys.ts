import { GatewayError, nearestName } from '#base';
import { type ConfigPath, formatConfigPath, parseConfigPath } from './config-path.ts';
import { describeType, nodeOf, type SchemaNode } from './read-by-schema.ts';
import { ConfigSchema } from './schema.ts';

/** One setting, as docs, CLI and UI show it. */
export type ConfigKey = {
  /** As `agents.list[].id` or `models.providers.<id>.baseUrl`. */
  readonly path: string;
  readonly type: string;
  /** Absent when there is none, or when it is as in a wider scope. */
  readonly default?: unknown;
  readonly description: string;
  readonly isSecret: boolean;
  /** Nothing in this version acts on it. */
  readonly isLater: boolean;
  readonly aliases: readonly string[];
  /** Names of the keys inside; empty for a single value. */
  readonly children: readonly string[];
};

/** Every setting, in the order of the schema, objects before what is in them. */
export function configKeys(): readonly ConfigKey[] {
  const keys: ConfigKey[] = [];
  const visit = (schema: SchemaNode, path: string, isRequired: boolean): void => {
    if (path !== '') keys.push(keyOf(schema, path, isRequired));
    for (const { name, node, required } of partsOf(schema)) visit(node, joined(path, name), required);
  };
  visit(nodeOf(ConfigSchema), '', true);
  return keys;
}

/**
 * The setting that a path names, or undefined. Inside parts that nothing describes (channels, plugins, …) every path is a setting.
 */
export function configKeyAt(at: string | ConfigPath): ConfigKey | undefined {
  const path = typeof at === 'string' ? parseConfigPath(at) : at;
  let schema: SchemaNode = nodeOf(ConfigSchema);
  let isRequired = true;
  for (const step of path) {
    if (isOpen(schema)) return keyOf(schema, formatConfigPath(path), false);
    const next = stepInto(schema, step);
    if (!next) return undefined;
    isRequired = schema.required?.includes(String(step)) ?? false;
    schema = next;
  }
  return keyOf(schema, formatConfigPath(path), isRequired);
}

/** @throws {GatewayError} `CONFIG_KEY_UNKNOWN` with the nearest name */
export function assertConfigKey(at: string | ConfigPath): ConfigKey {
  const path = typeof at === 'string' ? parseConfigPath(at) : at;
  const known = configKeyAt(path);
  if (known) return known;
  let schema: SchemaNode = nodeOf(ConfigSchema);
  for (const [index, step] of path.entries()) {
    const next = stepInto(schema, step);
    if (next) {
      schema = next;
      continue;
    }
    const names = partsOf(schema).map(({ name }) => name);
    const near = nearestName(String(step), names);
    throw new GatewayError('CONFIG_KEY_UNKNOWN', `There is no setting ${formatConfigPath(path)}`, {
      next:
        near === undefined
          ? `See docs/config.md for what ${formatConfigPath(path.slice(0, index)) || 'the config'} can hold.`
          : `Did you mean ${formatConfigPath([...path.slice(0, index), near, ...path.slice(index + 1)])}?`,
    });
  }
  throw new GatewayError('CONFIG_KEY_UNKNOWN', `There is no setting ${formatConfigPath(path)}`);
}

/** The schema of the owner's file as plain JSON Schema: what has a default may be left out, other names are allowed. */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Reins config',
    ...forFile(nodeOf(ConfigSchema)),
  };
}

function forFile(schema: SchemaNode): Record<string, unknown> {
  const { properties, required = [], patternProperties, items, anyOf, ...rest } = schema;
  const named = Object.entries(properties ?? {}).flatMap(([name, property]) => {
    const { default: fallback, ...shown } = forFile(property);
    const own = required.includes(name) && fallback !== undefined ? { ...shown, default: fallback } : shown;
    return [name, ...(property['x-aliases'] ?? [])].map((key) => [key, own] as const);
  });
  const needed = required.filter((name) => !canBeLeftOut(properties?.[name]));
  return {
    ...rest,
    ...(properties ? { properties: Object.fromEntries(named) } : {}),
    ...(needed.length > 0 ? { required: needed } : {}),
    ...(patternProperties
      ? {
          patternProperties: Object.fromEntries(
            Object.entries(patternProperties).map(([key, node]) => [key, forFile(node)]),
          ),
          additionalProperties: false,
        }
      : {}),
    ...(items ? { items: forFile(items) } : {}),
    ...(anyOf ? { anyOf: anyOf.map(forFile) } : {}),
  };
}

function canBeLeftOut(schema: SchemaNode | undefined): boolean {
  if (!schema || schema.default !== undefined) return true;
  return schema.type === 'object' && (schema.required ?? []).every((name) => canBeLeftOut(schema.properties?.[name]));
}

type Part = { readonly name: string; readonly node: SchemaNode; readonly required: boolean };

/** The parts of a schema by name; `[]` for what is in a list, `<id>` for what is under any name. */
function partsOf(schema: SchemaNode): readonly Part[] {
  const object = objectOf(schema);
  if (object?.properties) {
    return Object.entries(object.properties).map(([name, node]) => ({
      name,
      node,
      required: object.required?.includes(name) ?? false,
    }));
  }
  const [item] = Object.values(object?.patternProperties ?? {});
  if (item?.properties) return partsOf(item).map((part) => ({ ...part, name: `<id>.${part.name}` }));
  if (schema.items?.properties) return partsOf(schema.items).map((part) => ({ ...part, name: `[].${part.name}` }));
  return [];
}

// A reference to a secret is one thing to its owner, not three settings.
const objectOf = (schema: SchemaNode): SchemaNode | undefined =>
  schema['x-secret'] && schema.anyOf ? undefined : (schema.anyOf?.find((option) => option.type === 'object') ?? schema);

const joined = (path: string, name: string): string =>
  path === '' || name.startsWith('[]') ? path + name : `${path}.${name}`;

const isOpen = (schema: SchemaNode): boolean => schema.type === undefined && !schema.anyOf && !schema.enum;

function stepInto(schema: SchemaNode, step: string | number): SchemaNode | undefined {
  if (isOpen(schema)) return schema;
  if (typeof step === 'number') return schema.items;
  const object = schema.anyOf?.find((option) => option.type === 'object') ?? schema;
  const properties = object.properties ?? {};
  if (Object.hasOwn(properties, step)) return properties[step];
  const alias = Object.values(properties).find((property) => property['x-aliases']?.includes(step));
  if (alias) return alias;
  const [[pattern, item] = []] = Object.entries(object.patternProperties ?? {});
  return pattern !== undefined && new RegExp(pattern, 'u').test(step) ? item : undefined;
}

function keyOf(schema: SchemaNode, path: string, isRequired: boolean): ConfigKey {
  return {
    path,
    type: typeText(schema),
    ...(isRequired && schema.default !== undefined ? { default: schema.default } : {}),
    description: schema.description ?? '',
    isSecret: schema['x-secret'] === true,
    isLater: schema['x-later'] === true,
    aliases: schema['x-aliases'] ?? [],
    children: partsOf(schema).map(({ name }) => name),
  };
}

function typeText(schema: SchemaNode): string {
  if (schema['x-secret'] && schema.anyOf) return 'text or a secret reference';
  if (schema.anyOf) return schema.anyOf.map(typeText).join(' or ');
  if (schema.enum) return schema.enum.map((value) => `"${value}"`).join(' | ');
  if (schema.type === 'array')
    return schema.items?.properties ? 'list of objects' : `list of ${typeText(schema.items ?? {})}`;
  if (schema.type === 'object') return 'object';
  return describeType(schema).replace(/^an? /, '');
}
