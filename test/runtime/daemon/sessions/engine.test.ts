import { describe, expect, test } from 'bun:test';
import type { OwnerProof } from '../../../../src/runtime/daemon/sessions/apply.ts';
import { A, B, START, scene, stamp } from './dsl.ts';

describe('metadata, agent and order', () => {
  test('C-020 S-006 S-120: a model fills in; only a new value is a change', () => {
    const { O, row, bumped } = scene();
    O(A, 'pre', { model: 'm1' });
    expect([row(A)?.model, bumped()]).toEqual(['m1', true]);
    expect(O(A, 'pre')).toBe('heartbeat_only');
    expect([row(A)?.model, bumped()]).toEqual(['m1', false]);
    expect(O(A, 'pre', { model: 'm2' })).toBe('metadata_enriched');
    expect([row(A)?.model, bumped()]).toEqual(['m2', true]);
    O(A, 'pre', { model: 'm2' });
    expect(bumped()).toBe(false);
  });

  test('C-021 S-006: what different reports bring is kept together', () => {
    const { O, row } = scene();
    O(A, 'disc', { transcript_path: '/t' });
    O(A, 'pre', { cwd: '/p' });
    expect(row(A)).toMatchObject({ transcript_path: '/t', cwd: '/p' });
  });

  test('C-023 C-370 S-005 S-001: the first sighting fixes the agent, and the id alone is the key', () => {
    const { O, row, rows } = scene();
    O(A, 'stop');
    O(A, 'stop', { agent: 'codex' });
    O(A, 'ss:idle', { agent: 'codex' });
    expect(row(A)?.agent).toBe('claude');
    expect(rows()).toHaveLength(1);
  });

  test('C-025 S-012: rows without a repository first, then by repository, then by id, by code unit', () => {
    const { O, rows } = scene();
    O('a', 'pre', { repo: 'repo-b' });
    O('z', 'pre', { repo: 'repo-a' });
    O('m', 'pre', { repo: 'repo-a' });
    O('q', 'pre');
    O('Z', 'pre', { repo: 'repo-a' });
    O('é', 'pre', { repo: 'repo-a' });
    expect(rows().map((row) => row.session_id)).toEqual(['q', 'Z', 'm', 'z', 'é', 'a']);
  });

  test('C-026 S-002: what is not known is left out, never null; nothing hidden is shown', () => {
    const { O, row } = scene();
    O(A, 'start', { pid: 100, stamp: stamp('40:00', 'x') });
    expect(row(A)).toEqual({
      session_id: A,
      agent: 'claude',
      state: 'starting',
      source: { kind: 'terminal' },
      last_event: 'session_start',
      started_at: '2026-10-03T03:40:00Z',
      last_seen: '2026-10-03T03:40:00Z',
    });
  });
});

