import { type Clock, messageOf } from '#base';
import {
  type Approval,
  agentOf,
  answerText,
  type Message,
  type RunNotice,
  type RunResult,
  type SessionKey,
  withoutStamp,
} from '#domain';
import type { Scope } from '#protocol';
import type { GatewayPorts } from './ports.ts';
import { type LiveRun, placeOf, type RunFeed } from './run-feed.ts';

/** Puts events on the connections that may see them. */
export interface Broadcaster {
  /** Whether anyone would get it: what nobody hears need not be made. */
  hears(to: Audience): boolean;
  /** The payload is written down once, for all. */
  broadcast(event: string, payload: unknown, to: Audience): void;
}

export type Audience =
  | 'everyone'
  | {
      readonly scope: Scope;
      /** Only clients with this capability. */
      readonly cap?: string;
      /** Only clients that subscribed to this session's messages, or to all sessions. */
      readonly subscribed?: { readonly to: 'messages'; readonly key: SessionKey } | { readonly to: 'sessions' };
    };

const CHAT_DELTA_EVERY_MS = 100;
const READ: Audience = { scope: 'operator.read' };
const TOOL_EVENTS: Audience = { scope: 'operator.read', cap: 'tool-events' };
const SESSIONS: Audience = { scope: 'operator.read', subscribed: { to: 'sessions' } };
const messagesOf = (key: SessionKey): Audience => ({ scope: 'operator.read', subscribed: { to: 'messages', key } });

/**
 * How far a run's listeners are. Every `agent` and `chat` event of a text carries all of it, so one for each small delta would cost the
 * square of its length: deltas are gathered for a moment that grows with the text.
 */
type Progress = {
  gathered: Gathered | undefined;
  cancelGathering: (() => void) | undefined;
  chatSent: string;
  cancelChat: (() => void) | undefined;
};
type Gathered = {
  readonly notice: RunNotice;
  readonly stream: 'assistant' | 'thinking';
  readonly text: string;
  readonly delta: string;
};
const GATHER_MS_MIN = 20;
const GATHER_MS_MAX = 250;
const GATHER_MS_PER_CHARACTER = 0.001;

/** Words a run's events as the public protocol does: `agent`, `chat`, `session.message`, `session.tool`, `sessions.changed`. */
export class RunEvents {
  readonly #out: Broadcaster;
  readonly #feed: RunFeed;
  readonly #clock: Clock;
  readonly #log: GatewayPorts['log'];
  readonly #session: (key: SessionKey) => Promise<object | undefined>;
  readonly #progress = new Map<string, Progress>();
  /** Events that carry a session's row wait for it, in the order in which they happened. */
  #rows: Promise<void> = Promise.resolve();

  constructor(options: {
    readonly out: Broadcaster;
    readonly feed: RunFeed;
    readonly clock: Clock;
    readonly log: GatewayPorts['log'];
    /** The row of a session as lists show it. */
    readonly session: (key: SessionKey) => Promise<object | undefined>;
  }) {
    this.#out = options.out;
    this.#feed = options.feed;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#session = options.session;
    // Else its first event would repeat what it was just given.
    this.#feed.onJoin((live) => this.#sendGathered(live));
  }

