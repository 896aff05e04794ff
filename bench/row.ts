/** One line of the result. */
export type Row = {
  readonly id: string;
  readonly name: string;
  /** What the gateway took or needed. */
  readonly measured: Figure;
  /** What it is compared with, measured in the same run. */
  readonly reference?: Figure & { readonly what: string };
  /** The comparison that the target is about. */
  readonly compared?: Figure;
  readonly target?: Target;
  readonly note?: string;
};

export type Unit = 'ms' | 'MiB' | '×' | '%' | 'turns/s' | '';
export type Figure = { readonly value: number; readonly unit: Unit };
export type Target = { readonly atMost: number } | { readonly atLeast: number };

export const figure = (value: number, unit: Unit): Figure => ({ value: Math.round(value * 100) / 100, unit });

/** What the target is held against: the comparison where there is one. Undefined without a target. */
export function isMet(row: Row): boolean | undefined {
  if (!row.target) return undefined;
  const { value } = row.compared ?? row.measured;
  return 'atMost' in row.target ? value <= row.target.atMost : value >= row.target.atLeast;
}
