import type { Clock } from '#base';
import {
  type Approval,
  answerText,
  type Message,
  type RunNotice,
  type RunResult,
  type SessionKey,
  withoutStamp,
} from '#domain';
import type { Scope } from '#protocol';
import type { LiveRun, RunFeed } from './run-feed.ts';

/** Puts an event on every connection that may see it. */
export interface Broadcaster {
  readonly hasListeners: boolean;
  broadcast(event: string, payload: unknown, to: Audience): void;
}

export type Audience = {
  readonly scope: Scope;
  /** Only clients with this capability. */
  readonly cap?: string;
  /** Only clients that subscribed to this session's messages, or to all sessions. */
  readonly subscribed?: { readonly to: 'messages'; readonly key: SessionKey } | { readonly to: 'sessions' };
};

const CHAT_DELTA_EVERY_MS = 100;
const READ: Audience = { scope: 'operator.read' };

/** Words a run's events as the public protocol does: `agent`, `chat`, `session.message`, `session.tool`, `sessions.changed`. */
export class RunEvents {
  readonly #out: Broadcaster;
  readonly #feed: RunFeed;
  readonly #clock: Clock;
  readonly #session: (key: SessionKey) => Promise<unknown>;
  /** Chat deltas that wait, by run: a delta carries the whole text, so only the newest matters. */
  readonly #late = new Map<string, { readonly cancel: () => void; sentText: string }>();

  constructor(options: {
    readonly out: Broadcaster;
    readonly feed: RunFeed;
    readonly clock: Clock;
    /** The row of a session as lists show it. */
    readonly session: (key: SessionKey) => Promise<unknown>;
  }) {
    this.#out = options.out;
    this.#feed = options.feed;
    this.#clock = options.clock;
    this.#session = options.session;
  }

