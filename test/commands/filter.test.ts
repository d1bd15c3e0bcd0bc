import { describe, expect, test } from 'bun:test';
import { passes, readFilter } from '../../src/commands/filter.ts';
import { age, parseSince } from '../../src/commands/output/age.ts';
import { ConnectorError } from '../../src/runtime/errors.ts';
import { createRegistry } from '../../src/runtime/session/registry.ts';
import type { Session, SessionFacts } from '../../src/runtime/session/session.ts';
import { type SessionState, waitingOn } from '../../src/runtime/session/state.ts';

const NOW = Date.parse('2026-11-30T12:00:00Z');

function session(
  facts: SessionFacts,
  says: SessionState = { kind: 'rested', outcome: 'completed' },
): Session {
  const registry = createRegistry();
  registry.apply(
    't',
    [
      {
        session: { runtimeId: 'codex', instanceId: 'transcripts', sessionId: 's' },
        facts,
        claims: [{ feed: 'f', confidence: 'exact', at: NOW, says, life: 'alive', detail: '' }],
      },
    ],
    NOW,
  );
  const [one] = registry.sessions();
  if (!one) throw new Error('no session');
  return one;
}
const refused = (run: () => unknown): ConnectorError => {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof ConnectorError) return thrown;
  }
  throw new Error('was not refused');
};

describe('filters of a listing', () => {
  test('a folder takes itself and what lies below, by components', () => {
    const filter = readFilter({ dir: 'acme' }, '/home/dev', NOW);
    const inside = ['/home/dev/acme', '/home/dev/acme/src'].map((workDir) =>
      passes(session({ workDir }), filter),
    );
    const outside = ['/home/dev/acme-2', '/home/dev', undefined].map((workDir) =>
      passes(session(workDir ? { workDir } : {}), filter),
    );
    expect([...inside, ...outside]).toEqual([true, true, false, false, false]);
  });
  test('archived sessions pass only with --all', () => {
    expect(
      [{}, { all: true }].map((args) => passes(session({ archived: true }), readFilter(args, '/', NOW))),
    ).toEqual([false, true]);
  });
  test('--since takes the last activity', () => {
    const filter = readFilter({ since: '30m' }, '/', NOW);
    expect(
      [29, 31].map((minutes) => passes(session({ lastActivityAt: NOW - minutes * 60_000 }), filter)),
    ).toEqual([true, false]);
  });
  test('--state takes words, several, and the groups active and waiting', () => {
    const waits = session({}, waitingOn('tool'));
    const results = [
      'waiting',
      'active',
      'waiting-for-approval',
      'failed,waiting_for_approval',
      'failed',
    ].map((state) => passes(waits, readFilter({ state }, '/', NOW)));
    expect(results).toEqual([true, true, true, true, false]);
  });
  test('a wrong value is refused by name, with what would do', () => {
    const errors = [{ state: 'waitng' }, { since: 'yesterday' }, { limit: '0' }, { limit: 'many' }].map(
      (args) => refused(() => readFilter(args, '/', NOW)),
    );
    expect(errors.map((error) => [error.kind, error.message])).toEqual([
      ['badValue', '--state: there is no state "waitng"; did you mean "waiting"?'],
      ['badValue', '--since: "yesterday" is no time'],
      ['badValue', '--limit: "0" is no number of sessions'],
      ['badValue', '--limit: "many" is no number of sessions'],
    ]);
  });
});

describe('times', () => {
  test('spans and ISO dates are read, everything else is not', () => {
    expect([
      parseSince('2h', NOW),
      parseSince('1w', NOW),
      parseSince('2026-11-30', NOW),
      parseSince('12', NOW),
      parseSince('-1h', NOW),
    ]).toEqual([NOW - 7_200_000, NOW - 604_800_000, Date.parse('2026-11-30'), undefined, undefined]);
  });
  test('C21 a time ahead of the clock is now, not negative', () => {
    expect([
      age(NOW + 600_000, NOW),
      age(NOW - 59_999, NOW),
      age(NOW - 3_600_000, NOW),
      age(undefined, NOW),
    ]).toEqual(['now', '59s', '1h', '-']);
  });
});
