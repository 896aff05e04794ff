import { BlockList, isIP } from 'node:net';
import { ID_PATTERN, nearestName } from '#base';
import { parseModelRef } from '#domain';
import { agentIds } from './agent-settings.ts';
import { bindsLoopbackOnly } from './bind-host.ts';
import type { ConfigPath } from './config-path.ts';
import type { Fault } from './issue.ts';
import { patternFault } from './redact-pattern.ts';
import type { Config } from './schema.ts';

export type Findings = { readonly faults: readonly Fault[]; readonly warnings: readonly Fault[] };

/** What the schema alone cannot say: keys that depend on each other, names, addresses, patterns. */
export function checkConfig(config: Config): Findings {
  const faults: Fault[] = [];
  const warnings: Fault[] = [];
  const bad = (path: ConfigPath, message: string, next?: string) =>
    faults.push({ path, message, ...(next === undefined ? {} : { next }) });
  const odd = (path: ConfigPath, message: string, next?: string) =>
    warnings.push({ path, message, ...(next === undefined ? {} : { next }) });

  checkGateway(config, bad, (fault) => faults.push(fault));
  checkAgents(config, bad, odd);
  checkExec(config, bad, odd);
  for (const [id, provider] of Object.entries(config.models.providers)) {
    if (provider.baseUrl !== undefined) checkAddress(provider.baseUrl, ['models', 'providers', id, 'baseUrl'], bad);
  }
  const zone = config.agents.defaults.userTimezone;
  if (zone !== undefined && !isTimeZone(zone)) {
    bad(
      ['agents', 'defaults', 'userTimezone'],
      'is not a time zone that is known here',
      'Use a name such as Europe/Paris.',
    );
  }
  config.logging.redactPatterns.forEach((pattern, index) => {
    const why = patternFault(pattern);
    // Left out, not refused: what is masked by itself stays masked, and a gateway that is down helps nobody.
    if (why !== undefined) {
      odd(['logging', 'redactPatterns', index], `${why}; this pattern is left out`, 'Write a simpler expression.');
    }
  });
  if (config.messages.queue.drop !== 'new') {
    odd(['messages', 'queue', 'drop'], `"${config.messages.queue.drop}" acts as "new" in this version`);
  }
  return { faults, warnings };
}

type Report = (path: ConfigPath, message: string, next?: string) => void;

function checkGateway(config: Config, bad: Report, add: (fault: Fault) => void): void {
  const { auth, bind, customBindHost, trustedProxies, controlUi } = config.gateway;
  if (bind === 'custom' && (customBindHost === undefined || isIP(customBindHost) === 0)) {
    bad(['gateway', 'customBindHost'], 'must be an IP address when gateway.bind is "custom"');
  }
  if (auth.mode === 'none' && !bindsLoopbackOnly(config.gateway)) {
    add({
      path: ['gateway', 'auth'],
      message: `with mode "none", gateway.bind "${bind}" would let anyone on the network use the gateway`,
      next: 'Set gateway.auth.mode to "token", or gateway.bind to "loopback".',
      refusesStart: true,
    });
  }
  if (auth.mode === 'password' && auth.password === undefined) {
    bad(['gateway', 'auth', 'password'], 'is missing, and gateway.auth.mode is "password"');
  }
  if (auth.mode === 'trusted-proxy') {
    if (auth.trustedProxy === undefined) {
      bad(['gateway', 'auth', 'trustedProxy'], 'is missing, and gateway.auth.mode is "trusted-proxy"');
    }
    if (trustedProxies.length === 0) {
      bad(['gateway', 'trustedProxies'], 'must name the proxy when gateway.auth.mode is "trusted-proxy"');
    }
  }
  trustedProxies.forEach((range, index) => {
    if (!isAddressRange(range))
      bad(['gateway', 'trustedProxies', index], 'must be an IP address or a range such as 10.0.0.0/24');
  });
  controlUi.allowedOrigins.forEach((origin, index) => {
    if (!isOrigin(origin)) {
      bad(
        ['gateway', 'controlUi', 'allowedOrigins', index],
        'must be one origin without a path',
        'Write it like https://reins.example.com; a wildcard is never accepted.',
      );
    }
  });
  if (config.gateway.remote.url !== undefined) {
    checkUrl(config.gateway.remote.url, ['gateway', 'remote', 'url'], ['ws:', 'wss:', 'http:', 'https:'], bad);
  }
}

