import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { BusEvent } from '../../../src/adapters/opencode/bus.ts';
import type { StoredSession } from '../../../src/adapters/opencode/database.ts';
import type { MessageRow } from '../../../src/adapters/opencode/rows.ts';
import { newestTurn } from '../../../src/adapters/opencode/rows.ts';
import type { ServerView } from '../../../src/adapters/opencode/server-view.ts';
import {
  confirmGone,
  type LocalLook,
  localRef,
  localSightings,
} from '../../../src/adapters/opencode/sightings.ts';
import { createStreamSessions } from '../../../src/adapters/opencode/stream-sessions.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';

const START = 1_796_000_000_000;
const FOLDER = '/home/dev/acme-app';
const URL = 'http://127.0.0.1:4096';
const ID = 'ses_1';
const ENDPOINT = { url: URL, named: false, pid: 7 };

/** When things happen in the server, milliseconds from the start of the session. */
interface Turn {
  readonly prompt: number;
  readonly busy: number;
  readonly answer: number;
  readonly delta: number;
  readonly closed: number;
  readonly idle: number;
}

/** One turn, its times apart from each other by what was seen: a cold instance takes 2 s until it is busy. */
const turns: fc.Arbitrary<Turn> = fc
  .tuple(
    fc.integer({ min: 1, max: 1_500 }),
    fc.integer({ min: 0, max: 2_500 }),
    fc.integer({ min: 1, max: 400 }),
    fc.integer({ min: 1, max: 1_500 }),
    fc.integer({ min: 1, max: 6_000 }),
    fc.integer({ min: 1, max: 300 }),
  )
  .map(([prompt, ...gaps]) => {
    const [busy, answer, delta, closed, idle] = gaps.map((_, index) =>
      gaps.slice(0, index + 1).reduce((sum, gap) => sum + gap, prompt),
    );
    return { prompt, busy, answer, delta, closed, idle } as Turn;
  });

/** A scan: its beginning, and how long after one another its steps are done. `fails`: the server did not answer in time. */
interface Scan {
  readonly at: number;
  readonly asks: number;
  readonly ends: number;
  readonly fails: boolean;
}
const scans: fc.Arbitrary<readonly Scan[]> = fc.array(
  fc.record({
    at: fc.integer({ min: 0, max: 12_000 }),
    asks: fc.integer({ min: 0, max: 1_000 }),
    ends: fc.integer({ min: 0, max: 1_000 }),
    fails: fc.boolean(),
  }),
  { minLength: 1, maxLength: 12 },
);

interface Delays {
  /** When the server hears of us, so that no event is lost from then on. */
  readonly heard: number;
  /** How long after that the server is asked what runs, and its answer is there. */
  readonly asked: number;
  readonly seeded: number;
  /** How late events arrive. */
  readonly late: number;
}
const delays: fc.Arbitrary<Delays> = fc.record({
  heard: fc.integer({ min: 0, max: 6_000 }),
  asked: fc.integer({ min: 0, max: 500 }),
  seeded: fc.integer({ min: 0, max: 3_000 }),
  late: fc.integer({ min: 0, max: 800 }),
});

const row = (
  id: string,
  role: MessageRow['role'],
  at: number,
  more: Partial<MessageRow> = {},
): MessageRow => ({
  id,
  role,
  createdAt: START + at,
  updatedAt: START + at,
  ...more,
});

/** The rows as they are at a moment. */
function storedAt(turn: Turn, at: number): StoredSession {
  const user = at >= turn.prompt ? [row('msg_1', 'user', turn.prompt)] : [];
  const end = { completedAt: START + turn.closed, updatedAt: START + turn.closed, finish: 'stop' };
  const answer =
    at >= turn.answer
      ? [row('msg_2', 'assistant', turn.answer, { parentId: 'msg_1', ...(at >= turn.closed ? end : {}) })]
      : [];
  const newest = newestTurn(
    [...answer, ...user],
    at >= turn.delta ? [{ updatedAt: START + turn.delta, type: 'text' }] : [],
  );
  return {
    info: { id: ID, directory: FOLDER },
    activityAt: newest?.lastWriteAt ?? START,
    ...(newest ? { turn: newest } : {}),
  };
}

const isBusyAt = (turn: Turn, at: number): boolean => at >= turn.busy && at < turn.idle;

function polled(turn: Turn, at: number): ServerView {
  return {
    endpoint: ENDPOINT,
    version: '1.18.33',
    statuses: new Map(isBusyAt(turn, at) ? [[ID, { type: 'busy' }]] : []),
    requests: [],
    covers: (directory) => directory === FOLDER,
    coversV2: true,
    failures: [],
    skipped: 0,
  };
}

