import { createConnection } from 'node:net';
import { isGatewayError, isRecord, printableLine } from '#base';
import {
  agentIds,
  agentSettings,
  bindsLoopbackOnly,
  type Config,
  defaultAgent,
  formatIssue,
  type LoadedConfig,
  modelAliases,
  REDACTED,
  redactConfig,
  type StatePaths,
  statePaths,
} from '#config';
import { parseModelRef } from '#domain';
import { examine, withoutOverrides } from './config.ts';
import { checkFiles } from './doctor-files.ts';
import { EXIT, faultOf } from './fault.ts';
import type { Finding, Severity } from './finding.ts';
import { type GatewayAddress, gatewayAddress } from './gateway-address.ts';
import { connectGateway } from './gateway-link.ts';
import type { CommandContext } from './program.ts';

type Options = { readonly fix?: boolean; readonly json?: boolean };

const PROBE_MS = 3_000;
const TOKEN_LENGTH_MIN = 24;
const TOKEN_CHARACTERS_MIN = 10;

/** `reins doctor`: exit code 1 when something critical is left. Changes nothing but, with `--fix`, the modes of files. */
export async function doctor(context: CommandContext, { fix, json }: Options): Promise<number> {
  const { env, terminal } = context;
  const paths = statePaths(env);
  const uid = process.getuid?.();
  const files =
    uid === undefined
      ? []
      : await checkFiles({ ...paths, mend: fix ? 'yes' : 'no', uid }).catch((thrown: unknown) => [
          unreadable(paths.stateDir, thrown),
        ]);
  const { issues, warnings, notices, file } = examine(withoutOverrides(env));
  const { loaded } = examine(env);
  const findings: Finding[] = [
    ...checkRuntime(uid),
    ...files,
    ...issues.map((issue) => configFinding('config.invalid', 'critical', formatIssue(issue), file)),
    ...warnings.map((issue) => configFinding('config.warning', 'warn', formatIssue(issue), file)),
    ...notices.map((notice) => configFinding('config.no_effect', 'info', notice, file)),
  ];
  if (loaded) findings.push(...checkSecurity(loaded, paths), ...(await checkGateway(context, loaded)));
  const left = findings.filter((finding) => !finding.fixed);
  const count = (severity: Severity) => left.filter((finding) => finding.severity === severity).length;
  const ok = count('critical') === 0;
  if (json) terminal.json({ ok, findings });
  else {
    for (const severity of ['critical', 'warn', 'info'] as const) {
      for (const finding of findings.filter((one) => one.severity === severity)) show(context, finding);
    }
    const [critical, warn] = [count('critical'), count('warn')];
    terminal.line(`\n${ok ? '✓' : '✗'} ${critical} critical, ${warn} ${warn === 1 ? 'warning' : 'warnings'}`);
  }
  return ok ? EXIT.done : EXIT.failed;
}

function checkRuntime(uid: number | undefined): Finding[] {
  const findings: Finding[] = [
    { checkId: 'runtime.node', severity: 'info', path: process.execPath, reason: `Node ${process.versions.node}.` },
  ];
  if (uid === 0) {
    findings.push({
      checkId: 'runtime.root',
      severity: 'warn',
      reason: 'This runs as root, so what an agent may run, it runs as root.',
      fix: 'Run Reins as a user of its own.',
    });
  }
  return findings;
}

function unreadable(path: string, thrown: unknown): Finding {
  const fix = 'Make the folder yours and readable, or set REINS_STATE_DIR.';
  return {
    checkId: 'fs.state_dir.unreadable',
    severity: 'critical',
    path,
    reason: `It cannot be read (${faultOf(thrown).message}).`,
    fix,
  };
}

const configFinding = (checkId: string, severity: Severity, reason: string, path: string): Finding => ({
  checkId,
  severity,
  path,
  reason,
  ...(severity === 'info' ? {} : { fix: 'Correct it; reins config validate shows all of them.' }),
});

