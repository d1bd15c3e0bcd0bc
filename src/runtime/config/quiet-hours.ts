import type { QuietRange } from './schema.ts';

/** A moment as a clock on a wall shows it. */
interface WallTime {
  /** 0 is Sunday. */
  readonly day: number;
  /** Minutes since midnight. */
  readonly minute: number;
}

const WEEKDAYS: readonly string[] = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const clocks = new Map<string, Intl.DateTimeFormat>();

/** Whether the system knows a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    clockOf(name);
    return true;
  } catch {
    // A name that the system does not know; that is the answer.
    return false;
  }
}

/**
 * Whether `now` (epoch milliseconds) lies in one of the ranges. A range is what a wall clock of its zone shows, so
 * summer time moves it with its owner: an hour that is skipped is not quiet, one that comes twice is quiet twice. The
 * beginning belongs to it, the end does not. A range that ends earlier than it begins goes on into the next day, and
 * its days are those on which it begins.
 */
export function isQuiet(ranges: readonly QuietRange[], now: number, systemZone?: string): boolean {
  return ranges.some((range) => holds(range, wallTime(now, range.timeZone ?? systemZone)));
}

function holds(range: QuietRange, { day, minute }: WallTime): boolean {
  const [from, to] = [minutesOf(range.from), minutesOf(range.to)];
  const beginsOn = (one: number) => range.days?.some((name) => WEEKDAYS[one] === name) ?? true;
  if (from < to) return minute >= from && minute < to && beginsOn(day);
  if (minute >= from) return beginsOn(day);
  return minute < to && beginsOn((day + 6) % 7);
}

function minutesOf(time: string): number {
  const [hours = '0', minutes = '0'] = time.split(':');
  return Number(hours) * 60 + Number(minutes);
}

/** Making one takes milliseconds, asking it microseconds. */
function clockOf(zone: string | undefined): Intl.DateTimeFormat {
  const known = clocks.get(zone ?? '');
  if (known) return known;
  const made = new Intl.DateTimeFormat('en-US', {
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(zone === undefined ? {} : { timeZone: zone }),
  });
  clocks.set(zone ?? '', made);
  return made;
}

function wallTime(now: number, zone: string | undefined): WallTime {
  const parts = new Map(
    clockOf(zone)
      .formatToParts(now)
      .map(({ type, value }) => [type, value]),
  );
  const name = (parts.get('weekday') ?? '').toLowerCase();
  return {
    day: WEEKDAYS.indexOf(name),
    minute: Number(parts.get('hour')) * 60 + Number(parts.get('minute')),
  };
}
