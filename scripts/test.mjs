// Runs the test files with Node's own runner: `npm test` all, `npm test -- src/cli boundary` those whose path holds one of the
// words. What starts with `-` goes to the runner (`npm test -- --test-name-pattern=M-36`).
import { spawn } from 'node:child_process';
import { accessSync, constants, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const NODE_MAJOR_MIN = 24;
const root = fileURLToPath(new URL('..', import.meta.url));
const words = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
const runnerOptions = process.argv.slice(2).filter((argument) => argument.startsWith('-'));

const files = ['src', 'test']
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, file)))
  .filter((file) => /\.test\.ts$/.test(file) && !file.startsWith(join('test', 'world') + sep))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(fromRoot(word))))
  .sort();
if (files.length === 0)
  stop(`no test file's path holds ${words.join(' or ')}`, 'name a folder or a part of a file name');

const child = spawn(
  nodeProgram(),
  ['--test', '--test-reporter=spec', `--test-concurrency=${availableParallelism()}`, ...runnerOptions, ...files],
  { cwd: root, stdio: 'inherit' },
);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => stop(`the test runner did not start: ${error.message}`, 'run `npm ci`'));
child.on('exit', (code, signal) => process.exit(signal ? 1 : code));

/** A path completed by the shell, from wherever it was typed, as the list above names it; any other word stays. */
function fromRoot(word) {
  const path = relative(root, join(process.cwd(), word));
  return word.includes(sep) && !path.startsWith('..') ? path : word;
}

/** This Node, or the checkout's own when this one cannot run the sources. */
function nodeProgram() {
  if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN) return process.execPath;
  const own = join(root, 'node_modules', 'node', 'bin', 'node');
  try {
    accessSync(own, constants.X_OK);
  } catch {
    stop(
      `the tests need Node ${NODE_MAJOR_MIN} or newer and this is ${process.version}`,
      'run `npm ci`, which brings one along',
    );
  }
  return own;
}

function stop(what, next) {
  console.error(`✗ ${what} — ${next}`);
  process.exit(1);
}