describe('process ownership and end', () => {
  test('C-030 S-119 S-109: the late end of a replaced process does not end the resumed session', () => {
    const { O, E, state, bumped, engine } = scene();
    O(A, 'start', { pid: 100 });
    O(A, 'stop', { pid: 100 });
    O(A, 'start', { pid: 200 });
    expect(E(A, { pid: 100 })).toBe('replaced_pid_ignored');
    expect([state(A), bumped()]).toEqual(['starting', false]);
    expect(engine.end({ session_id: A, pid: 100 }, 'socket').known).toBe(true);
    E(A, { pid: 200 });
    expect(state(A)).toBe('ended');
  });

  test('C-031 S-101.4: a replaced process is not heard, not even as a sign of life', () => {
    const { O, row, bumped, clock } = scene();
    O(A, 'start', { pid: 100 });
    O(A, 'start', { pid: 200 });
    const before = row(A);
    clock.plus(5);
    expect(O(A, 'post', { pid: 100 })).toBe('replaced_pid_ignored');
    expect(row(A)).toEqual(before);
    expect(bumped()).toBe(false);
  });

  test('C-033 S-109: of three processes in turn only the last one can end it', () => {
    const { O, E, state } = scene();
    for (const pid of [100, 200, 300]) O(A, 'start', { pid });
    E(A, { pid: 100 });
    E(A, { pid: 200 });
    expect(state(A)).toBe('starting');
  });

  test('C-034 K-06: eight replaced pids are remembered, the oldest forgotten', () => {
    const { O, E, state, engine } = scene();
    for (let pid = 1_000; pid < 1_010; pid += 1) O(A, 'pre', { pid });
    expect(engine.entry(A)?.replacedPids).toEqual([1_001, 1_002, 1_003, 1_004, 1_005, 1_006, 1_007, 1_008]);
    expect(E(A, { pid: 1_001 })).toBe('replaced_pid_ignored');
    expect(E(A, { pid: 1_000 })).toBe('ended');
    expect(state(A)).toBe('ended');
  });

  test('C-035 S-109: the first pid of a session replaces nobody, and ownership never bumps', () => {
    const { O, engine, bumped } = scene();
    O(A, 'disc');
    O(A, 'post', { pid: 100 });
    expect(engine.entry(A)).toMatchObject({ pid: 100, replacedPids: [] });
    O(A, 'post', { pid: 200 });
    expect(bumped()).toBe(false);
  });

  test('C-036 S-119: the end of an unknown session makes none', () => {
    const { E, rows, bumped, engine } = scene();
    expect(E('ghost')).toBe('unknown');
    expect(rows()).toEqual([]);
    expect(bumped()).toBe(false);
    expect(engine.end({ session_id: 'ghost' }, 'socket').known).toBe(false);
  });

  test('C-038 S-109 S-110: a take-over between wrappers', () => {
    const { O, E, state, engine } = scene();
    O(A, 'ss:idle', { pid: 100 });
    expect(engine.entry(A)?.streamed).toBe(true);
    O(A, 'ss:idle', { pid: 200 });
    E(A, { pid: 100 });
    expect(state(A)).toBe('idle');
  });

  test('S-110: a terminal resume of a wrapped chat is no longer wrapped; only Claude’s streams latch it', () => {
    const { O, engine } = scene();
    O(A, 'ss:idle', { pid: 100 });
    O(A, 'start', { pid: 200 });
    expect(engine.entry(A)).toMatchObject({ streamed: false, stream: undefined });
    O(B, 'ss:working', { agent: 'codex' });
    expect(engine.entry(B)?.streamed).toBe(false);
    O(A, 'prompt', { pid: 200 });
    O(A, 'pre', { pid: 300 });
    expect(engine.entry(A)?.prompted).toBe(true);
  });

  test('C-040 S-109 S-119: shells that live for one hook each', () => {
    const { O, E, state } = scene();
    O(A, 'pre', { pid: 11 });
    O(A, 'post', { pid: 12 });
    O(A, 'stop', { pid: 13 });
    expect(state(A)).toBe('idle');
    E(A, { pid: 14 });
    expect(state(A)).toBe('ended');
  });

  test('S-119 C-053: an end clears waits, and its linger is not restarted by a second end', () => {
    const { O, E, state, clock } = scene();
    O(A, 'perm', { agent_id: 'x' });
    E(A);
    clock.plus(8);
    E(A);
    clock.plus(3);
    expect(state(A)).toBeUndefined();
  });
});

