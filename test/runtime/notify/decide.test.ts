import { describe, expect, test } from 'bun:test';
import { createDecider, type DecideOptions, type Decider } from '../../../src/runtime/notify/decide.ts';
import { createLedger, type Ledger } from '../../../src/runtime/notify/ledger.ts';
import type { Session } from '../../../src/runtime/session/session.ts';
import { IDLE, RUNNING, restedWith, UNKNOWN, waitingOn } from '../../../src/runtime/session/state.ts';
import { rested, type Shape, session, T } from './sessions.ts';

const MINUTE = 60_000;

interface Watch {
  /** Shows sessions at a time, in seconds after the beginning; gives what is told as `kind@turn-or-wait`. */
  see(seconds: number, ...sessions: readonly Session[]): readonly string[];
  readonly ledger: Ledger;
  readonly decider: Decider;
}

function watch(before: readonly Session[] = [], options: Partial<DecideOptions> = {}, seconds = 0): Watch {
  const ledger = options.ledger ?? createLedger();
  const decider = createDecider({
    ledger,
    wants: () => true,
    isQuiet: () => false,
    patienceMs: () => 10 * MINUTE,
    labelOf: () => 'Codex CLI',
    ...options,
  });
  decider.begin(before, T + seconds * 1_000);
  return {
    ledger,
    decider,
    see: (at, ...sessions) =>
      decider
        .observe(sessions, T + at * 1_000)
        .map(({ kind, backgroundWork }) => `${kind}${backgroundWork ? `+${backgroundWork}` : ''}`),
  };
}

const turn = (opened: number, shape: Shape = {}): Shape => ({ opened: T + opened * 1_000, ...shape });
const ended = (opened: number, end: number, shape: Shape = {}): Shape =>
  turn(opened, { ended: T + end * 1_000, at: T + end * 1_000, ...shape });
const working = (opened: number, shape: Shape = {}) => session(RUNNING, turn(opened, shape));
const approval = (at: number, shape: Shape = {}) =>
  session(waitingOn('tool'), turn(1, { at: T + at * 1_000, ...shape }));

