import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type CaseAnswer, EXISTING, REPORTED } from './table.ts';

const TESTS = resolve(import.meta.dir, '..');

/** The ids as they are numbered in the reports; the gaps are reports that were withdrawn. */
const IDS =
  'S1 S2 S3 S5 S6 S8 S9 S11 S12 S13 S14 S16 S18 S19 N1 N2 N3 N5 N7 N8 A1 A2 A4 A6 A8 H1 H2 H3 H4 H5 H6 H9 H10 H11 H12 H14 H15 H18 T1 T2 T3 T5 T7 T8 W1 W2 W5 W6 W7 W8 X1 X3 X5 X6 X7 X8 X9 X10 X12 X13 P1 P3 G1 G2 G4 G5 G6 G8 G9 R1 R2 R5 V1 V2 V3 V4 V7 D1 D2 D4 D5 D6 D8 D9 D10 D11 D13 D14 D15 K1 K2 K3 Q1 Q2 M1 M3 M4 M6 M7 L1 L3 B1 B2 B3 B4 B6 B7 B8 B9 B10 I1 I3 O1 O4 O5 C1 C3'.split(
    ' ',
  );

function wrong(table: Readonly<Record<string, CaseAnswer>>): string[] {
  return Object.entries(table).flatMap(([id, answer]) => {
    if ('not' in answer) return /^[A-Z].*\.$/.test(answer.not) ? [] : [`${id}: no sentence`];
    const file = join(TESTS, answer.test);
    if (!existsSync(file)) return [`${id}: there is no test/${answer.test}`];
    const cited = new RegExp(`(?<![A-Za-z0-9-])${id}[a-z]?(?![0-9A-Za-z])`).test(readFileSync(file, 'utf8'));
    return cited ? [] : [`${id}: test/${answer.test} does not cite it`];
  });
}

describe('every case is accounted for (R-45)', () => {
  test('all reported faults are in the table, and no other', () => {
    expect(Object.keys(REPORTED).sort()).toEqual(IDS.toSorted());
  });
  test('each reported fault has a test that cites it, or a sentence', () =>
    expect(wrong(REPORTED)).toEqual([]));
  test('each fault of the existing connector has a test that cites it', () =>
    expect(wrong(EXISTING)).toEqual([]));
});