describe('several owners (R-04)', () => {
  const proofOf = (pids: number[]): OwnerProof => ({ alive: pids.length > 0, pids: new Set(pids) });

  test('R-04 x-push-while-tui-open: the pushed process ends while the open TUI lives: the row goes on', () => {
    const owners = { pids: [100] };
    const { O, E, state, engine } = scene({ ownerProof: () => proofOf(owners.pids) });
    O(A, 'start', { pid: 100 });
    O(A, 'stop', { pid: 100 });
    owners.pids = [100, 200];
    O(A, 'start', { pid: 200 });
    O(A, 'prompt', { pid: 200 });
    O(A, 'stop', { pid: 200 });
    owners.pids = [100];
    expect(E(A, { pid: 200 })).toBe('other_owner_lives');
    expect(state(A)).toBe('idle');
    expect(engine.entry(A)).toMatchObject({ pid: 100, replacedPids: [200] });
    O(A, 'prompt', { pid: 100 });
    expect(state(A)).toBe('working');
    E(A, { pid: 100 });
    expect(state(A)).toBe('ended');
  });

  test('R-04: without proof the old owner comes back with a prompt or a start, and revives the row', () => {
    for (const word of ['prompt', 'start'] as const) {
      const { O, E, state, engine } = scene();
      O(A, 'start', { pid: 100 });
      O(A, 'start', { pid: 200 });
      E(A, { pid: 200 });
      expect(state(A)).toBe('ended');
      O(A, word, { pid: 100 });
      expect(state(A)).toBe(word === 'prompt' ? 'working' : 'starting');
      expect(engine.entry(A)).toMatchObject({ pid: 100, replacedPids: [200] });
    }
  });

  test('R-04: a proven old owner is heard for everything; the unproven one still is not', () => {
    const owners = { pids: [100] };
    const { O, state } = scene({ ownerProof: () => proofOf(owners.pids) });
    O(A, 'start', { pid: 100 });
    O(A, 'start', { pid: 200 });
    O(A, 'perm', { pid: 100 });
    expect(state(A)).toBe('waiting_for_permission');
    O(A, 'start', { pid: 200 });
    owners.pids = [];
    expect(O(A, 'perm', { pid: 100 })).toBe('replaced_pid_ignored');
  });

  test('R-04: a sub-agent’s word regains nothing', () => {
    const { O } = scene();
    O(A, 'start', { pid: 100 });
    O(A, 'start', { pid: 200 });
    expect(O(A, 'prompt', { pid: 100, agent_id: 'x' })).toBe('replaced_pid_ignored');
  });

  test('R-04 /clear: the end of the only proven owner ends the row at once, named or not', () => {
    for (const pid of [100, undefined]) {
      const { O, E, state } = scene({ ownerProof: () => proofOf([100]) });
      O(A, 'start', { pid: 100 });
      E(A, pid === undefined ? {} : { pid });
      expect(state(A)).toBe('ended');
    }
  });

  test('R-15 S-202: a proven owner keeps its session, a wrapped chat does not (C-237), an ended one never', () => {
    const { O, E, state, clock } = scene({ ownerProof: () => ({ alive: true, pids: new Set() }) });
    O(A, 'stop');
    O(B, 'ss:idle');
    O('c', 'stop');
    E('c');
    clock.plus(3_600);
    expect([state(A), state(B), state('c')]).toEqual(['idle', undefined, undefined]);
  });
});

