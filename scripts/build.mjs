// Builds the release: `dist/` (the CLI and gateway, split so that a command loads only what it needs, dependencies inside) and
// the web chat (`web/dist/`, and the same in `dist/web/` for the package).
//   --if-tools   for npm's `prepare`: an install without the build tools is not an error, it just has nothing to do
//   --into=PATH  everything there instead, and only there
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const options = process.argv.slice(2);

const unknown = options.filter((option) => option !== '--if-tools' && !/^--into=./.test(option));
if (unknown.length > 0) {
  console.error(`✗ unknown option ${unknown[0]} — there are --if-tools and --into=PATH`);
  process.exit(1);
}
const into = options.find((option) => option.startsWith('--into='))?.slice('--into='.length);
if (!hasTool('esbuild') || !hasTool('vite')) {
  if (options.includes('--if-tools')) process.exit(0);
  console.error('✗ esbuild and vite are not installed — run `npm ci` (with development packages) first');
  process.exit(1);
}

const startedAt = new Date();
const dist = into === undefined ? join(root, 'dist') : resolve(into);
// The whole folder goes, and with it the stamp and the compile cache: a build that fails half way must not look finished.
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true, mode: 0o755 });
const bundled = await bundleProgram();
await buildWeb();
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
// Written last, dated back to the start: the launcher compares the sources with it, and a change made during the build is newer.
const stamp = join(dist, 'stamp.json');
writeFileSync(stamp, `${JSON.stringify({ version })}\n`);
utimesSync(stamp, startedAt, startedAt);
console.log(
  `✓ built ${version}: ${bundled.files} files, ${Math.round(bundled.bytes / 1024)} KB of code, in ${Date.now() - startedAt.getTime()} ms`,
);

/** Of this checkout: one that happens to be installed somewhere above builds something else. */
function hasTool(name) {
  return existsSync(join(root, 'node_modules', name, 'package.json'));
}

async function bundleProgram() {
  const { build } = await import('esbuild');
  const result = await build({
    absWorkingDir: root,
    entryPoints: { cli: 'src/cli/index.ts' },
    outdir: dist,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    // Read only when someone runs Node with --enable-source-maps.
    sourcemap: 'linked',
    chunkNames: 'parts/[name]-[hash]',
    metafile: true,
    logLevel: 'warning',
    // Packages written as CommonJS ask for Node's own modules with `require`, which a module does not have by itself.
    banner: { js: "import{createRequire as $require}from'node:module';const require=$require(import.meta.url);" },
    // Faster and slower variants that `ws` tries and does without.
    external: ['bufferutil', 'utf-8-validate'],
  });
  const outputs = Object.entries(result.metafile.outputs).filter(([name]) => name.endsWith('.js'));
  return { files: outputs.length, bytes: outputs.reduce((sum, [, output]) => sum + output.bytes, 0) };
}

async function buildWeb() {
  const { build } = await import('vite');
  const web = join(dist, 'web');
  const outDir = into === undefined ? join(root, 'web', 'dist') : web;
  await build({ root: join(root, 'web'), logLevel: 'warn', build: { outDir, emptyOutDir: true } });
  if (outDir !== web) cpSync(outDir, web, { recursive: true });
}
