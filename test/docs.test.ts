// What the pages say of the code, held against the code.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ERROR_CODES } from '#base';

const page = (name: string) => readFileSync(join(import.meta.dirname, '..', 'docs', name), 'utf8');

test('docs/errors.md has a row for every error code, and says truly whether to try again', () => {
  const rows = [...page('errors.md').matchAll(/^\| `([A-Z_]+)` \| ([^|]+) \| ([^|]+) \| (yes|no) \|$/gm)];
  const documented = Object.fromEntries(rows.map(([, code, , , again]) => [code, { retryable: again === 'yes' }]));
  assert.deepEqual(documented, { ...ERROR_CODES });
  assert.equal(rows.length, Object.keys(ERROR_CODES).length, 'a code has two rows');
  assert.equal(
    rows.length,
    (page('errors.md').match(/^\| `/gm) ?? []).length,
    'a row is not in the form of the others',
  );
});
