// The page's state as signals, and the one place that talks to the gateway.
import { computed, effect, type Signal, signal } from '@preact/signals';
import { GatewayError, LruMap, messageOf, newId, shortId } from '#base';
import {
  type AgentEvent,
  type ApprovalRecord,
  type ChatEvent,
  type ClientState,
  type Command,
  type Conversation,
  emptyConversation,
  type Failure,
  GatewayClient,
  runUnderWay,
  type SessionSummary,
  withAgentEvent,
  withHistory,
  withMessage,
  withNotice,
  withoutSent,
  withRunEnd,
  withSent,
  withSentStatus,
} from '#client';
import type { ApprovalDecision } from '#domain';
import type { HelloOk } from '#protocol';
import { gatewayAddress } from './address.ts';
import { keepSession, keptSession } from './kept.ts';

const HISTORY_MAX = 200;
const SESSIONS_MAX = 200;
const CONVERSATIONS_KEPT = 20;
/** A message waits this long for a connection and its acknowledgement before it counts as not sent. */
const SEND_MS_MAX = 10 * 60_000;
const LIST_DELAY_MS = 250;
const VERSION = '0.1.0';
const PENDING_MAX = 500;
const HIDDEN_FRAME_MS = 250;
const hiddenFrame = (action: () => void): number => window.setTimeout(action, HIDDEN_FRAME_MS);

/** What the gateway itself understands; used until it has told its own list. */
const BUILT_IN_COMMANDS: readonly Command[] = [
  { name: 'new', textAliases: ['/new'], description: 'start a new session; the old conversation stays on disk' },
  { name: 'reset', textAliases: ['/reset'], description: 'the same as /new' },
  { name: 'stop', textAliases: ['/stop'], description: 'stop what is running in this session' },
  { name: 'status', textAliases: ['/status'], description: 'show model, tokens and cost of this session' },
];

