// The house rules as a test. Change a table in the commit that changes the design, and say why in docs/ARCHITECTURE.md.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { test } from 'node:test';
import { parseSync } from 'oxc-parser';

const root = join(import.meta.dirname, '..');
const src = join(root, 'src');

/** folder → folders it may import. A folder absent here does not exist. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  host: ['base'],
  domain: ['base'],
  protocol: ['base', 'domain'],
  contract: ['base', 'domain'],
  config: ['base', 'host', 'domain'],
  store: ['base', 'host', 'domain'],
  policy: ['base', 'domain', 'contract', 'store'],
  sessions: ['base', 'domain', 'store'],
  models: ['base', 'host', 'domain', 'contract', 'store'],
  agent: ['base', 'domain', 'contract'],
  aisdk: ['base', 'domain', 'contract'],
  providers: ['base', 'host', 'domain', 'contract', 'aisdk'],
  tools: ['base', 'host', 'domain', 'contract'],
  dispatch: ['base', 'domain', 'contract', 'store', 'policy', 'sessions', 'models', 'agent'],
  gateway: [
    'base',
    'host',
    'domain',
    'protocol',
    'contract',
    'config',
    'store',
    'policy',
    'sessions',
    'models',
    'dispatch',
  ],
  client: ['base', 'domain', 'protocol'],
  app: [
    ...['base', 'host', 'domain', 'protocol', 'contract', 'config', 'store', 'policy', 'sessions', 'models', 'agent'],
    ...['dispatch', 'providers', 'tools', 'gateway'],
  ],
  cli: ['base', 'host', 'domain', 'protocol', 'config', 'client', 'app'],
};
/** Adapters live side by side and never know each other. */
const STRANGERS = new Set(['providers', 'tools']);
/** Powers of the operating system, and the one folder that holds each. */
const POWERS: Record<string, readonly string[]> = { 'node:child_process': ['host'], 'node:sqlite': ['store'] };
/** Loaded by the web UI as they are. */
const BROWSER_SAFE = new Set(['base', 'domain', 'protocol', 'client']);
const JUNK_DRAWERS = /^(utils?|helpers?|common|shared|misc)(\.ts)?$/;

type Import = { readonly from: string; readonly folder: string; readonly target: string; readonly line: string };

const sources = globSync('**/*.{ts,tsx}', { cwd: src }).sort();

function targetsOf(file: string, text: string): string[] {
  const { module, errors } = parseSync(file, text);
  assert.deepEqual(errors, [], `${file} does not parse`);
  const dynamic = module.dynamicImports.map(
    (i) => /^\s*['"]([^'"]+)['"]/.exec(text.slice(i.moduleRequest.start))?.[1] ?? '',
  );
  const reexports = module.staticExports.flatMap((e) => e.entries.flatMap((x) => x.moduleRequest?.value ?? []));
  return [...module.staticImports.map((i) => i.moduleRequest.value), ...reexports, ...dynamic];
}

/** Tests stand beside the code and may use the outside world of `test/world` beside what their folder may import. */
const isTestsOwn = (file: string, target: string) => file.endsWith('.test.ts') && target === '#world';

const imports: Import[] = sources.flatMap((file) =>
  targetsOf(file, readFileSync(join(src, file), 'utf8'))
    .filter((target) => !isTestsOwn(file, target))
    .map((target) => ({ from: file, folder: file.split(sep)[0] ?? '', target, line: `src/${file} → ${target}` })),
);

const complaints = (check: (i: Import) => boolean): string[] => imports.filter(check).map((i) => i.line);

test('every folder has a row, and the rows have no cycle', () => {
  const folders = globSync('*/', { cwd: src }).map((f) => f.replace(/[\\/]$/, ''));
  assert.deepEqual(folders.sort(), Object.keys(MAY_IMPORT).sort());
  const placed = new Set<string>();
  for (let before = -1; before !== placed.size; ) {
    before = placed.size;
    for (const [f, needs] of Object.entries(MAY_IMPORT)) if (needs.every((n) => placed.has(n))) placed.add(f);
  }
  assert.deepEqual(
    Object.keys(MAY_IMPORT).filter((f) => !placed.has(f)),
    [],
  );
});

test('every folder has a door of explicit names', () => {
  for (const folder of Object.keys(MAY_IMPORT)) {
    const door = readFileSync(join(src, folder, 'index.ts'), 'utf8');
    assert.doesNotMatch(door, /export \*/, `src/${folder}/index.ts`);
  }
});

test('a folder imports only what its row allows', () => {
  assert.deepEqual(
    complaints(
      (i) => i.target.startsWith('#') && !MAY_IMPORT[i.folder]?.includes(i.target.slice(1).split('/')[0] ?? ''),
    ),
    [],
  );
});

test('relative imports stay in the folder; between folders go through #name, never deeper', () => {
  assert.deepEqual(
    complaints((i) => i.target.startsWith('.') && relative(i.folder, join(dirname(i.from), i.target)).startsWith('..')),
    [],
  );
  assert.deepEqual(
    complaints((i) => i.target.startsWith('#') && i.target.includes('/')),
    [],
  );
});

test('adapters do not import their neighbours', () => {
  const unit = (path: string) => path.split(sep)[1];
  assert.deepEqual(
    complaints(
      (i) =>
        STRANGERS.has(i.folder) &&
        i.target.startsWith('.') &&
        unit(i.from) !== 'index.ts' &&
        unit(join(dirname(i.from), i.target)) !== unit(i.from),
    ),
    [],
  );
});

test('powers of the operating system stay in their folder', () => {
  assert.deepEqual(
    complaints((i) => i.target in POWERS && !POWERS[i.target]!.includes(i.folder)),
    [],
  );
});

test('what the browser loads needs no Node', () => {
  assert.deepEqual(
    complaints((i) => BROWSER_SAFE.has(i.folder) && i.target.startsWith('node:')),
    [],
  );
});

test('no junk drawers, no unnumbered to-dos, no swallowed errors', () => {
  for (const file of sources) {
    for (const part of file.split(sep)) assert.doesNotMatch(part, JUNK_DRAWERS, file);
    const text = readFileSync(join(src, file), 'utf8');
    assert.doesNotMatch(text, /\b(TODO|FIXME|XXX)\b(?! ?\(#\d+\))/, file);
    assert.doesNotMatch(text, /catch\s*(\([^)]*\))?\s*\{\s*\}/, `${file}: an empty catch hides a defect`);
  }
});

test('the web UI imports only what is safe in a browser', () => {
  const web = join(root, 'web', 'src');
  for (const file of globSync('**/*.{ts,tsx}', { cwd: web })) {
    for (const target of targetsOf(file, readFileSync(join(web, file), 'utf8'))) {
      if (target.startsWith('#')) assert.ok(BROWSER_SAFE.has(target.slice(1)), `web/src/${file} → ${target}`);
      assert.ok(!target.startsWith('node:'), `web/src/${file} → ${target}`);
    }
  }
});
