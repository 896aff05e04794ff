/** Messages as the public transcript format (version 3) stores them. Times are milliseconds since the epoch. */
export type TextBlock = { readonly type: 'text'; readonly text: string; readonly textSignature?: string };

export type ThinkingBlock = {
  readonly type: 'thinking';
  readonly thinking: string;
  /** What the provider needs back with it; for OpenAI-style reasoning the name of the field it came in. */
  readonly thinkingSignature?: string;
  /** The provider hid the text; only the signature goes back. */
  readonly redacted?: boolean;
};

/** `data` is base64 of the file's bytes. */
export type ImageBlock = { readonly type: 'image'; readonly data: string; readonly mimeType: string };

export type ToolCallBlock = {
  readonly type: 'toolCall';
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Gemini's signature for the thought that led to the call. */
  readonly thoughtSignature?: string;
};

export type Usage = {
  /** Prompt tokens that were not read from or written to a cache. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
  /** US dollars. */
  readonly cost: Cost;
};

export type Cost = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly total: number;
};

export const NO_COST: Cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
export const NO_USAGE: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: NO_COST };

export function addUsage(a: Usage, b: Usage): Usage {
  const sum = <K extends string>(x: Record<K, number>, y: Record<K, number>, keys: readonly K[]) =>
    Object.fromEntries(keys.map((k) => [k, x[k] + y[k]])) as Record<K, number>;
  const cost = sum(a.cost, b.cost, ['input', 'output', 'cacheRead', 'cacheWrite', 'total']);
  return { ...sum(a, b, ['input', 'output', 'cacheRead', 'cacheWrite', 'totalTokens']), cost };
}

export type StopReason = 'stop' | 'toolUse' | 'length' | 'error' | 'aborted';

export type UserContent = TextBlock | ImageBlock;
export type AssistantContent = TextBlock | ThinkingBlock | ToolCallBlock;

export type UserMessage = {
  readonly role: 'user';
  readonly content: string | readonly UserContent[];
  readonly timestamp: number;
  /** The run that this message started or was steered into. */
  readonly runId?: string;
};

export type AssistantMessage = {
  readonly role: 'assistant';
  readonly content: readonly AssistantContent[];
  /** The wire format, by its public name, e.g. `openai-completions`. */
  readonly api: string;
  readonly provider: string;
  readonly model: string;
  readonly usage: Usage;
  readonly stopReason: StopReason;
  readonly timestamp: number;
  readonly responseId?: string;
  readonly errorMessage?: string;
};

export type ToolResultMessage = {
  readonly role: 'toolResult';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly content: readonly UserContent[];
  readonly details?: unknown;
  readonly isError: boolean;
  /** How a call that is no success ended; other readers of the format do not know it. */
  readonly outcome?: 'failed' | 'denied' | 'aborted';
  readonly timestamp: number;
};

export type Message = UserMessage | AssistantMessage | ToolResultMessage;

/** All text of a message, blocks joined by nothing; thinking and images are not text. */
export function textOf(message: Message): string {
  if (typeof message.content === 'string') return message.content;
  return message.content.reduce((text, block) => (block.type === 'text' ? text + block.text : text), '');
}

export const toolCallsOf = (message: AssistantMessage): readonly ToolCallBlock[] =>
  message.content.filter((block) => block.type === 'toolCall');