describe('the end of a turn', () => {
  test('R-44: is told once it has settled for two seconds, and only once', () => {
    const w = watch([session(IDLE)]);
    expect(w.see(1, working(1))).toEqual([]);
    const done = session(rested('completed'), ended(1, 5));
    expect(w.see(5, done)).toEqual([]);
    expect(w.decider.nextAt()).toBe(T + 7_000);
    expect(w.see(6.9, done)).toEqual([]);
    expect(w.see(7, done)).toEqual(['done']);
    expect(w.see(8, done)).toEqual([]);
    expect(w.see(3_000, done)).toEqual([]);
    expect(w.decider.nextAt()).toBeUndefined();
  });

  test('a failed turn is told as failed, one that its user stopped is not told', () => {
    const w = watch();
    w.see(1, working(1, { id: 'a' }), working(1, { id: 'b' }));
    const both = [
      session(rested('failed'), ended(1, 5, { id: 'a' })),
      session(rested('stopped'), ended(1, 5, { id: 'b' })),
    ];
    w.see(5, ...both);
    expect(w.see(7, ...both)).toEqual(['failed']);
  });

  test('R-09: an outcome that is corrected while it settles is told as corrected', () => {
    const w = watch();
    w.see(1, working(1));
    w.see(5, session(rested('stopped'), ended(1, 5)));
    w.see(5.2, session(rested('completed'), ended(1, 5)));
    expect(w.see(7, session(rested('completed'), ended(1, 5)))).toEqual([]);
    expect(w.see(7.2, session(rested('completed'), ended(1, 5)))).toEqual(['done']);
  });

  test('work that goes on while the end settles is no end', () => {
    const w = watch();
    w.see(1, working(1));
    w.see(5, session(rested('completed'), ended(1, 5)));
    w.see(6, working(5.5));
    expect(w.see(9, working(5.5))).toEqual([]);
    const end = session(rested('completed'), ended(5.5, 20));
    w.see(20, end);
    expect(w.see(22, end)).toEqual(['done']);
  });

  test('what was over when watching began is not told; what was at work then is', () => {
    const over = session(rested('completed'), ended(-100, -50, { id: 'over' }));
    const open = working(-100, { id: 'open' });
    const w = watch([over, open]);
    expect(w.see(10, over, open)).toEqual([]);
    const end = session(rested('completed'), ended(-100, 11, { id: 'open' }));
    w.see(11, over, end);
    expect(w.see(13, over, end)).toEqual(['done']);
  });

  test('R-44: nothing is told from unknown', () => {
    const w = watch([session(UNKNOWN)]);
    const done = session(rested('completed'), ended(1, 2));
    w.see(2, done);
    expect(w.see(5, done)).toEqual([]);
    w.see(6, session(UNKNOWN));
    w.see(7, approval(7));
    expect(w.see(20, approval(7))).toEqual([]);
  });

  test('a turn too short to be seen open is told when it began within the watch', () => {
    const w = watch([session(rested('completed'), ended(-9, -8, { id: 'a' }))]);
    const quick = [
      session(rested('completed'), ended(3, 4, { id: 'a' })),
      session(rested('completed'), ended(3, 4, { id: 'new' })),
    ];
    w.see(4, ...quick);
    expect(w.see(6, ...quick)).toEqual(['done', 'done']);
    // A transcript that was copied here tells of turns of long ago.
    const copied = session(rested('completed'), ended(-99, -98, { id: 'copied' }));
    w.see(7, ...quick, copied);
    expect(w.see(10, ...quick, copied)).toEqual([]);
  });

  test('an idle session, and one whose turn nobody dated, are no news', () => {
    const w = watch([session(IDLE)]);
    w.see(1, session(RUNNING));
    w.see(5, session(rested('completed')));
    expect(w.see(20, session(rested('completed')))).toEqual([]);
    expect(w.see(21, session(IDLE))).toEqual([]);
  });

  test('R-17: an output limit asks for its user, and is no end of its own', () => {
    const w = watch();
    w.see(1, working(1));
    const limited = session(restedWith('limited'), ended(1, 5));
    w.see(5, limited);
    expect(w.see(7, limited)).toEqual(['input']);
  });
});

describe('background work (R-08, N1, N2)', () => {
  test('N1: a turn is done when its background work is, and once', () => {
    const w = watch();
    w.see(1, working(1));
    w.see(5, session(rested('completed'), ended(1, 5, { work: 1 })));
    expect(w.see(300, session(rested('completed'), ended(1, 5, { work: 1 })))).toEqual([]);
    expect(w.see(301, session(rested('completed'), ended(1, 5)))).toEqual(['done']);
  });

  test('R-08: shells alone are waited for ten minutes, and the notice says that one still runs', () => {
    const w = watch();
    w.see(1, working(1));
    const shell = session(rested('completed'), ended(1, 5, { work: 1 }));
    w.see(5, shell);
    expect(w.decider.nextAt()).toBe(T + 5_000 + 10 * MINUTE);
    expect(w.see(604, shell)).toEqual([]);
    expect(w.see(605, shell)).toEqual(['done+1']);
    // The shell ends and wakes the model, which speaks and rests: the same turn.
    w.see(900, working(1));
    const again = session(rested('completed'), ended(1, 905));
    w.see(905, again);
    expect(w.see(910, again)).toEqual([]);
  });

  test('N2: a background agent that comes back in short turns of the same prompt is told once, at the end', () => {
    const w = watch();
    const told: string[] = [];
    for (const start of [1, 20, 40]) {
      told.push(...w.see(start, working(1)));
      told.push(
        ...w.see(
          start + 5,
          session(rested('completed'), ended(1, start + 5, { work: start === 40 ? 0 : 1 })),
        ),
      );
      told.push(
        ...w.see(
          start + 8,
          session(rested('completed'), ended(1, start + 5, { work: start === 40 ? 0 : 1 })),
        ),
      );
    }
    expect(told).toEqual(['done']);
  });

  test('the patience counts from the first rest of the turn, also when the model was woken in between', () => {
    const w = watch();
    w.see(1, working(1));
    w.see(5, session(rested('completed'), ended(1, 5, { work: 1 })));
    w.see(400, working(1));
    w.see(410, session(rested('completed'), ended(1, 410, { work: 1 })));
    expect(w.see(605, session(rested('completed'), ended(1, 410, { work: 1 })))).toEqual(['done+1']);
  });

  test('R-18: a compaction is no turn of the user’s', () => {
    const rest = session(rested('completed'), ended(1, 5));
    const w = watch();
    w.see(1, working(1));
    w.see(5, rest);
    w.see(7, rest);
    w.see(50, working(1));
    const after = session(rested('completed'), ended(1, 60));
    w.see(60, after);
    expect(w.see(70, after)).toEqual([]);
    // The same in a session that was at rest when watching began.
    const later = watch([rest], {}, 100);
    later.see(150, working(1));
    later.see(160, after);
    expect(later.see(170, after)).toEqual([]);
  });
});

