import { describe, expect, test } from 'bun:test';
import type { Claim } from '../../../src/runtime/session/evidence.ts';
import { fuse, LAST_WORDS_MS, OUTCOME_GRACE_MS, RECORD_LAG_MS } from '../../../src/runtime/session/fuse.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import type { Fused } from '../../../src/runtime/session/session.ts';
import { IDLE, RUNNING, restedWith, waitingOn } from '../../../src/runtime/session/state.ts';

const T = 1_796_000_000_000;
const OPEN = { openedAt: T };
const DONE = { openedAt: T, endedAt: T + 900, end: 'completed' } as const;

const live = (says: Claim['says'], at: number, more: Partial<Claim> = {}): Claim => ({
  feed: 'x.live',
  owner: '10',
  confidence: 'exact',
  at,
  says,
  life: 'alive',
  detail: 'live',
  ...more,
});
const hook = (says: Claim['says'], at: number, more: Partial<Claim> = {}): Claim => ({
  feed: 'x.hooks',
  confidence: 'reported',
  at,
  says,
  detail: 'hook',
  ...more,
});
const rows = (says: Claim['says'], at: number, more: Partial<Claim> = {}): Claim => ({
  feed: 'x.rows',
  confidence: 'inferred',
  at,
  says,
  detail: 'rows',
  ...more,
});
const gone = (at: number): Claim => ({
  feed: 'x.process',
  confidence: 'inferred',
  at,
  says: { kind: 'silent' },
  life: 'dead',
  detail: 'gone',
});
/** One judgement after the other, as a watch makes them. */
function follow(steps: readonly (readonly [number, ...Claim[]])[]): Fused {
  const [first, ...rest] = steps;
  if (!first) throw new Error('no steps');
  const [at, ...claims] = first;
  return rest.reduce((previous, [now, ...next]) => fuse(next, previous, now), fuse(claims, undefined, at));
}
const word = (fused: Fused): string => publicState(fused.state);

describe('fuse: values that are held for a moment', () => {
  const prompt = rows(RUNNING, T, { turn: OPEN });

  test('R-09 a turn whose owner just came to rest goes on until its record can be there, then it was stopped', () => {
    const busy = [T + 100, live(RUNNING, T + 100), prompt] as const;
    const idle = [live(IDLE, T + 500), prompt];
    expect(word(follow([busy, [T + 510, ...idle]]))).toBe('running');
    expect(word(follow([busy, [T + 510, ...idle], [T + 520, ...idle]]))).toBe('running');
    expect(word(follow([busy, [T + 510, ...idle], [T + 500 + OUTCOME_GRACE_MS, ...idle]]))).toBe('stopped');
  });

  test('R-09 the record of the end is taken at once', () => {
    const ended = rows(restedWith('completed'), T + 480, {
      turn: { ...OPEN, endedAt: T + 480, end: 'completed' },
    });
    const fused = follow([
      [T + 100, live(RUNNING, T + 100), prompt],
      [T + 510, live(IDLE, T + 500), prompt],
      [T + 530, live(IDLE, T + 500), ended],
    ]);
    expect(word(fused)).toBe('completed');
  });

  test('R-09 where hooks follow the turn nothing is held: its Stop would have been told', () => {
    const told = hook(RUNNING, T + 20, { turn: { openedAt: T + 20 } });
    const fused = follow([
      [T + 100, live(RUNNING, T + 100), prompt, told],
      [T + 510, live(IDLE, T + 500), prompt, told],
    ]);
    expect(word(fused)).toBe('stopped');
  });

  test('R-09 from a wait straight to rest is a refusal: nothing is held, and the wait does not come back', () => {
    const asked = rows({ kind: 'working', doing: 'tool', tool: { name: 'Bash' } }, T + 50, { turn: OPEN });
    const fused = follow([
      [T + 100, live(waitingOn('tool'), T + 100), asked],
      [T + 510, live(IDLE, T + 500), asked],
      [T + 511, live(IDLE, T + 500), asked],
    ]);
    expect(word(fused)).toBe('stopped');
  });

  test('work that no record tells of yet outlasts the rest by one batch, then the former outcome is back', () => {
    const before = rows(restedWith('completed'), T + 900, { turn: DONE });
    const steps = [
      [T + 1_000, live(IDLE, T + 950), before],
      [T + 5_000, live(RUNNING, T + 5_000), before],
    ] as const;
    expect(word(follow([...steps, [T + 5_510, live(IDLE, T + 5_500), before]]))).toBe('running');
    const later = T + 5_500 + RECORD_LAG_MS;
    expect(
      word(
        follow([
          ...steps,
          [T + 5_510, live(IDLE, T + 5_500), before],
          [later, live(IDLE, T + 5_500), before],
        ]),
      ),
    ).toBe('completed');
  });

  test('R-09 a first look at an owner that came to rest this moment waits for the record, too', () => {
    const claims = [live(IDLE, T + 500), prompt];
    expect(word(fuse(claims, undefined, T + 501))).toBe('running');
    expect(word(fuse(claims, undefined, T + 500 + OUTCOME_GRACE_MS))).toBe('stopped');
  });

  test('an owner that was seen to leave a moment ago may still be owed the record of its end', () => {
    const working = [T + 100, live({ kind: 'silent' }, T), prompt] as const;
    const left = follow([working, [T + 210, gone(T + 200), prompt]]);
    expect([word(left), left.life]).toEqual(['running', 'unknown']);
    const late = follow([
      working,
      [T + 210, gone(T + 200), prompt],
      [T + 200 + LAST_WORDS_MS, gone(T + 200), prompt],
    ]);
    expect([word(late), late.life]).toEqual(['stopped', 'dead']);
  });

  test('R-02 a first look at a dead owner holds nothing', () => {
    expect(word(fuse([gone(T + 200), prompt], undefined, T + 201))).toBe('stopped');
  });
});