function eventsOf(turn: Turn): readonly (readonly [number, BusEvent])[] {
  const event = (type: string, properties: BusEvent['properties']): BusEvent => ({
    type,
    directory: FOLDER,
    properties: { sessionID: ID, ...properties },
  });
  const answer = (more: object) => ({
    info: { id: 'msg_2', sessionID: ID, role: 'assistant', parentID: 'msg_1', ...more },
  });
  return [
    [0, event('session.created', { info: { id: ID, directory: FOLDER } })],
    [
      turn.prompt,
      event('message.updated', {
        info: { id: 'msg_1', sessionID: ID, role: 'user', time: { created: START + turn.prompt } },
      }),
    ],
    [turn.busy, event('session.status', { status: { type: 'busy' } })],
    [turn.answer, event('message.updated', answer({ time: { created: START + turn.answer } }))],
    [turn.delta, event('message.part.delta', { messageID: 'msg_2', partID: 'prt_1', field: 'text' })],
    [
      turn.closed,
      event(
        'message.updated',
        answer({ finish: 'stop', time: { created: START + turn.answer, completed: START + turn.closed } }),
      ),
    ],
    [turn.idle, event('session.status', { status: { type: 'idle' } })],
    [turn.idle, event('session.idle', {})],
  ];
}

/** A watch makes one scan after the other. */
function inTurn(looks: readonly Scan[]): readonly Scan[] {
  const last = { end: 0 };
  return looks
    .toSorted((a, b) => a.at - b.at)
    .map((scan) => {
      const at = Math.max(scan.at, last.end);
      last.end = at + scan.asks + scan.ends + 1;
      return { ...scan, at };
    });
}

/** Plays a turn against a watch with these delays, and gives every state that was shown, in order. */
function play(turn: Turn, delay: Delays, looks: readonly Scan[]): readonly string[] {
  const registry = createRegistry();
  const clock = { at: 0 };
  const now = (): number => START + clock.at;
  const shown: string[] = [];
  const show = (): void => {
    const session = registry.find(localRef(ID));
    const told = session ? publicState(session.shown.state) : 'unknown';
    // Which of the two is shown depends on how late the stream is: both say that it works.
    const state = told === 'streaming' ? 'running' : told;
    // A server that does not answer in time leaves a session that nobody has prompted unknown: that is true.
    if (state !== 'unknown' && shown.at(-1) !== state) shown.push(state);
  };
  const stream = createStreamSessions({
    server: { endpoint: ENDPOINT, version: '1.18.33' },
    local: true,
    now,
    timers: { after: () => () => {} },
    sink: {
      sighted: (scope, sightings) => registry.apply(scope, sightings, now()),
      lost: () => {},
      changed: () => {},
    },
  });
  const live = { seeded: false };
  const jobs: { readonly at: number; readonly run: () => void }[] = [];
  for (const [at, event] of eventsOf(turn)) {
    if (at >= delay.heard) jobs.push({ at: at + delay.late, run: () => stream.hear(event) });
  }
  const askedAt = delay.heard + delay.asked;
  jobs.push({
    at: askedAt + delay.seeded,
    run() {
      stream.seed(polled(turn, askedAt));
      live.seeded = true;
    },
  });
  // Once a stream tells what runs, everything is looked at again.
  const again = { at: askedAt + delay.seeded, asks: 0, ends: 0, fails: false };
  for (const scan of inTurn([...looks, again])) {
    const took: { session?: StoredSession; views?: readonly ServerView[] } = {};
    jobs.push({
      at: scan.at,
      run() {
        took.session = storedAt(turn, scan.at);
      },
    });
    jobs.push({
      at: scan.at + scan.asks,
      run() {
        took.views = scan.fails ? [] : [polled(turn, scan.at + scan.asks)];
      },
    });
    jobs.push({
      at: scan.at + scan.asks + scan.ends,
      run() {
        const look: LocalLook = {
          store: { source: 'database', sessions: took.session ? [took.session] : [] },
          // What a stream says by now is newer than any answer.
          views: live.seeded ? [stream.view()] : (took.views ?? []),
          owners: {
            processes: [
              { pid: 7, startedAt: START - 60_000, cwd: FOLDER, holdsStore: true, serves: true, urls: [URL] },
            ],
            certain: true,
          },
          streamed: new Set(live.seeded ? [URL] : []),
          now: START + scan.at,
        };
        const confirmed = confirmGone(look, () => ({ sessions: [storedAt(turn, clock.at)], now: now() }));
        registry.replace('opencode', localSightings(confirmed), now());
      },
    });
  }
  for (let at = 0; at <= 30_000; at += 250) jobs.push({ at, run: () => void registry.tick(now()) });
  for (const job of jobs.toSorted((a, b) => a.at - b.at)) {
    clock.at = job.at;
    job.run();
    show();
  }
  return shown;
}

const RISING = ['idle', 'running', 'completed'];

describe('R-13 one turn on a server, however late its events, its rows and its answers are seen', () => {
  test('is never called stopped, and once the watch is settled nothing comes back before its end', () => {
    fc.assert(
      fc.property(turns, delays, scans, (turn, delay, looks) => {
        const shown = play(turn, delay, looks);
        expect(shown).not.toContain('stopped');
        // Rows that already have the end may be read before the last events arrive.
        const first = shown.slice(0, shown.indexOf('completed') + 1 || shown.length);
        // A watch that is opened within a turn has older and newer words of it at once for a moment.
        const settled = delay.heard + delay.asked + delay.seeded < turn.prompt;
        const rising = settled ? first : [...new Set(first.filter((state) => state !== 'idle'))];
        expect(rising).toEqual(RISING.filter((state) => rising.includes(state)));
      }),
      { numRuns: 500 },
    );
  });
});