/** Settings that open what is closed by default. */
function checkSecurity(loaded: LoadedConfig, paths: StatePaths): Finding[] {
  const { config } = loaded;
  const findings: Finding[] = [];
  if (config.gateway.auth.mode === 'none') {
    findings.push({
      checkId: 'gateway.loopback_no_auth',
      severity: 'critical',
      path: 'gateway.auth.mode',
      reason: 'Every program on this machine can use the gateway.',
      fix: 'reins config set gateway.auth.mode token',
    });
  }
  if (!bindsLoopbackOnly(config.gateway)) {
    findings.push({
      checkId: 'gateway.bind_not_loopback',
      severity: 'warn',
      path: 'gateway.bind',
      reason: `Other machines can reach the gateway (${config.gateway.bind}), without TLS of its own.`,
      fix: 'reins config set gateway.bind loopback, and reach it through a proxy with TLS or an SSH tunnel.',
    });
  }
  const written = JSON.stringify(redactConfig(loaded.parsed) ?? null).split(REDACTED).length - 1;
  if (written > 0) {
    findings.push({
      checkId: 'secrets.plaintext',
      severity: 'warn',
      path: loaded.file,
      reason: `${written} ${written === 1 ? 'secret stands' : 'secrets stand'} in the config itself.`,
      fix: `Put each into an environment variable and write $\{NAME} in its place.`,
    });
  }
  return [...findings, ...checkExec(config, paths)];
}

function checkExec(config: Config, paths: StatePaths): Finding[] {
  return agentIds(config).flatMap((id): Finding[] => {
    const exec = agentSettings(config, id, paths)?.exec;
    if (!exec) return [];
    const path = `tools.exec, agent ${id}`;
    if (exec.host === 'nowhere' || exec.security === 'deny') {
      return [{ checkId: 'tools.exec.policy', severity: 'info', path, reason: 'No command runs.' }];
    }
    if (exec.security === 'full' && exec.ask === 'off') {
      const fix = 'reins config set tools.exec.mode ask';
      const reason = 'Every command that the model writes runs, and nobody is asked.';
      return [{ checkId: 'tools.exec.security_full_configured', severity: 'warn', path, reason, fix }];
    }
    const asks = {
      off: 'the rest is refused',
      'on-miss': 'the rest waits for a person',
      always: 'each waits for a person',
    };
    const runs = exec.security === 'full' ? 'Every command may run' : 'What is listed runs';
    return [{ checkId: 'tools.exec.policy', severity: 'info', path, reason: `${runs}; ${asks[exec.ask]}.` }];
  });
}

async function checkGateway(context: CommandContext, { config }: LoadedConfig): Promise<Finding[]> {
  let address: GatewayAddress;
  try {
    address = gatewayAddress(context.env);
  } catch (thrown) {
    if (!isGatewayError(thrown)) throw thrown;
    const { message, next } = faultOf(thrown);
    return [{ checkId: 'gateway.address', severity: 'critical', reason: message, fix: next }];
  }
  const findings = config.gateway.auth.mode === 'token' ? checkToken(address) : [];
  try {
    using link = await connectGateway(context);
    const reason = `It runs, version ${link.hello.server.version}.`;
    findings.push({ checkId: 'gateway.running', severity: 'info', path: address.url, reason });
    const list: unknown = await link.client.request('sessions.list', { limit: 1 });
    const defaults = isRecord(list) && isRecord(list['defaults']) ? list['defaults'] : {};
    if (typeof defaults['model'] === 'string') {
      return [
        ...findings,
        ...(await checkModel(context, config, `${String(defaults['modelProvider'])}/${defaults['model']}`)),
      ];
    }
  } catch (thrown) {
    if (!isGatewayError(thrown)) throw thrown;
    findings.push(await notOurs(address, faultOf(thrown)));
  }
  return [...findings, ...(await checkModel(context, config, undefined))];
}

