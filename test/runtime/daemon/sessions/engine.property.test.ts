import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { z } from 'zod';
import type { Origin } from '../../../../src/runtime/daemon/sessions/entry.ts';
import type { Row } from '../../../../src/runtime/daemon/vocabulary.ts';
import { EVENTS, type EventWord, STATES, scene, stamp } from './dsl.ts';

const PARENT_WORDS = [...Object.keys(EVENTS), ...STATES.map((state) => `ss:${state}`)] as EventWord[];

type Step =
  | { kind: 'observe'; id: string; word: EventWord; origin: Origin; extra: Record<string, unknown> }
  | { kind: 'end'; id: string; origin: Origin; pid: number | undefined }
  | { kind: 'window'; key: string; folders: string[]; tabs: number }
  | { kind: 'unregister'; key: string }
  | { kind: 'time'; seconds: number; asleep: boolean };

const id = fc.constantFrom('a', 'b', 'c');
const pid = fc.option(fc.constantFrom(100, 200, 300), { nil: undefined });
const origin = fc.constantFrom<Origin>('socket', 'local', 'journal', 'replay');
const extra = fc.record(
  {
    pid: fc.constantFrom(100, 200, 300),
    agent_id: fc.constantFrom('x', 'y'),
    agent: fc.constantFrom('claude', 'codex', 'pi'),
    cwd: fc.constantFrom('/p', '/p/q', '/r'),
    repo: fc.constantFrom('p', 'r'),
    model: fc.constantFrom('m1', 'm2'),
    stamp: fc
      .record({ at: fc.integer({ min: -60, max: 60 }), seq: fc.integer({ min: 0, max: 30 }) })
      .map(({ at, seq }) => stamp(at, `s${seq}`)),
  },
  { requiredKeys: [] },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('observe' as const),
      id,
      word: fc.constantFrom(...PARENT_WORDS),
      origin,
      extra,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const), id, origin, pid }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('window' as const),
      key: fc.constantFrom('w1', 'w2'),
      folders: fc.subarray(['/p', '/r']),
      tabs: fc.nat({ max: 1 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('unregister' as const), key: fc.constantFrom('w1', 'w2') }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('time' as const),
      seconds: fc.constantFrom(1, 11, 31, 301),
      asleep: fc.boolean(),
    }),
  },
);

/** Only the fields of S-002, with both vocabularies closed (C-371). */
const ROW = z.strictObject({
  session_id: z.string(),
  agent: z.enum(['claude', 'codex', 'pi']),
  state: z.enum(['starting', 'working', 'idle', 'waiting_for_input', 'waiting_for_permission', 'ended']),
  cwd: z.string().optional(),
  repo: z.string().optional(),
  transcript_path: z.string().optional(),
  model: z.string().optional(),
  source: z.union([
    z.strictObject({ kind: z.literal('terminal') }),
    z.strictObject({ kind: z.literal('vs_code'), window_key: z.string() }),
  ]),
  last_event: z.union([
    z.enum([
      'session_start',
      'user_prompt_submit',
      'pre_tool_use',
      'post_tool_use',
      'stop',
      'transcript_grew',
      'transcript_discovered',
    ]),
    z.strictObject({
      notification: z.enum(['permission_prompt', 'idle_prompt', 'agent_needs_input', 'other']),
    }),
    z.strictObject({ stream_state: z.string() }),
  ]),
  started_at: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
  last_seen: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
});

/** What a consumer renders: everything but the two fields that churn (S-121). */
const visible = (rows: readonly Row[]): unknown =>
  rows.map(({ last_event: _event, last_seen: _seen, ...rest }) => rest);

function run(scenery: ReturnType<typeof scene>, step: Step): void {
  const { engine, clock } = scenery;
  if (step.kind === 'observe') {
    if (step.origin === 'socket') scenery.O(step.id, step.word, step.extra);
    else if (step.origin === 'local') scenery.local(step.id, step.word, step.extra);
    else scenery.J(step.id, step.word, step.extra);
  }
  if (step.kind === 'end') engine.end({ session_id: step.id, pid: step.pid }, step.origin);
  if (step.kind === 'window') scenery.W(step.key, step.folders, step.tabs);
  if (step.kind === 'unregister') scenery.U(step.key);
  if (step.kind === 'time') (step.asleep ? clock.sleep : clock.plus)(step.seconds);
}

