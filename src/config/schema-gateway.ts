import * as Type from 'typebox';
import { flag, later, laterKeys, names, secret } from './schema-parts.ts';

const Auth = Type.Object(
  {
    mode: Type.Enum(['token', 'password', 'trusted-proxy', 'none'], {
      default: 'token',
      description: 'How a client proves who it is. `none` is refused unless the gateway listens on loopback only.',
    }),
    token: Type.Optional(
      secret(
        'The gateway token. Absent: made at the first start and kept in the state folder. `REINS_GATEWAY_TOKEN` wins.',
      ),
    ),
    password: Type.Optional(secret('The password for mode `password`.')),
    trustedProxy: Type.Optional(
      Type.Object(
        {
          userHeader: Type.String({
            minLength: 1,
            maxLength: 64,
            pattern: '^[A-Za-z0-9-]+$',
            description: 'The header in which the proxy names the person.',
          }),
          requiredHeaders: names('Headers that must be there as well.'),
          allowUsers: names('The people who may come in; empty: all whom the proxy lets through.'),
          ...laterKeys(['allowLoopback', 'deviceAutoApprove']),
        },
        { description: 'For mode `trusted-proxy`.' },
      ),
    ),
    rateLimit: Type.Object(
      {
        maxAttempts: Type.Integer({
          minimum: 1,
          maximum: 1_000,
          default: 10,
          description: 'Failed attempts per window.',
        }),
        windowMs: Type.Integer({
          minimum: 1_000,
          maximum: 86_400_000,
          default: 60_000,
          description: 'Length of the window, in milliseconds.',
        }),
        lockoutMs: Type.Integer({
          minimum: 1_000,
          maximum: 86_400_000,
          default: 300_000,
          description: 'How long an address is locked out, in milliseconds.',
        }),
        exemptLoopback: flag(true, 'Attempts from this machine (without a browser) do not count.'),
      },
      { description: 'Failed authentication, counted by address.' },
    ),
    ...laterKeys(['allowTailscale', 'identityScopes']),
  },
  { description: 'Who may use the gateway.' },
);

const endpoint = (description: string) =>
  Type.Object(
    { enabled: flag(false, 'Serve it.'), ...laterKeys(['images', 'files', 'maxBodyBytes']) },
    { description },
  );

export const GatewaySchema = Type.Object(
  {
    mode: Type.Enum(['local', 'remote'], {
      default: 'local',
      description:
        '`local` runs the gateway here; `remote` only uses one elsewhere, and `reins gateway` refuses to start.',
    }),
    port: Type.Integer({
      minimum: 0,
      maximum: 65_535,
      default: 18_789,
      description: 'The one TCP port for HTTP and WebSocket; 0 takes a free one. `REINS_GATEWAY_PORT` wins.',
    }),
    bind: Type.Enum(['loopback', 'lan', 'tailnet', 'auto', 'custom'], {
      default: 'loopback',
      description:
        'Where it listens: `loopback` 127.0.0.1, `lan` every IPv4 address, `tailnet` the Tailscale address or else loopback, `custom` `customBindHost`; `auto` is loopback.',
    }),
    customBindHost: Type.Optional(Type.String({ maxLength: 64, description: 'The IP address for bind `custom`.' })),
    auth: Auth,
    http: Type.Object(
      {
        endpoints: Type.Object(
          {
            chatCompletions: endpoint('`POST /v1/chat/completions`.'),
            responses: endpoint('`POST /v1/responses`.'),
          },
          { description: 'The OpenAI-compatible endpoints, each off unless enabled.' },
        ),
        ...laterKeys(['securityHeaders']),
      },
      { description: 'What is served over plain HTTP.' },
    ),
    controlUi: Type.Object(
      {
        enabled: flag(true, 'Serve the web UI.'),
        basePath: Type.String({
          default: '',
          maxLength: 128,
          pattern: '^(/[A-Za-z0-9._~-]+)*/?$',
          description: 'The path the UI is served under, such as `/reins`; empty: the root.',
        }),
        allowedOrigins: names('Origins, such as `https://reins.example.com`, whose pages may connect beside its own.'),
        ...laterKeys([
          ...(['root', 'allowInsecureAuth', 'dangerouslyDisableDeviceAuth', 'embedSandbox', 'environment'] as const),
          ...(['dangerouslyAllowHostHeaderOriginFallback', 'allowExternalEmbedUrls', 'experimental'] as const),
        ]),
      },
      { description: 'The web UI.' },
    ),
    trustedProxies: names('Addresses or CIDR ranges of proxies whose forwarding headers count.'),
    tools: Type.Object(
      {
        allow: names('Tools taken off the list that is denied over HTTP.'),
        deny: names('Further tools denied over HTTP.'),
      },
      { description: 'Tools called by `POST /tools/invoke`.' },
    ),
    remote: Type.Object(
      {
        url: Type.Optional(Type.String({ maxLength: 512, description: 'The other gateway, `ws://…` or `wss://…`.' })),
        token: Type.Optional(secret("The other gateway's token.")),
        password: Type.Optional(secret("The other gateway's password.")),
        ...laterKeys(['transport', 'tlsFingerprint', 'sshTarget', 'sshIdentity', 'enabled']),
      },
      { description: 'A gateway elsewhere that the CLI uses.' },
    ),
    allowRealIpFallback: later('`X-Real-IP` is never believed.'),
    ...laterKeys([
      ...(['tailscale', 'tls', 'nodes', 'reload', 'push', 'roles', 'terminal', 'publicOrigin', 'cliAgents'] as const),
      ...(['handshakeTimeoutMs', 'channelHealthCheckMinutes', 'webchat'] as const),
    ]),
  },
  { description: 'The server: address, authentication and what it offers.' },
);
