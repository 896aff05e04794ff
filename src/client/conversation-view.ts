// What a conversation looks like: stored messages, the run under way and what only this client knows, as one list.
import type { AssistantMessage, ToolCallBlock, ToolResultMessage, Usage } from '#domain';
import { addUsage, textOf, withoutStamp } from '#domain';
import {
  type AnswerItem,
  type AnswerPart,
  type Conversation,
  type ConversationItem,
  contentText,
  type Failure,
  type PersonItem,
  type SentMessage,
  statusOf,
  type ToolPart,
} from './conversation.ts';
import type { HistoryMessage } from './methods.ts';

/** Everything to show, oldest first. */
export const itemsOf = (now: Conversation): readonly ConversationItem[] => new ConversationView().items(now);

/**
 * As {@link itemsOf} for a conversation that goes on: items of stored messages are the very same objects as before while nothing
 * of them changes, so that a page draws only what did.
 */
export class ConversationView {
  #settled: readonly ConversationItem[] = [];
  #basis: readonly unknown[] = [];

  items(now: Conversation): readonly ConversationItem[] {
    const calls = now.live?.parts.filter((part) => part.kind === 'tool') ?? [];
    const basis = [now.messages, now.tools, now.failure, now.live === undefined, ...calls];
    if (basis.length !== this.#basis.length || basis.some((fact, index) => fact !== this.#basis[index])) {
      this.#settled = settledItems(now);
      this.#basis = basis;
    }
    return withUnsettled([...this.#settled], now);
  }
}

function withUnsettled(items: ConversationItem[], now: Conversation): readonly ConversationItem[] {
  const { live, failure } = now;
  // What waits for the run under way, or for the connection, stands below the run's words.
  const isPlaced = (sent: SentMessage) => !live || sent.runId === live.runId || sent.status === 'answered';
  insertByTime(items, [...now.sent.filter(isPlaced).map((sent) => personOf(sent, 'sent')), ...now.notices]);
  if (live) appendLive(items, now);
  else if (failure && !showsFailure(items)) insertByTime(items, [failedAnswer(failure)]);
  for (const sent of now.sent) if (!isPlaced(sent)) items.push(personOf(sent, 'waiting'));
  return items;
}

function personOf(sent: SentMessage, accepted: 'sent' | 'waiting'): PersonItem {
  const status = sent.status === 'accepted' || sent.status === 'answered' ? accepted : sent.status;
  return {
    kind: 'person',
    key: `person:${sent.runId}`,
    text: sent.text,
    images: 0,
    at: sent.at,
    status,
    ...(sent.failure ? { failure: sent.failure } : {}),
  };
}

function insertByTime(items: ConversationItem[], extras: readonly ConversationItem[]): void {
  for (const extra of extras) {
    let place = items.length;
    while (place > 0 && items[place - 1]!.at > extra.at) place -= 1;
    items.splice(place, 0, extra);
  }
}

function settledItems(now: Conversation): ConversationItem[] {
  const items: ConversationItem[] = [];
  const runIds = new Set<string>();
  for (const [index, message] of now.messages.entries()) {
    const key = message.__openclaw?.id ?? `at:${index}`;
    if (message.role === 'user') {
      // A transcript from elsewhere may name one run twice; a key is one item's alone.
      const runId = message.runId !== undefined && !runIds.has(message.runId) ? message.runId : key;
      runIds.add(runId);
      items.push(storedPerson(message, runId));
    } else if (message.role === 'assistant') appendAssistant(items, message, key, now);
    else completeTool(items, message, now);
  }
  return items;
}

function storedPerson(message: Extract<HistoryMessage, { role: 'user' }>, key: string): PersonItem {
  const images = typeof message.content === 'string' ? 0 : message.content.filter((b) => b.type === 'image').length;
  const text = withoutStamp(textOf(message));
  return { kind: 'person', key: `person:${key}`, text, images, at: message.timestamp, status: 'sent' };
}

function appendAssistant(items: ConversationItem[], message: AssistantMessage, key: string, now: Conversation): void {
  const open = openAnswer(items, `answer:${key}`, message.timestamp);
  const parts = message.content.flatMap((block): AnswerPart[] => {
    if (block.type === 'text') return block.text === '' ? [] : [{ kind: 'text', text: block.text, streaming: false }];
    if (block.type === 'toolCall') return [callPart(block, now, message.timestamp)];
    return block.redacted || block.thinking === ''
      ? []
      : [{ kind: 'thinking', text: block.thinking, streaming: false }];
  });
  const { failure: _failure, ...rest } = open;
  const failed = message.stopReason === 'error';
  items[items.length - 1] = {
    ...rest,
    parts: [...open.parts, ...parts],
    outcome: failed ? 'failed' : message.stopReason === 'aborted' ? 'aborted' : 'answered',
    ...(failed ? { failure: failureOf(message, now) } : {}),
    provider: message.provider,
    model: message.model,
    usage: open.usage ? addUsage(open.usage, wholeUsage(message.usage)) : wholeUsage(message.usage),
  };
}

/** The history tells of a cost only its total, and of a foreign transcript maybe nothing. */
function wholeUsage(usage: Partial<Usage> | undefined): Usage {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, totalTokens = 0 } = usage ?? {};
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0, ...usage?.cost };
  return { input, output, cacheRead, cacheWrite, totalTokens, cost };
}