export class ChatStore {
  readonly connection: Signal<ClientState> = signal<ClientState>({ status: 'idle' });
  /** Whether this page was ever connected: what is missing now was lost, not never there. */
  readonly wasConnected = signal(false);
  readonly sessions: Signal<readonly SessionSummary[]> = signal<readonly SessionSummary[]>([]);
  readonly activeKey = signal('');
  readonly approvals: Signal<readonly ApprovalRecord[]> = signal<readonly ApprovalRecord[]>([]);
  readonly commands: Signal<readonly Command[]> = signal(BUILT_IN_COMMANDS);
  /** Why the history of the shown session could not be read. */
  readonly historyFailure: Signal<Failure | undefined> = signal<Failure | undefined>(undefined);
  readonly conversation = computed(() => this.#conversationOf(this.activeKey.value).value);
  readonly activeSession = computed(() => this.sessions.value.find((row) => row.key === this.activeKey.value));
  readonly running = computed(() => runUnderWay(this.conversation.value) !== undefined);
  readonly #conversations = new LruMap<string, Signal<Conversation>>({ max: CONVERSATIONS_KEPT });
  readonly #client: GatewayClient;
  readonly #pending: AgentEvent[] = [];
  #frame: number | undefined;
  #subscribedKey = '';
  #listTimer: ReturnType<typeof setTimeout> | undefined;
  #defaultAgent = 'main';

  /** @param secret the gateway's token, or its password where it has one: the gateway looks at the one it knows */
  constructor(secret: string) {
    this.#client = new GatewayClient({
      url: gatewayAddress(location.href),
      token: secret,
      password: secret,
      clientId: 'webchat-ui',
      mode: 'webchat',
      scopes: ['operator.read', 'operator.write', 'operator.approvals'],
      caps: ['tool-events'],
      version: VERSION,
      platform: 'web',
    });
    const client = this.#client;
    client.onState((state) => this.#stateChanged(state));
    client.onGap(() => this.#refreshAll());
    client.on('agent', (event) => this.#agentEvent(event));
    client.on('chat', (event) => this.#chatEvent(event));
    client.on('session.message', ({ sessionKey, message, messageId, messageSeq }) => {
      const place = { ...(messageId === undefined ? {} : { id: messageId }), seq: messageSeq ?? 0 };
      this.#change(sessionKey, (now) =>
        withMessage(now, { ...message, __openclaw: { ...place, ...message.__openclaw } }),
      );
    });
    client.on('sessions.changed', ({ sessionKey, reason, session }) => {
      if (session) this.#rowChanged(session);
      else this.#listSoon();
      if (reason === 'reset' || reason === 'new' || reason === 'compact') void this.sync(sessionKey);
    });
    client.on('exec.approval.requested', (record) => {
      this.approvals.value = [...this.approvals.value.filter(({ id }) => id !== record.id), record];
    });
    client.on('exec.approval.resolved', ({ id }) => this.#approvalGone(id));
  }

  start(): void {
    // How it ends is in `connection`; nobody waits for this promise.
    this.#client.connect().catch((error: unknown) => console.debug('not connected', error));
    addEventListener('online', this.#retry);
    document.addEventListener('visibilitychange', this.#retry);
    effect(() => {
      if (this.activeKey.value !== '') keepSession(this.activeKey.value);
    });
  }

  close(): void {
    removeEventListener('online', this.#retry);
    document.removeEventListener('visibilitychange', this.#retry);
    clearTimeout(this.#listTimer);
    this.#client.close();
  }

  readonly #retry = () => this.#client.retryNow();

  retryNow(): void {
    this.#client.retryNow();
  }

  select(key: string): void {
    if (key === this.activeKey.value) return;
    this.activeKey.value = key;
    void this.#subscribe();
    void this.sync(key);
  }

  /** A session that exists only here until its first message. */
  newSession(): void {
    const key = `agent:${this.#defaultAgent}:web-${shortId()}`;
    this.#conversationOf(key).value = { ...emptyConversation(key), loaded: true };
    this.activeKey.value = key;
    this.historyFailure.value = undefined;
    void this.#subscribe();
  }

  send(text: string): void {
    const key = this.activeKey.value;
    const runId = newId();
    this.#change(key, (now) => withSent(now, { runId, text, at: Date.now(), status: 'sending' }));
    void this.#deliver(key, runId, text);
  }

  /** The same idempotency key as before: if the first attempt did arrive, nothing happens twice. */
  sendAgain(runId: string): void {
    const key = this.activeKey.value;
    const sent = this.conversation.value.sent.find((message) => message.runId === runId);
    if (!sent) return;
    this.#change(key, (now) => withSentStatus(now, runId, 'sending'));
    void this.#deliver(key, runId, sent.text);
  }

  discard(runId: string): void {
    this.#change(this.activeKey.value, (now) => withoutSent(now, runId));
  }

  async stop(): Promise<void> {
    const key = this.activeKey.value;
    try {
      await this.#client.request('chat.abort', { sessionKey: key });
    } catch (error) {
      this.#notice(key, `Stopping did not work: ${messageOf(error)}`);
    }
  }

  /** Rejects with what the gateway answered, for the card that asked. */
  async resolve(id: string, decision: ApprovalDecision): Promise<void> {
    try {
      await this.#client.request('exec.approval.resolve', { id, decision });
    } catch (error) {
      const gone = error instanceof GatewayError && error.code.startsWith('APPROVAL_');
      if (!gone) throw error;
    }
    this.#approvalGone(id);
  }

  /** Reads a session's history again; what was shown stays until it is here. */
  async sync(key: string): Promise<void> {
    try {
      const history = await this.#client.request('chat.history', { sessionKey: key, limit: HISTORY_MAX });
      this.#change(key, (now) => withHistory(now, history));
      if (key === this.activeKey.value) this.historyFailure.value = undefined;
    } catch (error) {
      // Without a connection the next hello reads it again, and the banner already says so.
      if (this.connection.value.status === 'connected' && key === this.activeKey.value) {
        this.historyFailure.value = failureFrom(error);
      }
    }
  }

  async listSessions(search = ''): Promise<void> {
    const query = { limit: SESSIONS_MAX, includeDerivedTitles: true, includeLastMessage: true };
    try {
      const { sessions } = await this.#client.request('sessions.list', search === '' ? query : { ...query, search });
      this.sessions.value = sessions;
    } catch (error) {
      console.debug('the session list could not be read', error);
    }
  }

  #stateChanged(state: ClientState): void {
    this.connection.value = state;
    if (state.status !== 'connected') return;
    this.wasConnected.value = true;
    this.#subscribedKey = '';
    const { defaultAgentId, mainSessionKey } = sessionDefaults(state.hello);
    if (defaultAgentId !== undefined) this.#defaultAgent = defaultAgentId;
    if (this.activeKey.value === '') {
      this.activeKey.value = keptSession() ?? mainSessionKey ?? `agent:${this.#defaultAgent}:main`;
    }
    this.#refreshAll();
    if (state.hello.features.methods.includes('commands.list')) void this.#readCommands();
  }

  #refreshAll(): void {
    void this.#subscribe();
    void this.sync(this.activeKey.value);
    void this.listSessions();
    void this.#readApprovals();
  }

  async #subscribe(): Promise<void> {
    const key = this.activeKey.value;
    const before = this.#subscribedKey;
    if (this.connection.value.status !== 'connected' || key === before) return;
    this.#subscribedKey = key;
    try {
      if (before === '') await this.#client.request('sessions.subscribe', {});
      else await this.#client.request('sessions.messages.unsubscribe', { key: before });
      await this.#client.request('sessions.messages.subscribe', { key });
    } catch (error) {
      // The next hello subscribes again; until then ends of runs still bring the history.
      console.debug('not subscribed', error);
    }
  }

  async #readApprovals(): Promise<void> {
    try {
      this.approvals.value = await this.#client.request('exec.approval.list', {});
    } catch (error) {
      console.debug('approvals could not be read', error);
    }
  }

  async #readCommands(): Promise<void> {
    try {
      const { commands } = await this.#client.request('commands.list', { scope: 'text' });
      if (commands.length > 0) this.commands.value = commands;
    } catch (error) {
      console.debug('commands could not be read', error);
    }
  }

  async #deliver(key: string, runId: string, text: string): Promise<void> {
    try {
      const params = { sessionKey: key, message: text, idempotencyKey: runId };
      const answer = await this.#client.request('chat.send', params, { timeoutMs: SEND_MS_MAX });
      if (answer.runId === undefined) {
        const words = answer.aborted ? 'Stopped.' : 'Nothing is running.';
        this.#change(key, (now) => withNotice(now, runId, words, Date.now()));
        return;
      }
      this.#change(key, (now) => acknowledged(now, runId));
      // The answer came while this page was away.
      if (answer.status === 'ok') await this.sync(key);
    } catch (error) {
      this.#change(key, (now) => withSentStatus(now, runId, 'failed', failureFrom(error)));
    }
  }

  /** Words come faster than a screen can show them: they are taken in once per frame, before anything else that changes. */
  #agentEvent(event: AgentEvent): void {
    if (this.#pending.push(event) > PENDING_MAX) this.#takePending();
    if (this.#frame !== undefined) return;
    // A page in the background gets no frames.
    const soon = document.visibilityState === 'visible' ? requestAnimationFrame : hiddenFrame;
    this.#frame = soon(() => {
      this.#frame = undefined;
      this.#takePending();
    });
  }

  #takePending(): void {
    const events = this.#pending.splice(0);
    for (const key of new Set(events.map(({ sessionKey }) => sessionKey))) {
      const own = events.filter(({ sessionKey }) => sessionKey === key);
      this.#apply(key, (now) => own.reduce(withAgentEvent, now));
    }
  }

