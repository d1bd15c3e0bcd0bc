import { describe, expect, test } from 'bun:test';
import type { WireState } from '../../../../src/runtime/daemon/vocabulary.ts';
import { A, type EventWord, STATES, scene } from './dsl.ts';

/** S-103 as it stands, with R-06 on one cell. `-` unchanged, `x` ignored. Columns as in the contract. */
const TABLE: Record<Exclude<EventWord, `ss:${string}`>, string> = {
  //       none     starting working  idle     w_input  w_perm   ended
  start: 'starting starting starting starting starting starting starting',
  prompt: 'working working working working working working working',
  pre: 'working working working working working working working',
  post: 'working working working working working working working',
  stop: 'idle idle idle idle idle idle idle',
  perm: 'permission permission permission permission - permission permission',
  idleN: 'input input input input input input input',
  needs: 'input input input input input input input',
  other: 'idle - - - - - x',
  disc: 'idle - - - - - x',
  grew: 'working - working working - - x',
};
const COLUMNS = [
  'none',
  'starting',
  'working',
  'idle',
  'waiting_for_input',
  'waiting_for_permission',
  'ended',
] as const;
const SHORT: Record<string, WireState> = { permission: 'waiting_for_permission', input: 'waiting_for_input' };

/** How each state is reached: by every event that leads there. */
const WAYS: Record<WireState, readonly EventWord[][]> = {
  starting: [['start'], ['ss:starting']],
  working: [['prompt'], ['pre'], ['post'], ['grew'], ['ss:working']],
  idle: [['stop'], ['disc'], ['other'], ['ss:idle']],
  waiting_for_input: [['needs'], ['idleN'], ['ss:waiting_for_input'], ['pre', 'needs']],
  waiting_for_permission: [['perm'], ['ss:waiting_for_permission'], ['pre', 'perm']],
  ended: [['ss:ended'], ['prompt', 'ss:ended']],
};

