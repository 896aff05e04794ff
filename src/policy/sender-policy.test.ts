import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SenderRule, senderMayStartRun } from './sender-policy.ts';

const rule: SenderRule = { channel: 'wharf', account: 'home', sender: 'U7' };
const cases = [
  { name: 'the operator', id: 'operator', owner: true, allowed: true },
  { name: 'the operator, where nobody is named', id: '', owner: true, rules: [], allowed: true },
  { name: 'who is named', id: 'U7', allowed: true },
  { name: 'nobody is named', id: 'U7', rules: [], allowed: false },
  { name: 'another id', id: 'U8', allowed: false },
  { name: 'the same id in another case', id: 'u7', allowed: false },
  { name: 'an id that ends the same', id: 'xU7', allowed: false },
  { name: 'another account', id: 'U7', account: 'work', allowed: false },
  { name: 'no account', id: 'U7', account: undefined, allowed: false },
  { name: 'another channel', id: 'U7', channel: 'quay', allowed: false },
  { name: 'an empty id, even where it is named', id: '', rules: [{ ...rule, sender: '' }], allowed: false },
  { name: 'an id called operator', id: 'operator', allowed: false },
];
for (const { name, id, owner = false, allowed, rules = [rule], channel = 'wharf', ...rest } of cases) {
  test(`T6: ${name} ${allowed ? 'may' : 'may not'} start a run`, () => {
    const account = 'account' in rest ? rest.account : 'home';
    const place = account === undefined ? { channel } : { channel, account };
    const decision = senderMayStartRun({ sender: { id, owner }, ...place }, rules);
    assert.equal(decision.allowed, allowed);
    assert.notEqual(decision.reason, '');
  });
}

test('T6: without rules only the operator', () => {
  const { allowed, reason } = senderMayStartRun({ sender: { id: 'U7', owner: false }, channel: 'wharf' });
  assert.deepEqual([allowed, reason], [false, 'nobody has allowed U7 to talk here on wharf']);
});
