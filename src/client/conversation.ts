// What a person sees of one session: the stored messages, the run under way, and what was sent but is not stored yet. Pure values and
// functions from one to the next, so that any client can show them and a test can replay a stream.
import type { Usage } from '#domain';
import { textOf, withoutStamp } from '#domain';
import type { ActiveRun, AgentEvent, HistoryMessage } from './methods.ts';

export type Failure = { readonly code?: string; readonly message: string; readonly next?: string };

export type ToolStatus = 'writing' | 'running' | 'ok' | 'failed' | 'denied' | 'aborted';

export type AnswerPart =
  | { readonly kind: 'thinking'; readonly text: string; readonly streaming: boolean }
  | { readonly kind: 'text'; readonly text: string; readonly streaming: boolean }
  | {
      readonly kind: 'tool';
      readonly callId: string;
      readonly name: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      readonly status: ToolStatus;
      readonly output: string;
      /** Milliseconds since the epoch. */
      readonly startedAt?: number;
      readonly endedAt?: number;
    };
export type ToolPart = Extract<AnswerPart, { kind: 'tool' }>;

export type PersonItem = {
  readonly kind: 'person';
  /** Stays the same when a message that was sent becomes a stored one. */
  readonly key: string;
  readonly text: string;
  readonly images: number;
  readonly at: number;
  /** `waiting`: the gateway has it, and a run is under way that it follows or is put into. */
  readonly status: 'sending' | 'waiting' | 'sent' | 'failed';
  readonly failure?: Failure;
};

export type AnswerItem = {
  readonly kind: 'answer';
  readonly key: string;
  readonly parts: readonly AnswerPart[];
  readonly at: number;
  readonly outcome: 'running' | 'answered' | 'aborted' | 'failed';
  readonly failure?: Failure;
  readonly provider?: string;
  readonly model?: string;
  /** The sum over the item's model responses. */
  readonly usage?: Usage;
};

/** Words of the gateway itself: the answer to `/status` and such. Markdown. */
export type NoticeItem = { readonly kind: 'notice'; readonly key: string; readonly text: string; readonly at: number };

export type ConversationItem = PersonItem | AnswerItem | NoticeItem;

/** A message of this client. `runId` is also its idempotency key. */
export type SentMessage = {
  readonly runId: string;
  readonly text: string;
  readonly at: number;
  readonly status: 'sending' | 'accepted' | 'answered' | 'failed';
  readonly failure?: Failure;
};

export type LiveRun = {
  readonly runId: string;
  readonly startedAt: number;
  /** The run's latest event that was taken in; older ones come again after a reconnect and are skipped. */
  readonly seq: number;
  /** What is not stored yet, in order. */
  readonly parts: readonly AnswerPart[];
  /** A model's words or calls were seen: what it ends with is in the transcript. */
  readonly spoke: boolean;
  /** The run is over; what it said is shown from here until the history is read again. */
  readonly outcome?: 'answered' | 'aborted' | 'failed';
};

export type Conversation = {
  readonly sessionKey: string;
  readonly sessionId?: string;
  /** False until the history was read once. */
  readonly loaded: boolean;
  readonly messages: readonly HistoryMessage[];
  readonly live?: LiveRun;
  readonly sent: readonly SentMessage[];
  readonly notices: readonly NoticeItem[];
  /** Why the last run failed, with the next step that a stored message does not hold. */
  readonly failure?: Failure & { readonly runId: string; readonly at: number };
  /** Facts of tool calls that only events tell. */
  readonly tools: Readonly<Record<string, { readonly startedAt?: number; readonly status?: ToolStatus }>>;
};

const SENT_MAX = 200;
const NOTICES_MAX = 50;
const MESSAGES_MAX = 2_000;

export const emptyConversation = (sessionKey: string): Conversation => ({
  sessionKey,
  loaded: false,
  messages: [],
  sent: [],
  notices: [],
  tools: {},
});

/** The stored messages as the gateway has them now; whatever was shown of them before is replaced. */
export function withHistory(
  now: Conversation,
  history: {
    readonly sessionId?: string;
    readonly messages: readonly HistoryMessage[];
    readonly activeRun?: ActiveRun;
  },
): Conversation {
  const { activeRun, messages } = history;
  const { live: _live, sessionId: _sessionId, ...rest } = now;
  const next: Conversation = {
    ...rest,
    ...(history.sessionId === undefined ? {} : { sessionId: history.sessionId }),
    loaded: true,
    messages,
    sent: now.sent.filter((sent) => !isStored(sent, messages)),
    ...(activeRun ? { live: liveFrom(activeRun, now.live) } : {}),
  };
  const reset = now.loaded && now.sessionId !== history.sessionId;
  return reset ? onlyLatest(next) : next;
}