function checkToken({ token, tokenFrom }: GatewayAddress): Finding[] {
  if (token === undefined) {
    return [
      { checkId: 'gateway.token_missing', severity: 'info', path: tokenFrom, reason: 'The first start makes a token.' },
    ];
  }
  if (token.length >= TOKEN_LENGTH_MIN && new Set(token).size >= TOKEN_CHARACTERS_MIN) return [];
  return [
    {
      checkId: 'gateway.token_too_short',
      severity: 'warn',
      path: tokenFrom,
      reason: `The gateway token is easy to guess: it should have ${TOKEN_LENGTH_MIN} characters or more, and no pattern.`,
      fix: 'Remove it, so that the next start makes a random one.',
    },
  ];
}

async function notOurs(
  address: GatewayAddress,
  fault: { code: string; message: string; next: string },
): Promise<Finding> {
  const path = address.url;
  if (fault.code !== 'GATEWAY_UNREACHABLE') {
    return { checkId: 'gateway.refused', severity: 'warn', path, reason: `${fault.message}.`, fix: fault.next };
  }
  if (await listens(new URL(address.url))) {
    const fix = 'Stop that program, or choose another port: reins config set gateway.port <number>';
    return { checkId: 'gateway.port_taken', severity: 'critical', path, reason: 'Another program listens there.', fix };
  }
  return {
    checkId: 'gateway.stopped',
    severity: 'info',
    path,
    reason: 'No gateway runs; the port is free.',
    fix: 'reins start',
  };
}

function listens({ hostname, port, protocol }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = createConnection({ host, port: Number(port || (protocol === 'https:' ? 443 : 80)) });
    const answer = (found: boolean) => {
      socket.destroy();
      resolve(found);
    };
    socket.setTimeout(PROBE_MS, () => answer(false));
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
  });
}

/** @param running the model that the gateway names; without one what the config names */
async function checkModel(context: CommandContext, config: Config, running: string | undefined): Promise<Finding[]> {
  const agent = agentSettings(config, defaultAgent(config), statePaths(context.env));
  const chosen = running ?? agent?.model.primary;
  if (chosen === undefined) {
    const reason = 'The config names none: the start takes the first whose key is in the environment.';
    return [
      {
        checkId: 'model.by_environment',
        severity: 'info',
        path: 'agents.defaults.model',
        reason,
        fix: 'See docs/models.md.',
      },
    ];
  }
  const name = modelAliases(config)[chosen] ?? chosen;
  const ref = parseModelRef(name, agent?.provider);
  if (ref?.provider === 'offline') {
    const fix = 'Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY and start again; see docs/models.md.';
    return [
      { checkId: 'model.none', severity: 'warn', reason: 'No model is configured; the offline guide answers.', fix },
    ];
  }
  const baseUrl = ref && config.models.providers[ref.provider]?.baseUrl;
  const found: Finding = { checkId: 'model.chosen', severity: 'info', path: name, reason: 'Runs use this model.' };
  if (baseUrl === undefined || (await answers(baseUrl))) return [found];
  const key = `models.providers.${ref!.provider}.baseUrl`;
  const reason = `Nothing answers at ${new URL(baseUrl).origin}, where ${name} should be.`;
  return [
    found,
    {
      checkId: 'model.unreachable',
      severity: 'warn',
      path: key,
      reason,
      fix: 'Start that server, or correct the address.',
    },
  ];
}

/** Whether a server is there at all; what it says to a stranger does not matter. */
async function answers(baseUrl: string): Promise<boolean> {
  try {
    const response = await fetch(baseUrl, { redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    await response.body?.cancel();
    return true;
  } catch {
    return false; // refused, unknown or silent: all the same to the person
  }
}

function show({ terminal }: CommandContext, finding: Finding): void {
  const [mark, style] = { critical: ['✗', 'red'], warn: ['!', 'yellow'], info: ['·', 'dim'] }[finding.severity] as [
    string,
    'red',
  ];
  const place = finding.path === undefined ? '' : `${finding.path}: `;
  const fix = finding.fixed ? ' — mended' : finding.fix === undefined ? '' : ` — ${finding.fix}`;
  terminal.line(
    `${terminal.paint(style, `${mark} ${printableLine(place + finding.reason + fix)}`)} ${terminal.paint('dim', `[${finding.checkId}]`)}`,
  );
}
