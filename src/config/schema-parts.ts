// A namespace import, so that a bundle keeps only the builders that are used (13 KB instead of 160).
import * as Type from 'typebox';

/**
 * What the schema says of a key beside its type:
 * - `x-secret`: its text is a secret (of a record or of an untyped value: every text inside it);
 * - `x-later`: read and kept, but nothing in this version acts on it;
 * - `x-aliases`: other names that public configs use for the same key.
 */
export type KeyNotes = {
  readonly description: string;
  readonly 'x-secret'?: true;
  readonly 'x-later'?: true;
  readonly 'x-aliases'?: readonly string[];
};

/** Where a secret is instead of the secret itself. */
export const SecretRefSchema = Type.Object(
  {
    source: Type.Enum(['env', 'file', 'exec'], {
      description: 'Where the secret is: an environment variable, a file, or the output of a program.',
    }),
    provider: Type.Optional(
      Type.String({ maxLength: 64, description: 'A name from `secrets.providers`; absent or `default`: none.' }),
    ),
    id: Type.String({
      minLength: 1,
      maxLength: 1024,
      description:
        'For `env` the variable; for `file` a path in the config folder, or with a provider a JSON pointer into its file.',
    }),
  },
  { description: 'A reference to a secret.' },
);

/** A secret as text (best written `${VARIABLE}`) or as a reference. */
export const secret = (description: string) =>
  Type.Union([Type.String({ minLength: 1, maxLength: 16_384 }), SecretRefSchema], { description, 'x-secret': true });

/** A key that public configs have and that nothing in this version acts on; any value is accepted. */
export const later = (description: string, notes: Partial<KeyNotes> = {}) =>
  Type.Optional(Type.Unknown({ ...notes, description, 'x-later': true }));

/** `later` for several keys whose names say enough. One schema for all of them: there are hundreds, and each costs time at start. */
export function laterKeys<const Names extends readonly string[]>(
  keys: Names,
): { [Name in Names[number]]: ReturnType<typeof later> } {
  return Object.fromEntries(keys.map((name) => [name, LATER])) as {
    [Name in Names[number]]: ReturnType<typeof later>;
  };
}

const LATER = later('Accepted.');

export const flag = (fallback: boolean, description: string) => Type.Boolean({ default: fallback, description });

export const names = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { default: [], maxItems: 1_000, description });

/** One model, or a first choice with others to fall back on. */
export const modelChoice = (description: string) =>
  Type.Optional(
    Type.Union(
      [
        Type.String({ minLength: 1, maxLength: 256 }),
        Type.Object({
          primary: Type.Optional(
            Type.String({ minLength: 1, maxLength: 256, description: '`provider/model` or an alias.' }),
          ),
          fallbacks: names(
            'Models to try in order when the primary fails. Read and kept; this version does not switch by itself.',
          ),
          ...laterKeys(['timeoutMs']),
        }),
      ],
      { description },
    ),
  );

/** Keys of a narrower scope: absent means as in the wider one, so their defaults are not filled in. */
export function inherited<Keys extends Record<string, Type.TSchema>>(
  keys: Keys,
): { [Key in keyof Keys]: Type.TOptional<Keys[Key]> } {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, Type.Optional(key)])) as {
    [Key in keyof Keys]: Type.TOptional<Keys[Key]>;
  };
}

const ANY_NAME = '^.*$';

/**
 * A table with names from outside as keys. Written out, because TypeBox's own `Record` brings its whole type engine along (90 KB).
 * @param names the names that are allowed, as a regular expression
 */
export const record = <Item extends Type.TSchema>(
  item: Item,
  notes: KeyNotes & { readonly default?: Readonly<Record<string, never>>; readonly names?: string },
) => {
  const { names: pattern = ANY_NAME, ...rest } = notes;
  return Type.Unsafe<Record<string, Type.Static<Item>>>({
    type: 'object',
    patternProperties: { [pattern]: item },
    ...rest,
  });
};