/** A new transcript began: of what only this client knows, the command that asked for it and its answer remain. */
function onlyLatest(now: Conversation): Conversation {
  const { failure: _failure, ...rest } = now;
  const notice = now.notices.at(-1);
  return { ...rest, notices: notice ? [notice] : [], sent: now.sent.slice(-1) };
}

function liveFrom(run: ActiveRun, before: LiveRun | undefined): LiveRun {
  // Events that came while the answer was under way are newer than it.
  if (before?.runId === run.runId && before.seq > run.seq) return before;
  const parts: AnswerPart[] = [];
  if (run.thinking) parts.push({ kind: 'thinking', text: run.thinking, streaming: run.text === '' });
  if (run.text !== '') parts.push({ kind: 'text', text: run.text, streaming: true });
  return { runId: run.runId, startedAt: run.startedAt, seq: run.seq, parts, spoke: true };
}

/** One message was stored. */
export function withMessage(now: Conversation, message: HistoryMessage): Conversation {
  const id = message.__openclaw?.id;
  if (!now.loaded || id === undefined || now.messages.some((known) => known.__openclaw?.id === id)) return now;
  const messages = [...now.messages, message].slice(-MESSAGES_MAX);
  const sent = now.sent.filter((mine) => !isStored(mine, [message]));
  const live = now.live && {
    ...now.live,
    parts: uncovered(now.live.parts, message),
    spoke: now.live.spoke || message.role !== 'user',
  };
  return { ...now, messages, sent, ...(live ? { live } : {}) };
}

/** What of the live parts `message` does not hold. Events keep their order: all text that came before it is in it or in an earlier one. */
function uncovered(parts: readonly AnswerPart[], message: HistoryMessage): readonly AnswerPart[] {
  if (message.role === 'user') return parts;
  if (message.role === 'toolResult') return parts.filter((p) => p.kind !== 'tool' || p.callId !== message.toolCallId);
  return parts.filter((part) => part.kind === 'tool');
}

function isStored(sent: SentMessage, messages: readonly HistoryMessage[]): boolean {
  return messages.some(
    (message) =>
      message.role === 'user' &&
      (message.runId === sent.runId ||
        (message.timestamp >= sent.at - CLOCK_SKEW_MS && withoutStamp(textOf(message)).trim() === sent.text.trim())),
  );
}

/** The gateway's clock and the browser's may differ; the same words much earlier are another message. */
const CLOCK_SKEW_MS = 5_000;

export function withSent(now: Conversation, sent: SentMessage): Conversation {
  return { ...now, sent: [...now.sent.filter((s) => s.runId !== sent.runId), sent].slice(-SENT_MAX) };
}

export function withSentStatus(
  now: Conversation,
  runId: string,
  status: SentMessage['status'],
  failure?: Failure,
): Conversation {
  const change = (sent: SentMessage): SentMessage => {
    if (sent.runId !== runId) return sent;
    const { failure: _failure, ...rest } = sent;
    return { ...rest, status, ...(failure ? { failure } : {}) };
  };
  return { ...now, sent: now.sent.map(change) };
}

export const withoutSent = (now: Conversation, runId: string): Conversation => ({
  ...now,
  sent: now.sent.filter((sent) => sent.runId !== runId),
});

/** The gateway's own answer to the message `runId`, e.g. to a command; it is not in the transcript. */
export function withNotice(now: Conversation, runId: string, text: string, at: number): Conversation {
  const key = `notice:${runId}`;
  const notices = [...now.notices.filter((notice) => notice.key !== key), { kind: 'notice', key, text, at } as const];
  return { ...withSentStatus(now, runId, 'answered'), notices: notices.slice(-NOTICES_MAX) };
}

export type RunEnd = {
  readonly runId: string;
  readonly outcome: 'answered' | 'aborted' | 'failed';
  readonly at: number;
  readonly failure?: Failure;
};

export function withRunEnd(now: Conversation, { runId, outcome, at, failure }: RunEnd): Conversation {
  const failed = failure ? { failure: { ...failure, runId, at } } : {};
  const sent = now.sent.map((s) => (s.runId === runId && failure ? { ...s, status: 'answered' as const } : s));
  if (now.live?.runId !== runId) return { ...now, ...failed, sent };
  return { ...now, ...failed, sent, live: { ...now.live, outcome, parts: now.live.parts.map((part) => ended(part)) } };
}

/** The run that a person could stop now. */
export const runUnderWay = (now: Conversation): LiveRun | undefined => (now.live?.outcome ? undefined : now.live);

