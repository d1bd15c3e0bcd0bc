import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isQuiet } from '../../../src/runtime/config/quiet-hours.ts';
import { DAYS } from '../../../src/runtime/config/schema.ts';

const at = (iso: string) => Date.parse(iso);
const NIGHT = { from: '22:00', to: '07:00', timeZone: 'Europe/Berlin' };

describe('quiet hours', () => {
  test('an overnight range begins at its first minute and ends before its last, on the wall of its zone', () => {
    const cases: [string, boolean][] = [
      ['2026-12-01T20:59:59Z', false],
      ['2026-12-01T21:00:00Z', true],
      ['2026-12-02T05:59:59Z', true],
      ['2026-12-02T06:00:00Z', false],
      // In summer the same wall times are an hour earlier.
      ['2026-07-01T19:59:59Z', false],
      ['2026-07-01T20:00:00Z', true],
      ['2026-07-02T04:59:59Z', true],
      ['2026-07-02T05:00:00Z', false],
    ];
    for (const [iso, quiet] of cases) expect([iso, isQuiet([NIGHT], at(iso))]).toEqual([iso, quiet]);
  });

  test('the hour that summer time skips is no hour, and the one that winter time repeats is quiet twice', () => {
    const small = [{ from: '02:00', to: '03:00', timeZone: 'Europe/Berlin' }];
    expect(isQuiet(small, at('2026-03-29T00:59:59Z'))).toBe(false);
    expect(isQuiet(small, at('2026-03-29T01:00:00Z'))).toBe(false);
    expect(isQuiet(small, at('2026-10-25T00:30:00Z'))).toBe(true);
    expect(isQuiet(small, at('2026-10-25T01:30:00Z'))).toBe(true);
    expect(isQuiet(small, at('2026-10-25T02:00:00Z'))).toBe(false);
    // The night of the change is quiet from its beginning to its end.
    expect(isQuiet([NIGHT], at('2026-03-29T04:59:00Z'))).toBe(true);
    expect(isQuiet([NIGHT], at('2026-03-29T05:00:00Z'))).toBe(false);
  });

  test('days are those on which a range begins', () => {
    const friday = [{ from: '22:00', to: '07:00', days: ['fri' as const], timeZone: 'UTC' }];
    expect(isQuiet(friday, at('2026-12-04T23:00:00Z'))).toBe(true);
    expect(isQuiet(friday, at('2026-12-05T06:59:00Z'))).toBe(true);
    expect(isQuiet(friday, at('2026-12-05T23:00:00Z'))).toBe(false);
    expect(isQuiet(friday, at('2026-12-04T06:00:00Z'))).toBe(false);
  });

  test('zones with odd offsets, and the computer’s own where none is named', () => {
    const noon = { from: '12:00', to: '12:01' };
    expect(isQuiet([{ ...noon, timeZone: 'Asia/Kathmandu' }], at('2026-01-01T06:15:00Z'))).toBe(true);
    expect(isQuiet([{ ...noon, timeZone: 'Pacific/Chatham' }], at('2026-01-01T22:15:00Z'))).toBe(true);
    expect(isQuiet([noon], at('2026-01-01T12:00:00Z'), 'UTC')).toBe(true);
    expect(isQuiet([noon], at('2026-01-01T12:00:00Z'), 'Asia/Tokyo')).toBe(false);
  });

  const time = fc
    .integer({ min: 0, max: 24 * 60 - 1 })
    .map(
      (minute) =>
        `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`,
    );
  const moment = fc.integer({ min: at('2020-01-01T00:00:00Z'), max: at('2035-01-01T00:00:00Z') });
  const zone = fc.constantFrom(
    'UTC',
    'Europe/Berlin',
    'America/St_Johns',
    'Australia/Lord_Howe',
    'Asia/Tokyo',
  );

  test('a range and its reverse share the day between them, in every zone and at every moment', () => {
    fc.assert(
      fc.property(time, time, moment, zone, (from, to, now, timeZone) => {
        fc.pre(from !== to);
        expect(isQuiet([{ from, to, timeZone }], now)).toBe(
          !isQuiet([{ from: to, to: from, timeZone }], now),
        );
      }),
    );
  });

  test('in UTC it is plain arithmetic of minutes and days', () => {
    fc.assert(
      fc.property(time, time, moment, fc.subarray([...DAYS], { minLength: 1 }), (from, to, now, days) => {
        fc.pre(from !== to);
        const minutes = (text: string) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
        const date = new Date(now);
        const minute = date.getUTCHours() * 60 + date.getUTCMinutes();
        const length = (minutes(to) - minutes(from) + 1_440) % 1_440;
        const since = (minute - minutes(from) + 1_440) % 1_440;
        const startDay = (date.getUTCDay() + (minute < minutes(from) ? 6 : 0)) % 7;
        const expected = since < length && days.some((day) => DAYS.indexOf(day) === startDay);
        expect(isQuiet([{ from, to, days, timeZone: 'UTC' }], now)).toBe(expected);
      }),
    );
  });
});