  take(notice: RunNotice): void {
    const live = this.#feed.take(notice);
    if (this.#out.hasListeners) this.#tell(notice, live);
  }

  approval(approval: Approval): void {
    const to: Audience = { scope: 'operator.approvals' };
    if (approval.decision === undefined) this.#out.broadcast('exec.approval.requested', approvalRecord(approval), to);
    else {
      const { decision, resolvedBy, resolvedAt } = approval;
      const payload = {
        id: approval.id,
        decision,
        resolvedBy,
        ts: resolvedAt,
        request: approvalRecord(approval).request,
      };
      this.#out.broadcast('exec.approval.resolved', payload, to);
    }
  }

  #tell(notice: RunNotice, live: LiveRun | undefined): void {
    const { event, sessionKey, runId } = notice;
    switch (event.type) {
      case 'run-start':
        this.#agent(notice, 'lifecycle', { phase: 'start', startedAt: event.at });
        return this.#changed(sessionKey, { phase: 'start', runId });
      case 'thinking-delta':
        return this.#agent(notice, 'thinking', { text: live?.thinking ?? event.text, delta: event.text });
      case 'text-delta':
        this.#agent(notice, 'assistant', { text: live?.text ?? event.text, delta: event.text });
        return this.#chatDelta(notice, live);
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
    this.#late.get(runId)?.cancel();
    this.#late.delete(runId);
    const text = live?.runText || answerText(result);
    if (result.outcome === 'failed') {
      const error = result.error?.next
        ? `${result.error.message}. ${result.error.next}`
        : (result.error?.message ?? 'failed');
      this.#agent(notice, 'lifecycle', { phase: 'error', error, livenessState: 'blocked', endedAt });
      const errorKind = ERROR_KINDS[result.error?.code ?? ''] ?? 'unknown';
      this.#chat(notice, {
        state: 'error',
        errorMessage: error,
        errorKind,
        ...(text === '' ? {} : { message: chatMessage(text, endedAt) }),
      });
    } else if (result.outcome === 'aborted') {
      const startedAt = live?.startedAt ?? endedAt;
      this.#chat(notice, {
        state: 'aborted',
        stopReason: 'rpc',
        ...(text === '' ? {} : { message: chatMessage(text, endedAt) }),
      });
      this.#agent(notice, 'lifecycle', {
        phase: 'end',
        status: 'cancelled',
        aborted: true,
        stopReason: 'rpc',
        startedAt,
        endedAt,
      });
    } else {
      this.#agent(notice, 'lifecycle', { phase: 'end', endedAt, livenessState: 'working' });
      if (text !== '') this.#chat(notice, { state: 'delta', message: chatMessage(text, endedAt) });
      this.#chat(notice, { state: 'final', ...(text === '' ? {} : { message: chatMessage(text, endedAt) }) });
    }
    this.#changed(sessionKey, { phase: result.outcome === 'failed' ? 'error' : 'end', runId });
  }

  #agent({ runId, sessionKey, seq }: RunNotice, stream: string, data: unknown, to: Audience = READ): void {
    this.#out.broadcast('agent', { runId, stream, data, sessionKey, seq, ts: this.#clock.now() }, to);
  }

  #tool(notice: RunNotice, data: Readonly<Record<string, unknown>>): void {
    this.#agent(notice, 'tool', data, { scope: 'operator.read', cap: 'tool-events' });
    const { runId, sessionKey, seq } = notice;
    const payload = { runId, stream: 'tool', data, sessionKey, seq, ts: this.#clock.now() };
    this.#out.broadcast('session.tool', payload, { scope: 'operator.read', subscribed: { to: 'sessions' } });
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
    const { phase, status, id, name, startedAt, endedAt } = facts;
    const times = { startedAt, ...(endedAt === undefined ? {} : { endedAt }) };
    this.#agent(notice, 'item', {
      itemId: `tool:${id}`,
      phase,
      kind: 'tool',
      title: name,
      status,
      name,
      toolCallId: id,
      ...times,
    });
  }

  /** At once when the last one is long enough ago, else when it is; always with the text of then. */
  #chatDelta(notice: RunNotice, live: LiveRun | undefined): void {
    if (!live || this.#late.has(notice.runId)) return;
    const send = () => {
      const late = this.#late.get(notice.runId);
      if (!late || late.sentText === live.runText) return void this.#late.delete(notice.runId);
      const deltaText = live.runText.startsWith(late.sentText)
        ? live.runText.slice(late.sentText.length)
        : live.runText;
      this.#chat(
        { ...notice, seq: live.seq },
        { state: 'delta', message: chatMessage(live.runText, this.#clock.now()), deltaText },
      );
      this.#late.set(notice.runId, { cancel: this.#clock.after(CHAT_DELTA_EVERY_MS, send), sentText: live.runText });
    };
    this.#late.set(notice.runId, { cancel: () => undefined, sentText: '' });
    send();
  }

  #chat({ runId, sessionKey, seq }: RunNotice, more: Readonly<Record<string, unknown>>): void {
    this.#out.broadcast('chat', { runId, sessionKey, seq, ...more }, READ);
  }

  #message(
    sessionKey: SessionKey,
    message: Message,
    place: { readonly messageId: string; readonly messageSeq: number },
  ): void {
    const shown = shownMessage(message, place.messageId, place.messageSeq);
    const payload = { sessionKey, message: shown, ...place };
    this.#out.broadcast('session.message', payload, {
      scope: 'operator.read',
      subscribed: { to: 'messages', key: sessionKey },
    });
  }

  #changed(sessionKey: SessionKey, what: Readonly<Record<string, unknown>>): void {
    const ts = this.#clock.now();
    void this.#session(sessionKey).then((session) => this.#sessionChanged(sessionKey, { ...what, ts }, session));
  }

  sessionChanged(sessionKey: SessionKey, reason: string): void {
    if (this.#out.hasListeners) this.#changed(sessionKey, { reason });
  }

  #sessionChanged(sessionKey: SessionKey, what: Readonly<Record<string, unknown>>, session: unknown): void {
    const payload = { sessionKey, ...what, ...(session ? { session, ...(session as object) } : {}) };
    this.#out.broadcast('sessions.changed', payload, { scope: 'operator.read', subscribed: { to: 'sessions' } });
  }
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
