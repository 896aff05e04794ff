// Numbers and names as a person reads them.
import { printableLine } from '#base';
import type { SessionSummary } from '#client';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function relativeTime(at: number, now: number): string {
  const ago = now - at;
  if (ago < MINUTE) return 'now';
  if (ago < HOUR) return `${Math.floor(ago / MINUTE)} min`;
  if (ago < DAY) return `${Math.floor(ago / HOUR)} h`;
  if (ago < 7 * DAY) return `${Math.floor(ago / DAY)} d`;
  return new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });

export const clockTime = (at: number): string => clock.format(at);

export function tokens(count: number): string {
  if (count < 1_000) return `${count}`;
  if (count < 100_000) return `${(count / 1_000).toFixed(1)}k`;
  return count < 1_000_000 ? `${Math.round(count / 1_000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function dollars(costUsd: number): string {
  if (costUsd === 0) return '$0';
  if (costUsd < 0.0001) return '<$0.0001';
  return costUsd < 0.1 ? `$${costUsd.toFixed(4)}` : `$${costUsd.toFixed(2)}`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < MINUTE) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / MINUTE)} min ${Math.round((ms % MINUTE) / 1_000)} s`;
}

export function sessionTitle(session: SessionSummary | undefined, key: string): string {
  const title = session?.label ?? session?.derivedTitle ?? session?.displayName;
  if (title && title !== key) return printableLine(title, 120);
  const rest = key.split(':').slice(2).join(':');
  if (rest === 'main') return 'Main session';
  return rest.startsWith('web-') ? 'New session' : rest || key || 'Session';
}

/** The argument that says most about a call, on one line. */
export function argumentSummary(args: Readonly<Record<string, unknown>>): string {
  for (const name of ['command', 'path', 'file', 'url', 'query', 'pattern', 'message', 'text', 'name']) {
    const value = args[name];
    if (typeof value === 'string' && value !== '') return printableLine(value, 160);
  }
  const whole = JSON.stringify(args);
  return whole === '{}' ? '' : printableLine(whole, 160);
}
