import { afterEach, describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rolloutListing } from '../../../../src/adapters/codex/listing.ts';
import type { RolloutHead } from '../../../../src/runtime/daemon/feeds/ports.ts';
import { createRolloutTracker } from '../../../../src/runtime/daemon/feeds/rollouts.ts';
import { systemHost } from '../../../../src/runtime/process/spawn.ts';
import { createCleanup, tempFolder } from '../harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const ID = '019a0000-0000-7000-8000-000000000001';
const PATH = '/c/sessions/2026/11/12/rollout-x.jsonl';
const NOW = 1_790_000_000_000;
type Lock = 'held' | 'free' | 'absent' | 'unknown';

/** A tracker with one rollout and a clock in seconds. */
function bench(head: RolloutHead = { kind: 'thread', id: ID, cwd: '/w' }) {
  const tracker = createRolloutTracker();
  const heads = { value: head, reads: 0 };
  return {
    tracker,
    heads,
    at(second: number, size: number | undefined, lock: Lock, ageS = 1) {
      const now = NOW + second * 1_000;
      const seen = size === undefined ? [] : [{ path: PATH, size, mtimeMs: now - ageS * 1_000 }];
      const read = () => {
        heads.reads += 1;
        return heads.value;
      };
      const result = tracker.scan(seen, { now, awake: second * 1_000 }, read, () => lock);
      return result.sightings.map((one) => (one.kind === 'end' ? `end: ${one.why}` : 'seen'));
    },
  };
}

describe('feed 6b: rollouts and thread locks', () => {
  test('C-211 S-621: a head that is still being written is read once it is whole', () => {
    const b = bench({ kind: 'unfinished' });
    expect(b.at(0, 5, 'held')).toEqual([]);
    b.heads.value = { kind: 'thread', id: ID };
    expect(b.at(5, 5, 'held')).toEqual([]);
    expect(b.at(10, 50, 'held')).toEqual(['seen']);
  });

  test('C-212 S-621: what is no session of its own is never reported, and never read again', () => {
    for (const gate of ['sub_agent', 'no_meta', 'no_id', 'too_long', 'unreadable'] as const) {
      const b = bench({ kind: 'skip', gate });
      expect([b.at(0, 5, 'held'), b.at(5, 50, 'held'), b.at(99, 500, 'held')]).toEqual([[], [], []]);
      expect(b.heads.reads).toBe(1);
    }
  });

  test('C-213 S-625 S-626 K-12: a held lock: quiet, one heartbeat a minute, one end when it is let go', () => {
    const b = bench();
    expect(b.at(0, 5, 'held')).toEqual(['seen']);
    expect(b.at(5, 5, 'held')).toEqual([]);
    expect(b.at(59, 9, 'held')).toEqual([]);
    expect(b.at(60, 9, 'held')).toEqual(['seen']);
    expect(b.at(65, 9, 'free')).toEqual(['end: lock released']);
    expect(b.at(70, 9, 'free')).toEqual([]);
    expect(b.at(999, 9, 'absent')).toEqual([]);
  });

  test('C-214 S-625: a lock that can’t be told never ends anything; growth is a heartbeat', () => {
    const b = bench();
    expect(b.at(0, 5, 'unknown')).toEqual(['seen']);
    expect(b.at(70, 5, 'unknown')).toEqual([]);
    expect(b.at(80, 9, 'unknown')).toEqual(['seen']);
    // Nor does one that was never seen held.
    expect(b.at(85, 9, 'free')).toEqual([]);
  });

  test('C-216 S-624 S-628: first seen without an owner it is not listed; growth with a held lock lists it at once', () => {
    for (const lock of ['free', 'absent'] as const) {
      const b = bench();
      expect([b.at(0, 5, lock), b.at(5, 5, lock)]).toEqual([[], []]);
      expect(b.at(10, 9, 'held')).toEqual(['seen']);
    }
  });

  test('C-217 S-627: one that was archived or deleted ends once and is forgotten', () => {
    const b = bench();
    b.at(0, 5, 'held');
    expect(b.at(5, undefined, 'held')).toEqual(['end: record gone']);
    expect(b.at(10, undefined, 'held')).toEqual([]);
    expect(b.tracker.size).toBe(0);
  });

  test('S-627: another file of the same thread keeps it', () => {
    const tracker = createRolloutTracker();
    const seen = (...paths: string[]) => paths.map((path) => ({ path, size: 5, mtimeMs: NOW }));
    const scan = (...paths: string[]) =>
      tracker.scan(
        seen(...paths),
        { now: NOW, awake: 0 },
        () => ({ kind: 'thread', id: ID }),
        () => 'held',
      );
    scan('/a', '/b');
    expect(scan('/b').sightings).toEqual([]);
    expect(scan().sightings).toEqual([{ kind: 'end', id: ID, why: 'record gone' }]);
  });

  test('C-218 S-628: ended, then resumed: seen in that scan, the next heartbeat a minute later', () => {
    const b = bench();
    b.at(0, 5, 'held');
    b.at(10, 5, 'absent');
    expect(b.at(20, 9, 'held')).toEqual(['seen']);
    expect(b.at(79, 9, 'held')).toEqual([]);
    expect(b.at(80, 9, 'held')).toEqual(['seen']);
    expect(b.at(85, 9, 'absent')).toEqual(['end: lock released']);
  });

  test('S-622: an old rollout is not opened until it has grown and is recent', () => {
    const b = bench();
    expect(b.at(0, 5, 'held', 301)).toEqual([]);
    expect(b.at(5, 5, 'held', 1)).toEqual([]);
    expect(b.heads.reads).toBe(0);
    expect(b.at(10, 6, 'held', 1)).toEqual(['seen']);
  });
});

