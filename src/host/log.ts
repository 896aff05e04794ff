import { renameSync } from 'node:fs';
import { isatty } from 'node:tty';
import { cutAtCharacter, messageOf, printable, printableLine } from '#base';
import { AppendFile } from './append-file.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, unknown>>;

/** Where the gateway says what it does. Never throws. Fields are data: never put a secret or a message's text in one. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log with `fields` in every line; secrets and the file are shared, and closing it closes nothing. */
  child(fields: LogFields): Log;
  /** A value that must never be shown: it and its base64 and URL-encoded forms are replaced in every line from now on. */
  addSecret(value: string): void;
  close(): void;
}

export type LogOptions = {
  /** Made with mode 0600; absent: no file. */
  readonly file?: string;
  readonly level: LogLevel;
  /** Default `off`. Goes to standard error, so that standard output stays a program's own. */
  readonly console?: 'pretty' | 'json' | 'off';
  /** At this size the file becomes `<file>.1`, whose old content goes; default 10 MB. */
  readonly bytesMax?: number;
};

const BYTES_MAX = 10_000_000;
const FIELD_CHARACTERS_MAX = 4_000;
const FIELDS_MAX = 40;
const NAME_CHARACTERS_MAX = 64;
const PRETTY_FIELD_CHARACTERS_MAX = 300;
/** A shorter value would be found in every second word; nobody should have such a secret. */
const SECRET_CHARACTERS_MIN = 6;
const RESERVED = new Set(['ts', 'level', 'message']);

/**
 * One JSON object a line; what could be misread as something else is escaped (security model T18).
 * @throws what the system says when the file cannot be opened
 */
export function openLog(options: LogOptions): Log {
  const sink = new LogSink(options);
  return logOn(sink, {}, () => sink.close());
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
  addSecret: () => undefined,
  close: () => undefined,
};

function logOn(sink: LogSink, fixed: LogFields, close: () => void): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) =>
    sink.write(level, message, fields === undefined ? fixed : { ...fixed, ...fields });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => logOn(sink, { ...fixed, ...fields }, () => undefined),
    addSecret: (value) => sink.addSecret(value),
    close,
  };
}

class LogSink {
  readonly #options: LogOptions;
  readonly #secrets = new Set<string>();
  #file: AppendFile | undefined;

  constructor(options: LogOptions) {
    this.#options = options;
    if (options.file !== undefined) this.#file = AppendFile.open(options.file);
  }

  addSecret(value: string): void {
    if (value.length < SECRET_CHARACTERS_MIN) return;
    const bytes = Buffer.from(value);
    const forms = [value, bytes.toString('base64'), bytes.toString('base64url'), encodeURIComponent(value)];
    // In a field that is an object the value stands as JSON writes it.
    for (const form of [...forms, JSON.stringify(value).slice(1, -1)]) this.#secrets.add(form);
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  write(level: LogLevel, message: string, fields: LogFields): void {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(this.#options.level)) return;
    const at = new Date();
    const safe = this.#safeFields(fields);
    const words = printableLine(this.#redacted(message), FIELD_CHARACTERS_MAX);
    const line = JSON.stringify({ ts: at.toISOString(), level, message: words, ...safe });
    this.#toFile(`${line}\n`);
    const { console = 'off' } = this.#options;
    if (console === 'json') process.stderr.write(`${line}\n`);
    else if (console === 'pretty') process.stderr.write(`${pretty(at, level, words, safe)}\n`);
  }

  /** A full disk must not end a run that only wanted to say something: the line goes to standard error instead. */
  #toFile(line: string): void {
    if (!this.#file) return;
    try {
      this.#rotate();
      this.#file.append(line);
    } catch (error) {
      process.stderr.write(`The log file cannot be written (${printableLine(messageOf(error), 200)}): ${line}`);
    }
  }

  #rotate(): void {
    const { file, bytesMax = BYTES_MAX } = this.#options;
    if (file === undefined || !this.#file || this.#file.size < bytesMax) return;
    renameSync(file, `${file}.1`);
    const next = AppendFile.open(file);
    this.#file.close();
    this.#file = next;
  }

  #safeFields(fields: LogFields): Record<string, unknown> {
    const safe: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(fields).slice(0, FIELDS_MAX)) {
      if (value === undefined) continue;
      const shown = printableLine(this.#redacted(name), NAME_CHARACTERS_MAX);
      safe[RESERVED.has(shown) ? `${shown}_` : shown] = this.#safeValue(value);
    }
    return safe;
  }

  /** Secrets go before anything is cut or escaped: half a secret, or one with an escaped quote, would not be found. */
  #safeValue(value: unknown): unknown {
    if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
    return printable(cutAtCharacter(this.#redacted(asText(value)), FIELD_CHARACTERS_MAX));
  }

  #redacted(given: string): string {
    let text = given;
    for (const secret of this.#secrets) text = text.replaceAll(secret, '[redacted]');
    return text;
  }
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return messageOf(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // A cycle or a bigint: the log says what it can.
    return String(value);
  }
}

const COLOURS: Readonly<Record<LogLevel, string>> = {
  debug: '\u001b[2m',
  info: '\u001b[36m',
  warn: '\u001b[33m',
  error: '\u001b[31m',
};

function pretty(at: Date, level: LogLevel, message: string, fields: LogFields): string {
  const details = Object.entries(fields)
    .filter(([name]) => name !== 'stack')
    .map(([name, value]) => `${name}=${printableLine(String(value), PRETTY_FIELD_CHARACTERS_MAX)}`)
    .join(' ');
  const text = `${at.toTimeString().slice(0, 8)} ${level.padEnd(5)} ${message}${details ? `  ${details}` : ''}`;
  const isPlain = (process.env['NO_COLOR'] ?? '') !== '' || !isatty(2);
  return isPlain ? text : `${COLOURS[level]}${text}\u001b[0m`;
}
