import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { NOTIFY } from '../../../src/runtime/limits.ts';
import { createDecider, type Decider } from '../../../src/runtime/notify/decide.ts';
import { createLedger, type Ledger } from '../../../src/runtime/notify/ledger.ts';
import type { Session } from '../../../src/runtime/session/session.ts';
import { RUNNING, waitingOn } from '../../../src/runtime/session/state.ts';
import { rested, session, T } from './sessions.ts';

/** A turn of a session: how it is opened, interrupted by background wake-ups, and ended. */
interface Turn {
  readonly outcome: 'completed' | 'failed';
  /** Waits within it, each told once. */
  readonly waits: number;
  /** Times that background work lets it rest and wakes it again. */
  readonly wakes: number;
}

type Noise = 'again' | 'restart' | 'both' | 'late';

const turns = fc.array(
  fc.record({
    outcome: fc.constantFrom('completed' as const, 'failed' as const),
    waits: fc.nat({ max: 2 }),
    wakes: fc.nat({ max: 2 }),
  }),
  { minLength: 1, maxLength: 4 },
);
/** What happens between any two steps: the same shown again, a restart of the daemon, hours without it. */
const noises = fc.array(fc.constantFrom<Noise>('again', 'restart', 'both', 'late'), { maxLength: 60 });

/** A world in which time passes, the daemon restarts, and everything is shown more often than once. */
function world(noise: readonly Noise[]) {
  const state = { now: T, at: 0, shown: session({ kind: 'idle' }), ledger: createLedger() as Ledger };
  const told: { kind: string; id: string }[] = [];
  const start = (): Decider => {
    const decider = createDecider({
      ledger: state.ledger,
      wants: () => true,
      isQuiet: () => false,
      patienceMs: () => 600_000,
      labelOf: () => 'Codex CLI',
    });
    decider.begin([state.shown], state.now);
    return decider;
  };
  const held = { decider: start() };
  const look = (): void => void told.push(...held.decider.observe([state.shown], state.now));
  const restart = (): void => {
    state.ledger = createLedger(JSON.parse(JSON.stringify(state.ledger.all())));
    state.now += 1_000;
    held.decider = start();
  };
  const disturb = (): void => {
    const what = noise[state.at % Math.max(1, noise.length)] ?? 'again';
    state.at += 1;
    if (what !== 'again') restart();
    look();
    if (what === 'both') restart();
    if (what !== 'late') return;
    state.now += 200;
    look();
  };
  return {
    told,
    now: () => state.now,
    /** Shows a session, then lets time pass with everything that disturbs. */
    show(shown: Session, ms: number) {
      state.shown = shown;
      look();
      disturb();
      state.now += ms;
      look();
      disturb();
    },
  };
}

const SETTLED = NOTIFY.settleMs + 1;

function play(list: readonly Turn[], noise: readonly Noise[]) {
  const w = world(noise);
  for (const { outcome, waits, wakes } of list) {
    const opened = w.now() + 1;
    const open = { opened };
    w.show(session(RUNNING, { ...open, at: opened }), 3_000);
    for (let i = 0; i < waits; i += 1) {
      // A restart begins the settling anew: the wait stands long enough for any number of them.
      const waiting = session(waitingOn('tool'), { ...open, at: w.now() });
      for (let look = 0; look < 3; look += 1) w.show(waiting, SETTLED);
      w.show(session(RUNNING, { ...open, at: w.now() }), 3_000);
    }
    for (let i = 0; i < wakes; i += 1) {
      w.show(session(rested('completed'), { ...open, ended: w.now(), at: w.now(), work: 1 }), SETTLED);
      w.show(session(RUNNING, { ...open, at: w.now() }), 1_000);
    }
    const over = session(rested(outcome), { ...open, ended: w.now(), at: w.now() });
    for (let look = 0; look < 3; look += 1) w.show(over, SETTLED);
  }
  return w.told;
}

describe('one notice a turn, whatever happens', () => {
  test('N1 N2 N3 R-08: every turn and every wait that was watched is told exactly once, in any order of repeats and restarts', () => {
    fc.assert(
      fc.property(turns, noises, (list, noise) => {
        const told = play(list, noise);
        const expected = list.flatMap(({ outcome, waits }) => [
          ...Array.from({ length: waits }, () => 'approval'),
          outcome === 'completed' ? 'done' : 'failed',
        ]);
        expect(told.map(({ kind }) => kind)).toEqual(expected);
        expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
      }),
      { numRuns: 300 },
    );
  });

  test('whatever states follow each other, nothing is told twice by its id, and nothing of an unknown session', () => {
    const states = fc.constantFrom(
      RUNNING,
      waitingOn('tool'),
      waitingOn('question'),
      rested('completed'),
      rested('failed'),
      rested('stopped'),
      { kind: 'unknown' } as const,
      { kind: 'idle' } as const,
    );
    const steps = fc.array(
      fc.record({
        state: states,
        opened: fc.nat({ max: 5 }),
        ms: fc.integer({ min: 1, max: 5_000 }),
        work: fc.nat({ max: 1 }),
      }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(steps, noises, (list, noise) => {
        const w = world(noise);
        for (const { state, opened, ms, work } of list) {
          const before = w.told.length;
          w.show(session(state, { opened: T + opened * 10_000, at: w.now(), ended: w.now(), work }), ms);
          if (state.kind === 'unknown') expect(w.told.length).toBe(before);
        }
        const endings = w.told.filter(({ kind }) => kind === 'done' || kind === 'failed').map(({ id }) => id);
        expect(new Set(endings).size).toBe(endings.length);
      }),
      { numRuns: 300 },
    );
  });
});

describe('the ledger', () => {
  test('never holds more sessions than its bound, and keeps the newest', () => {
    const ledger = createLedger();
    const count = NOTIFY.ledgerSessions + 50;
    for (let i = 0; i < count; i += 1) ledger.set(`k${i}`, { at: T + i });
    const keys = Object.keys(ledger.all());
    expect(keys.length).toBe(NOTIFY.ledgerSessions);
    expect(keys).toContain(`k${count - 1}`);
    ledger.set('new', { at: T + NOTIFY.ledgerMs + count });
    expect(Object.keys(ledger.all())).toEqual(['new']);
  });
});