function failureOf(message: AssistantMessage, now: Conversation): Failure {
  const stored = message.errorMessage ?? 'The model’s answer failed.';
  return now.failure && Math.abs(now.failure.at - message.timestamp) < 60_000 ? now.failure : { message: stored };
}

function callPart(block: ToolCallBlock, now: Conversation, at: number): ToolPart {
  const facts = now.tools[block.id];
  const live = now.live?.parts.find((part): part is ToolPart => part.kind === 'tool' && part.callId === block.id);
  if (live) return live;
  return {
    kind: 'tool',
    callId: block.id,
    name: block.name,
    arguments: block.arguments,
    // Without a result and without a run under way nobody will ever bring one.
    status: now.live ? 'running' : 'aborted',
    output: '',
    startedAt: facts?.startedAt ?? at,
  };
}

function completeTool(items: ConversationItem[], message: ToolResultMessage, now: Conversation): void {
  const answer = items.at(-1);
  if (answer?.kind !== 'answer') return;
  const parts = answer.parts.map((part): AnswerPart => {
    if (part.kind !== 'tool' || part.callId !== message.toolCallId) return part;
    const status = now.tools[part.callId]?.status ?? statusOf({ outcome: message.outcome, isError: message.isError });
    return { ...part, status, output: contentText(message.content), endedAt: message.timestamp };
  });
  items[items.length - 1] = { ...answer, parts };
}

/** Consecutive model responses are shown as one answer. */
function openAnswer(items: ConversationItem[], key: string, at: number): AnswerItem {
  const last = items.at(-1);
  if (last?.kind === 'answer') return last;
  // The person's message names the answer, so a live one keeps its place on the page when it becomes a stored one.
  const stable = last?.kind === 'person' ? `answer:${last.key}` : key;
  const answer: AnswerItem = { kind: 'answer', key: stable, parts: [], at, outcome: 'answered' };
  items.push(answer);
  return answer;
}

function appendLive(items: ConversationItem[], now: Conversation): void {
  const live = now.live!;
  const open = openAnswer(items, `answer:live:${live.runId}`, live.startedAt);
  const stored = new Set(open.parts.flatMap((part) => (part.kind === 'tool' ? [part.callId] : [])));
  const parts = live.parts.filter((part) => part.kind !== 'tool' || !stored.has(part.callId));
  const failed = now.failure?.runId === live.runId ? { failure: now.failure } : {};
  const outcome = live.outcome ?? 'running';
  items[items.length - 1] = { ...open, ...failed, parts: [...open.parts, ...parts], outcome };
}

function showsFailure(items: readonly ConversationItem[]): boolean {
  const last = items.findLast((item) => item.kind === 'answer');
  return last?.kind === 'answer' && last.failure !== undefined;
}

const failedAnswer = (failure: NonNullable<Conversation['failure']>): AnswerItem => ({
  kind: 'answer',
  key: `answer:failed:${failure.runId}`,
  parts: [],
  at: failure.at,
  outcome: 'failed',
  failure,
});
