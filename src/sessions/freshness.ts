/** When a session starts over by itself. */
export type ResetRule =
  | { readonly mode: 'none' }
  /** Once a day at `atHour` local time. */
  | { readonly mode: 'daily'; readonly atHour: number }
  | { readonly mode: 'idle'; readonly idleMinutes: number };

/** Whether a session that started and was last used at these times goes on at `now`. */
export function isFresh(
  rule: ResetRule,
  times: { readonly startedAt: number; readonly lastInteractionAt: number },
  now: number,
): boolean {
  if (rule.mode === 'daily') return times.startedAt >= lastLocalHour(rule.atHour, now);
  if (rule.mode === 'idle') return now - times.lastInteractionAt < rule.idleMinutes * 60_000;
  return true;
}

/** The latest moment at or before `now` when local clocks showed `hour`:00. */
function lastLocalHour(hour: number, now: number): number {
  const at = new Date(now);
  at.setHours(hour, 0, 0, 0);
  if (at.getTime() > now) at.setDate(at.getDate() - 1);
  return at.getTime();
}
