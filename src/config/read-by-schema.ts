import type { TSchema } from 'typebox';
import { nearestName } from '#base';
import type { ConfigPath } from './config-path.ts';
import type { Fault } from './issue.ts';

/** A schema as this reader sees it: the part of JSON Schema that the config uses. */
export type SchemaNode = {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly 'x-secret'?: true;
  readonly 'x-later'?: true;
  readonly 'x-aliases'?: readonly string[];
};

export const nodeOf = (schema: TSchema): SchemaNode => schema as SchemaNode;

export type Reading = {
  /** With defaults in place; meaningful when there are no faults. */
  readonly value: unknown;
  readonly faults: readonly Fault[];
  /** Keys that the schema does not know; they are not in `value`. */
  readonly unknown: readonly Fault[];
  /** Keys that were given and that nothing acts on. */
  readonly later: readonly ConfigPath[];
};

const FAULTS_MAX = 100;

/**
 * One walk for everything that a given value and the schema have to say to each other: types, limits, defaults, aliases, unknown keys.
 * Chosen over TypeBox's compiled validator, which finds the same faults (a test holds the two together) but costs 20 ms and 270 KB
 * at start, fills defaults in a second walk, and says "must match a schema in anyOf" to people. This walk takes well under 1 ms.
 */
export function readBySchema(schema: TSchema, given: unknown): Reading {
  const reader = new Reader();
  const value = reader.read(nodeOf(schema), given, []);
  return { value, faults: reader.faults, unknown: reader.unknown, later: reader.later };
}

class Reader {
  readonly faults: Fault[] = [];
  readonly unknown: Fault[] = [];
  readonly later: ConfigPath[] = [];

  read(schema: SchemaNode, given: unknown, path: ConfigPath): unknown {
    if (schema['x-later'] && path.length > 0) this.later.push(path);
    if (schema.anyOf) return this.#readAnyOf(schema.anyOf, given, path);
    if (schema.enum) return this.#readEnum(schema, schema.enum, given, path);
    switch (schema.type) {
      case 'object':
        if (!isObject(given)) return this.#fault(path, `must be ${describeType(schema)}, and is ${kindOf(given)}`);
        return schema.patternProperties ? this.#readRecord(schema, given, path) : this.#readObject(schema, given, path);
      case 'array':
        return this.#readArray(schema, given, path);
      case 'string':
        return this.#readString(schema, given, path);
      case 'integer':
      case 'number': {
        const fits =
          typeof given === 'number' &&
          (schema.type === 'number' || Number.isSafeInteger(given)) &&
          given >= (schema.minimum ?? -Infinity) &&
          given <= (schema.maximum ?? Infinity);
        return this.#check(fits, given, path, describeType(schema));
      }
      case 'boolean':
        return this.#check(typeof given === 'boolean', given, path, describeType(schema));
      default:
        return given;
    }
  }

