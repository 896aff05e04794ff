import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXEC_ASK, EXEC_EFFECTS, EXEC_SECURITY, effectsOf } from './exec-rule.ts';

const STRICTNESS = ['run', 'ask', 'refuse'];

const cases = [
  { name: 'the default: config "ask", no file', config: 'allowlist on-miss', file: '', expect: 'run ask' },
  { name: 'a file can forbid', config: 'full off', file: 'deny', expect: 'refuse refuse' },
  { name: 'a file cannot permit', config: 'deny off', file: 'full off', expect: 'refuse refuse' },
  {
    name: 'a file that says full does not widen the default',
    config: 'allowlist on-miss',
    file: 'full off',
    expect: 'run ask',
  },
  {
    name: 'a file that asks does not widen a refusal',
    config: 'allowlist off',
    file: ' on-miss',
    expect: 'run refuse',
  },
  { name: 'a file that always asks, over a refusal', config: 'allowlist off', file: ' always', expect: 'ask refuse' },
  { name: 'a file that asks, over full', config: 'full off', file: 'allowlist on-miss', expect: 'run ask' },
  { name: 'a file that refuses, over full', config: 'full off', file: 'allowlist', expect: 'run refuse' },
  { name: 'a file that always asks, over full', config: 'full off', file: ' always', expect: 'ask ask' },
  {
    name: 'a config that always asks, over a file that never does',
    config: 'full always',
    file: 'full off',
    expect: 'ask ask',
  },
] as const;
for (const { name, config, file, expect } of cases) {
  test(`exec: ${name}`, () => {
    const [security, ask] = config.split(' ') as [keyof typeof EXEC_EFFECTS, 'off'];
    const [fileSecurity, fileAsk] = file.split(' ') as ['deny' | '', 'off' | undefined];
    const { listed, unlisted } = effectsOf(
      { security, ask, isExplicit: true },
      { ...(fileSecurity ? { security: fileSecurity } : {}), ...(fileAsk ? { ask: fileAsk } : {}) },
    );
    assert.equal(`${listed} ${unlisted}`, expect);
  });
}

test('exec: whatever config and file say, the answer is never milder than either', () => {
  for (const security of EXEC_SECURITY)
    for (const ask of EXEC_ASK)
      for (const fileSecurity of EXEC_SECURITY)
        for (const fileAsk of EXEC_ASK) {
          const both = effectsOf({ security, ask, isExplicit: true }, { security: fileSecurity, ask: fileAsk });
          for (const one of [EXEC_EFFECTS[security][ask], EXEC_EFFECTS[fileSecurity][fileAsk]]) {
            const line = `${security} ${ask} ${fileSecurity} ${fileAsk}`;
            assert.ok(STRICTNESS.indexOf(both.listed) >= STRICTNESS.indexOf(one.listed), line);
            assert.ok(STRICTNESS.indexOf(both.unlisted) >= STRICTNESS.indexOf(one.unlisted), line);
          }
        }
});

const fallbacks = [
  { config: undefined, file: undefined, expect: 'deny' },
  { config: undefined, file: 'full', expect: 'deny' },
  { config: 'full', file: undefined, expect: 'full' },
  { config: 'full', file: 'allowlist', expect: 'allowlist' },
  { config: 'allowlist', file: 'full', expect: 'allowlist' },
] as const;
for (const { config, file, expect } of fallbacks) {
  test(`exec: askFallback ${config ?? 'absent'} in the config and ${file ?? 'absent'} in the file is ${expect}`, () => {
    const rule = { security: 'allowlist', ask: 'always', isExplicit: false } as const;
    const { fallback } = effectsOf(
      config === undefined ? rule : { ...rule, askFallback: config },
      file === undefined ? {} : { askFallback: file },
    );
    assert.equal(fallback, expect);
  });
}
