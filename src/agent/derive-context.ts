import { estimateTokens } from '#base';
import type {
  AssistantMessage,
  Message,
  ToolCallBlock,
  ToolResultMessage,
  TranscriptEntry,
  UserMessage,
} from '#domain';
import { toolCallsOf } from '#domain';

/** How much of a branch a model may see. An exchange is a person's message and everything that answered it. */
export type WindowRule = {
  /** At least this many of the newest exchanges are kept, room permitting. */
  readonly exchanges: number;
  /** Estimated tokens of all messages together. */
  readonly tokens: number;
};

export type DerivedContext = {
  readonly messages: readonly Message[];
  readonly tokens: number;
  /** Exchanges that the window left out. */
  readonly left: number;
};

/**
 * What a model sees of a transcript: a pure function of the branch and the rule. The window moves in steps, not with every message, so
 * that the bytes sent before stay the bytes sent again and a provider's prompt cache hits.
 */
export function deriveContext(
  branch: readonly TranscriptEntry[],
  rule: WindowRule,
  memory: ContextMemory,
): DerivedContext {
  const exchanges = exchangesOf(branch, memory);
  const first = windowStart(exchanges, rule);
  const kept = exchanges.slice(first);
  const last = kept.at(-1);
  const messages = kept.flatMap((exchange) =>
    exchange === last ? trimmed(exchange, rule.tokens, memory) : exchange.messages,
  );
  return {
    messages: pairToolCalls(messages),
    tokens: kept.reduce((sum, exchange) => sum + exchange.tokens, 0),
    left: first,
  };
}

/** What is worked out once: of messages and entries, which never change, and of branches, which only grow. One per gateway. */
export class ContextMemory {
  readonly #weights = new WeakMap<Message, number>();
  readonly #notes = new WeakMap<TranscriptEntry, UserMessage>();
  readonly #inside = new WeakSet<Message>();
  readonly #folds = new WeakMap<readonly TranscriptEntry[], Fold>();

  /** Estimated tokens. */
  weightOf(message: Message): number {
    let tokens = this.#weights.get(message);
    if (tokens === undefined) {
      tokens = MESSAGE_OVERHEAD + contentTokens(message);
      this.#weights.set(message, tokens);
    }
    return tokens;
  }

  /** An entry of the gateway's own as the user message that a model sees: the same object every time. */
  noteOf(entry: TranscriptEntry, content: UserMessage['content'], place: 'start' | 'inside'): UserMessage {
    let message = this.#notes.get(entry);
    if (!message) {
      message = { role: 'user', content, timestamp: Date.parse(entry.timestamp) };
      this.#notes.set(entry, message);
      if (place === 'inside') this.#inside.add(message);
    }
    return message;
  }

  foldOf(branch: readonly TranscriptEntry[]): Fold | undefined {
    const fold = this.#folds.get(branch);
    return fold && fold.read <= branch.length ? fold : undefined;
  }

  keepFold(branch: readonly TranscriptEntry[], fold: Fold): void {
    this.#folds.set(branch, fold);
  }

  /** True for a note that belongs to the exchange it stands in. */
  isInside(message: Message): boolean {
    return this.#inside.has(message);
  }
}

const MESSAGE_OVERHEAD = 4;
const IMAGE_TOKENS = 1_200;

function contentTokens(message: Message): number {
  if (typeof message.content === 'string') return estimateTokens(message.content);
  return message.content.reduce((sum, block) => {
    if (block.type === 'text') return sum + estimateTokens(block.text);
    if (block.type === 'thinking') return sum + estimateTokens(block.thinking);
    if (block.type === 'image') return sum + IMAGE_TOKENS;
    return sum + estimateTokens(JSON.stringify(block.arguments)) + estimateTokens(block.name);
  }, 0);
}

/** How far a branch was read, and what came of it. */
type Fold = { read: number; readonly exchanges: Exchange[] };

type Exchange = { readonly messages: Message[]; tokens: number };

/**
 * The branch as exchanges, from its last compaction on, whose summary stands in for what was before. A branch only grows, so what was
 * read of it is not read again: a turn in a long session costs what its new entries cost.
 */
function exchangesOf(branch: readonly TranscriptEntry[], memory: ContextMemory): readonly Exchange[] {
  let fold = memory.foldOf(branch);
  const compaction = lastCompaction(branch, fold?.read ?? 0);
  if (!fold || compaction >= 0) {
    fold = { read: 0, exchanges: [] };
    memory.keepFold(branch, fold);
    const entry = branch[compaction];
    if (entry?.type === 'compaction') {
      const kept = branch.findIndex((e) => e.id === entry.firstKeptEntryId);
      fold.read = kept < 0 ? compaction + 1 : kept;
      add(fold, memory.noteOf(entry, `Summary of the conversation so far:\n\n${entry.summary}`, 'start'), memory);
    }
  }
  for (; fold.read < branch.length; fold.read++) {
    const entry = branch[fold.read]!;
    if (entry.type === 'message') {
      if (isSendable(entry.message)) add(fold, entry.message, memory);
    } else if (entry.type === 'custom_message') add(fold, memory.noteOf(entry, entry.content, 'inside'), memory);
  }
  return fold.exchanges;
}

