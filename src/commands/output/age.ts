const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago, short: `now`, `42s`, `7m`, `3h`, `12d`, `2y`. A time in the future reads `now` (clock skew, C21). */
export function age(at: number | undefined, now: number): string {
  if (at === undefined) return '-';
  const ms = Math.max(0, now - at);
  if (ms < 1_000) return 'now';
  if (ms < MINUTE) return `${Math.floor(ms / 1_000)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)}h`;
  if (ms < 400 * DAY) return `${Math.floor(ms / DAY)}d`;
  return `${Math.floor(ms / (365 * DAY))}y`;
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY };

/**
 * Reads `--since`: a span back from now (`90s`, `30m`, `2h`, `7d`, `1w`) or a date that `Date` understands in ISO
 * form. Gives epoch milliseconds, or undefined if it is neither.
 */
export function parseSince(text: string, now: number): number | undefined {
  const span = /^(\d{1,6})([smhdw])$/.exec(text.trim());
  if (span) return now - Number(span[1]) * (UNITS[span[2] ?? ''] ?? 0);
  if (!/^\d{4}-\d{2}-\d{2}/.test(text.trim())) return undefined;
  const at = Date.parse(text.trim());
  return Number.isNaN(at) ? undefined : at;
}

/** Reads a length of time (`90s`, `30m`, `2h`, `1d`); milliseconds, or undefined if it is none. */
export function parseSpan(text: string): number | undefined {
  const span = /^(\d{1,6})([smhdw])$/.exec(text.trim());
  return span ? Number(span[1]) * (UNITS[span[2] ?? ''] ?? 0) : undefined;
}

/** A length of time in words: `30 s`, `5 min`, `2 h`, `1 d`. Rounded up, so that nothing is promised too early. */
export function spanWords(ms: number): string {
  if (ms < MINUTE) return `${Math.ceil(ms / 1_000)} s`;
  if (ms < HOUR) return `${Math.ceil(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.ceil(ms / HOUR)} h`;
  return `${Math.ceil(ms / DAY)} d`;
}
