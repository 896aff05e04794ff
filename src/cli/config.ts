import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { evaluate, parse } from '@humanwhocodes/momoa';
import { GatewayError, isGatewayError, printableLine } from '#base';
import {
  assertConfigKey,
  formatIssue,
  getConfigValue,
  type Issue,
  type JsonValue,
  type LoadedConfig,
  loadConfig,
  parseConfigPath,
  readConfigText,
  redactConfig,
  setConfigValue,
  statePaths,
  unsetConfigValue,
  writeConfig,
} from '#config';
import { ensurePrivateFolder } from '#host';
import { EXIT, UsageError } from './fault.ts';
import type { CommandContext } from './program.ts';

type Json = { readonly json?: boolean };

export async function showPath({ env, terminal }: CommandContext, { json }: Json): Promise<number> {
  const path = statePaths(env).configFile;
  const exists = readConfigText(path) !== undefined;
  if (json) terminal.json({ ok: true, path, exists });
  else terminal.line(path);
  if (!json && !exists && terminal.interactive) terminal.note('It does not exist; defaults are in use.');
  return EXIT.done;
}

/** What is in effect: defaults, file, environment. Secrets are hidden. */
export async function getSetting(
  { env, terminal }: CommandContext,
  key: string | undefined,
  { json }: Json,
): Promise<number> {
  const loaded = load(env);
  const shown = redactConfig(loaded.config as unknown, loaded.secrets);
  const value = key === undefined ? shown : getConfigValue(shown, parseConfigPath(key));
  if (key !== undefined && value === undefined) {
    const { description } = assertConfigKey(key);
    throw new GatewayError('CONFIG_KEY_UNKNOWN', `${key} is not set`, { next: `it has no default: ${description}` });
  }
  if (json) terminal.json({ ok: true, ...(key === undefined ? {} : { key }), value });
  else terminal.line(typeof value === 'string' ? printableLine(value) : JSON.stringify(value, undefined, 2));
  if (loaded.source === 'last-good') {
    terminal.note(terminal.paint('yellow', `! ${loaded.file} cannot be used; this is the last good copy`));
  }
  return EXIT.done;
}

export async function setSetting(context: CommandContext, key: string, given: string, { json }: Json): Promise<number> {
  const path = parseConfigPath(key);
  assertConfigKey(path);
  const [value, ...others] = readings(given);
  const edit = (reading: JsonValue) => change(context.env, (text) => setConfigValue(text, path, reading));
  let loaded: LoadedConfig;
  try {
    loaded = edit(value!);
  } catch (thrown) {
    // `12345` may be meant as text, such as a token of digits: whichever reading the schema takes.
    if (others.length === 0 || !isGatewayError(thrown, 'CONFIG_INVALID')) throw thrown;
    loaded = secondReading(() => edit(others[0]!), thrown);
  }
  return tellChange(context, loaded, { key, what: 'set', form: json ? 'json' : 'text' });
}

export async function unsetSetting(context: CommandContext, key: string, { json }: Json): Promise<number> {
  const path = parseConfigPath(key);
  const before = readConfigText(statePaths(context.env).configFile) ?? '';
  if (unsetConfigValue(before, path) === before) {
    throw new GatewayError('CONFIG_KEY_UNKNOWN', `${key} is not set in the config file`, {
      next: 'reins config get shows what is in effect',
    });
  }
  const loaded = change(context.env, (text) => unsetConfigValue(text, path));
  return tellChange(context, loaded, { key, what: 'removed', form: json ? 'json' : 'text' });
}

