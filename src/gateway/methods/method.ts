import type { SessionKey } from '#domain';
import type { MethodName, MethodParams } from '#protocol';
import type { GatewayPorts } from '../ports.ts';
import type { RunFeed } from '../run-feed.ts';
import type { SelfView } from '../self-view.ts';

/** Who calls, as the connection was authenticated. */
export type Caller = {
  readonly channel: string;
  readonly surface: string;
  readonly scopes: ReadonlySet<string>;
  /** What the client calls itself; for records, never for decisions. */
  readonly name: string;
  readonly subscriptions: { sessions: boolean; readonly messages: Set<SessionKey> };
  /** Answers the request a second time, later. */
  respondLater(answer: Promise<unknown>): void;
  /** Aborts when the connection is gone. */
  readonly gone: AbortSignal;
};

export type MethodContext = {
  readonly ports: GatewayPorts;
  readonly feed: RunFeed;
  readonly caller: Caller;
  readonly view: SelfView;
};

export type Methods<Names extends MethodName> = {
  readonly [M in Names]: (params: MethodParams<M>, context: MethodContext) => unknown;
};