describe('waits', () => {
  test('are told after two seconds; one that was answered by then is not', () => {
    const w = watch();
    w.see(1, working(1));
    w.see(5, approval(5));
    expect(w.see(6.5, working(1))).toEqual([]);
    w.see(10, approval(10));
    expect(w.see(12, approval(10))).toEqual(['approval']);
    expect(w.see(500, approval(10))).toEqual([]);
  });

  test('each one is told, also when it follows the answered one at once', () => {
    const w = watch();
    w.see(5, approval(5));
    expect(w.see(7, approval(5))).toEqual(['approval']);
    w.see(20, working(1));
    w.see(20.1, approval(20.1));
    expect(w.see(22.1, approval(20.1))).toEqual(['approval']);
    const question = session(waitingOn('question'), turn(1, { at: T + 30_000 }));
    w.see(30, question);
    expect(w.see(32, question)).toEqual(['input']);
  });

  test('a wait that feeds disagree about for a moment is the same wait', () => {
    const w = watch();
    w.see(5, approval(5));
    expect(w.see(7, approval(5))).toEqual(['approval']);
    w.see(8, working(1));
    w.see(8.3, approval(5.1));
    expect(w.see(20, approval(5.1))).toEqual([]);
  });

  test('a better name for what is waited for is not another wait', () => {
    const w = watch();
    w.see(5, session(waitingOn('unspecified'), turn(1, { at: T + 5_000 })));
    expect(w.see(7, session(waitingOn('unspecified'), turn(1, { at: T + 5_000 })))).toEqual(['input']);
    w.see(9, session(waitingOn('question'), turn(1, { at: T + 9_000 })));
    expect(w.see(20, session(waitingOn('question'), turn(1, { at: T + 9_000 })))).toEqual([]);
  });

  test('R-17: only one with somebody there is told; a hook’s word is enough, a file’s is not', () => {
    const cases: [Shape, string[]][] = [
      [{ life: 'alive', confidence: 'inferred' }, ['approval']],
      [{ life: 'unknown', confidence: 'reported' }, ['approval']],
      [{ life: 'unknown', confidence: 'exact' }, ['approval']],
      [{ life: 'unknown', confidence: 'inferred' }, []],
      [{ life: 'dead', confidence: 'reported' }, []],
    ];
    for (const [shape, told] of cases) {
      const w = watch();
      w.see(5, approval(5, shape));
      expect([shape, w.see(7, approval(5, shape))]).toEqual([shape, told]);
    }
  });

  test('one that stands when watching begins is told: it is not over', () => {
    const w = watch([approval(-50)]);
    expect(w.see(2, approval(-50))).toEqual(['approval']);
  });
});

