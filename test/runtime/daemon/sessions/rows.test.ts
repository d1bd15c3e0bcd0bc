import { describe, expect, test } from 'bun:test';
import { claimsOf, factsOf } from '../../../../src/runtime/daemon/sessions/claims.ts';
import { displayName, fitRows, summaryOf } from '../../../../src/runtime/daemon/sessions/rows.ts';
import type { Row } from '../../../../src/runtime/daemon/vocabulary.ts';
import { publicState } from '../../../../src/runtime/session/project.ts';
import { A, B, type EventWord, START, STATES, scene } from './dsl.ts';

const row = (session_id: string, extra: Partial<Row> = {}): Row => ({
  session_id,
  agent: 'claude',
  state: 'idle',
  source: { kind: 'terminal' },
  last_event: 'stop',
  started_at: '2026-10-03T03:40:00Z',
  last_seen: '2026-10-03T03:40:00Z',
  ...extra,
});

describe('rows', () => {
  test('C-354 S-011 S-341: the summary of one session in each state, and of none', () => {
    expect(summaryOf(STATES.map((state) => ({ state })))).toBe('6 session(s): 1 working, 2 waiting, 3 idle');
    expect(summaryOf([])).toBe('0 session(s)');
  });

  test('S-010 C-355: repository, else the folder’s last part, else eight characters of the id', () => {
    expect(displayName(row(A, { repo: 'web', cwd: '/x/y' }))).toBe('web');
    expect(displayName(row(A, { cwd: '/x/y/' }))).toBe('y');
    expect(displayName(row(A, { cwd: 'C:\\x\\z' }))).toBe('z');
    expect(displayName(row(A, { cwd: '/' }))).toBe('0b7e6c1a');
    expect(displayName(row(A))).toBe('0b7e6c1a');
  });

  test('S-304: rows of any allowed length fit on one line; what is left out is said', () => {
    const path = (fill: string) => `/${fill.repeat(4_000)}`;
    const plain = Array.from({ length: 512 }, (_, n) =>
      row(`s${n}`, { cwd: '/home/me/p', transcript_path: '/t' }),
    );
    expect(fitRows(plain)).toEqual({ sessions: plain });
    const long = Array.from({ length: 150 }, (_, n) =>
      row(`s${n}`, { cwd: path('c'), transcript_path: path('t') }),
    );
    const short = fitRows(long);
    expect(short.sessions).toHaveLength(150);
    expect(short.sessions[0]).not.toHaveProperty('transcript_path');
    const huge = Array.from({ length: 512 }, (_, n) =>
      row(`s${n}`, { cwd: path('\u0001'), last_seen: new Date(START + n * 1_000).toISOString() }),
    );
    const cut = fitRows(huge);
    expect(Buffer.byteLength(JSON.stringify({ ok: true, payload: cut }))).toBeLessThanOrEqual(1024 * 1024);
    expect(cut.truncated).toEqual({ shown: cut.sessions.length, total: 512 });
    expect(cut.sessions.at(-1)?.session_id).toBe('s511');
  });
});

