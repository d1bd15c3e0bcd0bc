import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { readRow } from '../../../src/adapters/claude-code/rows.ts';
import { summaryOf } from '../../../src/adapters/claude-code/transcript.ts';
import { applyRow, NO_TURN, type Turn } from '../../../src/adapters/claude-code/turn.ts';
import { splitLines } from '../../../src/runtime/files/jsonl.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { linesOf, scenarios } from './recording.ts';
import { idOf } from './temp-home.ts';

const transcripts = scenarios().map((scenario) => linesOf(scenario, 'transcript.jsonl'));
const recorded = transcripts.flat();
const row = fc.constantFrom(...recorded);
const metadata = recorded.filter((line) => readRow(JSON.parse(line))?.kind === 'other');

function reduce(lines: readonly string[]): Turn {
  return lines.reduce((turn: Turn, line) => {
    const read = readRow(JSON.parse(line));
    return read ? applyRow(turn, read) : turn;
  }, NO_TURN);
}

test('metadata anywhere between the rows changes nothing', () => {
  const notes = fc.array(fc.constantFrom(...metadata), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(fc.tuple(row, notes), { maxLength: 25 }), (pairs) => {
      const bare = pairs.map(([line]) => line);
      const mixed = pairs.flatMap(([line, between]) => [line, ...between]);
      expect(reduce(mixed)).toEqual(reduce(bare));
    }),
  );
});

test('rows in any order give a state with its times in order, and never throw', () => {
  fc.assert(
    fc.property(fc.array(row, { maxLength: 40 }), (lines) => {
      const { state, turn, pending } = reduce(lines);
      expect(typeof publicState(state)).toBe('string');
      if (turn.end !== undefined) expect(pending).toEqual([]);
    }),
  );
});

test('any JSON value is a row or none, and never throws', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const read = readRow(value);
      if (read) applyRow(NO_TURN, read);
      const typed = readRow({
        type: 'assistant',
        message: value,
        timestamp: value,
        isApiErrorMessage: value === true,
      });
      if (typed) applyRow(NO_TURN, typed);
      const asked = readRow({ type: 'user', message: { content: value } });
      if (asked) applyRow(NO_TURN, asked);
    }),
  );
});

test('any bytes between the lines are skipped: the newest whole row still speaks', () => {
  const noise = fc
    .uint8Array({ maxLength: 60 })
    .map((bytes) => bytes.map((byte) => (byte === 10 ? 11 : byte)));
  const beginning = fc
    .tuple(fc.constantFrom(...transcripts), fc.nat({ max: 80 }))
    .map(([lines, length]) => lines.slice(0, length));
  fc.assert(
    fc.property(beginning, fc.array(noise, { minLength: 1, maxLength: 5 }), (rows, junk) => {
      const bytes = Buffer.concat(
        rows.flatMap((line, at) => {
          const bad = junk[at % junk.length] ?? new Uint8Array();
          return [Buffer.from('#'), Buffer.from(bad), Buffer.from(`\n${line}\n`)];
        }),
      );
      const { lines } = splitLines(bytes);
      const summary = summaryOf(lines, lines, idOf(1));
      expect(publicState(summary.turn.state)).toBe(publicState(reduce(rows).state));
    }),
  );
});
