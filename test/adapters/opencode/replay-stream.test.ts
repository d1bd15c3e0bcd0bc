import { afterAll, describe, expect, test } from 'bun:test';
import { readBusEvent } from '../../../src/adapters/opencode/bus.ts';
import { createStreamSessions } from '../../../src/adapters/opencode/stream-sessions.ts';
import type { FeedSink } from '../../../src/runtime/feed.ts';
import { createRegistry, type Registry } from '../../../src/runtime/session/registry.ts';
import { isGlobal, type Json, keyOf, lines, type StreamLine, scenarios, startOf } from './recordings.ts';
import { createScore, matches } from './scoring.ts';
import { stateIn } from './world.ts';

const URL = 'http://127.0.0.1:4096';
const EXACTLY = { streamingIsRunning: false };
const score = createScore('event stream');
afterAll(() => score.print());

/** What a watch feeds the registry with, without timers. */
function follow(registry: Registry, clock: { now: number }) {
  const sink: FeedSink = {
    changed: () => {},
    sighted: (scope, sightings) => registry.apply(scope, sightings, clock.now),
    lost: (scope) => registry.withdraw(scope, clock.now),
  };
  return createStreamSessions({
    server: { endpoint: { url: URL, named: true }, version: '1.18.33' },
    local: true,
    sink,
    timers: { after: () => () => {} },
    now: () => clock.now,
  });
}

describe('every row of the answer keys, from the event stream alone', () => {
  const scored = scenarios().filter((scenario) => keyOf(scenario, 'sse.jsonl').length > 0);

  test('there are keys to score against', () => {
    expect(scored.length).toBeGreaterThan(20);
  });

  for (const scenario of scored) {
    test(scenario, () => {
      const key = keyOf(scenario, 'sse.jsonl');
      const base = startOf(scenario);
      const registry = createRegistry();
      const clock = { now: base };
      const stream = follow(registry, clock);
      const before = score.wrong.length;
      for (const [index, line] of lines<StreamLine>(scenario, 'sse.jsonl').entries()) {
        clock.now = base + line.t;
        if (isGlobal(line) && line.closed) stream.lose('the server was killed');
        const event = isGlobal(line) ? readBusEvent(line.data) : undefined;
        if (event) stream.hear(event);
        registry.tick(clock.now);
        for (const row of key.filter((one) => one.line === index + 1)) {
          const where = `${scenario} ${row.file}:${row.line} ${row.record} (…${row.session?.slice(-6)})`;
          // a server is scored by what it could know of its own turns.
          score.row(where, stateIn(registry, row.session ?? ''), row.this_server ?? row.state, EXACTLY);
        }
      }
      expect(score.wrong.slice(before)).toEqual([]);
    });
  }
});

describe('a terminal’s plugin speaks the same events (plugin-in-tui)', () => {
  // The file also has the events of a server on the same session, and of a later run: each process speaks for itself.
  const TERMINAL = 11595;
  const events = lines<{ t: number; pid: number; hook: string; type?: string; properties?: Json }>(
    'plugin-in-tui',
    'plugin-events.jsonl',
  ).filter((line) => line.pid === TERMINAL && line.hook === 'event');

  test('the held turn, the approved command and the aborted turn come out as its screens show them', () => {
    const registry = createRegistry();
    const clock = { now: 0 };
    const stream = follow(registry, clock);
    const seen: string[] = [];
    for (const line of events) {
      clock.now = line.t;
      const event = readBusEvent({ type: line.type, properties: line.properties });
      if (!event) continue;
      stream.hear(event);
      registry.tick(clock.now);
      const [session] = registry.sessions();
      const state = session ? stateIn(registry, session.ref.sessionId) : 'unknown';
      if (seen.at(-1) !== state) seen.push(state);
    }
    const held = ['unknown', 'idle', 'running', 'streaming', 'running', 'completed'];
    const approved = [
      'running',
      'streaming',
      'running',
      'tool_call',
      'waiting_for_approval',
      'tool_call',
      'running',
      'streaming',
      'running',
      'completed',
    ];
    expect(seen).toEqual([...held, ...approved, 'running', 'streaming', 'stopped']);
  });

  test('beside a server that knows nothing of it the session is at work all the while (two-processes, R-13)', () => {
    const registry = createRegistry();
    const clock = { now: 0 };
    const terminal = follow(registry, clock);
    const server = createStreamSessions({
      server: { endpoint: { url: 'http://127.0.0.1:4097', named: true }, version: '1.18.33' },
      local: true,
      sink: {
        changed: () => {},
        sighted: (scope, sightings) => registry.apply(scope, sightings, clock.now),
        lost: (scope) => registry.withdraw(scope, clock.now),
      },
      timers: { after: () => () => {} },
      now: () => clock.now,
    });
    const base = startOf('two-processes');
    const key = keyOf('two-processes', 'sse.jsonl');
    const merged = [
      ...events.map((line) => ({
        at: line.t,
        feed: terminal,
        data: { type: line.type, properties: line.properties },
        line: 0,
      })),
      ...lines<StreamLine>('two-processes', 'sse.jsonl').map((line, index) => ({
        at: base + line.t,
        feed: server,
        data: line.data,
        line: index + 1,
      })),
    ].sort((a, b) => a.at - b.at);
    const wrong: string[] = [];
    for (const one of merged) {
      clock.now = one.at;
      const event = readBusEvent(one.data);
      if (event) one.feed.hear(event);
      registry.tick(clock.now);
      for (const row of key.filter((candidate) => candidate.line === one.line)) {
        const got = stateIn(registry, row.session ?? '');
        // Two turns run at once, and the newer word of the two is shown.
        if (!matches(got, row.state, { streamingIsRunning: true }))
          wrong.push(`sse.jsonl:${row.line} ${row.record}: want ${row.state}, got ${got}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});
