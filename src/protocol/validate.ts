import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { printableLine } from '#base';

const FAULTS_MAX = 8;
/** Of a property's name, which is the caller's text and goes into logs and close reasons. */
const NAME_CHARACTERS_MAX = 64;

type Fault = {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
};

/** Checks params by their schemas, compiled on first use, and words faults as clients of the public protocol know them. */
export class ParamsChecker {
  readonly #compiled = new WeakMap<TSchema, Validator>();

  /** Undefined when valid; else `at root: unexpected property 'x'; must have required property 'y'; at /z: must be string`. */
  faultOf(schema: TSchema, value: unknown): string | undefined {
    let validator = this.#compiled.get(schema);
    if (!validator) {
      validator = Compile(schema);
      this.#compiled.set(schema, validator);
    }
    if (validator.Check(value)) return undefined;
    const faults = (validator.Errors(value) as readonly Fault[]).flatMap(wording);
    return [...new Set(faults)].slice(0, FAULTS_MAX).join('; ') || 'at root: is not valid';
  }
}

function wording({ keyword, instancePath, message, params }: Fault): readonly string[] {
  if (keyword === 'boolean') {
    // Said of a property where nothing may be. The list that names them all comes last, and not at all past the library's bound.
    const cut = instancePath.lastIndexOf('/');
    const name = instancePath
      .slice(cut + 1)
      .replaceAll('~1', '/')
      .replaceAll('~0', '~');
    return [unexpected(instancePath.slice(0, cut), name)];
  }
  if (keyword === 'additionalProperties') {
    const { additionalProperties } = params as { additionalProperties: readonly string[] };
    return additionalProperties.slice(0, FAULTS_MAX).map((name) => unexpected(instancePath, name));
  }
  if (keyword === 'required') {
    // The public form: a place is named only below the root.
    const place = instancePath === '' ? '' : `${placeOf(instancePath)}: `;
    const { requiredProperties } = params as { requiredProperties: readonly string[] };
    return requiredProperties.map((name) => `${place}must have required property '${name}'`);
  }
  return [`${placeOf(instancePath)}: ${message}`];
}

const placeOf = (path: string): string =>
  path === '' ? 'at root' : `at ${printableLine(path, 2 * NAME_CHARACTERS_MAX)}`;

const unexpected = (path: string, name: string): string =>
  `${placeOf(path)}: unexpected property '${printableLine(name, NAME_CHARACTERS_MAX)}'`;