describe('stamps', () => {
  test('C-045 S-112: a duplicate is dropped whatever way it comes', () => {
    const { O, J, state } = scene();
    O(A, 'pre', { stamp: stamp('40:00', 'a') });
    O(A, 'stop', { stamp: stamp('40:05', 'b') });
    expect(J(A, 'pre', { stamp: stamp('40:00', 'a') })).toBe('duplicate_ignored');
    expect(O(A, 'pre', { stamp: stamp('40:00', 'a') })).toBe('duplicate_ignored');
    expect(state(A)).toBe('idle');
  });

  test('C-047 S-113: the journal applies what is newer than anything applied, and nothing older', () => {
    const { O, J, state } = scene();
    O(A, 'stop', { stamp: stamp('40:05', 'b') });
    expect(J(A, 'pre', { stamp: stamp('40:04', 'a') })).toBe('journal_stale_ignored');
    J(A, 'pre', { stamp: stamp('41:00', 'c') });
    expect(state(A)).toBe('working');
  });

  test('C-048 C-049 K-08: on the socket a little late is dropped, far behind is a clock that was set back', () => {
    const { O, state } = scene();
    O(A, 'stop', { stamp: stamp('40:05', 'b') });
    expect(O(A, 'pre', { stamp: stamp('40:00', 'a') })).toBe('socket_reordered_ignored');
    expect(state(A)).toBe('idle');
    O(A, 'pre', { stamp: stamp('30:05', 'c') });
    expect(state(A)).toBe('working');
  });

  test('K-08: exactly ten seconds behind is applied', () => {
    const { O, state } = scene();
    O(A, 'stop', { stamp: stamp('40:10', 'b') });
    expect(O(A, 'pre', { stamp: stamp('40:00.000000001', 'a') })).toBe('socket_reordered_ignored');
    O(A, 'pre', { stamp: stamp('40:00', 'c') });
    expect(state(A)).toBe('working');
  });

  test('C-050 S-113: equal times with different numbers are both applied, on both ways', () => {
    const { O, J, state } = scene();
    O(A, 'pre', { stamp: stamp('40:00', 'a') });
    O(A, 'stop', { stamp: stamp('40:00', 'b') });
    expect(state(A)).toBe('idle');
    J(A, 'pre', { stamp: stamp('40:00', 'c') });
    expect(state(A)).toBe('working');
  });

  test('C-052 C-183 S-112: a duplicate neither bumps nor keeps alive', () => {
    const { O, J, bumped, engine, clock } = scene();
    O(A, 'pre', { stamp: stamp('40:00', 'a') });
    clock.plus(10);
    J(A, 'pre', { stamp: stamp('40:00', 'a') });
    expect(bumped()).toBe(false);
    expect(engine.entry(A)?.lastActive).toBe(0);
  });

  test('C-053 S-113 S-114: what fired before the end and comes after it is dropped', () => {
    const { O, E, state } = scene();
    O(A, 'pre', { stamp: stamp('40:00', 'a') });
    E(A, { stamp: stamp('41:00', 'b') });
    expect(O(A, 'post', { stamp: stamp('40:58', 'c') })).toBe('socket_reordered_ignored');
    expect(state(A)).toBe('ended');
  });

  test('C-054 S-113: the journal’s late end of the first life does not end the second', () => {
    const { O, JE, state } = scene();
    O(A, 'start', { stamp: stamp('40:00', 'a') });
    O(A, 'start', { stamp: stamp('42:00', 'c') });
    expect(JE(A, { stamp: stamp('41:00', 'b') })).toBe('journal_stale_ignored');
    expect(state(A)).toBe('starting');
    JE(A, { stamp: stamp('43:00', 'd') });
    expect(state(A)).toBe('ended');
  });

  test('C-055 S-102 S-524: a journal keeps its own times on the wall, and counts from now awake', () => {
    const { J, row, state, clock } = scene();
    J(A, 'prompt', { stamp: stamp(-7_200, 'a') });
    expect(row(A)).toMatchObject({ started_at: '2026-10-03T01:40:00Z', last_seen: '2026-10-03T01:40:00Z' });
    clock.plus(300);
    expect(state(A)).toBe('working');
    clock.plus(1);
    expect(state(A)).toBeUndefined();
  });

  test('S-102: a journal time in the future is now, and never moves last_seen back', () => {
    const { J, O, row, clock } = scene();
    J(A, 'prompt', { stamp: stamp(+900, 'a') });
    expect(row(A)?.last_seen).toBe('2026-10-03T03:40:00Z');
    clock.plus(60);
    O(B, 'pre', { stamp: stamp(0, 'a') });
    J(B, 'pre', { stamp: stamp(1, 'b') });
    expect(row(B)?.last_seen).toBe('2026-10-03T03:41:00Z');
  });

  test('C-057 S-009: stamps that differ by a nanosecond are in order', () => {
    const { O, J } = scene();
    O(A, 'pre', { stamp: stamp('40:00.186123457', 'b') });
    expect(J(A, 'stop', { stamp: stamp('40:00.186123456', 'a') })).toBe('journal_stale_ignored');
    expect(J(A, 'stop', { stamp: stamp('40:00.186123458', 'c') })).toBe('state_changed');
  });

  test('S-114 K-07: stamps of ignored events count; the last 32 numbers are known', () => {
    const { O, E, J } = scene();
    O(A, 'pre', { stamp: stamp('40:00', 'first') });
    E(A, { stamp: stamp('40:01', 'end') });
    O(A, 'grew', { stamp: stamp('40:30', 'ignored') });
    expect(O(A, 'grew', { stamp: stamp('40:30', 'ignored') })).toBe('duplicate_ignored');
    expect(J(A, 'pre', { stamp: stamp('40:29', 'late') })).toBe('journal_stale_ignored');
    for (let n = 0; n < 32; n += 1) O(A, 'pre', { stamp: stamp(60 + n, `n${n}`) });
    expect(O(A, 'pre', { stamp: stamp(91, 'n0') })).toBe('duplicate_ignored');
    expect(O(A, 'pre', { stamp: stamp(92, 'ignored') })).toBe('heartbeat_only');
  });

  test('S-113: what the service itself sees is never dropped for order', () => {
    const { O, local, state } = scene();
    O(A, 'stop', { stamp: stamp('41:00', 'b') });
    local(A, 'pre', { stamp: stamp('40:59', 'a') });
    expect(state(A)).toBe('working');
  });
});