  #readObject(schema: SchemaNode, given: Record<string, unknown>, path: ConfigPath): Record<string, unknown> {
    const properties = schema.properties ?? {};
    const value: Record<string, unknown> = {};
    const aliases = aliasesOf(properties);
    const canonical: Record<string, unknown> = Object.create(null);
    const writtenAs: Record<string, string> = Object.create(null);
    for (const key of Object.keys(given)) {
      const name = Object.hasOwn(properties, key) ? key : aliases.get(key);
      if (name === undefined) {
        const near = nearestName(key, [...Object.keys(properties), ...aliases.keys()]);
        this.#note(this.unknown, {
          path: [...path, key],
          atKey: true,
          message: 'is not a known setting and is ignored',
          ...(near === undefined ? {} : { next: `Did you mean "${near}"?` }),
        });
      } else if (Object.hasOwn(canonical, name)) {
        this.#fault([...path, key], `is another name of "${name}", which stands here too`, 'Keep one of the two.');
      } else {
        canonical[name] = given[key];
        writtenAs[name] = key;
      }
    }
    for (const [name, property] of Object.entries(properties)) {
      const at = [...path, writtenAs[name] ?? name];
      if (Object.hasOwn(canonical, name)) value[name] = this.read(property, canonical[name], at);
      else if (schema.required?.includes(name)) value[name] = this.#missing(property, at);
    }
    return value;
  }

  #readRecord(schema: SchemaNode, given: Record<string, unknown>, path: ConfigPath): Record<string, unknown> {
    const [[pattern, item] = ['', {}]] = Object.entries(schema.patternProperties ?? {});
    const allowed = new RegExp(pattern, 'u');
    // Without a prototype: its keys are names from outside, and consumers look them up.
    const value: Record<string, unknown> = Object.create(null);
    for (const [key, child] of Object.entries(given)) {
      if (allowed.test(key)) value[key] = this.read(item, child, [...path, key]);
      else this.#fault([...path, key], 'is not a name that can be used here');
    }
    return value;
  }

  #readArray(schema: SchemaNode, given: unknown, path: ConfigPath): unknown {
    if (!Array.isArray(given)) return this.#fault(path, `must be ${describeType(schema)}, and is ${kindOf(given)}`);
    const { minItems = 0, maxItems = Infinity } = schema;
    if (given.length < minItems || given.length > maxItems) {
      return this.#fault(path, `must have ${minItems} to ${maxItems} entries, and has ${given.length}`);
    }
    return given.map((item, index) => this.read(schema.items ?? {}, item, [...path, index]));
  }

  #readString(schema: SchemaNode, given: unknown, path: ConfigPath): unknown {
    if (typeof given !== 'string') return this.#fault(path, `must be text, and is ${kindOf(given)}`);
    const { minLength = 0, maxLength = Infinity, pattern } = schema;
    if (given.length < minLength) return this.#fault(path, 'must not be empty');
    if (given.length > maxLength) return this.#fault(path, `must have at most ${maxLength} characters`);
    if (pattern !== undefined && !new RegExp(pattern, 'u').test(given)) {
      return this.#fault(path, 'is not in the form that is needed here');
    }
    return given;
  }

  /** The branch that fits; when none does, the faults of the one that was meant, judged by the kind of value. */
  #readAnyOf(branches: readonly SchemaNode[], given: unknown, path: ConfigPath): unknown {
    const tried = branches.map((branch) => {
      const attempt = new Reader();
      return { branch, attempt, value: attempt.read(branch, given, path) };
    });
    const fitting = tried.find(({ attempt }) => attempt.faults.length === 0);
    const meant =
      fitting ?? tried.find(({ branch }) => branch.type !== undefined && branch.type === kindOfSchema(given));
    if (!meant)
      return this.#fault(path, `must be ${branches.map(describeType).join(', or ')}, and is ${kindOf(given)}`);
    for (const fault of meant.attempt.faults) this.#note(this.faults, fault);
    for (const fault of meant.attempt.unknown) this.#note(this.unknown, fault);
    this.later.push(...meant.attempt.later);
    return meant.value;
  }

  #readEnum(schema: SchemaNode, values: readonly string[], given: unknown, path: ConfigPath): unknown {
    if (values.includes(given as string)) return given;
    const near = typeof given === 'string' ? nearestName(given, values) : undefined;
    const message = `must be ${describeType(schema)}${typeof given === 'string' ? '' : `, and is ${shown(given)}`}`;
    return this.#fault(path, message, near === undefined ? undefined : `Did you mean "${near}"?`);
  }

  #missing(schema: SchemaNode, path: ConfigPath): unknown {
    if (schema.default !== undefined) {
      // Through the reader as well, so that a default object gets the defaults inside it and no prototype where it must not.
      const { 'x-later': _, ...given } = schema;
      return this.read(given, structuredClone(schema.default), path);
    }
    if (schema.type === 'object') return this.#readObject(schema, {}, path);
    return this.#fault(path, 'is missing');
  }

  #check(fits: boolean, given: unknown, path: ConfigPath, wanted: string): unknown {
    return fits ? given : this.#fault(path, `must be ${wanted}, and is ${shown(given)}`);
  }

  #fault(path: ConfigPath, message: string, next?: string): undefined {
    this.#note(this.faults, { path, message, ...(next === undefined ? {} : { next }) });
    return undefined;
  }

  #note(list: Fault[], fault: Fault): void {
    if (list.length < FAULTS_MAX) list.push(fault);
  }
}

function aliasesOf(properties: Readonly<Record<string, SchemaNode>>): Map<string, string> {
  return new Map(
    Object.entries(properties).flatMap(([name, { 'x-aliases': aliases = [] }]) =>
      aliases.map((alias) => [alias, name] as const),
    ),
  );
}

/** A schema's type in words, as it reads after "must be". */
export function describeType(schema: SchemaNode): string {
  if (schema.anyOf) return schema.anyOf.map(describeType).join(', or ');
  if (schema.enum) return `one of ${schema.enum.map((value) => `"${value}"`).join(', ')}`;
  switch (schema.type) {
    case 'string':
      return 'text';
    case 'boolean':
      return 'true or false';
    case 'integer':
    case 'number': {
      const kind = schema.type === 'integer' ? 'a whole number' : 'a number';
      if (schema.minimum === undefined) return kind;
      return schema.maximum === undefined
        ? `${kind} of at least ${schema.minimum}`
        : `${kind} from ${schema.minimum} to ${schema.maximum}`;
    }
    case 'array':
      return 'a list [ … ]';
    case 'object':
      return 'an object { … }';
    default:
      return 'any value';
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function kindOf(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return { string: 'text', number: 'a number', boolean: 'true or false' }[typeof value as string] ?? 'an object';
}

const kindOfSchema = (value: unknown): string | undefined =>
  Array.isArray(value) ? 'array' : value === null ? undefined : typeof value;

// A number or a switch is shown; text is not, because it may be a secret in the wrong place.
const shown = (value: unknown): string =>
  typeof value === 'number' || typeof value === 'boolean' ? String(value) : kindOf(value);
