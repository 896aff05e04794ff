import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord, parseJson } from '#base';

/** The version of the package that this file belongs to: it runs from `src/cli` as well as from `dist` or a part of it. */
export function ownVersion(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (!existsSync(file)) continue;
    const facts = parseJson(readFileSync(file, 'utf8'));
    if (isRecord(facts) && facts['name'] === 'reins') return String(facts['version']);
  }
  return 'unknown';
}