describe('sub-agents', () => {
  test('C-060 S-115 S-117: a sub-agent’s activity after the parent’s stop leaves it idle, and is a sign of life', () => {
    const { O, state, bumped, engine, clock } = scene();
    O(A, 'prompt');
    O(A, 'stop');
    for (const word of ['pre', 'post', 'stop'] as const) {
      clock.plus(1);
      O(A, word, { agent_id: 'x' });
      expect([state(A), bumped()]).toEqual(['idle', false]);
    }
    expect(engine.entry(A)?.lastActive).toBe(3_000);
  });

  test('C-061 S-115: a sub-agent’s permission shows, and its release restores', () => {
    const { O, state } = scene();
    O(A, 'prompt');
    O(A, 'perm', { agent_id: 'x' });
    expect(state(A)).toBe('waiting_for_permission');
    O(A, 'post', { agent_id: 'x' });
    expect(state(A)).toBe('working');
  });

  test('C-062 S-115 S-117: two waits, released one by one', () => {
    const { O, state } = scene();
    O(A, 'stop');
    const steps = [
      ['needs', 'x', 'waiting_for_input'],
      ['perm', 'y', 'waiting_for_permission'],
      ['post', 'y', 'waiting_for_input'],
      ['post', 'x', 'idle'],
    ] as const;
    for (const [word, agent_id, expected] of steps) {
      O(A, word, { agent_id });
      expect(state(A)).toBe(expected);
    }
  });

  test('C-064 S-116: passive sightings of the parent release no wait', () => {
    const { O, state } = scene();
    O(A, 'prompt');
    O(A, 'perm', { agent_id: 'x' });
    for (const word of ['grew', 'disc', 'other'] as const) {
      O(A, word);
      expect(state(A)).toBe('waiting_for_permission');
    }
  });

  test('C-065 S-116: an active sighting of the parent clears all waits', () => {
    const { O, state } = scene();
    O(A, 'prompt');
    O(A, 'perm', { agent_id: 'x' });
    O(A, 'stop');
    expect(state(A)).toBe('idle');
    O(A, 'post', { agent_id: 'x' });
    expect(state(A)).toBe('idle');
  });

  test('C-066 S-111: a session first known by its sub-agent', () => {
    const waiting = scene();
    waiting.O(A, 'perm', { agent_id: 'x' });
    expect(waiting.state(A)).toBe('waiting_for_permission');
    waiting.O(A, 'post', { agent_id: 'x' });
    expect(waiting.state(A)).toBe('idle');
    const active = scene();
    active.O(A, 'pre', { agent_id: 'x' });
    expect(active.state(A)).toBe('idle');
  });

  test('C-067 S-108: a sub-agent revives nothing', () => {
    const { O, E, state } = scene();
    O(A, 'pre');
    E(A);
    expect(O(A, 'perm', { agent_id: 'x' })).toBe('ended_passive_ignored');
    expect(state(A)).toBe('ended');
  });

  test('C-069 S-118: at most 64 waits are kept, and those that are released restore', () => {
    const { O, state, engine } = scene();
    O(A, 'prompt');
    for (let n = 0; n < 70; n += 1) O(A, 'perm', { agent_id: `x${n}` });
    expect(engine.entry(A)?.shown.agentWaits.size).toBe(64);
    expect(state(A)).toBe('waiting_for_permission');
    for (let n = 0; n < 70; n += 1) O(A, 'post', { agent_id: `x${n}` });
    expect(state(A)).toBe('working');
  });

  test('C-070 C-071 S-414: SubagentStop releases its own wait, SubagentStart nobody’s', () => {
    const { O, state } = scene();
    O(A, 'prompt');
    O(A, 'perm', { agent_id: 'y' });
    O(A, 'post', { agent_id: 'x' });
    expect(state(A)).toBe('waiting_for_permission');
    O(A, 'post', { agent_id: 'y' });
    expect(state(A)).toBe('working');
  });

  test('R-14: Codex’s sub-agents are honoured, pi has none', () => {
    const { O, state } = scene();
    O(A, 'stop', { agent: 'codex' });
    O(A, 'pre', { agent: 'codex', agent_id: 'x' });
    expect(state(A)).toBe('idle');
    O(B, 'stop', { agent: 'pi' });
    O(B, 'pre', { agent: 'pi', agent_id: 'x' });
    expect(state(B)).toBe('working');
  });

  test('S-115 S-116: work that growth opened is what lies under a later wait', () => {
    const { O, state } = scene();
    O(A, 'stop');
    O(A, 'grew');
    O(A, 'perm', { agent_id: 'x' });
    O(A, 'post', { agent_id: 'x' });
    expect(state(A)).toBe('working');
  });
});

