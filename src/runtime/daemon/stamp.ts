/**
 * Times with nanoseconds (S-009). Stamps are compared as whole nanoseconds since 1970, because JavaScript dates
 * keep milliseconds only and two hooks of one moment differ by less (C-057).
 */

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})$/;
const NANOS_PER_MS = 1_000_000n;

/** Nanoseconds since 1970 of an RFC 3339 time; `undefined` if it is none. */
export function parseNanos(text: string): bigint | undefined {
  const [, day, time, fraction = '', zone = 'Z'] = RFC3339.exec(text) ?? [];
  if (day === undefined || time === undefined) return undefined;
  const ms = Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(ms)) return undefined;
  return BigInt(ms) * NANOS_PER_MS + BigInt(fraction.padEnd(9, '0'));
}

/** RFC 3339 in UTC with nine decimals. */
export function formatNanos(nanos: bigint): string {
  const second = nanos >= 0n ? nanos / 1_000_000_000n : (nanos - 999_999_999n) / 1_000_000_000n;
  const rest = nanos - second * 1_000_000_000n;
  const whole = new Date(Number(second) * 1_000).toISOString().slice(0, 19);
  return `${whole}.${rest.toString().padStart(9, '0')}Z`;
}

/** Epoch milliseconds of nanoseconds, rounded down. */
export function nanosToMs(nanos: bigint): number {
  return Number(nanos / NANOS_PER_MS);
}

/** RFC 3339 in UTC with whole seconds: how times stand in a row (S-002). */
export function formatSeconds(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
}
