import type { Clock } from '#base';
import type { Dispatch } from '#dispatch';
import type { AgentId, Approval, ApprovalDecision, Message, SessionKey } from '#domain';
import type { LogFields } from '#host';
import type { SessionPatch, SessionQuery, SessionRow } from '#sessions';

/** What the gateway serves, given by `app`; it owns none of it. */
export type GatewayPorts = {
  readonly dispatch: Dispatch;
  readonly sessions: {
    list(query: SessionQuery): Promise<{ readonly rows: readonly SessionRow[]; readonly total: number }>;
    get(key: SessionKey): Promise<SessionRow | undefined>;
    create(key: SessionKey, facts: { readonly agent: AgentId; readonly label?: string }): Promise<SessionRow>;
    patch(key: SessionKey, patch: SessionPatch): Promise<SessionRow>;
    reset(key: SessionKey): Promise<SessionRow>;
    delete(key: SessionKey): Promise<boolean>;
    history(
      key: SessionKey,
      query: { readonly limit: number },
    ): Promise<{
      readonly sessionId?: string;
      readonly thinkingLevel?: string;
      readonly messages: readonly { readonly entryId: string; readonly seq: number; readonly message: Message }[];
    }>;
    subscribe(listener: (change: { readonly key: SessionKey; readonly reason: string }) => void): () => void;
  };
  readonly approvals: {
    list(): readonly Approval[];
    get(id: string): Approval | undefined;
    resolve(id: string, decision: ApprovalDecision, by: string): Approval;
    subscribe(listener: (approval: Approval) => void): () => void;
  };
  readonly agents: {
    list(): readonly {
      readonly id: AgentId;
      readonly name: string;
      readonly workspace: string;
      readonly model: ModelFacts;
    }[];
    defaultId(): AgentId;
  };
  readonly models: { list(): readonly ModelRow[] };
  readonly commands: () => readonly { readonly name: string; readonly description: string }[];
  /** The config for people: secrets replaced, as it is in force and as it is written. */
  readonly configView: () => Readonly<Record<string, unknown>>;
  readonly settings: () => GatewaySettings;
  readonly log: {
    debug(message: string, fields?: LogFields): void;
    info(message: string, fields?: LogFields): void;
    warn(message: string, fields?: LogFields): void;
    error(message: string, fields?: LogFields): void;
  };
  readonly logFile: string;
  readonly clock: Clock;
  readonly version: string;
  /** The built web chat. */
  readonly uiFolder: string;
  readonly place: { readonly stateDir: string; readonly configFile: string };
};

export type ModelFacts = { readonly provider: string; readonly model: string; readonly contextTokens: number };
export type ModelRow = {
  readonly provider: string;
  readonly id: string;
  readonly name: string;
  readonly contextWindow: number;
  readonly reasoning: boolean;
  readonly input: readonly string[];
};

/** Read anew for each request, so that a changed secret counts at once. */
export type GatewaySettings = {
  /** The address to listen on. */
  readonly host: string;
  readonly port: number;
  readonly auth: AuthSettings;
  /** Further names by which people reach the gateway, beside the loopback ones. */
  readonly allowedHosts: readonly string[];
  /** Further origins whose pages may connect, `scheme://host[:port]`. */
  readonly allowedOrigins: readonly string[];
  readonly trustedProxies: readonly string[];
  readonly chatCompletions: boolean;
};

export type AuthSettings =
  | { readonly mode: 'token' | 'password'; readonly secret: string; readonly rateLimit: RateLimit }
  | { readonly mode: 'none'; readonly rateLimit: RateLimit };

export type RateLimit = { readonly maxAttempts: number; readonly windowMs: number; readonly lockoutMs: number };