function ended(part: AnswerPart): AnswerPart {
  if (part.kind !== 'tool') return { ...part, streaming: false };
  return part.status === 'running' || part.status === 'writing' ? { ...part, status: 'aborted' } : part;
}

/** One event of a run of this session. */
export function withAgentEvent(now: Conversation, event: AgentEvent): Conversation {
  const { runId, stream, data, seq, ts } = event;
  if (stream === 'lifecycle' && data['phase'] !== 'start') return now;
  const known = now.live?.runId === runId ? now.live : undefined;
  if (known && seq <= known.seq) return now;
  // A message that is put into the run under way starts and ends as a run of its own, without a word.
  if (!known && (stream === 'item' || (stream === 'lifecycle' && runUnderWay(now)))) return now;
  const { failure: _failure, ...withoutFailure } = now;
  const live = known ?? { runId, startedAt: ts, seq: 0, parts: [], spoke: false };
  const parts = partsAfter(live.parts, event);
  const next = {
    ...(known ? now : withoutFailure),
    live: { ...live, seq, parts, spoke: live.spoke || parts.length > 0 },
  };
  return stream === 'tool' ? { ...next, tools: toolsAfter(now.tools, event) } : next;
}

function partsAfter(parts: readonly AnswerPart[], event: AgentEvent): readonly AnswerPart[] {
  const { stream, data, ts } = event;
  if (stream === 'assistant' || stream === 'thinking') {
    const kind = stream === 'assistant' ? 'text' : 'thinking';
    return withText(parts, kind, data);
  }
  if (stream !== 'tool' || typeof data['toolCallId'] !== 'string') return parts;
  const callId = data['toolCallId'];
  const at = parts.findIndex((part) => part.kind === 'tool' && part.callId === callId);
  const before: ToolPart = (parts[at] as ToolPart | undefined) ?? {
    kind: 'tool',
    callId,
    name: String(data['name'] ?? 'tool'),
    arguments: (data['args'] as ToolPart['arguments'] | undefined) ?? {},
    status: 'running',
    output: '',
    startedAt: ts,
  };
  const after = toolAfter(before, data, ts);
  const closed = parts.map((part) => (part.kind === 'tool' ? part : { ...part, streaming: false }));
  return at < 0 ? [...closed, after] : closed.map((part, index) => (index === at ? after : part));
}

/** `text` is the whole message so far and heals what was missed; `delta` alone continues it. */
function withText(
  parts: readonly AnswerPart[],
  kind: 'text' | 'thinking',
  data: Readonly<Record<string, unknown>>,
): readonly AnswerPart[] {
  // The answer broke off and is asked for again: what was streamed of it does not count.
  if (data['replace'] === true) return parts.slice(0, parts.findLastIndex((part) => part.kind === 'tool') + 1);
  const last = parts.at(-1);
  const continues = last?.kind === kind;
  const before = continues ? last.text : '';
  const text = typeof data['text'] === 'string' ? data['text'] : before + String(data['delta'] ?? '');
  const part = { kind, text, streaming: true } as const;
  const kept = (continues ? parts.slice(0, -1) : parts).map((p) =>
    p.kind === 'tool' ? p : { ...p, streaming: false },
  );
  return text === '' ? kept : [...kept, part];
}

function toolAfter(before: ToolPart, data: Readonly<Record<string, unknown>>, ts: number): ToolPart {
  if (data['phase'] === 'update') return { ...before, output: contentText(data['partialResult']) };
  if (data['phase'] !== 'result') return before;
  const output = contentText(data['result']);
  return { ...before, status: statusOf(data), output, endedAt: ts };
}

function toolsAfter(tools: Conversation['tools'], { data, ts }: AgentEvent): Conversation['tools'] {
  const callId = String(data['toolCallId'] ?? '');
  const known = tools[callId] ?? {};
  if (data['phase'] === 'start') return { ...tools, [callId]: { ...known, startedAt: ts } };
  return data['phase'] === 'result' ? { ...tools, [callId]: { ...known, status: statusOf(data) } } : tools;
}

export function statusOf(facts: Readonly<Record<string, unknown>>): ToolStatus {
  const outcome = facts['outcome'];
  if (outcome === 'ok' || outcome === 'failed' || outcome === 'denied' || outcome === 'aborted') return outcome;
  return facts['isError'] === true ? 'failed' : 'ok';
}

export function contentText(result: unknown): string {
  const content = Array.isArray(result) ? result : (result as { content?: unknown } | undefined)?.content;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((block: { type?: unknown; text?: unknown }) => blockText(block)).join('');
}

function blockText(block: { type?: unknown; text?: unknown }): string {
  if (block.type === 'text') return String(block.text ?? '');
  return block.type === 'image' ? '[image]' : '';
}
