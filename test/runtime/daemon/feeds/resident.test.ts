import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RolloutSeen, TranscriptSeen } from '../../../../src/runtime/daemon/feeds/ports.ts';
import { type Resident, startResident } from '../../../../src/runtime/daemon/feeds/resident.ts';
import type { FeedSink, RuntimeFeed } from '../../../../src/runtime/feed.ts';
import { systemHost } from '../../../../src/runtime/process/spawn.ts';
import type { Sighting } from '../../../../src/runtime/session/session.ts';
import { createCleanup, createFakeTime, type FakeTime, recordLog, settle, tempFolder } from '../harness.ts';
import { connectWire } from '../wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const A = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
const CODEX = '019a0000-0000-7000-8000-000000000001';
const START = Date.parse('2026-10-03T03:40:00Z');

interface Files {
  transcripts: TranscriptSeen[];
  rollouts: RolloutSeen[];
  lock: 'held' | 'free' | 'absent' | 'unknown';
  fails: boolean;
}

interface Bench {
  readonly resident: Resident;
  readonly time: FakeTime;
  readonly files: Files;
  readonly events: ReturnType<typeof recordLog>['events'];
  rows(): Promise<readonly (readonly [string, string])[]>;
  counters(): Promise<Record<string, number>>;
}

async function bench(
  feeds: readonly RuntimeFeed<undefined>[] = [],
  home = tempFolder(cleanup),
): Promise<Bench> {
  const time = createFakeTime();
  const clock = { now: () => START + time.at, awakeMs: () => time.at };
  const files: Files = { transcripts: [], rollouts: [], lock: 'held', fails: false };
  const { log, events } = recordLog();
  const socketPath = join(home, 'daemon.sock');
  const resident = await startResident({
    socketPath,
    home,
    build: { version: 'test' },
    env: {},
    host: systemHost,
    clock,
    scheduler: time,
    log,
    feeds,
    context: undefined,
    builders: { list: () => ({}), why: () => ({}) },
    discovery: {
      transcripts: {
        list() {
          if (files.fails) throw new Error('the disk is gone');
          return files.transcripts;
        },
      },
      rollouts: {
        list: () => files.rollouts,
        // Without a folder: its repository would be looked up in real time, and time here is cheap (S-013).
        head: () => ({ kind: 'thread', id: CODEX }),
        locks: () => () => files.lock,
      },
    },
  });
  cleanup.add(() => resident.stop());
  await resident.ready;
  await settle();
  // A connection for each question: one that asks nothing for a minute is closed, and time here is cheap (S-337).
  const ask = async (request: object): Promise<unknown> => {
    const wire = await connectWire(socketPath);
    const reply = await wire.ask(request);
    wire.close();
    return reply['payload'];
  };
  return {
    resident,
    time,
    files,
    events,
    async rows() {
      const { sessions } = (await ask({ service: 'sessions', op: 'list' })) as {
        sessions: { session_id: string; state: string }[];
      };
      return sessions.map((row) => [row.session_id, row.state] as const);
    },
    async counters() {
      const { services } = (await ask({ op: 'status' })) as {
        services: { name: string; detail: { counters: Record<string, number> } }[];
      };
      return services.find((one) => one.name === 'connector')?.detail.counters ?? {};
    },
  };
}

const transcript = (b: Bench, size: number): TranscriptSeen[] => [
  { id: A, path: `/p/x/${A}.jsonl`, size, mtimeMs: START + b.time.at },
];
const rollout = (b: Bench, size: number): RolloutSeen[] => [
  { path: '/c/rollout.jsonl', size, mtimeMs: START + b.time.at },
];

