import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { Value } from 'typebox/value';
import type { Tool } from '#contract';

export type CheckedArguments =
  | { readonly ok: true; readonly args: Readonly<Record<string, unknown>> }
  /** For the model: which argument is wrong, how, and what the tool takes. */
  | { readonly ok: false; readonly message: string };

const FAULTS_MAX = 5;

/** Checks a call's arguments against its tool's schema before anything runs. Schemas are compiled once each. One per gateway. */
export class ArgumentChecker {
  readonly #compiled = new WeakMap<TSchema, Validator>();

  check(tool: Tool, given: Readonly<Record<string, unknown>>): CheckedArguments {
    const args = tool.prepare?.(given) ?? given;
    const validator = this.#validator(tool.parameters);
    if (validator.Check(args)) return { ok: true, args };
    // Models send "5" for 5 and one string where a list is asked for: what can be read only one way is taken that way.
    const converted = Value.Convert(tool.parameters, structuredClone(withoutNulls(tool, args))) as Readonly<
      Record<string, unknown>
    >;
    const nulls = Object.keys(args).filter((name) => args[name] === null && converted[name] === 'null');
    if (nulls.length > 0)
      return {
        ok: false,
        message: `The arguments of ${tool.name} are not valid: ${nulls.join(', ')} must not be null.`,
      };
    if (validator.Check(converted)) return { ok: true, args: converted };
    const faults = [...validator.Errors(converted)].slice(0, FAULTS_MAX).map(faultText);
    const properties =
      (tool.parameters as { properties?: Record<string, unknown>; required?: readonly string[] }) ?? {};
    const required = new Set(properties.required ?? []);
    const takes = Object.keys(properties.properties ?? {}).map((name) => (required.has(name) ? name : `${name}?`));
    return {
      ok: false,
      message: `The arguments of ${tool.name} are not valid: ${faults.join('; ')}. It takes {${takes.join(', ')}}.`,
    };
  }

  #validator(schema: TSchema): Validator {
    let validator = this.#compiled.get(schema);
    if (!validator) {
      validator = Compile(schema);
      this.#compiled.set(schema, validator);
    }
    return validator;
  }
}

/** Models in strict mode send null for what they leave out; as a value it would become the word "null". */
function withoutNulls(tool: Tool, args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { required = [] } = tool.parameters as { readonly required?: readonly string[] };
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => value !== null || required.includes(name)));
}

function faultText(fault: {
  readonly instancePath?: string;
  readonly message?: string;
  readonly params?: unknown;
}): string {
  const where = (fault.instancePath ?? '').replace(/^\//, '').replaceAll('/', '.');
  return `${where === '' ? '' : `${where} `}${fault.message ?? 'is not valid'}`;
}
