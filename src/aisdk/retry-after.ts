import { isRecord } from '#base';

const WAIT_MAX_MS = 7 * 24 * 3_600_000;

/**
 * How long a provider asks to wait, in milliseconds, or undefined when it does not say. Read from `retry-after-ms`, `retry-after`
 * (seconds or a date) and, for Gemini, the `retryDelay` of the error's details.
 * @param now milliseconds since the epoch, to which a date is compared
 */
export function retryAfterMs(
  headers: Readonly<Record<string, string | undefined>>,
  body: unknown,
  now: number,
): number | undefined {
  const exact = milliseconds(headers['retry-after-ms'], 1);
  if (exact !== undefined) return exact;
  const after = headers['retry-after'];
  const inSeconds = milliseconds(after, 1_000);
  if (inSeconds !== undefined) return inSeconds;
  const date = after === undefined ? Number.NaN : Date.parse(after);
  if (!Number.isNaN(date)) return Math.min(WAIT_MAX_MS, Math.max(0, date - now));
  return milliseconds(retryDelay(body), 1_000);
}

function milliseconds(value: string | undefined, unit: number): number | undefined {
  const number = /^\s*(\d+(?:\.\d+)?)\s*s?\s*$/.exec(value ?? '')?.[1];
  return number === undefined ? undefined : Math.min(WAIT_MAX_MS, Math.ceil(Number(number) * unit));
}

function retryDelay(body: unknown): string | undefined {
  const text = typeof body === 'string' ? body : isRecord(body) ? JSON.stringify(body) : '';
  return /"retryDelay"\s*:\s*"([\d.]+s)"/.exec(text.slice(0, 20_000))?.[1];
}