  take(notice: RunNotice): void {
    const live = this.#feed.take(notice);
    if (this.#out.hears(READ)) this.#tell(notice, live);
    if (notice.event.type === 'run-end') this.#forget(notice);
  }

  approval(approval: Approval): void {
    const to: Audience = { scope: 'operator.approvals' };
    const record = approvalRecord(approval);
    if (approval.decision === undefined) return this.#out.broadcast('exec.approval.requested', record, to);
    const { id, decision, resolvedBy, resolvedAt: ts } = approval;
    this.#out.broadcast('exec.approval.resolved', { id, decision, resolvedBy, ts, request: record.request }, to);
  }

  sessionChanged(sessionKey: SessionKey, reason: string): void {
    this.#changed(sessionKey, { reason });
  }

  #tell(notice: RunNotice, live: LiveRun | undefined): void {
    const { event, sessionKey, runId } = notice;
    if (event.type !== 'text-delta' && event.type !== 'thinking-delta') this.#sendGathered(notice);
    switch (event.type) {
      case 'run-start':
        this.#agent(notice, 'lifecycle', { phase: 'start', startedAt: event.at });
        return this.#changed(sessionKey, { phase: 'start', runId });
      case 'thinking-delta':
        return this.#gather(notice, 'thinking', { text: live?.thinking ?? event.text, delta: event.text });
      case 'text-delta':
        this.#gather(notice, 'assistant', { text: live?.text ?? event.text, delta: event.text });
        return live && this.#chatDelta(notice, live);
      case 'turn-retry':
        // What was streamed of this answer does not count: clients put the text back to what it was.
        return this.#agent(notice, 'assistant', { text: '', delta: '', replace: true });
      case 'message':
        return this.#message(sessionKey, event.message, { messageId: event.entryId, messageSeq: event.seq });
      case 'tool-start': {
        const { id, name } = event.call;
        this.#tool(notice, { phase: 'start', name, toolCallId: id, args: event.call.arguments });
        return this.#item(notice, { phase: 'start', status: 'running', id, name, startedAt: event.at });
      }
      case 'tool-delta':
        return this.#tool(notice, {
          phase: 'update',
          name: event.call.name,
          toolCallId: event.call.id,
          partialResult: { content: event.content },
        });
      case 'tool-end': {
        const { id, name } = event.call;
        const result = { content: event.content, ...(event.details === undefined ? {} : { details: event.details }) };
        this.#tool(notice, {
          phase: 'result',
          name,
          toolCallId: id,
          isError: event.outcome !== 'ok',
          outcome: event.outcome,
          result,
        });
        return this.#item(notice, {
          phase: 'end',
          status: 'completed',
          id,
          name,
          startedAt: event.startedAt,
          endedAt: event.at,
        });
      }
      case 'run-end':
        return this.#end(notice, event.result, event.at, live);
      default:
        return;
    }
  }

  #end(notice: RunNotice, result: RunResult, endedAt: number, live: LiveRun | undefined): void {
    const { runId, sessionKey } = notice;
    const text = live?.runText || answerText(result);
    const message = text === '' ? {} : { message: chatMessage(text, endedAt) };
    if (result.outcome === 'failed') {
      const error = result.error?.next
        ? `${result.error.message}. ${result.error.next}`
        : (result.error?.message ?? 'failed');
      this.#agent(notice, 'lifecycle', { phase: 'error', error, livenessState: 'blocked', endedAt });
      const errorKind = ERROR_KINDS[result.error?.code ?? ''] ?? 'unknown';
      this.#chat(notice, { state: 'error', errorMessage: error, errorKind, ...message });
    } else if (result.outcome === 'aborted') {
      const stop = { aborted: true, stopReason: 'rpc', startedAt: live?.startedAt ?? endedAt, endedAt };
      this.#chat(notice, { state: 'aborted', stopReason: 'rpc', ...message });
      this.#agent(notice, 'lifecycle', { phase: 'end', status: 'cancelled', ...stop });
    } else {
      this.#agent(notice, 'lifecycle', { phase: 'end', endedAt, livenessState: 'working' });
      const sent = this.#progress.get(placeOf(notice))?.chatSent ?? '';
      if (text !== '') this.#chat(notice, { state: 'delta', ...message, ...newPart(text, sent) });
      this.#chat(notice, { state: 'final', ...message });
    }
    this.#changed(sessionKey, { phase: result.outcome === 'failed' ? 'error' : 'end', runId });
  }

  /** Also when nobody listens any more: what is remembered of a run ends with it. */
  #forget(notice: RunNotice): void {
    const progress = this.#progress.get(placeOf(notice));
    progress?.cancelGathering?.();
    progress?.cancelChat?.();
    this.#progress.delete(placeOf(notice));
  }

  #progressOf(notice: RunNotice): Progress {
    const place = placeOf(notice);
    const known = this.#progress.get(place);
    if (known) return known;
    const fresh: Progress = {
      gathered: undefined,
      cancelGathering: undefined,
      chatSent: '',
      cancelChat: undefined,
    };
    this.#progress.set(place, fresh);
    return fresh;
  }

  #gather(
    notice: RunNotice,
    stream: Gathered['stream'],
    piece: { readonly text: string; readonly delta: string },
  ): void {
    const progress = this.#progressOf(notice);
    if (progress.gathered && progress.gathered.stream !== stream) this.#sendGathered(notice);
    const delta = (progress.gathered?.delta ?? '') + piece.delta;
    progress.gathered = { notice, stream, text: piece.text, delta };
    if (progress.cancelGathering) return;
    const send = () => {
      progress.cancelGathering = undefined;
      if (!progress.gathered) return;
      const gapMs = GATHER_MS_MIN + progress.gathered.text.length * GATHER_MS_PER_CHARACTER;
      this.#sendGathered(notice);
      progress.cancelGathering = this.#clock.after(Math.min(gapMs, GATHER_MS_MAX), send);
    };
    send();
  }

  /** Before anything else is told of the run: its events stay in their order. */
  #sendGathered(of: Parameters<typeof placeOf>[0]): void {
    const progress = this.#progress.get(placeOf(of));
    if (!progress?.gathered) return;
    const { notice, stream, text, delta } = progress.gathered;
    progress.gathered = undefined;
    this.#agent(notice, stream, { text, delta });
  }

  #agent({ runId, sessionKey, seq }: RunNotice, stream: string, data: unknown, to: Audience = READ): void {
    if (!this.#out.hears(to)) return;
    const agentId = agentOf(sessionKey);
    this.#out.broadcast('agent', { runId, stream, data, sessionKey, seq, ts: this.#clock.now(), agentId }, to);
  }

  #tool(notice: RunNotice, data: Readonly<Record<string, unknown>>): void {
    this.#agent(notice, 'tool', data, TOOL_EVENTS);
    if (!this.#out.hears(SESSIONS)) return;
    const { runId, sessionKey, seq } = notice;
    const payload = { runId, stream: 'tool', data, sessionKey, seq, ts: this.#clock.now() };
    this.#out.broadcast('session.tool', payload, SESSIONS);
  }

  #item(
    notice: RunNotice,
    facts: {
      readonly phase: string;
      readonly status: string;
      readonly id: string;
      readonly name: string;
      readonly startedAt: number;
      readonly endedAt?: number;
    },
  ): void {
    const { id, name, ...rest } = facts;
    this.#agent(notice, 'item', { itemId: `tool:${id}`, kind: 'tool', title: name, name, toolCallId: id, ...rest });
  }

  /** At once when the last one is long enough ago, else when it is; always with the text of then. */
  #chatDelta(notice: RunNotice, live: LiveRun): void {
    const progress = this.#progressOf(notice);
    if (progress.cancelChat) return;
    const send = () => {
      progress.cancelChat = undefined;
      const text = live.runText;
      if (text === progress.chatSent) return;
      const message = chatMessage(text, this.#clock.now());
      this.#chat({ ...notice, seq: live.seq }, { state: 'delta', message, ...newPart(text, progress.chatSent) });
      progress.chatSent = text;
      const gapMs = Math.max(CHAT_DELTA_EVERY_MS, Math.min(text.length * GATHER_MS_PER_CHARACTER, GATHER_MS_MAX));
      progress.cancelChat = this.#clock.after(gapMs, send);
    };
    send();
  }

  #chat({ runId, sessionKey, seq }: RunNotice, more: Readonly<Record<string, unknown>>): void {
    if (!this.#out.hears(READ)) return;
    this.#out.broadcast('chat', { runId, sessionKey, seq, agentId: agentOf(sessionKey), ...more }, READ);
  }

  #message(
    sessionKey: SessionKey,
    message: Message,
    place: { readonly messageId: string; readonly messageSeq: number },
  ): void {
    this.#withRow(messagesOf(sessionKey), sessionKey, (row) => ({
      event: 'session.message',
      payload: { sessionKey, message: shownMessage(message, place.messageId, place.messageSeq), ...place, ...row },
    }));
  }

  #changed(sessionKey: SessionKey, what: Readonly<Record<string, unknown>>): void {
    const ts = this.#clock.now();
    this.#withRow(SESSIONS, sessionKey, (row) => ({
      event: 'sessions.changed',
      payload: { sessionKey, ...what, ts, ...row },
    }));
  }

  #withRow(
    to: Audience,
    key: SessionKey,
    make: (row: object) => { readonly event: string; readonly payload: unknown },
  ): void {
    if (!this.#out.hears(to)) return;
    this.#rows = this.#rows.then(async () => {
      try {
        const session = await this.#session(key);
        const { event, payload } = make(session ? { ...session, session } : {});
        this.#out.broadcast(event, payload, to);
      } catch (error) {
        // One event less: clients read lists and history anew when they need to be sure.
        this.#log.error('A session event could not be sent', { session: key, error: messageOf(error) });
      }
    });
  }
}