describe('fuse: what hooks may raise and end', () => {
  test('R-17 a reported output limit does not stand over an owner that works', () => {
    const limited = hook(restedWith('limited'), T + 500, {
      turn: { ...OPEN, endedAt: T + 500, end: 'limited' },
    });
    expect(word(fuse([live(RUNNING, T), limited], undefined, T + 510))).toBe('running');
    expect(word(fuse([live(IDLE, T + 600), limited], undefined, T + 610))).toBe('blocked');
  });

  test('R-05 a reported wait is not raised over an owner that shows its waits itself', () => {
    const asked = hook(waitingOn('tool'), T + 500);
    expect(word(fuse([live(RUNNING, T), asked], undefined, T + 510))).toBe('waiting_for_approval');
    expect(word(fuse([live(RUNNING, T, { showsWaits: true }), asked], undefined, T + 510))).toBe('running');
    expect(
      word(fuse([live(IDLE, T, { showsWaits: true }), hook(RUNNING, T + 500)], undefined, T + 510)),
    ).toBe('running');
  });

  test('R-02 a reported end cuts no turn that a record saw end', () => {
    const ended = hook({ kind: 'ended', outcome: 'stopped' }, T + 2_000, { turn: OPEN });
    const failed = rows(restedWith('failed'), T + 900, {
      turn: { ...OPEN, endedAt: T + 900, end: 'failed' },
    });
    expect(word(fuse([ended, failed], undefined, T + 2_001))).toBe('failed');
    expect(word(fuse([ended, rows(RUNNING, T, { turn: OPEN })], undefined, T + 2_001))).toBe('stopped');
  });

  test('R-02 an end that the program itself tells keeps the outcome, and cuts only an open turn', () => {
    const ended = live({ kind: 'ended' }, T + 2_000);
    const done = rows(restedWith('completed'), T + 900, { turn: DONE });
    expect(word(fuse([ended, done], undefined, T + 2_001))).toBe('completed');
    expect(word(fuse([ended, rows(RUNNING, T, { turn: OPEN })], undefined, T + 2_001))).toBe('stopped');
    expect(fuse([ended], undefined, T + 2_001).state).toEqual({ kind: 'ended' });
  });
});

describe('fuse: the clock is set back by an hour while something is open (D15)', () => {
  const HOUR = 3_600_000;
  const before = [
    T + HOUR,
    live(RUNNING, T + HOUR),
    rows(RUNNING, T + HOUR, { turn: { openedAt: T + HOUR } }),
  ] as const;

  test('the next turns have their own outcomes, and not "stopped" until the clock is there again', () => {
    const busy = [T + 100, live(RUNNING, T + 100), rows(RUNNING, T, { turn: OPEN })] as const;
    const rested = (end: 'completed' | 'failed') =>
      [T + 950, live(IDLE, T + 940), rows(restedWith(end), T + 900, { turn: { ...DONE, end } })] as const;
    expect(word(follow([before, busy, rested('completed')]))).toBe('completed');
    expect(word(follow([before, busy, rested('failed')]))).toBe('failed');
  });

  test('a report of before raises nothing any more, and an owner at rest is not held at work', () => {
    const asked = hook(waitingOn('tool'), T + HOUR);
    expect(word(follow([before, [T + 60_000, live(RUNNING, T + 50_000), asked]]))).toBe('running');
    const open = rows(RUNNING, T, { turn: OPEN });
    expect(word(follow([before, [T + 60_000, live(IDLE, T + HOUR + 5), open]]))).toBe('stopped');
  });
});
