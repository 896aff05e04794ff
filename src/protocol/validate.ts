import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

const FAULTS_MAX = 8;

type Fault = {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
};

/** Checks params by their schemas, compiled on first use, and words faults as clients of the public protocol know them. */
export class ParamsChecker {
  readonly #compiled = new WeakMap<TSchema, Validator>();

  /** Undefined when valid; else `at root: unexpected property 'x'; …`. */
  faultOf(schema: TSchema, value: unknown): string | undefined {
    let validator = this.#compiled.get(schema);
    if (!validator) {
      validator = Compile(schema);
      this.#compiled.set(schema, validator);
    }
    if (validator.Check(value)) return undefined;
    const faults = (validator.Errors(value) as readonly Fault[])
      .filter((fault) => fault.keyword !== 'boolean')
      .flatMap(wording);
    return [...new Set(faults)].slice(0, FAULTS_MAX).join('; ') || 'at root: is not valid';
  }
}

function wording({ keyword, instancePath, message, params }: Fault): readonly string[] {
  const where = instancePath === '' ? 'at root' : `at ${instancePath}`;
  if (keyword === 'additionalProperties') {
    return (params as { additionalProperties: readonly string[] }).additionalProperties.map(
      (name) => `${where}: unexpected property '${name}'`,
    );
  }
  if (keyword === 'required') {
    return (params as { requiredProperties: readonly string[] }).requiredProperties.map(
      (name) => `${where}: must have required property '${name}'`,
    );
  }
  return [`${where}: ${message}`];
}
