import { existsSync, renameSync, rmSync } from 'node:fs';
import { isatty } from 'node:tty';
import { printable, printableLine } from '#base';
import { AppendFile } from './append-file.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, unknown>>;

/** Where the gateway says what it does. Fields are data: never put a secret or a message's text in one. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A value that must never be shown: it and its base64 and URL-encoded forms are replaced in every line from now on. */
  addSecret(value: string): void;
  close(): void;
}

export type LogOptions = {
  readonly file?: string;
  readonly level: LogLevel;
  readonly console: 'pretty' | 'json' | 'off';
  /** At this size the file becomes `<file>.1` and a new one starts; default 10 MB. */
  readonly bytesMax?: number;
};

const BYTES_MAX = 10_000_000;
const FIELD_CHARACTERS_MAX = 4_000;
const SECRET_CHARACTERS_MIN = 8;
const SECRETS_MAX = 256;

/** One JSON object a line; what could be misread as something else is escaped (security model T18). */
export function openLog(options: LogOptions): Log {
  return new JsonLinesLog(options);
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  addSecret: () => undefined,
  close: () => undefined,
};

class JsonLinesLog implements Log {
  readonly #options: LogOptions;
  readonly #secrets = new Set<string>();
  #file: AppendFile | undefined;

  constructor(options: LogOptions) {
    this.#options = options;
    if (options.file !== undefined) this.#file = AppendFile.open(options.file);
  }

  debug = (message: string, fields?: LogFields): void => this.#write('debug', message, fields);
  info = (message: string, fields?: LogFields): void => this.#write('info', message, fields);
  warn = (message: string, fields?: LogFields): void => this.#write('warn', message, fields);
  error = (message: string, fields?: LogFields): void => this.#write('error', message, fields);

  addSecret(value: string): void {
    if (value.length < SECRET_CHARACTERS_MIN || this.#secrets.size >= SECRETS_MAX) return;
    const bytes = Buffer.from(value);
    for (const form of [value, bytes.toString('base64'), bytes.toString('base64url'), encodeURIComponent(value)])
      this.#secrets.add(form);
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #write(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(this.#options.level)) return;
    const at = new Date();
    const safe = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, safeField(value)]));
    const line = this.#redacted(
      JSON.stringify({ ts: at.toISOString(), level, message: printableLine(message, FIELD_CHARACTERS_MAX), ...safe }),
    );
    if (this.#file) {
      this.#rotate();
      this.#file.append(`${line}\n`);
    }
    if (this.#options.console === 'json') process.stderr.write(`${line}\n`);
    else if (this.#options.console === 'pretty')
      process.stderr.write(`${this.#redacted(pretty(at, level, message, safe))}\n`);
  }

  #redacted(line: string): string {
    let text = line;
    for (const secret of this.#secrets) text = text.replaceAll(secret, '[redacted]');
    return text;
  }

  #rotate(): void {
    const { file, bytesMax = BYTES_MAX } = this.#options;
    if (file === undefined || !this.#file || this.#file.size < bytesMax) return;
    this.#file.close();
    if (existsSync(`${file}.1`)) rmSync(`${file}.1`);
    renameSync(file, `${file}.1`);
    this.#file = AppendFile.open(file);
  }
}

function safeField(value: unknown): unknown {
  if (typeof value === 'string') return printable(value.slice(0, FIELD_CHARACTERS_MAX));
  if (typeof value === 'number' || typeof value === 'boolean' || value === null || value === undefined) return value;
  return printable((JSON.stringify(value) ?? '').slice(0, FIELD_CHARACTERS_MAX));
}

const COLOURS: Readonly<Record<LogLevel, string>> = {
  debug: '\u001b[2m',
  info: '\u001b[36m',
  warn: '\u001b[33m',
  error: '\u001b[31m',
};

function pretty(at: Date, level: LogLevel, message: string, fields: LogFields): string {
  const details = Object.entries(fields)
    .filter(([name, value]) => value !== undefined && name !== 'stack')
    .map(([name, value]) => `${name}=${printableLine(String(value), 300)}`)
    .join(' ');
  const text = `${at.toTimeString().slice(0, 8)} ${level.padEnd(5)} ${printableLine(message, FIELD_CHARACTERS_MAX)}${details ? `  ${details}` : ''}`;
  const colours = process.env['NO_COLOR'] === undefined && isatty(2);
  return colours ? `${COLOURS[level]}${text}\u001b[0m` : text;
}
