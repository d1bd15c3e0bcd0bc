import { describe, expect, test } from 'bun:test';
import type { Snapshot } from '../../src/commands/collect.ts';
import { createSnapshotDiff } from '../../src/commands/events.ts';
import { createRegistry } from '../../src/runtime/session/registry.ts';
import { sessionRow } from '../../src/runtime/session/row.ts';
import { IDLE, RUNNING, type SessionState, waitingOn } from '../../src/runtime/session/state.ts';

const T = Date.parse('2026-11-30T12:00:00Z');

function snapshot(states: Record<string, SessionState>, at = T): Snapshot {
  const registry = createRegistry();
  const sightings = Object.entries(states).map(([sessionId, says]) => ({
    session: { runtimeId: 'codex', instanceId: 'transcripts', sessionId },
    facts: { lastActivityAt: T },
    claims: [{ feed: 'f', confidence: 'exact' as const, at, says, life: 'alive' as const, detail: '' }],
  }));
  registry.apply('t', sightings, at);
  return {
    scannedAt: new Date(at).toISOString(),
    runtimeIds: ['codex'],
    instances: [],
    sessions: registry.sessions().map(sessionRow),
  };
}

describe('runtime-watch events (cli-surface §5)', () => {
  test('the first is a full snapshot', () => {
    const first = snapshot({ a: IDLE });
    expect(createSnapshotDiff()(first)).toEqual([{ type: 'snapshot', at: first.scannedAt, snapshot: first }]);
  });

  test('then only what is added, changed and removed', () => {
    const diff = createSnapshotDiff();
    diff(snapshot({ a: IDLE, b: RUNNING }));
    const events = diff(snapshot({ a: waitingOn('tool'), c: RUNNING }));
    expect(events.map((event) => ({ ...event, session: undefined }))).toMatchObject([
      {
        type: 'session_changed',
        sessionId: 'a',
        previousState: 'idle',
        state: 'waiting_for_approval',
        previousPetReaction: 'idle',
        petReaction: 'waiting',
      },
      { type: 'session_added', sessionId: 'c', state: 'running', petReaction: 'working' },
      {
        type: 'session_removed',
        sessionId: 'b',
        previousState: 'running',
        state: 'stopped',
        petReaction: 'idle',
      },
    ]);
  });

  test('newer evidence for the same state is no event', () => {
    const diff = createSnapshotDiff();
    diff(snapshot({ a: RUNNING }));
    expect(diff(snapshot({ a: RUNNING }, T + 5_000))).toEqual([]);
  });
});