describe('the discovery feeds in the daemon', () => {
  test('C-201 R-01: a session that nothing else knows is idle when found, and works while its file grows', async () => {
    const b = await bench();
    b.files.transcripts = transcript(b, 10);
    await b.time.advance(5_000);
    expect(await b.rows()).toEqual([[A, 'idle']]);
    b.files.transcripts = transcript(b, 20);
    await b.time.advance(5_000);
    expect(await b.rows()).toEqual([[A, 'working']]);
  });

  test('R-01 S-105: growth after a hook’s stop is no work', async () => {
    const b = await bench();
    b.files.transcripts = transcript(b, 10);
    b.resident.engine.observe({ session_id: A, event: 'user_prompt_submit' }, 'socket');
    b.resident.engine.observe({ session_id: A, event: 'stop' }, 'socket');
    await b.time.advance(5_000);
    b.files.transcripts = transcript(b, 20);
    await b.time.advance(5_000);
    expect(await b.rows()).toEqual([[A, 'idle']]);
    expect((await b.counters())['sighting_dropped.transcript_growth_spoken_for']).toBe(1);
  });

  test('R-01 R-12: growth of a session whose rows were read is what the rows say', async () => {
    const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: A };
    const says = { kind: 'rested', outcome: 'completed' } as const;
    const claim = {
      feed: 'claude-code.transcript',
      confidence: 'inferred',
      at: START,
      says,
      detail: 'end_turn',
    } as const;
    const feed: RuntimeFeed<undefined> = {
      id: 'claude-code',
      scan: async () => ({
        instances: [],
        problems: [],
        sightings: [{ session: ref, facts: {}, claims: [claim] }],
      }),
    };
    const b = await bench([feed]);
    b.files.transcripts = transcript(b, 10);
    await b.time.advance(5_000);
    b.files.transcripts = transcript(b, 20);
    await b.time.advance(5_000);
    expect(await b.rows()).toEqual([[A, 'idle']]);
  });

  test('R-26 S-601: a file that an adapter was notified of is announced at once, not at the next poll', async () => {
    const seen: Sighting[] = [];
    const watched: { sink?: FeedSink } = {};
    const feed: RuntimeFeed<undefined> = {
      id: 'claude-code',
      scan: async () => ({ instances: [], problems: [], sightings: [...seen] }),
      async watch(_context, sink) {
        watched.sink = sink;
        return { close: async () => {}, status: () => 'files' };
      },
    };
    const b = await bench([feed]);
    b.files.transcripts = transcript(b, 10);
    const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: A };
    seen.push({ session: ref, facts: {}, claims: [] });
    watched.sink?.changed();
    await b.time.advance(1_000);
    await settle();
    expect(await b.rows()).toEqual([[A, 'idle']]);
  });

  test('C-219 S-629: a heartbeat changes no state; a thread that only its rollout tells of is idle', async () => {
    const b = await bench();
    b.files.rollouts = rollout(b, 10);
    await b.time.advance(5_000);
    expect(await b.rows()).toEqual([[CODEX, 'idle']]);
    b.resident.engine.observe({ session_id: CODEX, event: 'pre_tool_use', agent: 'codex' }, 'socket');
    // Without the heartbeat it would be forgotten after 300 s (S-626, K-01).
    await b.time.advance(600_000);
    expect(await b.rows()).toEqual([[CODEX, 'working']]);
    b.files.lock = 'free';
    await b.time.advance(5_000);
    expect(await b.rows()).toEqual([[CODEX, 'ended']]);
  });

  test('S-343 S-938 C-380: a scan that fails resets its own watcher alone, and is said', async () => {
    const b = await bench();
    b.files.fails = true;
    b.files.rollouts = rollout(b, 10);
    await b.time.advance(5_000);
    expect(await b.rows()).toEqual([[CODEX, 'idle']]);
    expect((await b.counters())['watcher_failed.transcripts']).toBe(1);
    expect(b.events).toContainEqual({
      level: 'warn',
      event: 'watcher_failed',
      fields: { watcher: 'transcripts', error: 'the disk is gone', reset: true },
    });
    b.files.fails = false;
    b.files.transcripts = transcript(b, 1);
    await b.time.advance(5_000);
    expect((await b.rows()).map(([id]) => id)).toContain(A);
    const scans = b.events.filter(({ fields }) => fields['watcher'] === 'rollouts');
    expect(scans.at(-1)?.fields).toMatchObject({ files: 1, announced: 0, ended: 0 });
  });
});

describe('counters of deliveries (S-530)', () => {
  const record = (event: string, seq: string, second: number) =>
    `${JSON.stringify({ v: 1, ts: new Date(START + second * 1_000).toISOString(), seq, agent: 'claude', session_id: A, op: 'observe', event })}\n`;

  test('R-39: a journal folder that was removed comes back, and with the whole home it does not', async () => {
    const home = tempFolder(cleanup);
    const b = await bench([], home);
    const run = join(home, 'run');
    rmSync(run, { recursive: true });
    await b.time.advance(5_000);
    expect(existsSync(run)).toBe(true);
    rmSync(home, { recursive: true });
    await b.time.advance(5_000);
    expect(existsSync(home)).toBe(false);
  });

  test('C-384: socket, recovered, replayed; a journal copy that was only faster is taken back', async () => {
    const home = tempFolder(cleanup);
    const folder = join(home, 'run', 'sessions', 'claude');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const journal = join(folder, `${A}.jsonl`);
    const old = ['session_start', 'user_prompt_submit', 'pre_tool_use', 'post_tool_use'];
    const replayed = old.map((event, n) => record(event, `9-${n}`, n - 20)).join('');
    writeFileSync(journal, `${replayed}{torn\n`, { mode: 0o600 });
    const b = await bench([], home);
    const send = (event: 'pre_tool_use' | 'stop', seq: string, second: number) =>
      b.resident.engine.observe(
        { session_id: A, event, stamp: { ts: new Date(START + second * 1_000).toISOString(), seq } },
        'socket',
      );
    for (const n of [1, 2, 3]) send('pre_tool_use', `1-${n}`, n);
    const fresh = [record('post_tool_use', '2-1', 4), record('stop', '2-2', 5)].join('');
    writeFileSync(journal, `${replayed}{torn\n${fresh}`, { mode: 0o600 });
    await b.time.advance(5_000);
    await b.time.advance(2_000);
    send('stop', '2-2', 5);
    expect(await b.counters()).toMatchObject({
      'delivered.socket': 4,
      'delivered.recovered': 1,
      'delivered.replayed': 4,
      'session_observed.duplicate_ignored': 1,
      'sighting_dropped.journal_record': 1,
      session_journal_replayed: 1,
    });
  });
});