describe('time to live, caps and bumps', () => {
  test('C-075 K-01: 300 s are kept, 301 s not', () => {
    const { O, state, clock } = scene();
    O(A, 'pre');
    clock.plus(300);
    expect(state(A)).toBe('working');
    clock.plus(1);
    expect(state(A)).toBeUndefined();
  });

  test('C-077 K-02: an ended row lingers for ten seconds beside one that lives', () => {
    const { O, E, state, clock } = scene();
    O(A, 'pre');
    O(B, 'pre');
    E(B);
    clock.plus(10);
    expect(state(B)).toBe('ended');
    clock.plus(1);
    expect([state(A), state(B)]).toEqual(['working', undefined]);
  });

  test('C-078 S-201: a night of sleep ages nothing', () => {
    const { O, E, state, clock } = scene();
    O(A, 'pre');
    O(B, 'pre');
    E(B);
    clock.plus(9);
    clock.sleep(8 * 3_600);
    expect([state(A), state(B)]).toEqual(['working', 'ended']);
    clock.plus(290);
    O(A, 'post');
    clock.plus(299);
    expect(state(A)).toBe('working');
  });

  test('C-079 S-203: at 512 a new session takes the place of the quietest', () => {
    const { O, rows, clock, events } = scene();
    for (let n = 0; n < 512; n += 1) {
      O(`s${n}`, 'pre');
      clock.plus(0.1);
    }
    O('s0', 'pre');
    O('new', 'pre');
    const ids = new Set(rows().map((row) => row.session_id));
    expect(ids.size).toBe(512);
    expect([ids.has('s0'), ids.has('s1'), ids.has('new')]).toEqual([true, false, true]);
    expect(events.filter(({ event }) => event === 'session_evicted')).toMatchObject([
      { fields: { id: 's1', reason: 'capacity' } },
    ]);
  });

  test('C-080 S-203: of equals the lowest id goes', () => {
    const { O, rows } = scene();
    for (let n = 0; n < 512; n += 1) O(`s${String(n).padStart(3, '0')}`, 'pre');
    O('zzz', 'pre');
    expect(rows().map((row) => row.session_id)).not.toContain('s000');
    expect(rows()).toHaveLength(512);
  });

  test('C-083 S-120 S-121: what a consumer shows bumps, a heartbeat does not', () => {
    const { O, bumped } = scene();
    const steps = [
      ['pre', { cwd: '/a' }, true],
      ['pre', { cwd: '/a' }, false],
      ['stop', {}, true],
      ['stop', { cwd: '/b' }, true],
    ] as const;
    for (const [word, extra, expected] of steps) {
      O(A, word, extra);
      expect(bumped()).toBe(expected);
    }
  });

  test('C-084 S-120: a repeat bumps when its own reap removed another', () => {
    const { O, bumped, clock } = scene();
    O(A, 'pre');
    clock.plus(200);
    O(B, 'pre');
    clock.plus(101);
    O(B, 'pre');
    expect(bumped()).toBe(true);
  });

  test('C-085 S-121: reading never bumps, even when it reaps', () => {
    const { O, rows, clock, engine } = scene();
    O(A, 'pre');
    clock.plus(600);
    const version = engine.version();
    expect(rows()).toEqual([]);
    expect(engine.version()).toBe(version);
  });

  test('S-204: a session that aged out comes back with a new start', () => {
    const { O, row, clock } = scene();
    O(A, 'pre');
    clock.plus(301);
    O(A, 'pre');
    expect(row(A)?.started_at).toBe('2026-10-03T03:45:01Z');
  });

  test('C-088 S-123: a confirmation refreshes and keeps the first token; never bumps', () => {
    const { O, E, engine, state, clock } = scene();
    O(A, 'pre', { pid: 100 });
    O(B, 'pre', { pid: 200 });
    E(B);
    clock.plus(5);
    const version = engine.version();
    engine.confirmPidLiveness(A, 't1');
    engine.confirmPidLiveness(A, 't2');
    engine.confirmPidLiveness(B, 't1');
    engine.confirmPidLiveness('ghost', 't1');
    expect(engine.version()).toBe(version);
    expect(engine.entry(A)).toMatchObject({ pidStart: 't1', lastActive: 5_000, lastSeen: START + 5_000 });
    expect(engine.entry(B)).toMatchObject({ pidStart: undefined, lastActive: 0 });
    clock.plus(6);
    expect(state(B)).toBeUndefined();
  });

  test('C-372 S-124: candidates have a pid and have not ended; live ids are in lower case', () => {
    const { O, E, engine } = scene();
    O(A.toUpperCase(), 'pre', { pid: 100 });
    O(B, 'pre');
    O('c', 'pre', { pid: 300 });
    E('c');
    expect(engine.candidates().map(({ id, pid }) => [id, pid])).toEqual([[A.toUpperCase(), 100]]);
    expect(engine.liveIds()).toEqual(new Set([A, B]));
  });

  test('S-646: an end by process is only for the pid that still owns it', () => {
    const { O, engine, state } = scene();
    O(A, 'pre', { pid: 100 });
    O(A, 'start', { pid: 200 });
    expect(engine.processEnded(A, 100)).toBe(false);
    expect(state(A)).toBe('starting');
    expect(engine.processEnded(A, 200)).toBe(true);
    expect(state(A)).toBe('ended');
  });
});

