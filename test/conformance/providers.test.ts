import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MODEL_APIS } from '#contract';
import { loadProvider, providerLoaders } from '#providers';
import { ANTHROPIC, GOOGLE, OPENAI_CHAT } from './families.ts';
import { providerConformance } from './provider.ts';

providerConformance(OPENAI_CHAT);
providerConformance(ANTHROPIC);
providerConformance(GOOGLE);

test('M-23: every wire format has a provider that says it speaks it', async () => {
  assert.deepEqual(Object.keys(providerLoaders).sort(), [...MODEL_APIS].sort());
  for (const api of MODEL_APIS) assert.equal((await loadProvider(api)).api, api);
});
