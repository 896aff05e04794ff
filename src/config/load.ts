import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { GatewayError } from '#base';
import { writeFileAtomicSync } from '#host';
import { digestOf, type Evaluation, evaluateConfig } from './evaluate.ts';
import { configError, type Issue } from './issue.ts';
import { SOURCE_BYTES_MAX } from './json5-source.ts';
import { codeOf } from './owned-file.ts';
import type { Config } from './schema.ts';
import type { Environment } from './substitute.ts';

export type LoadOptions = {
  readonly stateDir: string;
  /** `REINS_GATEWAY_PORT`, `REINS_GATEWAY_TOKEN`, `REINS_CONFIG`, and every variable that the config names. */
  readonly env: Environment;
  /** Default: `REINS_CONFIG`, else `reins.json` in the state folder. */
  readonly file?: string;
};

/** The config that is to be used, and what there is to say about the owner's file. */
export type LoadedConfig = {
  readonly config: Config;
  readonly file: string;
  readonly exists: boolean;
  /** `last-good`: the file has issues, and the copy of what it was before is in use. `defaults`: there is no file. */
  readonly source: 'file' | 'last-good' | 'defaults';
  /** What is wrong with the file; empty unless the source is `last-good`. */
  readonly issues: readonly Issue[];
  readonly warnings: readonly Issue[];
  /** At most one: what the config in use holds that has no effect in this version. */
  readonly notices: readonly string[];
  /** SHA-256 of the owner's file, hex; empty when there is none. A write must name it. */
  readonly hash: string;
  /** SHA-256 over the file and all that it includes. */
  readonly fingerprint: string;
  /** The owner's text as it is. May hold secrets. */
  readonly raw: string;
  /** Of the config in use: as written; and with includes and variables in place. May hold secrets: `redactConfig` before showing. */
  readonly parsed: unknown;
  readonly resolved: unknown;
  /** Texts that must not be shown, for `redactConfig` and for the log's masks. */
  readonly secrets: readonly string[];
  /** All files that were read. */
  readonly files: readonly string[];
};

/**
 * Reads the owner's file, and never writes it. A file with issues is not taken: the last good copy is used instead and the issues are
 * told. After a good load that copy (`reins.json.last-good` in the state folder, 0600) is brought up to date.
 * @throws {GatewayError} `CONFIG_UNREADABLE` or `CONFIG_INVALID` with `detail.issues`, when there is no good copy to fall back on, or when
 *   the file asks for something that would expose the gateway
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const { stateDir, env } = options;
  const given = options.file ?? (env['REINS_CONFIG'] || undefined);
  const file = given ?? join(stateDir, 'reins.json');
  const read = readFile(file);
  if (read === undefined) {
    const issue = { path: '', message: 'does not exist; defaults are in use', file };
    const loaded = facts(evaluateConfig({ text: '{}', file, env }), {
      file,
      exists: false,
      raw: '',
      source: 'defaults',
    });
    return given === undefined ? loaded : { ...loaded, warnings: [...loaded.warnings, issue] };
  }
  const evaluation = 'issue' in read ? undefined : evaluateConfig({ text: read.text, file, env });
  const raw = 'issue' in read ? '' : read.text;
  const lastGoodFile = join(stateDir, 'reins.json.last-good');
  if (evaluation?.config) {
    const kept = keepLastGood(lastGoodFile, evaluation, raw);
    const loaded = facts(evaluation, { file, exists: true, raw, source: 'file' });
    return kept === undefined ? loaded : { ...loaded, warnings: [...loaded.warnings, kept] };
  }
  const issues = evaluation?.issues ?? ('issue' in read ? [read.issue] : []);
  const failure = () => configError(issues, evaluation?.kind ?? 'syntax');
  if (issues.some((issue) => issue.refusesStart)) throw failure();
  const copy = readFile(lastGoodFile);
  if (copy === undefined || 'issue' in copy) throw failure();
  const lastGood = evaluateConfig({ text: copy.text, file: lastGoodFile, env });
  if (!lastGood.config) throw failure();
  return {
    ...facts(lastGood, { file, exists: true, raw, source: 'last-good' }),
    issues,
    warnings: lastGood.warnings.map((warning) => ({ ...warning, file: lastGoodFile })),
    fingerprint: evaluation?.fingerprint ?? '',
    secrets: [...new Set([...lastGood.secrets, ...(evaluation?.secrets ?? [])])],
    files: evaluation?.files ?? [file],
  };
}

/**
 * What a text would be as the owner's file, before it is written there.
 * @throws {GatewayError} `CONFIG_UNREADABLE` or `CONFIG_INVALID` with `detail.issues`
 */
export function checkConfigText(
  text: string,
  options: { readonly file: string; readonly env: Environment },
): LoadedConfig {
  const evaluation = evaluateConfig({ text, ...options });
  if (!evaluation.config) throw configError(evaluation.issues, evaluation.kind);
  return facts(evaluation, { file: options.file, exists: true, raw: text, source: 'file' });
}

/**
 * The text of the owner's file; undefined when there is none.
 * @throws {GatewayError} `CONFIG_UNREADABLE`
 */
export function readConfigText(file: string): string | undefined {
  const read = readFile(file);
  if (read !== undefined && 'issue' in read) throw configError([read.issue], 'syntax');
  return read?.text;
}

export const hashOf = (text: string | undefined): string => (text === undefined ? '' : digestOf([text]));

function facts(
  evaluation: Evaluation,
  { file, exists, raw, source }: Pick<LoadedConfig, 'file' | 'exists' | 'raw' | 'source'>,
): LoadedConfig {
  const { config, warnings, notices, fingerprint, parsed, resolved, secrets, files } = evaluation;
  // Defaults alone can be wrong by the environment (a port that is none): then there is nothing to start with.
  if (!config) throw configError(evaluation.issues, evaluation.kind);
  return {
    ...{ config, file, exists, source, issues: [], warnings, notices },
    ...{ hash: exists ? hashOf(raw) : '', fingerprint: exists ? fingerprint : '' },
    ...{ raw, parsed, resolved, secrets, files },
  };
}

function readFile(file: string): { readonly text: string } | { readonly issue: Issue } | undefined {
  const issue = (message: string, next: string) => ({ issue: { path: '', message, next, file } });
  try {
    const stat = statSync(file);
    if (!stat.isFile()) return issue('is not a regular file', 'Put the config there as a file.');
    if (stat.size > SOURCE_BYTES_MAX) {
      return issue(`is larger than ${SOURCE_BYTES_MAX} bytes`, 'Move parts into files of their own with $include.');
    }
    return { text: readFileSync(file, 'utf8') };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return undefined;
    return issue(`cannot be read (${code})`, 'Check who owns it and its mode.');
  }
}

/** A copy that includes nothing, so that it is whole whatever happens to the other files. @returns why it could not be kept */
function keepLastGood(path: string, evaluation: Evaluation, raw: string): Issue | undefined {
  const text = evaluation.files.length === 1 ? raw : `${JSON.stringify(evaluation.expanded, null, 2)}\n`;
  try {
    const before = readFile(path);
    if (before !== undefined && 'text' in before && before.text === text) return undefined;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileAtomicSync(path, text, { mode: 0o600 });
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    return { path: '', message: `the last good copy could not be kept (${codeOf(error)})`, file: path };
  }
}