  #chatEvent(event: ChatEvent): void {
    if (event.state === 'delta') return;
    this.#takePending();
    const { sessionKey, runId, state } = event;
    const at = Date.now();
    const known = this.#conversations.get(sessionKey)?.peek();
    if (!known) return;
    const live = known.live?.runId === runId ? known.live : undefined;
    const text = noticeText(event);
    // A message that was put into the run under way ends with nothing to say; its words come with the history.
    if (state === 'final' && !live && text === '') return;
    const failure = state === 'error' ? failureOfEvent(event) : undefined;
    const outcome = state === 'final' ? 'answered' : state === 'error' ? 'failed' : 'aborted';
    this.#change(sessionKey, (now) => withRunEnd(now, { runId, outcome, at, ...(failure ? { failure } : {}) }));
    // Without a model's word before it, the final text is the gateway's own and not in the transcript.
    if (state === 'final' && !live?.spoke) this.#change(sessionKey, (now) => withNotice(now, runId, text, at));
    void this.sync(sessionKey);
  }

  #rowChanged(row: SessionSummary): void {
    const before = this.sessions.value.find(({ key }) => key === row.key);
    // Events carry no titles made from content; the list does.
    if (!before) this.#listSoon();
    else this.sessions.value = [{ ...before, ...row }, ...this.sessions.value.filter(({ key }) => key !== row.key)];
    if (row.status !== 'running') this.#listSoon();
  }

  #listSoon(): void {
    clearTimeout(this.#listTimer);
    this.#listTimer = setTimeout(() => void this.listSessions(), LIST_DELAY_MS);
  }

  #approvalGone(id: string): void {
    this.approvals.value = this.approvals.value.filter((record) => record.id !== id);
  }

  #notice(key: string, text: string): void {
    this.#change(key, (now) => withNotice(now, newId(), text, Date.now()));
  }

  #conversationOf(key: string): Signal<Conversation> {
    const known = this.#conversations.get(key);
    if (known) return known;
    const fresh = signal(emptyConversation(key));
    this.#conversations.set(key, fresh);
    return fresh;
  }

  #change(key: string, change: (now: Conversation) => Conversation): void {
    this.#takePending();
    this.#apply(key, change);
  }

  #apply(key: string, change: (now: Conversation) => Conversation): void {
    const conversation = this.#conversations.get(key);
    if (conversation) conversation.value = change(conversation.peek());
  }
}

