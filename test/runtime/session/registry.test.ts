import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Claim } from '../../../src/runtime/session/evidence.ts';
import { byNeed, sortByNeed } from '../../../src/runtime/session/order.ts';
import { publicState, socketState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import { sessionRow } from '../../../src/runtime/session/row.ts';
import type { SessionFacts, Sighting } from '../../../src/runtime/session/session.ts';
import { IDLE, RUNNING, type SessionState, waitingOn } from '../../../src/runtime/session/state.ts';

const T = 1_796_000_000_000;

function sighting(
  id: string,
  says: SessionState,
  facts: SessionFacts = {},
  more: Partial<Claim> = {},
): Sighting {
  return {
    session: { runtimeId: 'codex', instanceId: 'transcripts', sessionId: id },
    facts,
    claims: [
      {
        feed: 'codex.app-server',
        confidence: 'exact',
        at: T,
        says,
        life: 'alive',
        detail: 'status',
        ...more,
      },
    ],
  };
}
const stateOf = (registry: ReturnType<typeof createRegistry>, id: string) =>
  publicState(
    registry.sessions().find((session) => session.ref.sessionId === id)?.shown.state ?? { kind: 'unknown' },
  );

describe('registry', () => {
  test('a whole scan withdraws what it no longer sees', () => {
    const registry = createRegistry();
    registry.replace('codex', [sighting('a', IDLE), sighting('b', RUNNING)], T);
    registry.replace('codex', [sighting('b', RUNNING)], T);
    expect(registry.sessions().map((session) => session.ref.sessionId)).toEqual(['b']);
  });

  test('what another feed says stays when one feed is lost', () => {
    const registry = createRegistry();
    registry.replace(
      'codex',
      [sighting('a', RUNNING, {}, { feed: 'codex.rollout', confidence: 'inferred' })],
      T,
    );
    registry.apply('codex.live', [sighting('a', waitingOn('tool'))], T);
    expect(stateOf(registry, 'a')).toBe('waiting_for_approval');
    registry.withdraw('codex.live', T);
    expect(stateOf(registry, 'a')).toBe('running');
  });

  test('S-006 a present fact replaces, an absent one never erases', () => {
    const registry = createRegistry();
    registry.apply('x', [sighting('a', IDLE, { title: 'Fix it', model: 'm1', lastActivityAt: T })], T);
    registry.apply('x', [sighting('a', IDLE, { model: 'm2', lastActivityAt: T - 5 })], T);
    expect(registry.sessions()[0]?.facts).toMatchObject({ title: 'Fix it', model: 'm2', lastActivityAt: T });
  });

  test('R-14 sub-agents fold under their parent, and the most urgent state is shown', () => {
    const registry = createRegistry();
    registry.replace(
      'codex',
      [
        sighting('parent', RUNNING),
        sighting('child', waitingOn('tool'), { lineage: { parentId: 'parent' } }),
        sighting('grandchild', RUNNING, { lineage: { parentId: 'child' } }),
      ],
      T,
    );
    const [only, ...others] = registry.sessions();
    expect(others).toEqual([]);
    if (!only) throw new Error('the parent is missing');
    expect(sessionRow(only)).toMatchObject({
      sessionId: 'parent',
      state: 'waiting_for_approval',
      needsYou: true,
      shownFrom: 'child',
      subAgents: ['child', 'grandchild'],
    });
    expect(publicState(only.own.state)).toBe('running');
  });

  test('R-14 a child that ended well does not end its parent’s turn', () => {
    const registry = createRegistry();
    registry.replace(
      'codex',
      [
        sighting('parent', RUNNING),
        sighting('child', { kind: 'rested', outcome: 'completed' }, { lineage: { parentId: 'parent' } }),
      ],
      T,
    );
    expect(stateOf(registry, 'parent')).toBe('running');
  });

  test('N7 a dead child’s wait does not pin its parent', () => {
    const registry = createRegistry();
    registry.replace(
      'codex',
      [
        sighting('parent', { kind: 'rested', outcome: 'completed' }),
        sighting('child', waitingOn('tool'), { lineage: { parentId: 'parent' } }, { life: 'dead' }),
      ],
      T,
    );
    expect(stateOf(registry, 'parent')).toBe('completed');
  });

  test('a sub-agent whose parent is unknown keeps its own row', () => {
    const registry = createRegistry();
    registry.replace('codex', [sighting('child', RUNNING, { lineage: { parentId: 'gone' } })], T);
    expect(registry.sessions()).toHaveLength(1);
  });

  test('a loop in the lineage loses no session', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(7), fc.nat(7)), { maxLength: 12 }), (edges) => {
        const registry = createRegistry();
        const parents = new Map(edges);
        const ids = [...new Set(edges.flat())];
        registry.replace(
          'codex',
          ids.map((id) =>
            sighting(
              `s${id}`,
              RUNNING,
              parents.has(id) ? { lineage: { parentId: `s${parents.get(id)}` } } : {},
            ),
          ),
          T,
        );
        const shown = registry
          .sessions()
          .flatMap((session) => [session.ref, ...session.subAgents].map((ref) => ref.sessionId));
        expect(shown.sort()).toEqual(ids.map((id) => `s${id}`).sort());
      }),
    );
  });

  test('the order of sightings of different feeds does not matter', () => {
    const feeds = fc.constantFrom<Partial<Claim>>(
      { feed: 'live', confidence: 'exact' },
      { feed: 'hook', confidence: 'reported' },
      { feed: 'rows', confidence: 'inferred' },
    );
    const says = fc.constantFrom<SessionState>(IDLE, RUNNING, waitingOn('tool'), waitingOn('question'), {
      kind: 'rested',
      outcome: 'failed',
    });
    const claim = fc.record({ base: feeds, says, at: fc.integer({ min: T - 2_000, max: T }) });
    fc.assert(
      fc.property(fc.uniqueArray(claim, { maxLength: 3, selector: (c) => c.base.feed }), (claims) => {
        const states = [claims, [...claims].reverse()].map((order) => {
          const registry = createRegistry();
          registry.apply(
            'all',
            [
              {
                session: { runtimeId: 'r', instanceId: 'i', sessionId: 's' },
                claims: order.map((c) => ({
                  confidence: 'inferred',
                  feed: 'rows',
                  detail: '',
                  ...c.base,
                  says: c.says,
                  at: c.at,
                })),
              },
            ],
            T,
          );
          return registry.sessions().map((session) => session.own.state);
        });
        expect(states[0]).toEqual(states[1] as never);
      }),
    );
  });
});

