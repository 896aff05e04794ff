const STAMP = /^\[(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat) \d{4}-\d{2}-\d{2} \d{2}:\d{2} [^\]\n]{1,40}\] /;

/**
 * The public form in which a person's words are stored, `[Mon 2026-11-30 23:50 UTC] hello`: so a model knows the time without a prompt
 * that changes by itself. `zone` is an IANA name.
 */
export function withStamp(text: string, at: number, zone: string): string {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).formatToParts(at);
  const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  return `[${part['weekday']} ${part['year']}-${part['month']}-${part['day']} ${part['hour']}:${part['minute']} ${part['timeZoneName']}] ${text}`;
}

/** The words as the person wrote them. */
export const withoutStamp = (text: string): string => text.replace(STAMP, '');
