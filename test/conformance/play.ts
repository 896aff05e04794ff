import assert from 'node:assert/strict';
import type { ModelEvent, ModelProfile, ModelRequest, Provider } from '#contract';
import type { AssistantContent, AssistantMessage, Message, ToolCallBlock } from '#domain';
import { NO_USAGE } from '#domain';
import type { ProviderOptions } from '#providers';
import type { ModelServer } from '#world';

/** What a family brings to the suite. */
export type FamilyUnderTest = {
  readonly name: string;
  readonly api: ModelProfile['api'];
  /** The path under the server's address that is the family's base URL. */
  readonly basePath: string;
  readonly model: string;
  make(options?: ProviderOptions): Promise<Provider>;
};

export const WRITE_TOOL = {
  name: 'write',
  description: 'Writes a file',
  parameters: {
    type: 'object',
    properties: { path: { type: 'string' }, content: { type: 'string' } },
    required: ['path', 'content'],
  },
} as const;

export function profileOf(family: FamilyUnderTest, changes: Partial<ModelProfile> = {}): ModelProfile {
  return {
    provider: 'somewhere',
    id: family.model,
    name: family.model,
    api: family.api,
    contextWindow: 64_000,
    maxTokens: 8_000,
    reasoning: true,
    input: ['text', 'image'],
    cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
    ...changes,
  };
}

export function requestOf(
  family: FamilyUnderTest,
  world: Pick<ModelServer, 'url'>,
  changes: Partial<ModelRequest> = {},
): ModelRequest {
  return {
    model: profileOf(family),
    access: { baseUrl: world.url + family.basePath, apiKey: 'key-for-tests' },
    system: 'You are helpful.',
    messages: [user('go')],
    tools: [WRITE_TOOL],
    thinking: 'off',
    maxOutputTokens: 4_000,
    ...changes,
  };
}

export const user = (content: Extract<Message, { role: 'user' }>['content']): Message => ({
  role: 'user',
  content,
  timestamp: 1,
});

export function answerOf(
  family: FamilyUnderTest,
  content: readonly AssistantContent[],
  changes: Partial<AssistantMessage> = {},
): AssistantMessage {
  return {
    role: 'assistant',
    content,
    api: family.api,
    provider: 'somewhere',
    model: family.model,
    usage: NO_USAGE,
    stopReason: 'stop',
    timestamp: 2,
    ...changes,
  };
}

export const call = (id: string, name: string, args: Readonly<Record<string, unknown>>): ToolCallBlock => ({
  type: 'toolCall',
  id,
  name,
  arguments: args,
});

export const result = (id: string, name: string, text: string, changes: Partial<Message> = {}): Message =>
  ({
    role: 'toolResult',
    toolCallId: id,
    toolName: name,
    content: [{ type: 'text', text }],
    isError: false,
    timestamp: 3,
    ...changes,
  }) as Message;

export type Played = {
  readonly events: readonly ModelEvent[];
  readonly text: string;
  readonly thinking: string;
  readonly end: Extract<ModelEvent, { type: 'finish' | 'failure' }>;
};

/** Reads one response to its end and checks what holds for every response: one end, it is last, and nothing is thrown. */
export async function play(
  provider: Provider,
  request: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
): Promise<Played> {
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(request, signal)) events.push(event);
  const ends = events.filter((event) => event.type === 'finish' || event.type === 'failure');
  assert.equal(ends.length, 1, `one end, not ${JSON.stringify(ends)}`);
  assert.equal(events.at(-1), ends[0], 'the end is the last event');
  const joined = (type: ModelEvent['type']) =>
    events.map((event) => (event.type === type && 'text' in event ? event.text : '')).join('');
  return {
    events,
    text: joined('text-delta'),
    thinking: joined('thinking-delta'),
    end: ends[0] as Played['end'],
  };
}

export function finished(played: Played): Extract<ModelEvent, { type: 'finish' }> {
  assert.equal(played.end.type, 'finish', JSON.stringify(played.end));
  return played.end as Extract<ModelEvent, { type: 'finish' }>;
}

export function failureOf(played: Played): Extract<ModelEvent, { type: 'failure' }>['failure'] {
  assert.equal(played.end.type, 'failure', JSON.stringify(played.end));
  return (played.end as Extract<ModelEvent, { type: 'failure' }>).failure;
}

export const callsIn = (played: Played): readonly ToolCallBlock[] =>
  played.end.type === 'finish' ? played.end.content.filter((block) => block.type === 'toolCall') : [];

export const textIn = (played: Played): string =>
  played.end.type === 'finish'
    ? played.end.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    : '';
