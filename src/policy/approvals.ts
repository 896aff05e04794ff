import { type Clock, GatewayError, newId } from '#base';
import type { Approval, ApprovalDecision, SessionKey } from '#domain';

/** What is asked: exactly what will run, and which answers are possible. */
export type ApprovalQuestion = Omit<
  Approval,
  'id' | 'createdAt' | 'expiresAt' | 'decision' | 'resolvedBy' | 'resolvedAt'
>;

const PENDING_MAX = 64;
const PENDING_PER_SESSION_MAX = 8;
const RESOLVED_MAX = 256;

type Pending = { readonly approval: Approval; readonly settle: (approval: Approval) => void };

/** Questions that wait for a person. Each is answered once, by someone or by its expiry, which counts as no. */
export class Approvals {
  readonly #clock: Clock;
  readonly #expiryMs: () => number;
  readonly #pending = new Map<string, Pending>();
  readonly #resolved = new Map<string, Approval>();
  readonly #listeners = new Set<(approval: Approval) => void>();

  constructor(options: {
    readonly clock: Clock;
    /** How long a new question waits, in milliseconds. */
    readonly expiryMs: () => number;
  }) {
    this.#clock = options.clock;
    this.#expiryMs = options.expiryMs;
  }

  /**
   * Asks, and waits for the answer. When `signal` aborts first the question is withdrawn, with the decision `expired`.
   * @returns the resolved approval, or undefined when there is no room for another question
   * @throws the signal's reason when it has aborted already
   */
  async ask(question: ApprovalQuestion, signal: AbortSignal): Promise<Approval | undefined> {
    signal.throwIfAborted();
    if (this.#pending.size >= PENDING_MAX || this.list(question.sessionKey).length >= PENDING_PER_SESSION_MAX)
      return undefined;
    const createdAt = this.#clock.now();
    const approval: Approval = { ...question, id: newId(), createdAt, expiresAt: createdAt + this.#expiryMs() };
    const { promise, resolve } = Promise.withResolvers<Approval>();
    const withdraw = () => this.#end(approval, 'expired', 'the run ended');
    const cancel = this.#clock.after(approval.expiresAt - createdAt, () =>
      this.#end(approval, 'expired', 'nobody answered in time'),
    );
    this.#pending.set(approval.id, { approval, settle: resolve });
    signal.addEventListener('abort', withdraw, { once: true });
    try {
      this.#tell(approval);
      return await promise;
    } finally {
      cancel();
      signal.removeEventListener('abort', withdraw);
      // Only when nobody could be told: a question that nobody hears of must not hold a place.
      this.#pending.delete(approval.id);
    }
  }

  /** Those that wait, oldest first. */
  list(session?: SessionKey): readonly Approval[] {
    const all = [...this.#pending.values()].map(({ approval }) => approval);
    return session === undefined ? all : all.filter((approval) => approval.sessionKey === session);
  }

  get(id: string): Approval | undefined {
    return this.#pending.get(id)?.approval ?? this.#resolved.get(id);
  }

  /**
   * Only a decision that was offered counts.
   * @param by who decided, for the record
   * @throws {GatewayError} `APPROVAL_NOT_FOUND`, `APPROVAL_ALREADY_RESOLVED`, `REQUEST_INVALID`
   */
  resolve(id: string, decision: ApprovalDecision, by: string): Approval {
    const pending = this.#pending.get(id);
    if (!pending) {
      if (this.#resolved.has(id)) {
        throw new GatewayError('APPROVAL_ALREADY_RESOLVED', 'approval already resolved', {
          next: 'An answer counts once. Run the command again to be asked again.',
        });
      }
      throw new GatewayError('APPROVAL_NOT_FOUND', 'unknown or expired approval id', {
        next: 'Look at the list of approvals again; questions end with their run and with a restart.',
      });
    }
    if (!pending.approval.allowedDecisions.includes(decision)) {
      throw new GatewayError('REQUEST_INVALID', `"${decision}" was not offered for this approval`, {
        next: `Choose one of: ${pending.approval.allowedDecisions.join(', ')}.`,
      });
    }
    return this.#end(pending.approval, decision, by);
  }

  /** Ends a question that nobody can answer; it counts as one that ran out of time. @param why for the record and for the model */
  callOff(id: string, why: string): void {
    const pending = this.#pending.get(id);
    if (pending) this.#end(pending.approval, 'expired', why);
  }

  /** Called for each new question and again when it is answered; must not throw. */
  subscribe(listener: (approval: Approval) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The first answer counts; a later one changes nothing and gets the first. */
  #end(approval: Approval, decision: NonNullable<Approval['decision']>, by: string): Approval {
    const pending = this.#pending.get(approval.id);
    if (!pending) return this.#resolved.get(approval.id) ?? approval;
    const resolved: Approval = { ...approval, decision, resolvedBy: by, resolvedAt: this.#clock.now() };
    this.#pending.delete(approval.id);
    this.#resolved.set(approval.id, resolved);
    const [oldest] = this.#resolved.keys();
    if (this.#resolved.size > RESOLVED_MAX && oldest !== undefined) this.#resolved.delete(oldest);
    pending.settle(resolved);
    this.#tell(resolved);
    return resolved;
  }

  #tell(approval: Approval): void {
    for (const listener of this.#listeners) listener(approval);
  }
}