/** The part of a run's text that is new; where an answer began anew, all of it. */
function newPart(text: string, sent: string): { readonly deltaText: string; readonly replace?: true } {
  return text.startsWith(sent) ? { deltaText: text.slice(sent.length) } : { deltaText: text, replace: true };
}

/** A message as the protocol shows it: the stamp that the model sees goes, cost is its total, its place is added. */
export function shownMessage(message: Message, id: string, seq: number): unknown {
  const place = { __openclaw: { id, seq } };
  if (message.role === 'assistant')
    return { ...message, usage: { ...message.usage, cost: { total: message.usage.cost.total } }, ...place };
  if (message.role !== 'user') return { ...message, ...place };
  const content =
    typeof message.content === 'string'
      ? withoutStamp(message.content)
      : message.content.map((block, i) =>
          i === 0 && block.type === 'text' ? { ...block, text: withoutStamp(block.text) } : block,
        );
  return { ...message, content, ...place };
}

/** A pending approval in the public form. */
export function approvalRecord(approval: Approval) {
  return {
    id: approval.id,
    request: {
      command: approval.command,
      cwd: approval.cwd,
      host: 'gateway',
      agentId: approval.agent,
      sessionKey: approval.sessionKey,
      warningText: approval.reason,
      allowedDecisions: approval.allowedDecisions,
      runId: approval.runId,
      toolCallId: approval.callId,
    },
    createdAtMs: approval.createdAt,
    expiresAtMs: approval.expiresAt,
  };
}

const chatMessage = (text: string, timestamp: number) => ({
  role: 'assistant',
  content: [{ type: 'text', text }],
  timestamp,
});

const ERROR_KINDS: Readonly<Record<string, string>> = {
  MODEL_REFUSED: 'refusal',
  MODEL_TIMEOUT: 'timeout',
  RUN_TIMEOUT: 'timeout',
  MODEL_RATE_LIMITED: 'rate_limit',
  MODEL_CONTEXT_OVERFLOW: 'context_length',
};