describe('the state table', () => {
  test('C-001 S-103 S-111: every event on an unknown id', () => {
    for (const [word, row] of Object.entries(TABLE) as [EventWord, string][]) {
      const { O, state, bumped } = scene();
      expect(O(A, word)).toBe('created');
      const [cell = ''] = row.split(' ');
      expect([word, state(A)]).toEqual([word, SHORT[cell] ?? (cell as WireState)]);
      expect(bumped()).toBe(true);
    }
    for (const wire of STATES) {
      const { O, state } = scene();
      O(A, `ss:${wire}`);
      expect(state(A)).toBe(wire);
    }
  });

  const cells = (Object.entries(TABLE) as [EventWord, string][]).flatMap(([word, row]) =>
    COLUMNS.slice(1).map((from, index) => [word, from, row.split(' ')[index + 1] ?? ''] as const),
  );
  test.each(cells)('C-002 S-103 R-06 S-121: %s on %s → %s', (word, from, cell) => {
    for (const way of WAYS[from as WireState]) {
      const { O, state, bumped } = scene();
      for (const step of way) O(A, step);
      const held = cell === '-' || cell === 'x';
      const outcome = O(A, word);
      const expected = held ? from : (SHORT[cell] ?? cell);
      expect([way, state(A)]).toEqual([way, expected as WireState]);
      expect([way, bumped()]).toEqual([way, expected !== from]);
      expect(outcome === 'ended_passive_ignored').toBe(cell === 'x');
    }
  });

  test('C-002 S-106: a stream state wins over every state, ended included', () => {
    for (const from of STATES) {
      for (const to of STATES) {
        const { O, state, bumped } = scene();
        O(A, `ss:${from}`);
        O(A, `ss:${to}`);
        expect(state(A)).toBe(to);
        expect(bumped()).toBe(from !== to);
      }
    }
  });

  test('S-103: an `end` is ended from every state, and a second one changes nothing', () => {
    for (const from of STATES.filter((name) => name !== 'ended')) {
      const { O, E, state, bumped } = scene();
      O(A, `ss:${from}`);
      expect(E(A)).toBe('ended');
      expect([state(A), bumped()]).toEqual(['ended', true]);
      expect(E(A)).toBe('already_ended');
      expect(bumped()).toBe(false);
    }
  });

  test('C-004 C-005 S-105: a file that grows proves nothing about an answer; the next hook releases the wait', () => {
    const { O, state, bumped } = scene();
    O(A, 'perm');
    O(A, 'grew');
    expect([state(A), bumped()]).toEqual(['waiting_for_permission', false]);
    O(A, 'post');
    expect([state(A), bumped()]).toEqual(['working', true]);
  });

  test('C-006 S-104: starting is held against growth', () => {
    const { O, state } = scene();
    O(A, 'start');
    for (const _n of [1, 2, 3]) {
      O(A, 'grew');
      expect(state(A)).toBe('starting');
    }
    O(A, 'prompt');
    expect(state(A)).toBe('working');
  });

  test('C-007 S-108 K-02: growth after the end neither revives nor stretches the linger', () => {
    const { O, E, state, bumped, clock } = scene();
    O(A, 'pre');
    E(A);
    clock.plus(5);
    O(A, 'grew');
    expect([state(A), bumped()]).toEqual(['ended', false]);
    clock.plus(4);
    expect(state(A)).toBe('ended');
    clock.plus(2);
    expect(state(A)).toBeUndefined();
  });

  test('C-009 S-108: a prompt revives an ended row', () => {
    const { O, E, row, bumped, clock } = scene();
    O(A, 'pre');
    const { started_at } = row(A) ?? {};
    E(A);
    clock.plus(3);
    O(A, 'prompt');
    expect(row(A)).toMatchObject({ state: 'working', started_at: started_at ?? '' });
    expect(bumped()).toBe(true);
  });

  test('C-010 R-05: hooks and streams on the socket overwrite one another, the newest wins', () => {
    const { O, state } = scene();
    const path: [EventWord, WireState][] = [
      ['pre', 'working'],
      ['ss:waiting_for_permission', 'waiting_for_permission'],
      ['pre', 'working'],
      ['ss:idle', 'idle'],
    ];
    for (const [word, expected] of path) {
      O(A, word);
      expect(state(A)).toBe(expected);
    }
  });

  test('C-011 S-106: answered in the wrapper', () => {
    const { O, state } = scene();
    O(A, 'perm');
    O(A, 'ss:working');
    expect(state(A)).toBe('working');
  });

  test('C-012 S-103: unclassified notices and discovery leave an idle row idle', () => {
    const { O, state, bumped } = scene();
    O(A, 'prompt');
    O(A, 'stop');
    expect(state(A)).toBe('idle');
    for (const word of ['other', 'disc'] as const) {
      O(A, word);
      expect([state(A), bumped()]).toEqual(['idle', false]);
    }
  });

  test('C-014 S-106: a stream may itself say ended, and the ended linger applies', () => {
    const { O, state, clock } = scene();
    O(A, 'ss:ended');
    clock.plus(9);
    expect(state(A)).toBe('ended');
    clock.plus(2);
    expect(state(A)).toBeUndefined();
  });

  test('C-381 S-412: a turn that dies on an API error ends idle', () => {
    const { O, state } = scene();
    O(A, 'prompt');
    O(A, 'pre');
    O(A, 'stop', { outcome: 'failed' });
    expect(state(A)).toBe('idle');
  });

  test('C-382 S-412 S-105: an automatic refusal goes on working; a person’s refusal, which fires nothing, waits', () => {
    const { O, state } = scene();
    O(A, 'prompt');
    O(A, 'post');
    expect(state(A)).toBe('working');
    O(A, 'perm');
    O(A, 'grew');
    expect(state(A)).toBe('waiting_for_permission');
    O(A, 'post');
    expect(state(A)).toBe('working');
  });
});
