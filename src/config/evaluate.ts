import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { isRecord } from '#base';
import { checkConfig } from './check-config.ts';
import { type ConfigPath, formatConfigPath } from './config-path.ts';
import { expandIncludes, locate, type Mount } from './include.ts';
import { type Fault, faultPath, type Issue } from './issue.ts';
import { parseJson5 } from './json5-source.ts';
import { readBySchema } from './read-by-schema.ts';
import { holdsPlaceholder, REDACTED, secretsIn } from './redact.ts';
import { patternFault } from './redact-pattern.ts';
import { type Config, ConfigSchema } from './schema.ts';
import { type Environment, substituteVariables } from './substitute.ts';

/** What a text means as a config. */
export type Evaluation = {
  /** Absent when there are issues. */
  readonly config?: Config;
  readonly issues: readonly Issue[];
  readonly warnings: readonly Issue[];
  /** At most one: what was given and has no effect. */
  readonly notices: readonly string[];
  /** `syntax`: the text could not be read at all. */
  readonly kind: 'syntax' | 'values';
  /** As it is written, without what it includes; undefined when it could not be read. */
  readonly parsed: unknown;
  /** With includes in place, variables as they are written. */
  readonly expanded: unknown;
  /** With includes and variables in place, before defaults. */
  readonly resolved: unknown;
  /** Every text that must not be shown. */
  readonly secrets: readonly string[];
  /** The config file first, then what it includes. */
  readonly files: readonly string[];
  /** SHA-256 over everything that was read, hex. */
  readonly fingerprint: string;
};

/** Environment variables that win over the file, and the setting that each is. */
const OVERRIDES = [
  { variable: 'REINS_GATEWAY_PORT', path: ['gateway', 'port'], value: (text: string) => Number(text) },
  { variable: 'REINS_GATEWAY_TOKEN', path: ['gateway', 'auth', 'token'], value: (text: string) => text },
] as const;

const LATER_SHOWN_MAX = 12;

/** Reads the text and the files that it includes, and nothing else; never throws for what they say. */
export function evaluateConfig(options: {
  readonly text: string;
  readonly file: string;
  readonly env: Environment;
}): Evaluation {
  const { text, file, env } = options;
  const source = parseJson5(text, file);
  if (!('body' in source)) {
    const { line, column, message, next } = source;
    return {
      ...{ issues: [{ path: '', file, line, column, message, next }], warnings: [], notices: [], kind: 'syntax' },
      ...{ parsed: undefined, expanded: undefined, resolved: undefined, secrets: [], files: [file] },
      fingerprint: digestOf([text]),
    };
  }
  const { value: expanded, parsed, faults: sourceFaults, mounts } = expandIncludes(source, dirname(file));
  const { value: substituted, faults: variableFaults, inserted } = substituteVariables(expanded, env);
  const { value: resolved, overridden } = withOverrides(substituted, env);
  const reading = readBySchema(ConfigSchema, resolved);
  const faults = [...sourceFaults, ...variableFaults, ...reading.faults];
  const warnings = [...reading.unknown];
  if (holdsPlaceholder(expanded)) {
    faults.push({
      path: [],
      message: `holds ${REDACTED}, which stands for a hidden secret and is not one`,
      next: 'Put the secret itself, or a reference to it, in its place.',
    });
  }
  let config: Config | undefined;
  if (faults.length === 0) {
    const findings = checkConfig(reading.value as Config);
    faults.push(...findings.faults);
    warnings.push(...findings.warnings);
    if (faults.length === 0) config = deepFrozen(withoutBadPatterns(reading.value as Config));
  }
  const toIssue = (fault: Fault) => issueOf(fault, mounts, overridden);
  return {
    ...(config === undefined ? {} : { config }),
    issues: faults.map(toIssue),
    warnings: warnings.map(toIssue),
    notices: noticeOf(reading.later),
    kind: 'values',
    parsed,
    expanded,
    resolved,
    secrets: [...new Set([...inserted, ...secretsIn(resolved)])],
    files: mounts.map((mount) => mount.source.file),
    fingerprint: digestOf(mounts.map((mount) => mount.source.text)),
  };
}

/** SHA-256 of texts, hex; where one ends and the next begins counts. */
export function digestOf(texts: readonly string[]): string {
  const hash = createHash('sha256');
  texts.forEach((text, index) => {
    if (index > 0) hash.update('\0');
    hash.update(text);
  });
  return hash.digest('hex');
}

function withOverrides(
  value: unknown,
  env: Environment,
): { readonly value: unknown; readonly overridden: ReadonlyMap<string, string> } {
  const overridden = new Map<string, string>();
  let result = value;
  for (const { variable, path, value: read } of OVERRIDES) {
    const text = env[variable]?.trim();
    if (!text || !isRecord(result)) continue;
    result = placed(result, path, read(text));
    overridden.set(formatConfigPath(path), variable);
  }
  return { value: result, overridden };
}

function placed(object: unknown, path: readonly string[], value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  // A value of the wrong kind on the way stays, so that the reader says what is wrong with it.
  if (object !== undefined && !isRecord(object)) return object;
  return Object.assign(Object.create(null), object, { [key]: placed(object?.[key], rest, value) });
}

function issueOf(fault: Fault, mounts: readonly Mount[], overridden: ReadonlyMap<string, string>): Issue {
  const path = faultPath(fault);
  const { message, next, refusesStart } = fault;
  const variable = overridden.get(path);
  const place =
    variable === undefined
      ? locate(mounts, fault.path, fault.atKey ? 'key' : 'value')
      : { file: `the environment variable ${variable}` };
  return {
    path,
    message,
    ...(next === undefined ? {} : { next }),
    ...place,
    ...(refusesStart === undefined ? {} : { refusesStart }),
  };
}

function noticeOf(later: readonly ConfigPath[]): readonly string[] {
  if (later.length === 0) return [];
  const shown = later.slice(0, LATER_SHOWN_MAX).map(formatConfigPath).join(', ');
  const more = later.length > LATER_SHOWN_MAX ? ` and ${later.length - LATER_SHOWN_MAX} more` : '';
  return [`Accepted, has no effect in this version: ${shown}${more}`];
}

function withoutBadPatterns(config: Config): Config {
  const redactPatterns = config.logging.redactPatterns.filter((pattern) => patternFault(pattern) === undefined);
  return { ...config, logging: { ...config.logging, redactPatterns } };
}

function deepFrozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const child of Object.values(value)) deepFrozen(child);
  }
  return value;
}