describe('order by need', () => {
  test('R-17 only waits with a live owner come first, the longest wait on top', () => {
    const registry = createRegistry();
    registry.replace(
      'codex',
      [
        sighting('working', RUNNING, { lastActivityAt: T }),
        sighting(
          'old-limit',
          waitingOn('output-limit'),
          { lastActivityAt: T },
          { confidence: 'inferred', life: 'dead' },
        ),
        sighting('new-wait', waitingOn('tool'), { lastActivityAt: T }, { at: T - 5 }),
        sighting('long-wait', waitingOn('question'), { lastActivityAt: T - 9_000 }, { at: T - 3_600_000 }),
        sighting('idle', IDLE, { lastActivityAt: T }),
      ],
      T,
    );
    expect(sortByNeed(registry.sessions())).toEqual(registry.sessions().sort(byNeed));
    expect(
      registry
        .sessions()
        .sort(byNeed)
        .map((session) => session.ref.sessionId),
    ).toEqual(['long-wait', 'new-wait', 'working', 'idle', 'old-limit']);
  });
});

describe('projections (design §3)', () => {
  const table: [SessionState, string, string][] = [
    [{ kind: 'starting' }, 'idle', 'starting'],
    [{ kind: 'starting', outcome: 'completed' }, 'completed', 'starting'],
    [RUNNING, 'running', 'working'],
    [{ kind: 'working', doing: 'streaming' }, 'streaming', 'working'],
    [{ kind: 'working', doing: 'tool' }, 'tool_call', 'working'],
    [waitingOn('tool'), 'waiting_for_approval', 'waiting_for_permission'],
    [waitingOn('plan'), 'waiting_for_approval', 'waiting_for_permission'],
    [waitingOn('question'), 'blocked', 'waiting_for_input'],
    [waitingOn('setup'), 'blocked', 'waiting_for_input'],
    [{ kind: 'rested', outcome: 'completed' }, 'completed', 'idle'],
    [{ kind: 'rested', outcome: 'failed' }, 'failed', 'idle'],
    [{ kind: 'rested', outcome: 'stopped' }, 'stopped', 'idle'],
    [IDLE, 'idle', 'idle'],
    [{ kind: 'ended', outcome: 'completed' }, 'completed', 'ended'],
    [{ kind: 'ended', outcome: 'limited' }, 'blocked', 'ended'],
    [{ kind: 'unknown' }, 'unknown', 'idle'],
  ];
  for (const [state, json, socket] of table) {
    test(`${JSON.stringify(state)} is ${json} in JSON and ${socket} on the socket`, () => {
      expect([publicState(state), socketState(state)]).toEqual([json, socket] as never);
    });
  }
});
