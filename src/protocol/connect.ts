import type { Static } from 'typebox';
import * as Type from 'typebox';

const short = (max = 256) => Type.String({ maxLength: max });

export const CLIENT_IDS = [
  ...([
    'cli',
    'gateway-client',
    'openclaw-control-ui',
    'webchat-ui',
    'webchat',
    'openclaw-tui',
    'openclaw-macos',
    'openclaw-ios',
  ] as const),
  ...(['openclaw-android', 'node-host', 'openclaw-probe', 'fingerprint', 'test'] as const),
] as const;
export const CLIENT_MODES = ['cli', 'backend', 'webchat', 'ui', 'node', 'probe', 'test'] as const;

export const OPERATOR_SCOPES = [
  ...([
    'operator.read',
    'operator.write',
    'operator.admin',
    'operator.approvals',
    'operator.pairing',
    'operator.talk.secrets',
  ] as const),
] as const;
export type Scope = (typeof OPERATOR_SCOPES)[number];

export const ConnectParams = Type.Object(
  {
    minProtocol: Type.Integer({ minimum: 1, maximum: 1_000 }),
    maxProtocol: Type.Integer({ minimum: 1, maximum: 1_000 }),
    client: Type.Object(
      {
        id: Type.Enum([...CLIENT_IDS]),
        version: short(),
        platform: short(),
        mode: Type.Enum([...CLIENT_MODES]),
        displayName: Type.Optional(short()),
        deviceFamily: Type.Optional(short()),
        modelIdentifier: Type.Optional(short()),
        instanceId: Type.Optional(short()),
      },
      { additionalProperties: false },
    ),
    role: Type.Optional(short(32)),
    scopes: Type.Optional(Type.Array(short(64), { maxItems: 32 })),
    caps: Type.Optional(Type.Array(short(64), { maxItems: 64 })),
    commands: Type.Optional(Type.Array(short(128), { maxItems: 256 })),
    permissions: Type.Optional(Type.Record(Type.String(), Type.Boolean())),
    auth: Type.Optional(
      Type.Object(
        {
          token: Type.Optional(short(4_096)),
          password: Type.Optional(short(4_096)),
          deviceToken: Type.Optional(short(4_096)),
          bootstrapToken: Type.Optional(short(4_096)),
        },
        { additionalProperties: false },
      ),
    ),
    device: Type.Optional(
      Type.Object(
        { id: short(128), publicKey: short(128), signature: short(256), signedAt: Type.Integer(), nonce: short(128) },
        { additionalProperties: false },
      ),
    ),
    locale: Type.Optional(short(64)),
    userAgent: Type.Optional(short(1_024)),
    pathEnv: Type.Optional(short(8_192)),
  },
  { additionalProperties: false },
);
export type ConnectParams = Static<typeof ConnectParams>;

export type HelloOk = {
  readonly type: 'hello-ok';
  readonly protocol: number;
  readonly server: { readonly version: string; readonly connId: string };
  readonly features: { readonly methods: readonly string[]; readonly events: readonly string[] };
  readonly snapshot: Readonly<Record<string, unknown>>;
  readonly auth: { readonly role: string; readonly scopes: readonly string[]; readonly method: string };
  readonly policy: {
    readonly maxPayload: number;
    readonly maxBufferedBytes: number;
    readonly tickIntervalMs: number;
    /** Since protocol 4. Bytes of one attachment, decoded. */
    readonly attachments?: { readonly maxBytes: number; readonly maxImageBytes: number };
  };
};

/** Events that this gateway sends. */
export const EVENTS = [
  ...([
    'connect.challenge',
    'tick',
    'health',
    'presence',
    'agent',
    'chat',
    'session.message',
    'session.tool',
    'sessions.changed',
  ] as const),
  ...(['exec.approval.requested', 'exec.approval.resolved', 'shutdown'] as const),
] as const;