export async function validate({ env, terminal }: CommandContext, { json }: Json): Promise<number> {
  const { issues, warnings, notices, file, exists } = examine(withoutOverrides(env));
  const ok = issues.length === 0;
  if (json) {
    terminal.json({ ok, file, exists, issues, warnings, notices });
    return ok ? EXIT.done : EXIT.failed;
  }
  for (const issue of issues) terminal.line(terminal.paint('red', `✗ ${printableLine(formatIssue(issue))}`));
  for (const warning of warnings) terminal.line(terminal.paint('yellow', `! ${printableLine(formatIssue(warning))}`));
  for (const notice of notices) terminal.line(terminal.paint('dim', printableLine(notice)));
  if (ok) terminal.line(exists ? `✓ ${file} is a good config` : `✓ there is no ${file}; defaults are in use`);
  return ok ? EXIT.done : EXIT.failed;
}

/** What there is to say of the owner's file, whether or not it can be used. */
export function examine(env: NodeJS.ProcessEnv): {
  readonly issues: readonly Issue[];
  readonly warnings: readonly Issue[];
  readonly notices: readonly string[];
  readonly file: string;
  readonly exists: boolean;
  /** What is in effect; absent when nothing can be. */
  readonly loaded?: LoadedConfig;
} {
  try {
    const loaded = load(env);
    const { issues, warnings, notices, file, exists } = loaded;
    return { issues, warnings, notices, file, exists, loaded };
  } catch (thrown) {
    if (!isGatewayError(thrown, 'CONFIG_INVALID', 'CONFIG_UNREADABLE')) throw thrown;
    const issues = thrown.detail['issues'] as readonly Issue[];
    return { issues, warnings: [], notices: [], file: statePaths(env).configFile, exists: true };
  }
}

const load = (env: NodeJS.ProcessEnv): LoadedConfig => loadConfig({ stateDir: statePaths(env).stateDir, env });

function change(env: NodeJS.ProcessEnv, edit: (text: string) => string): LoadedConfig {
  const { stateDir, configFile: file } = statePaths(env);
  const before = readConfigText(file);
  // By hand and not from `loadConfig`, which knows no hash of a file that cannot be used: that one may be the one to mend.
  const expectedHash = before === undefined ? '' : createHash('sha256').update(before).digest('hex');
  if (before === undefined && dirname(file) === stateDir) ensurePrivateFolder(stateDir);
  return writeConfig({ file, text: edit(before ?? ''), expectedHash, env: withoutOverrides(env) });
}

/** The file is to be good by itself: a variable that wins over a value today hides what is wrong with it tomorrow. */
export function withoutOverrides(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { REINS_GATEWAY_PORT: _port, REINS_GATEWAY_TOKEN: _token, ...rest } = env;
  return rest;
}

type Change = { readonly key: string; readonly what: 'set' | 'removed'; readonly form: 'json' | 'text' };

function tellChange({ terminal }: CommandContext, loaded: LoadedConfig, { key, what, form }: Change): number {
  if (form === 'json') {
    terminal.json({ ok: true, key, file: loaded.file, warnings: loaded.warnings });
    return EXIT.done;
  }
  terminal.line(`✓ ${key} is ${what} in ${loaded.file}`);
  for (const warning of loaded.warnings)
    terminal.note(terminal.paint('yellow', `! ${printableLine(formatIssue(warning))}`));
  return EXIT.done;
}

function secondReading(edit: () => LoadedConfig, first: GatewayError): LoadedConfig {
  try {
    return edit();
  } catch (thrown) {
    // Neither fits: what was wrong with the plain reading says more.
    throw isGatewayError(thrown, 'CONFIG_INVALID') ? first : thrown;
  }
}

/** The values that a word on the command line may mean, the likeliest first. */
function readings(given: string): readonly JsonValue[] {
  const isStructure = /^\s*[[{"']/.test(given);
  try {
    const value = evaluate(parse(given, { mode: 'json5' })) as JsonValue;
    return typeof value === 'string' || isStructure ? [value] : [value, given];
  } catch (cause) {
    if (isStructure) {
      const why = cause instanceof Error ? cause.message : 'it cannot be read';
      throw new UsageError(
        `the value is not JSON5: ${why}`,
        'put it in single quotes, so that the shell leaves it as it is',
      );
    }
    return [given];
  }
}