describe('what is read of a rollout', () => {
  const lay = (first: string | Buffer, name = `rollout-2026-11-12T08-00-00-${ID}.jsonl`) => {
    const home = tempFolder(cleanup);
    const path = join(home, '.codex', 'sessions', '2026', '11', '12', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, first);
    const context = {
      env: {},
      home,
      platform: process.platform,
      now: Date.now,
      log: { debug() {}, warn() {} },
    };
    return { home, path, port: rolloutListing(context, systemHost) };
  };
  const meta = (payload: object) => `${JSON.stringify({ type: 'session_meta', payload })}\n`;

  test('S-620 S-621: the id and the folder of its first line alone', () => {
    const { port, path } = lay(
      `${meta({ id: ID.toUpperCase(), cwd: '/w' })}{"type":"response_item","secret":1}\n`,
    );
    expect(port.list().map((one) => one.path)).toEqual([path]);
    expect(port.head(path)).toEqual({ kind: 'thread', id: ID, cwd: '/w' });
    expect(lay(meta({ session_id: ID })).port.head(lay(meta({ session_id: ID })).path)).toMatchObject({
      id: ID,
    });
  });

  test('C-211 C-212 C-399 S-906: unfinished, a sub-agent, no meta, no id, a hostile id, 2 MiB', () => {
    const headOf = (first: string) => {
      const { port, path } = lay(first);
      return port.head(path);
    };
    expect(headOf('{"type":"session_meta"')).toEqual({ kind: 'unfinished' });
    expect(headOf(meta({ id: ID, source: { subagent: 'review' } }))).toEqual({
      kind: 'skip',
      gate: 'sub_agent',
    });
    expect(headOf(meta({ id: ID, thread_source: 'subagent' }))).toEqual({ kind: 'skip', gate: 'sub_agent' });
    expect(headOf('{"type":"event_msg","payload":{}}\n')).toEqual({ kind: 'skip', gate: 'no_meta' });
    expect(headOf('not json\n')).toEqual({ kind: 'skip', gate: 'no_meta' });
    expect(headOf(meta({}))).toEqual({ kind: 'skip', gate: 'no_id' });
    expect(headOf(meta({ id: '../../etc/passwd' }))).toEqual({ kind: 'skip', gate: 'no_id' });
    expect(headOf(meta({ id: ID, x: 'x'.repeat(2 ** 21) }))).toEqual({ kind: 'skip', gate: 'too_long' });
    const whole = meta({ id: ID, x: 'x'.repeat(900_000) });
    expect(headOf(whole)).toMatchObject({ kind: 'thread' });
  });

  test('C-387 S-620: CODEX_HOME, when it is set and not empty', () => {
    const { home, path } = lay(meta({ id: ID }));
    const list = (env: Record<string, string>, at: string) =>
      rolloutListing(
        { env, home: at, platform: process.platform, now: Date.now, log: { debug() {}, warn() {} } },
        systemHost,
      ).list();
    expect(list({ CODEX_HOME: '' }, home).map((one) => one.path)).toEqual([path]);
    expect(list({ CODEX_HOME: join(home, '.codex') }, '/nowhere')).toHaveLength(1);
    expect(list({ CODEX_HOME: '/nowhere' }, home)).toEqual([]);
  });

  test('C-221 S-623: without the folder of the locks they are unknown, not absent', () => {
    const { home, port } = lay(meta({ id: ID }));
    expect(port.locks()(ID)).toBe('unknown');
    if (process.platform !== 'linux') return;
    const locks = join(home, '.codex', 'thread-writer-locks');
    mkdirSync(locks);
    expect(port.locks()(ID)).toBe('absent');
    writeFileSync(join(locks, `${ID}.lock`), '');
    expect(port.locks()(ID)).toBe('free');
  });

  test('S-627: a rollout that Codex packs stays where it was', () => {
    const { port, path } = lay('x', `rollout-2026-11-12T08-00-00-${ID}.jsonl.zst`);
    expect(port.list().map((one) => one.path)).toEqual([path.replace(/\.zst$/, '')]);
    expect(port.head(path.replace(/\.zst$/, ''))).toEqual({ kind: 'unfinished' });
  });
});
