import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { extendRollout } from '../../../src/adapters/codex/followed.ts';
import { mapCodexHook } from '../../../src/adapters/codex/hooks.ts';
import { toRecord } from '../../../src/adapters/codex/records.ts';
import { rolloutOf } from '../../../src/adapters/codex/rollout.ts';
import { parseRolloutName } from '../../../src/adapters/codex/segments.ts';
import {
  applyNotification,
  applyThread,
  EMPTY_VIEW,
  serverSightings,
} from '../../../src/adapters/codex/server-view.ts';
import { recordsClaim } from '../../../src/adapters/codex/thread.ts';
import { applyRecord, NO_TURN, turnState } from '../../../src/adapters/codex/turn.ts';
import { splitLines } from '../../../src/runtime/files/jsonl.ts';
import { PUBLIC_STATES, publicState } from '../../../src/runtime/session/project.ts';
import { ID, Lines } from './home.ts';

/** One call of the builder, by number: any order of records that a rollout might hold. */
const steps: readonly ((lines: Lines, n: number) => Lines)[] = [
  (lines) => lines.started(),
  (lines) => lines.complete(),
  (lines) => lines.complete({ error: { message: 'x', codex_error_info: 'other' } }),
  (lines) => lines.aborted(),
  (lines) => lines.aborted('another'),
  (lines) => lines.prompt('Go'),
  (lines) => lines.said('Hm'),
  (lines, n) => lines.call('exec_command', { cmd: 'ls' }, `c${n % 3}`),
  (lines, n) => lines.call('request_user_input', {}, `c${n % 3}`),
  (lines, n) => lines.output(`c${n % 3}`),
  (lines) => lines.context('m', '/w'),
  (lines) => lines.event('thread_rolled_back', {}),
  (lines) => lines.add('world_state', {}),
];
const history = fc.array(fc.nat({ max: steps.length - 1 }), { maxLength: 40 });
const build = (numbers: readonly number[]) =>
  numbers.reduce((lines, step, n) => steps[step]?.(lines, n) ?? lines, new Lines().meta());
const linesOf = (lines: readonly string[]) =>
  splitLines(Buffer.from(lines.map((line) => `${line}\n`).join(''))).lines;

describe('whatever a file holds', () => {
  test('no value is ever thrown at, and every state is one of the shared words', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (values) => {
        const turn = values.map(toRecord).reduce(applyRecord, NO_TURN);
        expect(PUBLIC_STATES).toContain(publicState(turnState(turn)));
        recordsClaim(turn, { now: 1_000, mtimeMs: 500 });
      }),
    );
  });

  test('objects of the right frame with any payload', () => {
    const type = fc.constantFrom(
      'event_msg',
      'response_item',
      'session_meta',
      'turn_context',
      'retained_context',
    );
    const inner = fc.constantFrom(
      'task_started',
      'task_complete',
      'item_completed',
      'function_call',
      'token_count',
    );
    const payload = fc.tuple(
      inner,
      fc.dictionary(fc.constantFrom('turn_id', 'item', 'info', 'error', 'name', 'arguments'), fc.jsonValue()),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(type, payload)), (records) => {
        const lines = records.map(([kind, [name, rest]]) =>
          JSON.stringify({ type: kind, payload: { type: name, ...rest } }),
        );
        expect(rolloutOf(linesOf(lines)).promptSearched).toBe(true);
      }),
    );
  });

  test('reading all of it, and reading on from any line, say the same', () => {
    fc.assert(
      fc.property(history, fc.nat({ max: 40 }), (numbers, at) => {
        const { lines } = build(numbers);
        const cut = Math.min(lines.length, 1 + at);
        const whole = rolloutOf(linesOf(lines));
        const grown = extendRollout(rolloutOf(linesOf(lines.slice(0, cut))), linesOf(lines.slice(cut)));
        expect(turnState(grown.turn)).toEqual(turnState(whole.turn));
        expect([grown.prompt, grown.context, grown.turn.end]).toEqual([
          whole.prompt,
          whole.context,
          whole.turn.end,
        ]);
      }),
    );
  });

  test('nothing is open after an end, until a turn starts', () => {
    fc.assert(
      fc.property(history, history, (before, after) => {
        const quiet = after.filter((step) => step !== 0 && step !== 11);
        const ended = build([...before, 0, 1, ...quiet]);
        expect(publicState(turnState(rolloutOf(linesOf(ended.lines)).turn))).toBe('completed');
      }),
    );
  });
});

describe('whatever others send', () => {
  test('a hook payload', () => {
    const key = fc.constantFrom(
      'session_id',
      'agent_id',
      'hook_event_name',
      'tool_name',
      'tool_input',
      'transcript_path',
    );
    fc.assert(fc.property(fc.dictionary(key, fc.jsonValue()), (payload) => void mapCodexHook(payload, 0)));
  });

  test('a server message', () => {
    const method = fc.constantFrom('thread/started', 'thread/status/changed', 'thread/name/updated', 'x');
    const params = fc.dictionary(
      fc.constantFrom('thread', 'threadId', 'status', 'threadName'),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(method, params, fc.dictionary(fc.string(), fc.jsonValue()), (name, body, thread) => {
        const view = applyNotification(EMPTY_VIEW, { method: name, params: body }, 0);
        serverSightings(applyThread(view, { ...thread, id: ID }, 0), 'x');
      }),
    );
  });

  test('a file name: what is taken as a thread is a UUID', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        const parsed = parseRolloutName(`rollout-${name}.jsonl`);
        expect(
          parsed === undefined || /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(parsed.threadId),
        ).toBe(true);
      }),
    );
  });
});