describe('logging', () => {
  test('C-359 S-931 S-932: each outcome has its word', () => {
    const { O, J, E, events } = scene();
    E(A);
    O(A, 'start', { pid: 1_00, stamp: stamp('40:00', 'a') });
    O(A, 'pre', { pid: 200, stamp: stamp('40:10', 'b') });
    O(A, 'pre', { model: 'm' });
    O(A, 'pre');
    O(A, 'pre', { stamp: stamp('40:10', 'b') });
    J(A, 'pre', { stamp: stamp('40:09', 'c') });
    O(A, 'pre', { stamp: stamp('40:09', 'd') });
    O(A, 'pre', { pid: 100 });
    E(A, { pid: 100 });
    E(A);
    E(A);
    O(A, 'grew');
    const words = (name: string) =>
      events.filter(({ event }) => event === name).map(({ fields }) => fields['outcome']);
    expect(words('session_observed')).toEqual([
      'created',
      'state_changed',
      'metadata_enriched',
      'heartbeat_only',
      'duplicate_ignored',
      'journal_stale_ignored',
      'socket_reordered_ignored',
      'replaced_pid_ignored',
      'ended_passive_ignored',
    ]);
    expect(words('session_end')).toEqual(['unknown', 'replaced_pid_ignored', 'ended', 'already_ended']);
    expect(events.find(({ event }) => event === 'session_observed')).toMatchObject({
      level: 'debug',
      fields: {
        id: A,
        agent: 'claude',
        pid: 100,
        event: 'session_start',
        new: 'starting',
        origin: 'socket',
        reaped: 0,
        bumped: true,
      },
    });
  });

  test('S-933: reaps say why', () => {
    const { O, E, W, rows, clock, events } = scene();
    O(A, 'pre');
    O(B, 'pre');
    E(B);
    W('w', ['/p']);
    clock.plus(301);
    rows();
    const reasons = events.filter(({ level }) => level === 'trace').map(({ fields }) => fields['reason']);
    expect(new Set(reasons)).toEqual(new Set(['session_ttl', 'ended_ttl', 'window_ttl']));
  });
});
