import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import { MAIN_SESSION, mainSessionKey } from '#domain';
import type { Connection } from './connection.ts';
import type { GatewayPorts } from './ports.ts';

type View = Readonly<Record<string, unknown>>;
type EventLoopUtilization = ReturnType<typeof performance.eventLoopUtilization>;

const RECENT_SESSIONS = 5;
/** Above this share of time the loop has no room left for what comes next. */
const BUSY_SHARE = 0.95;

/** What the gateway tells of itself: health, who is connected, and the snapshot that a client starts from. */
export class SelfView {
  readonly #ports: GatewayPorts;
  readonly #connections: ReadonlySet<Connection>;
  readonly #startedAt: number;
  #versions = { presence: 1, health: 1 };
  #loop: { readonly at: number; readonly utilization: EventLoopUtilization };

  constructor(ports: GatewayPorts, connections: ReadonlySet<Connection>) {
    this.#ports = ports;
    this.#connections = connections;
    this.#startedAt = ports.clock.now();
    this.#loop = { at: this.#startedAt, utilization: performance.eventLoopUtilization() };
  }

  get uptimeMs(): number {
    return this.#ports.clock.now() - this.#startedAt;
  }

  /** Each number only grows; it tells a client whether what it knows is old. */
  get versions(): { readonly presence: number; readonly health: number } {
    return this.#versions;
  }

  changed(what: 'presence' | 'health'): void {
    this.#versions = { ...this.#versions, [what]: this.#versions[what] + 1 };
  }

  async health(): Promise<View> {
    const { agents, sessions, clock } = this.#ports;
    const startedAt = performance.now();
    const { rows, total } = await sessions.list({ limit: RECENT_SESSIONS });
    const now = clock.now();
    const recent = rows.map(({ key, updatedAt }) => ({ key, updatedAt, age: now - updatedAt }));
    const summary = { path: '(multiple)', count: total, recent };
    return {
      ok: true,
      ts: now,
      durationMs: Math.round(performance.now() - startedAt),
      eventLoop: this.eventLoop(),
      plugins: { loaded: [], errors: [] },
      channels: {},
      channelOrder: [],
      channelLabels: {},
      heartbeatSeconds: 0,
      defaultAgentId: agents.defaultId(),
      agents: agents.list().map(({ id, name }) => ({
        agentId: id,
        name,
        isDefault: id === agents.defaultId(),
        heartbeat: { enabled: false },
        sessions: summary,
      })),
      sessions: summary,
    };
  }

  /** How busy the process was since this was last asked. */
  eventLoop(): View {
    const now = this.#ports.clock.now();
    const total = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(total, this.#loop.utilization);
    const intervalMs = now - this.#loop.at;
    this.#loop = { at: now, utilization: total };
    const degraded = utilization > BUSY_SHARE;
    return {
      degraded,
      reasons: degraded ? ['event_loop_utilization'] : [],
      intervalMs,
      utilization: Math.round(utilization * 1_000) / 1_000,
    };
  }

  /** The gateway itself comes first. */
  presence(): readonly View[] {
    const { version } = this.#ports;
    const self = {
      host: hostname(),
      version,
      platform: process.platform,
      mode: 'gateway',
      reason: 'self',
      text: `Gateway ${version}`,
      ts: this.#startedAt,
    };
    const clients = [...this.#connections].map((connection) => {
      const { client } = connection;
      return {
        host: client?.displayName ?? client?.id,
        version: client?.version,
        platform: client?.platform,
        mode: client?.mode,
        roles: ['operator'],
        scopes: [...connection.scopes],
        instanceId: client?.instanceId ?? connection.id,
        reason: 'connect',
        text: `${client?.id} (${client?.mode})`,
        ts: connection.connectedAt,
      };
    });
    return [self, ...clients];
  }

  /** @param reader where files lie is for those only who may change them */
  async snapshot(reader: 'admin' | 'others'): Promise<View> {
    const { agents, place, settings } = this.#ports;
    const defaultAgentId = agents.defaultId();
    const places = { configPath: place.configFile, stateDir: place.stateDir, authMode: settings().auth.mode };
    return {
      presence: this.presence(),
      health: await this.health(),
      stateVersion: this.versions,
      uptimeMs: this.uptimeMs,
      sessionDefaults: {
        defaultAgentId,
        mainKey: MAIN_SESSION,
        mainSessionKey: mainSessionKey(defaultAgentId),
        scope: 'per-sender',
      },
      ...(reader === 'admin' ? places : {}),
    };
  }
}
