import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { createFollower, type Follower } from '../../../src/runtime/files/follow.ts';
import { splitLines } from '../../../src/runtime/files/jsonl.ts';

let folder = '';
let files = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'follow-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fresh(): string {
  files += 1;
  return join(folder, `${files}.jsonl`);
}

const content = fc
  .array(
    fc.constantFrom(
      '{"a":1}',
      '{"é":"日本"}',
      '\n',
      '\n',
      '\r\n',
      '\0\0',
      '{',
      '\ufeff',
      'xxxxxxxxxxxxxxxxxxxx',
    ),
    {
      maxLength: 40,
    },
  )
  .map((parts) => Buffer.from(parts.join('')));

describe('any split of any content into appends gives the same records as one read', () => {
  test('with a poll after each append, or after some, or by a new follower from the state of the last', () => {
    const step = fc.record({ size: fc.integer({ min: 0, max: 30 }), poll: fc.boolean(), hand: fc.boolean() });
    fc.assert(
      fc.property(content, fc.array(step, { maxLength: 30 }), (bytes, steps) => {
        const path = fresh();
        const got: string[] = [];
        let follower = createFollower(path);
        const poll = (): void => {
          const answer = follower.poll();
          if (answer.kind !== 'lines') throw new Error(answer.kind);
          expect([answer.restarted, answer.gap]).toEqual([undefined, false]);
          got.push(...answer.lines.map((line) => `${line.start} ${line.end} ${line.text}`));
        };
        let at = 0;
        writeFileSync(path, '');
        for (const { size, poll: now, hand } of steps) {
          appendFileSync(path, bytes.subarray(at, at + size));
          at += size;
          if (now) poll();
          const state = follower.state;
          if (hand && state !== undefined) follower = createFollower(path, { state });
        }
        appendFileSync(path, bytes.subarray(at));
        poll();
        const once = splitLines(bytes);
        expect(got).toEqual(once.lines.map((line) => `${line.start} ${line.end} ${line.text}`));
        expect(follower.state?.offset).toBe(once.committed);
        rmSync(path);
      }),
      { numRuns: 300 },
    );
  });
});

describe('whatever is done to the file, the reader ends up with what is in it', () => {
  type Act = { kind: 'append' | 'torn' | 'rewrite' | 'replace' | 'cut' | 'delete' | 'poll'; size: number };
  const act: fc.Arbitrary<Act> = fc.record({
    kind: fc.constantFrom('append', 'append', 'torn', 'rewrite', 'replace', 'cut', 'delete', 'poll', 'poll'),
    size: fc.integer({ min: 0, max: 12 }),
  });

  test('rows since the last restart = rows of the file', () => {
    // Rows never repeat, as rows with ids and times do not; identical bytes could not be told apart.
    let serial = 0;
    const row = (): string => {
      serial += 1;
      return `{"row":${serial},"pad":"${'p'.repeat(serial % 17)}"}\n`;
    };
    const rows = (count: number): string => Array.from({ length: count }, row).join('');

    fc.assert(
      fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
        const path = fresh();
        const follower: Follower = createFollower(path);
        let known: string[] = [];
        const poll = (): void => {
          const answer = follower.poll();
          if (answer.kind === 'missing') {
            known = [];
            return;
          }
          if (answer.kind !== 'lines') throw new Error(answer.kind);
          if (answer.restarted !== undefined) known = [];
          known.push(...answer.lines.map((line) => line.text));
        };
        writeFileSync(path, rows(3));
        for (const { kind, size } of acts) {
          perform(path, kind, size, rows);
          if (kind === 'poll') poll();
        }
        appendFileSync(path, `\n${rows(1)}`);
        poll();
        expect(known).toEqual(splitLines(readFileSync(path)).lines.map((line) => line.text));
        rmSync(path);
      }),
      { numRuns: 300 },
    );
  });

  function perform(path: string, kind: Act['kind'], size: number, rows: (count: number) => string): void {
    if (kind === 'append') appendFileSync(path, rows(size));
    if (kind === 'torn') appendFileSync(path, rows(1).slice(0, size));
    if (kind === 'rewrite') writeFileSync(path, rows(size));
    if (kind === 'cut') {
      appendFileSync(path, '');
      truncateSync(path, Math.floor(readFileSync(path).length / (size + 1)));
    }
    if (kind === 'delete') rmSync(path, { force: true });
    if (kind === 'replace') {
      writeFileSync(`${path}.new`, rows(size));
      renameSync(`${path}.new`, path);
    }
  }
});