describe('the engine under any history', () => {
  test('C-371 S-120 S-121: rows fit the schema, and the version moves exactly when a row changes', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const scenery = scene();
        for (const one of steps) {
          // A read reaps without a bump; after it, only the step itself can change anything.
          const before = scenery.rows();
          const version = scenery.engine.version();
          run(scenery, one);
          const moved = scenery.engine.version() !== version;
          const after = scenery.engine.list();
          for (const row of after.sessions) ROW.parse(row);
          if (one.kind === 'time') {
            expect(moved).toBe(false);
            continue;
          }
          const changed = JSON.stringify(visible(before)) !== JSON.stringify(visible(after.sessions));
          // A window that no session lies in changes no row, and is a bump all the same.
          if (one.kind === 'window' || one.kind === 'unregister') expect(changed && !moved).toBe(false);
          else expect([one, moved]).toEqual([one, changed]);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('S-115 S-117: a sub-agent’s words never move the parent’s own state', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), fc.array(step, { maxLength: 15 }), (history, agents) => {
        const scenery = scene();
        for (const one of history) run(scenery, one);
        const before = scenery.engine.entries().map((entry) => ({ entry, phase: entry.shown.parentPhase }));
        for (const one of agents) {
          if (one.kind !== 'observe') continue;
          run(scenery, { ...one, extra: { ...one.extra, agent: 'claude', agent_id: 'x' } });
        }
        for (const { entry, phase } of before) {
          // One that aged out and came back is another entry.
          if (scenery.engine.entry(entry.id) === entry) expect(entry.shown.parentPhase).toBe(phase);
        }
      }),
    );
  });

  test('S-112: the same stamped events once more, in any order and by any way, change nothing', () => {
    const stamped = fc.uniqueArray(fc.nat({ max: 31 }), { maxLength: 20 }).chain((seconds) =>
      fc.tuple(
        fc.constant([...seconds].sort((a, b) => a - b)),
        fc.array(fc.constantFrom(...PARENT_WORDS), {
          minLength: seconds.length,
          maxLength: seconds.length,
        }),
        fc.array(fc.nat(), { minLength: seconds.length, maxLength: seconds.length }),
        origin,
      ),
    );
    fc.assert(
      fc.property(stamped, ([seconds, words, order, way]) => {
        const { O, J, local, rows, engine } = scene();
        const send = (index: number, by: Origin) => {
          const again = { stamp: stamp(seconds[index] ?? 0, `n${index}`) };
          const word = words[index] ?? 'disc';
          return by === 'socket'
            ? O('a', word, again)
            : by === 'local'
              ? local('a', word, again)
              : J('a', word, again);
        };
        seconds.forEach((_second, index) => void send(index, 'socket'));
        const before = rows();
        const version = engine.version();
        const shuffled = seconds
          .map((_second, index) => index)
          .sort((a, b) => (order[a] ?? 0) - (order[b] ?? 0));
        for (const index of shuffled) expect(send(index, way)).toBe('duplicate_ignored');
        expect(rows()).toEqual(before);
        expect(engine.version()).toBe(version);
      }),
    );
  });

  test('S-113 S-525: whatever the socket lost, the journal brings the row to where all hooks lead', () => {
    const active = fc.constantFrom<EventWord>('start', 'prompt', 'pre', 'post', 'stop', 'perm');
    const histories = fc.array(fc.record({ word: active, delivered: fc.boolean() }), {
      minLength: 1,
      maxLength: 25,
    });
    fc.assert(
      fc.property(histories, (history) => {
        const whole = scene();
        const lossy = scene();
        history.forEach(({ word, delivered }, index) => {
          const extra = { stamp: stamp(index - 1_000, `n${index}`) };
          whole.O('a', word, extra);
          if (delivered) lossy.O('a', word, extra);
        });
        history.forEach(
          ({ word }, index) => void lossy.J('a', word, { stamp: stamp(index - 1_000, `n${index}`) }),
        );
        expect(lossy.state('a')).toBe(whole.state('a'));
      }),
    );
  });
});
