import { isRecord } from '#base';
import type { ConfigPath } from './config-path.ts';
import type { Fault } from './issue.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

// `$${NAME}` stands for the text `${NAME}` itself.
const VARIABLE = /(\$?)\$\{([A-Z_][A-Z0-9_]{0,127})\}/g;

export type Substitution = {
  readonly value: unknown;
  readonly faults: readonly Fault[];
  /** What the variables held; likely secrets, so kept out of everything shown. */
  readonly inserted: readonly string[];
};

/** The value with every `${NAME}` in its texts replaced from the environment. A variable that is unset or empty is a fault. */
export function substituteVariables(value: unknown, env: Environment): Substitution {
  const faults: Fault[] = [];
  const inserted = new Set<string>();
  const visit = (given: unknown, path: ConfigPath): unknown => {
    if (Array.isArray(given)) return given.map((item, index) => visit(item, [...path, index]));
    if (isRecord(given)) {
      const object: Record<string, unknown> = Object.create(null);
      for (const [key, child] of Object.entries(given)) object[key] = visit(child, [...path, key]);
      return object;
    }
    if (typeof given !== 'string' || !given.includes('${')) return given;
    return given.replace(VARIABLE, (whole, escaped: string, name: string) => {
      if (escaped !== '') return whole.slice(1);
      const held = env[name];
      if (held) {
        inserted.add(held);
        return held;
      }
      faults.push({
        path,
        message: `needs the environment variable ${name}, which is not set`,
        next: `Set ${name} where the gateway is started, or write the value another way.`,
      });
      return '';
    });
  };
  return { value: visit(value, []), faults, inserted: [...inserted] };
}

/** Whether the text is one variable and nothing else, so that showing it tells no secret. */
export const isVariableReference = (text: string): boolean => /^\$\{[A-Z_][A-Z0-9_]{0,127}\}$/.test(text);