describe('what the one registry is told (R-05)', () => {
  const said = (words: readonly EventWord[], id = A, extra = {}) => {
    const { O, engine } = scene();
    for (const word of words) O(id, word, extra);
    const entry = engine.entry(id);
    return entry ? claimsOf(entry) : [];
  };
  const states = (words: readonly EventWord[], extra = {}) =>
    said(words, A, extra).map(({ feed, confidence, says }) => [
      feed,
      confidence,
      says.kind === 'silent' ? 'silent' : publicState(says),
    ]);

  test('hooks are reported evidence, a stream is exact, and the two stand side by side', () => {
    expect(states(['start', 'prompt'])).toEqual([['claude-code.hooks', 'reported', 'running']]);
    expect(states(['ss:waiting_for_permission'])).toEqual([
      ['claude-code.stream', 'exact', 'waiting_for_approval'],
    ]);
    expect(states(['prompt', 'ss:idle', 'pre'])).toEqual([
      ['claude-code.hooks', 'reported', 'running'],
      ['claude-code.stream', 'exact', 'idle'],
    ]);
    expect(states(['ss:working'], { agent: 'pi' })).toEqual([['pi.stream', 'exact', 'running']]);
  });

  test('R-01: a file that appeared or grew is no evidence of a state', () => {
    expect(states(['disc'])).toEqual([]);
    expect(states(['grew', 'grew'])).toEqual([]);
    expect(states(['stop', 'grew'])).toEqual([['claude-code.hooks', 'reported', 'running']]);
  });

  test('R-11: the reminder of a minute’s rest waits on the socket and rests here', () => {
    const { O, engine, state } = scene();
    O(A, 'prompt');
    O(A, 'stop');
    O(A, 'idleN');
    expect(state(A)).toBe('waiting_for_input');
    const entry = engine.entry(A);
    expect(entry && claimsOf(entry).map(({ says }) => says)).toEqual([
      { kind: 'rested', outcome: 'completed' },
    ]);
  });

  test('R-09 R-17 R-18 R-08: how a turn ended, and what still runs', () => {
    const ends = (extra: { outcome?: 'failed' | 'limited' | 'none'; background?: number }) => {
      const { O, engine } = scene();
      O(A, 'prompt');
      O(A, 'stop', extra);
      const entry = engine.entry(A);
      const [claim] = entry ? claimsOf(entry) : [];
      return (
        claim && [claim.says.kind === 'silent' ? 'silent' : publicState(claim.says), claim.backgroundWork]
      );
    };
    expect(ends({})).toEqual(['completed', 0]);
    expect(ends({ outcome: 'failed' })).toEqual(['failed', 0]);
    expect(ends({ outcome: 'limited' })).toEqual(['blocked', 0]);
    expect(ends({ background: 2 })).toEqual(['completed', 2]);
  });

  test('R-02: an end keeps the outcome and cuts an open turn', () => {
    const { O, E, engine } = scene();
    O(A, 'prompt');
    O(A, 'stop');
    O(B, 'prompt');
    E(A);
    E(B);
    const shown = [A, B].map((id) => {
      const entry = engine.entry(id);
      return entry && claimsOf(entry).map(({ says }) => says);
    });
    expect(shown).toEqual([
      [{ kind: 'ended', outcome: 'completed' }],
      [{ kind: 'ended', outcome: 'stopped' }],
    ]);
  });

  test('S-009: evidence is dated by the event’s own stamp', () => {
    const { O, engine } = scene();
    O(A, 'prompt', { stamp: { ts: '2026-10-03T03:39:58.123456789Z', seq: '1' } });
    const entry = engine.entry(A);
    expect(entry && claimsOf(entry)[0]?.at).toBe(Date.parse('2026-10-03T03:39:58.123Z'));
  });

  test('facts of the session come along', () => {
    const { O, engine } = scene();
    O(A, 'prompt', { cwd: '/p', model: 'm', transcript_path: '/t', pid: 100 });
    const entry = engine.entry(A);
    expect(entry && factsOf(entry)).toEqual({
      startedAt: START,
      lastActivityAt: START,
      workDir: '/p',
      model: 'm',
      file: '/t',
      pids: [100],
    });
  });

  test('R-12: the registry’s better state is what the socket shows, and it can say that it changed', () => {
    const states = new Map([[A, 'idle' as const]]);
    const { O, state, engine } = scene({ shownState: (id, own) => states.get(id) ?? own });
    O(A, 'prompt');
    O(B, 'prompt');
    expect([state(A), state(B)]).toEqual(['idle', 'working']);
    const heard: string[] = [];
    const stop = engine.onReport((id) => void heard.push(id));
    const version = engine.version();
    engine.bump();
    expect(engine.version()).toBe(version + 1);
    O(A, 'pre');
    stop();
    O(A, 'pre');
    expect(heard).toEqual([A]);
  });
});
