import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOfTheShell, runsOtherCode, startsByOption } from './programs.ts';

const running = [
  'env time nice nohup timeout stdbuf setsid xargs find script busybox sudo doas flock watch ssh git make awk sed tar rsync',
  'npx npm pnpm yarn pip uvx node python perl ruby sh bash zsh dash',
  'python3 python3.11 python3.11-dbg node24 perl5.36.0 perl5.36-x86_64-linux-gnu vim.basic ruby3.1 lua5.4 php8.2 gcc-12 pypy3',
  'BASH Python.exe npm.cmd /usr/bin/env /opt/x/node C:\\Windows\\cmd.exe git-upload-pack ld-linux-x86-64.so.2 busybox-static',
].flatMap((line) => line.split(' '));
for (const name of running) test(`T8: ${name} runs other code`, () => assert.ok(runsOtherCode(name)));

const plain =
  'echo cat ls grep head tail wc sort sha256sum base64 b3sum jq curl shellcheck nodes envsubst timedatectl makepkg-x my-tool'.split(
    ' ',
  );
for (const name of plain) test(`${name} does not`, () => assert.ok(!runsOtherCode(name)));

test('what only a shell knows', () => {
  assert.deepEqual(['cd', 'eval', '.', 'source', 'exec', 'echo', 'pwd', 'test'].map(isOfTheShell), [
    ...[true, true, true, true, true],
    ...[false, false, false],
  ]);
});

const options = [
  { line: 'sort --compress-program=x', starts: true },
  { line: 'sort --co x', starts: true },
  { line: '/usr/bin/sort --compress-prog=x', starts: true },
  { line: 'split --filter=x', starts: true },
  { line: 'rg --pre x y', starts: true },
  { line: 'sort --check', starts: false },
  { line: 'sort -- x', starts: false },
  { line: 'echo --compress-program=x', starts: false },
];
for (const { line, starts } of options)
  test(`${line} ${starts ? 'starts' : 'does not start'} another`, () =>
    assert.equal(startsByOption(line.split(' ')), starts));
