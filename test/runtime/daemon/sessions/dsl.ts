/** The notation of the cases: a clock with two hands, and short words for what reaches the engine. */
import type { ServiceClock } from '../../../../src/runtime/daemon/clock.ts';
import {
  createSessionsEngine,
  type EndOutcome,
  type EngineOptions,
} from '../../../../src/runtime/daemon/sessions/engine.ts';
import type { ObserveOutcome, Origin } from '../../../../src/runtime/daemon/sessions/entry.ts';
import type { Observe, Row, Stamp, WireEvent, WireState } from '../../../../src/runtime/daemon/vocabulary.ts';
import { recordLog } from '../harness.ts';

export const A = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
export const B = '1c8f7d2b-3a5e-4b9f-8d4c-6e2f8a0b3c5d';
export const START = Date.parse('2026-10-03T03:40:00Z');

export const EVENTS = {
  start: 'session_start',
  prompt: 'user_prompt_submit',
  pre: 'pre_tool_use',
  post: 'post_tool_use',
  stop: 'stop',
  grew: 'transcript_grew',
  disc: 'transcript_discovered',
  perm: { notification: 'permission_prompt' },
  idleN: { notification: 'idle_prompt' },
  needs: { notification: 'agent_needs_input' },
  other: { notification: 'other' },
} as const satisfies Record<string, WireEvent>;

/** `ss:<state>` or a word of {@link EVENTS}. */
export type EventWord = keyof typeof EVENTS | `ss:${WireState}`;

export const STATES: readonly WireState[] = [
  'starting',
  'working',
  'idle',
  'waiting_for_input',
  'waiting_for_permission',
  'ended',
];

export function eventOf(word: EventWord): WireEvent {
  const state = STATES.find((name) => word === `ss:${name}`);
  if (state) return { stream_state: state };
  const [, event] = Object.entries(EVENTS).find(([name]) => name === word) ?? [];
  if (!event) throw new Error(`no event ${word}`);
  return event;
}

/** `40:05` past 03:00 of the day of the cases, or a number of seconds from its start. */
export function stamp(at: string | number, seq: string): Stamp {
  if (typeof at === 'string') return { ts: `2026-10-03T03:${at}Z`, seq };
  return { ts: new Date(START + at * 1_000).toISOString(), seq };
}

export interface FakeClock extends ServiceClock {
  /** Both hands. */
  plus(seconds: number): void;
  /** The wall only: the computer sleeps. */
  sleep(seconds: number): void;
}

export function fakeClock(): FakeClock {
  const state = { awake: 0, wall: START };
  return {
    awakeMs: () => state.awake,
    now: () => state.wall,
    plus(seconds) {
      state.awake += seconds * 1_000;
      state.wall += seconds * 1_000;
    },
    sleep(seconds) {
      state.wall += seconds * 1_000;
    },
  };
}

type Extra = Partial<Omit<Observe, 'session_id' | 'event'>>;

/** An engine with the words of the cases. */
export function scene(options: Partial<EngineOptions> = {}) {
  const clock = fakeClock();
  const { log, events } = recordLog();
  const engine = createSessionsEngine({ clock, log, platform: 'linux', ...options });
  const seen = { version: engine.version() };

  const observe = (id: string, word: EventWord, extra: Extra, origin: Origin): ObserveOutcome => {
    seen.version = engine.version();
    return engine.observe({ session_id: id, event: eventOf(word), ...extra }, origin);
  };
  const end = (id: string, extra: { pid?: number; stamp?: Stamp }, origin: Origin): EndOutcome => {
    seen.version = engine.version();
    return engine.end({ session_id: id, ...extra }, origin).outcome;
  };

  return {
    clock,
    engine,
    events,
    O: (id: string, word: EventWord, extra: Extra = {}) => observe(id, word, extra, 'socket'),
    J: (id: string, word: EventWord, extra: Extra = {}) => observe(id, word, extra, 'journal'),
    local: (id: string, word: EventWord, extra: Extra = {}) => observe(id, word, extra, 'local'),
    E: (id: string, extra: { pid?: number; stamp?: Stamp } = {}) => end(id, extra, 'socket'),
    JE: (id: string, extra: { pid?: number; stamp?: Stamp } = {}) => end(id, extra, 'journal'),
    W(key: string, folders: readonly string[], tabs = 1, terminals = 0) {
      seen.version = engine.version();
      engine.window({ key, folders, tabs, terminals });
    },
    U(key: string) {
      seen.version = engine.version();
      return engine.windowUnregister(key);
    },
    /** Whether the step just before moved the version. */
    bumped: () => engine.version() !== seen.version,
    row: (id: string): Row | undefined => engine.list().sessions.find((row) => row.session_id === id),
    state: (id: string): WireState | undefined =>
      engine.list().sessions.find((row) => row.session_id === id)?.state,
    rows: () => engine.list().sessions,
  };
}
