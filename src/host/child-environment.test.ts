import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isGatewayError } from '#base';
import { checkedOverrides, childEnvironment } from './index.ts';

const SOURCE = {
  PATH: '/usr/bin',
  HOME: '/home/anna',
  LANG: 'C.UTF-8',
  LC_TIME: 'de_DE.UTF-8',
  TERM: 'xterm',
  SOME_PROVIDER_API_KEY: 'canary-key',
  NODE_OPTIONS: '--require x',
  LD_PRELOAD: '/x.so',
  EMPTY: undefined,
};

test('a child gets what is on the list and what its call sets, and no key of a provider', () => {
  assert.deepEqual(childEnvironment(SOURCE, { GREETING: 'hello' }), {
    PATH: '/usr/bin',
    HOME: '/home/anna',
    LANG: 'C.UTF-8',
    LC_TIME: 'de_DE.UTF-8',
    TERM: 'xterm',
    GREETING: 'hello',
  });
  assert.equal(childEnvironment({})['PATH'], '/usr/local/bin:/usr/bin:/bin');
});

const REFUSED = [
  ...['BASH_ENV', 'Ld_Preload', 'PATH', 'A=B', 'NODE_OPTIONS', 'path', 'DYLD_INSERT_LIBRARIES', 'ENV', 'PS4', 'IFS'],
  ...['SHELLOPTS', 'GIT_SSH_COMMAND', 'PYTHONPATH', 'PYTHONSTARTUP', 'PERL5LIB', 'RUBYOPT', 'HTTPS_PROXY', 'no_proxy'],
  ...['NPM_CONFIG_REGISTRY', 'PIP_INDEX_URL', 'RUSTC_WRAPPER', 'CARGO_HOME', 'SSL_CERT_FILE', 'PAGER', 'LESSOPEN'],
  ...['EDITOR', 'KUBECONFIG', 'AWS_CONFIG_FILE', 'MY_CA_BUNDLE', 'HOME', 'SHELL', 'REINS_STATE_DIR', 'GLIBC_TUNABLES'],
  ...['lower', '1A', 'A-B', 'A B', '', 'Ä', 'A\nB', '__proto__', 'A'.repeat(65)],
];
for (const name of REFUSED) {
  test(`B31: the variable ${JSON.stringify(name).slice(0, 40)} is refused by name, not dropped`, () => {
    const overrides = Object.fromEntries([
      ['GOOD', 'yes'],
      [name, 'x'],
    ]);
    for (const check of [() => checkedOverrides(overrides), () => childEnvironment(SOURCE, overrides)]) {
      assert.throws(check, (error) => {
        assert.ok(isGatewayError(error, 'ENV_REFUSED'));
        assert.doesNotMatch(error.message, /\n/);
        if (/^[ -~]+$/.test(name)) assert.ok(error.message.includes(name.slice(0, 50)), error.message);
        return true;
      });
    }
  });
}

test('B31 control: ordinary variables are set as they are', () => {
  const overrides = { A: '', CI: 'true', _X9: 'a=b\nc', GREETING: "'$HOME'" };
  assert.deepEqual(checkedOverrides(overrides), overrides);
});

test('values are text without NUL, and bounded in size and number', () => {
  const bad = [
    { A: 5 },
    { A: 'a\0b' },
    { A: 'x'.repeat(40_000) },
    Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`A${i}`, ''])),
  ];
  for (const overrides of bad) assert.throws(() => checkedOverrides(overrides), { code: 'ENV_REFUSED' });
});