describe('restarts (N3)', () => {
  const again = (w: Watch, sessions: readonly Session[], seconds: number) =>
    watch(sessions, { ledger: createLedger(w.ledger.all()) }, seconds);

  test('a turn that was told, and a wait that was told, are not told again', () => {
    const w = watch();
    w.see(1, working(1), approval(1, { id: 'b' }));
    const all = [session(rested('completed'), ended(1, 5)), approval(1, { id: 'b' })];
    w.see(5, ...all);
    expect(w.see(7, ...all)).toEqual(['done']);
    const after = again(w, all, 60);
    expect(after.see(70, ...all)).toEqual([]);
    // Forty-five minutes later a headless resume ends without having said anything.
    after.see(2_700, working(1), approval(1, { id: 'b' }));
    after.see(2_701, ...all);
    expect(after.see(2_710, ...all)).toEqual([]);
  });

  test('a turn that was seen open and ends while nobody watches is told after the restart', () => {
    const w = watch();
    w.see(1, working(1));
    const done = session(rested('completed'), ended(1, 30));
    const after = again(w, [done], 60);
    expect(after.see(61, done)).toEqual([]);
    expect(after.see(62, done)).toEqual(['done']);
  });

  test('but not when that was long ago', () => {
    const w = watch();
    w.see(1, working(1));
    const done = session(rested('completed'), ended(1, 30));
    const after = again(w, [done], 3 * 24 * 3_600);
    expect(after.see(3 * 24 * 3_600 + 5, done)).toEqual([]);
  });

  test('R-38: the ledger holds ids and times only', () => {
    const w = watch();
    w.see(1, session(RUNNING, turn(1, { facts: { title: 'a secret', workDir: '/secret' } })));
    const done = session(rested('failed'), ended(1, 5, { error: 'secret', facts: { title: 'a secret' } }));
    w.see(5, done);
    w.see(7, done);
    expect(w.ledger.all()).toEqual({ 'codex:transcripts:a': { through: T + 5_000, at: T + 7_000 } });
  });
});

describe('choices of the owner', () => {
  test('a kind that is not wanted is not told, now or later', () => {
    const state = { wanted: false };
    const w = watch([], { wants: (kind) => kind !== 'done' || state.wanted });
    w.see(1, working(1));
    const done = session(rested('completed'), ended(1, 5));
    w.see(5, done);
    expect(w.see(7, done)).toEqual([]);
    state.wanted = true;
    expect(w.see(9, done)).toEqual([]);
  });

  test('quiet hours: what ends in them is not told, a wait that still stands is told afterwards', () => {
    const quietUntil = T + 100_000;
    const w = watch([], { isQuiet: (now) => now < quietUntil });
    w.see(1, working(1, { id: 'a' }), approval(1, { id: 'b' }));
    const all = [session(rested('completed'), ended(1, 5, { id: 'a' })), approval(1, { id: 'b' })];
    w.see(5, ...all);
    expect(w.see(50, ...all)).toEqual([]);
    expect(w.decider.nextAt()).toBe(T + 80_000);
    expect(w.see(100, ...all)).toEqual(['approval']);
  });
});

describe('what is told', () => {
  test('R-37 R-44: runtime, folder and states by their names, details apart', () => {
    const w = watch();
    w.see(1, working(1));
    const failed = session(
      rested('failed'),
      ended(1, 5, { error: 'quota', facts: { title: 'Fix it', workDir: 'C:\\work\\shop' } }),
    );
    w.decider.observe([failed], T + 5_000);
    expect(w.decider.observe([failed], T + 7_000)).toMatchObject([
      {
        kind: 'failed',
        event: 'connector.session.failed',
        from: 'running',
        to: 'failed',
        folder: 'shop',
        runtimes: [{ id: 'codex', label: 'Codex CLI' }],
        details: { title: 'Fix it', workDir: 'C:\\work\\shop', error: 'quota' },
      },
    ]);
  });
});
