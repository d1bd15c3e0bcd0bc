import { describe, expect, test } from 'bun:test';
import { createPages, fromWire } from '../../../../src/runtime/daemon/connector/pages.ts';
import { createCounters } from '../../../../src/runtime/daemon/feeds/counters.ts';
import { createRegistryView, fusedWord, proofOf } from '../../../../src/runtime/daemon/feeds/view.ts';
import type { Claim } from '../../../../src/runtime/session/evidence.ts';
import { createRegistry } from '../../../../src/runtime/session/registry.ts';
import type { Session } from '../../../../src/runtime/session/session.ts';

const AT = 1_700_000_000_000;

function session(id: string, claim: Partial<Claim> = {}, facts: Session['facts'] = {}): Session {
  const registry = createRegistry();
  const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: id };
  const base: Claim = {
    feed: 'claude-code.live-file',
    confidence: 'exact',
    at: AT,
    says: { kind: 'idle' },
    detail: '',
  };
  registry.apply('test', [{ session: ref, facts, claims: [{ ...base, life: 'alive', ...claim }] }], AT);
  const found = registry.find(ref);
  if (!found) throw new Error('it was just added');
  return found;
}

const none = { stream: undefined, hooks: undefined };

describe('the word of the sessions socket', () => {
  test('R-05 R-12: another feed that has decided is shown; without one S-103 stands', () => {
    const working = session('a', { says: { kind: 'working', doing: 'running' } });
    expect(fusedWord('idle', none, working)).toBe('working');
    expect(fusedWord('idle', none, undefined)).toBe('idle');
    expect(fusedWord('working', none, session('a', { feed: 'claude-code.hooks' }))).toBe('working');
  });

  test('C-010 S-104: a stream’s word stands, and a start is left only by a report', () => {
    const stream = { state: 'waiting_for_input', at: AT } as const;
    expect(fusedWord('working', { ...none, stream }, session('a'))).toBe('working');
    expect(fusedWord('starting', none, session('a'))).toBe('starting');
  });
});

describe('the view of the registry', () => {
  test('S-121: the same sessions, or a newer time of evidence alone, are no change', () => {
    const view = createRegistryView();
    expect(view.take([session('a')], AT)).toBe(true);
    expect(view.take([session('a', { at: AT + 5 })], AT + 5)).toBe(false);
    expect(view.take([session('a', {}, { title: 'new' })], AT + 6)).toBe(true);
    expect(view.take([], AT + 7)).toBe(true);
    expect([view.revision(), view.changedAt()]).toEqual([3, AT + 7]);
  });

  test('R-04 R-15: only a proven living owner is a proof, with the pids that the proof names', () => {
    expect(proofOf(session('a', {}, { pids: [42] }))).toEqual({ alive: true, pids: new Set([42]) });
    expect(proofOf(session('a', { life: 'dead' }, { pids: [42] }))).toBeUndefined();
  });
});

test('S-304: many sessions go in pages of one moment, and come out as they were', () => {
  const all = Array.from({ length: 50 }, (_, i) => session(`s-${i}`));
  const pages = createPages(4_000);
  const got: Session[] = [];
  let page = pages.first(all, AT);
  got.push(...page.sessions.map(fromWire));
  while (page.next !== undefined) {
    const next = pages.after(page.next, AT);
    if (!next) throw new Error('a page is missing');
    page = next;
    got.push(...page.sessions.map(fromWire));
  }
  expect(got.map((one) => one.ref.sessionId)).toEqual(all.map((one) => one.ref.sessionId));
  expect(got[0]?.shown).toBe(got[0]?.own as Session['own']);
  expect(pages.after('none', AT)).toBeUndefined();
});

test('S-931: outcomes are counted whatever the log level is', () => {
  const counters = createCounters();
  const log = counters.wrap(() => {});
  log('debug', 'session_observed', { outcome: 'created' });
  log('debug', 'session_observed', { outcome: 'duplicate_ignored' });
  log('debug', 'session_observed', { outcome: 'duplicate_ignored' });
  log('info', 'started', {});
  expect(counters.all()).toEqual({ 'session_observed.created': 1, 'session_observed.duplicate_ignored': 2 });
});
