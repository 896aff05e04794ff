import { loadProvider } from '#providers';
import type { FamilyUnderTest } from './play.ts';

export const OPENAI_CHAT: FamilyUnderTest = {
  name: 'openai-chat',
  api: 'openai-completions',
  basePath: '/v1',
  model: 'mock',
  make: (options) => loadProvider('openai-completions', options),
};

export const ANTHROPIC: FamilyUnderTest = {
  name: 'anthropic',
  api: 'anthropic-messages',
  basePath: '/v1',
  model: 'claude-sonnet-4-5',
  make: (options) => loadProvider('anthropic-messages', options),
};

export const GOOGLE: FamilyUnderTest = {
  name: 'google',
  api: 'google-generative-ai',
  basePath: '/v1beta',
  model: 'gemini-2.5-flash',
  make: (options) => loadProvider('google-generative-ai', options),
};
