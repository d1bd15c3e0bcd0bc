import { describe, expect, test } from 'bun:test';
import type { Claim } from '../../../src/runtime/session/evidence.ts';
import { fuse } from '../../../src/runtime/session/fuse.ts';
import { END_HOLD_MS, LEDGER_LAG_MS } from '../../../src/runtime/session/ledger.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import {
  IDLE,
  RUNNING,
  type SessionState,
  STREAMING,
  waitingOn,
} from '../../../src/runtime/session/state.ts';

const T = 1_000_000;
const rested = (outcome: 'completed' | 'failed' | 'stopped'): SessionState => ({ kind: 'rested', outcome });

const ledger = (at: number, says: SessionState, more: Partial<Claim> = {}): Claim => ({
  ...{ feed: 'x.ledger', confidence: 'inferred', at, says, ledger: true, detail: '' },
  ...more,
});
const exact = (at: number, says: SessionState): Claim => ({
  ...{ feed: 'x.api', confidence: 'exact', at, says, life: 'alive', detail: '' },
});
const report = (at: number, says: SessionState, more: Partial<Claim> = {}): Claim => ({
  ...{ feed: 'x.hooks', confidence: 'reported', at, says, detail: '' },
  ...more,
});
const life = (alive: boolean): Claim => ({
  ...{ feed: 'x.lock', confidence: 'inferred', at: T, says: { kind: 'silent' }, detail: '' },
  life: alive ? 'alive' : 'dead',
});
const at = (now: number, ...claims: Claim[]) => publicState(fuse(claims, undefined, now).state);

const open = { turn: { openedAt: T } };
const ended = (endedAt: number, end: 'completed' | 'failed' | 'stopped') => ({
  turn: { openedAt: T, endedAt, end },
});

describe('a ledger against the program’s own status', () => {
  test('R-12 the recorded end stands, the status follows', () => {
    const end = ledger(T + 90, rested('failed'), ended(T + 90, 'failed'));
    expect(at(T + 95, exact(T + 10, RUNNING), end)).toBe('failed');
    expect(at(T + 95, exact(T + 10, waitingOn('tool')), end)).toBe('failed');
  });

  test('a status that is newer than a lag speaks of something newer', () => {
    const end = ledger(T + 90, rested('completed'), ended(T + 90, 'completed'));
    expect(at(T + 9_000, exact(T + 91 + LEDGER_LAG_MS, RUNNING), end)).toBe('running');
  });

  test('an end before the newest prompt is another turn’s', () => {
    const end = ledger(T + 90, rested('completed'), ended(T + 90, 'completed'));
    const prompt = report(T + 95, RUNNING, { turn: { openedAt: T + 95 } });
    expect(at(T + 3_000, exact(T + 100, RUNNING), end, prompt)).toBe('running');
  });

  test('R-10 a record answers the wait; a call that is open does not', () => {
    const wait = exact(T + 50, waitingOn('tool'));
    expect(at(T + 61, wait, ledger(T + 60, RUNNING, { ...open, answeredAt: T + 60 }))).toBe('running');
    expect(at(T + 61, wait, ledger(T + 60, RUNNING, { ...open, answeredAt: T + 40 }))).toBe(
      'waiting_for_approval',
    );
    const tool: SessionState = { kind: 'working', doing: 'tool', tool: { name: 'x' } };
    expect(at(T + 61, wait, ledger(T + 60, tool, { ...open, answeredAt: T + 60 }))).toBe(
      'waiting_for_approval',
    );
  });

  test('a recorded question stands before the status shows it, and not long after', () => {
    const question = ledger(T + 60, waitingOn('question'), open);
    expect(at(T + 61, exact(T + 10, RUNNING), question)).toBe('blocked');
    expect(at(T + 9_000, exact(T + 5_000, RUNNING), question)).toBe('running');
  });

  test('a recorded start stands against an idle status; against an error only if it is newer', () => {
    const turn = ledger(T + 5, RUNNING, open);
    expect(at(T + 10, exact(T + 8, IDLE), turn)).toBe('running');
    expect(at(T + 9_000, exact(T + 8_000, IDLE), turn)).toBe('stopped');
    expect(at(T + 10, exact(T + 8, rested('failed')), turn)).toBe('failed');
    expect(at(T + 9_000, exact(T - 1, rested('failed')), turn)).toBe('running');
  });
});

describe('a ledger against reports', () => {
  test('a start hook inside the first turn hides nothing', () => {
    expect(at(T + 60, life(true), ledger(T, RUNNING, open), report(T + 50, { kind: 'starting' }))).toBe(
      'running',
    );
  });

  test('a start hook after a resume keeps the outcome (R-02)', () => {
    const end = ledger(T + 9, rested('stopped'), ended(T + 9, 'stopped'));
    expect(at(T + 60, life(true), end, report(T + 50, { kind: 'starting' }))).toBe('stopped');
  });

  test('a stop hook foretells the end; it may still go on, but not for ever', () => {
    const stop = report(T + 50, rested('completed'), ended(T + 50, 'completed'));
    const turn = ledger(T + 40, STREAMING, open);
    expect(at(T + 60, life(true), turn, stop)).toBe('streaming');
    expect(at(T + 51 + END_HOLD_MS, life(true), turn, stop)).toBe('completed');
    expect(at(T + 60, life(false), turn, stop)).toBe('completed');
  });

  test('an end hook keeps what the ledger says of the turn, and cuts one that is open only with its owner', () => {
    const gone = report(T + 50, { kind: 'ended', outcome: 'stopped' }, open);
    expect(at(T + 60, life(true), ledger(T + 9, rested('failed'), ended(T + 9, 'failed')), gone)).toBe(
      'failed',
    );
    expect(at(T + 60, life(false), ledger(T + 9, rested('failed'), ended(T + 9, 'failed')), gone)).toBe(
      'failed',
    );
    expect(at(T + 60, life(true), ledger(T + 40, RUNNING, open), gone)).toBe('running');
    expect(at(T + 60, life(false), ledger(T + 40, RUNNING, open), gone)).toBe('stopped');
  });

  test('what is done is the ledger’s to say; a prompt that is not written yet is the hook’s', () => {
    const hook = report(T + 50, RUNNING, { turn: { openedAt: T + 50 } });
    expect(at(T + 60, life(true), ledger(T + 40, STREAMING, open), hook)).toBe('streaming');
    const end = ledger(T + 9, rested('completed'), ended(T + 9, 'completed'));
    expect(at(T + 60, life(true), end, hook)).toBe('running');
    const late = report(T + 50, RUNNING, { turn: { openedAt: T } });
    expect(at(T + 60, life(true), end, late)).toBe('completed');
  });

  test('a reported wait stands until a record answers it or ends the turn', () => {
    const wait = report(T + 50, waitingOn('tool'), open);
    expect(at(T + 60, life(true), ledger(T + 40, RUNNING, { ...open, answeredAt: T }), wait)).toBe(
      'waiting_for_approval',
    );
    expect(at(T + 70, life(true), ledger(T + 60, RUNNING, { ...open, answeredAt: T + 60 }), wait)).toBe(
      'running',
    );
    expect(at(T + 70, life(true), ledger(T + 60, rested('stopped'), ended(T + 60, 'stopped')), wait)).toBe(
      'stopped',
    );
    expect(at(T + 70, life(false), ledger(T + 40, RUNNING, { ...open, answeredAt: T }), wait)).toBe(
      'stopped',
    );
  });

  test('a thread without a turn leaves the floor to reports', () => {
    expect(at(T + 60, life(true), ledger(T, { kind: 'unknown' }), report(T + 50, RUNNING))).toBe('running');
  });
});