const sessionDefaults = (hello: HelloOk) =>
  (hello.snapshot['sessionDefaults'] ?? {}) as { readonly defaultAgentId?: string; readonly mainSessionKey?: string };

/** The acknowledgement can come after the run's first words, or after its end. */
function acknowledged(now: Conversation, runId: string): Conversation {
  const sent = now.sent.find((message) => message.runId === runId);
  return sent?.status === 'sending' ? withSentStatus(now, runId, 'accepted') : now;
}

function noticeText({ message }: ChatEvent): string {
  const content = message?.content;
  if (typeof content === 'string') return content.trim();
  if (!Array.isArray(content)) return '';
  return content
    .map((block: { text?: unknown }) => String(block.text ?? ''))
    .join('')
    .trim();
}

function failureOfEvent(event: ChatEvent): Failure {
  const { errorMessage = 'The run failed.', error } = event as ChatEvent & { readonly error?: Partial<Failure> };
  return {
    message: errorMessage,
    ...(error?.code ? { code: error.code } : {}),
    ...(error?.next ? { next: error.next } : {}),
  };
}

function failureFrom(error: unknown): Failure {
  if (!(error instanceof GatewayError)) return { message: messageOf(error) };
  return { code: error.code, message: error.message, ...(error.next === undefined ? {} : { next: error.next }) };
}