function checkAgents(config: Config, bad: Report, odd: Report): void {
  const { defaults, list, entries } = config.agents;
  const places = [
    ...list.map((entry, index) => ({
      id: entry.id,
      entry,
      path: ['agents', 'list', index] as ConfigPath,
      idKey: ['id'],
    })),
    ...Object.entries(entries).map(([id, entry]) => ({ id, entry, path: ['agents', 'entries', id], idKey: [] })),
  ];
  const seen = new Set<string>();
  const aliases = new Set(Object.values(defaults.models).flatMap(({ alias }) => alias ?? []));
  let defaultsSeen = 0;
  for (const { id, entry, path, idKey } of places) {
    if (!ID_PATTERN.test(id)) {
      bad([...path, ...idKey], 'cannot be an agent id', 'Use lower-case letters, digits, "-" and "_", at most 64.');
    }
    if (seen.has(id)) bad([...path, ...idKey], 'is the id of an agent above', 'Give each agent its own id.');
    seen.add(id);
    if (entry.default === true && ++defaultsSeen > 1) bad([...path, 'default'], 'is set for an agent above already');
    checkModels(entry, path, bad, odd);
  }
  checkModels(defaults, ['agents', 'defaults'], bad, odd);
  for (const name of Object.keys(defaults.models)) {
    if (!isModelName(name) || parseModelRef(name) === undefined) {
      bad(['agents', 'defaults', 'models', name], 'is not in the form provider/model');
    }
  }
  if (aliases.size < Object.values(defaults.models).filter(({ alias }) => alias !== undefined).length) {
    bad(['agents', 'defaults', 'models'], 'has one alias for two models');
  }
  const known = agentIds(config);
  config.bindings.forEach((binding, index) => {
    const channel = binding.match?.channel ?? binding.channel;
    if (channel === undefined) bad(['bindings', index], 'must have a channel, or a match with one');
    if (!known.some((id) => id === binding.agentId)) {
      const near = nearestName(binding.agentId, known);
      odd(
        ['bindings', index, 'agentId'],
        'is not the id of an agent in agents.list',
        near === undefined ? undefined : `Did you mean "${near}"?`,
      );
    }
  });
}

type ModelKeys = Pick<Config['agents']['defaults'], 'model' | 'provider'>;

function checkModels({ model, provider }: ModelKeys, path: ConfigPath, bad: Report, odd: Report): void {
  const named: readonly (readonly [ConfigPath, string | undefined])[] =
    typeof model === 'object'
      ? [
          [[...path, 'model', 'primary'], model.primary],
          ...model.fallbacks.map((name, index) => [[...path, 'model', 'fallbacks', index], name] as const),
        ]
      : [[[...path, 'model'], model]];
  for (const [at, name] of named) {
    if (name !== undefined && !isModelName(name)) bad(at, 'is not in the form provider/model and not an alias');
  }
  if (provider !== undefined && model === undefined) {
    odd([...path, 'provider'], 'has no effect without a model beside it', `Add ${path.join('.')}.model.`);
  }
}

/** A name that can be meant: no blanks, and where there is a slash, something on both sides. */
const isModelName = (name: string): boolean =>
  /^\S+$/.test(name) && (!name.includes('/') || parseModelRef(name) !== undefined);

function checkExec(config: Config, bad: Report, odd: Report): void {
  const scopes = [
    { exec: config.tools.exec, path: ['tools', 'exec'] as ConfigPath },
    ...config.agents.list.map(({ tools }, index) => ({
      exec: tools.exec,
      path: ['agents', 'list', index, 'tools', 'exec'] as ConfigPath,
    })),
    ...Object.entries(config.agents.entries).map(([id, { tools }]) => ({
      exec: tools.exec,
      path: ['agents', 'entries', id, 'tools', 'exec'] as ConfigPath,
    })),
  ];
  for (const { exec, path } of scopes) {
    if (exec.mode !== undefined && (exec.security !== undefined || exec.ask !== undefined)) {
      bad([...path, 'mode'], 'stands beside its older form', 'Keep either mode, or security and ask.');
    }
    if (exec.mode === 'full' || exec.security === 'full') {
      odd(
        [...path, exec.mode === 'full' ? 'mode' : 'security'],
        'is "full": a model can run any command as you, without asking',
        'Use "ask" or "allowlist" unless you mean that.',
      );
    }
  }
}

function checkAddress(text: string, path: ConfigPath, bad: Report): void {
  checkUrl(text, path, ['http:', 'https:'], bad);
}

function checkUrl(text: string, path: ConfigPath, schemes: readonly string[], bad: Report): void {
  const url = URL.parse(text);
  if (!url || !schemes.includes(url.protocol))
    bad(path, `must be an address that starts with ${schemes[0]}// or ${schemes[1]}//`);
  else if (url.username !== '' || url.password !== '') {
    bad(path, 'must not hold a user name or password', 'Put the secret into apiKey or headers.');
  }
}

const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text.replace(/\/$/, '');
};

function isAddressRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (version === 4 ? 32 : 128)) return false;
  new BlockList().addSubnet(address, Number(bits), version === 4 ? 'ipv4' : 'ipv6');
  return true;
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