/** The place of the newest compaction from `start` on, or -1; looks no further back than that. */
function lastCompaction(branch: readonly TranscriptEntry[], start: number): number {
  for (let i = branch.length - 1; i >= start; i--) if (branch[i]!.type === 'compaction') return i;
  return -1;
}

function add({ exchanges }: Fold, message: Message, memory: ContextMemory): void {
  let exchange = exchanges.at(-1);
  if (!exchange || (message.role === 'user' && !memory.isInside(message))) {
    // A branch that starts with an answer has lost its question: no model takes a conversation that starts so.
    if (message.role !== 'user') return;
    exchange = { messages: [], tokens: 0 };
    exchanges.push(exchange);
  }
  exchange.messages.push(message);
  exchange.tokens += memory.weightOf(message);
}

/** A failed response is kept for people; to a model it never happened. An aborted one counts for the text that was seen. */
function isSendable(message: Message): boolean {
  if (message.role !== 'assistant') return true;
  return message.stopReason !== 'error' && message.content.length > 0;
}

function windowStart(exchanges: readonly Exchange[], rule: WindowRule): number {
  const most = rule.exchanges + Math.ceil(rule.exchanges / 2);
  const roomy = Math.floor(rule.tokens * 0.6);
  let start = 0;
  let tokens = 0;
  for (let i = 0; i < exchanges.length; i++) {
    tokens += exchanges[i]!.tokens;
    if (i - start + 1 > most) for (; i - start + 1 > rule.exchanges; start++) tokens -= exchanges[start]!.tokens;
    if (tokens > rule.tokens) for (; start < i && tokens > roomy; start++) tokens -= exchanges[start]!.tokens;
  }
  return start;
}

/** The last resort for one exchange that is larger than the window: its oldest turns go, the question stays. */
function trimmed(exchange: Exchange, tokensMax: number, memory: ContextMemory): readonly Message[] {
  if (exchange.tokens <= tokensMax) return exchange.messages;
  const firstTurn = exchange.messages.findIndex((message) => message.role === 'assistant');
  if (firstTurn < 0) return exchange.messages;
  let tokens = exchange.tokens;
  let start = firstTurn;
  for (let i = firstTurn; i < exchange.messages.length; i++) {
    if (exchange.messages[i]!.role === 'assistant' && i > start) {
      start = i;
      if (tokens <= tokensMax) break;
    }
    tokens -= memory.weightOf(exchange.messages[i]!);
  }
  return [...exchange.messages.slice(0, firstTurn), ...exchange.messages.slice(start)];
}

/**
 * Makes the sequence valid for every provider: each tool call has exactly one result, directly after its message and in call order;
 * results without a call go; an id that occurs twice is made unique.
 */
export function pairToolCalls(messages: readonly Message[]): readonly Message[] {
  const paired: Message[] = [];
  const seen = new Set<string>();
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    if (message.role === 'toolResult') continue;
    if (message.role !== 'assistant' || !message.content.some((block) => block.type === 'toolCall')) {
      paired.push(message);
      continue;
    }
    const results = resultsAfter(messages, i);
    const renamed = new Map<ToolCallBlock, string>();
    for (const call of toolCallsOf(message)) renamed.set(call, uniqueId(call.id, seen));
    paired.push(withIds(message, renamed));
    for (const [call, id] of renamed) paired.push(resultFor(call, id, results.get(call.id)?.shift(), message));
  }
  return paired;
}

/** Results between this message and the next one of the model, by call id, in the order they came. */
function resultsAfter(messages: readonly Message[], place: number): Map<string, ToolResultMessage[]> {
  const results = new Map<string, ToolResultMessage[]>();
  for (let i = place + 1; i < messages.length && messages[i]!.role !== 'assistant'; i++) {
    const message = messages[i]!;
    if (message.role !== 'toolResult') continue;
    const known = results.get(message.toolCallId);
    if (known) known.push(message);
    else results.set(message.toolCallId, [message]);
  }
  return results;
}

function uniqueId(id: string, seen: Set<string>): string {
  let unique = id;
  for (let n = 2; seen.has(unique); n++) unique = `${id}_${n}`;
  seen.add(unique);
  return unique;
}

function withIds(message: AssistantMessage, ids: ReadonlyMap<ToolCallBlock, string>): AssistantMessage {
  if ([...ids].every(([call, id]) => call.id === id)) return message;
  return {
    ...message,
    content: message.content.map((block) =>
      block.type === 'toolCall' ? { ...block, id: ids.get(block) ?? block.id } : block,
    ),
  };
}

function resultFor(
  call: ToolCallBlock,
  id: string,
  result: ToolResultMessage | undefined,
  after: AssistantMessage,
): ToolResultMessage {
  if (result) return result.toolCallId === id ? result : { ...result, toolCallId: id };
  const text = 'No result of this call was recorded. Whether it had an effect is unknown; check before repeating it.';
  const content = [{ type: 'text' as const, text }];
  return {
    role: 'toolResult',
    toolCallId: id,
    toolName: call.name,
    content,
    isError: true,
    timestamp: after.timestamp,
  };
}
