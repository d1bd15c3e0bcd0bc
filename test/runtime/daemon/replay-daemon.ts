/**
 * A daemon for replaying recordings: real socket, real engine, one registry, and one runtime's real feed over files of
 * the test's making; only the clock is the recording's.
 */
import { dirname, join } from 'node:path';
import { startResident } from '../../../src/runtime/daemon/feeds/resident.ts';
import { mapHook } from '../../../src/runtime/daemon/sink/mapping.ts';
import type { FeedScan, FeedSink, RuntimeFeed } from '../../../src/runtime/feed.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import type { Session, SessionRef } from '../../../src/runtime/session/session.ts';
import { createCleanup, settle, tempFolder } from './harness.ts';
import { connectWire } from './wire-client.ts';

type Json = Readonly<Record<string, unknown>>;

export interface ReplayDaemon {
  /** The recording's time, epoch milliseconds. */
  readonly clock: { now: number };
  /** A hook of the program: mapped as the sink maps it, sent on the socket, with its own time. */
  hook(agent: 'claude' | 'codex', payload: Json, at: number): Promise<void>;
  /** The files have changed: the feed looks, and the registry has taken it in when this resolves. */
  look(): Promise<void>;
  /** A live source speaks, or is lost. */
  readonly sink: FeedSink;
  find(ref: SessionRef): Session | undefined;
  sessions(): readonly Session[];
  close(): Promise<void>;
}

/** Starts one; nothing is looked at until `look`. */
export async function startReplayDaemon(id: string, scan: () => Promise<FeedScan>): Promise<ReplayDaemon> {
  const cleanup = createCleanup();
  const socketPath = join(tempFolder(cleanup), 'daemon.sock');
  const clock = { now: 0 };
  const watch = Promise.withResolvers<FeedSink>();
  const looks = { asked: false, done: Promise.withResolvers<void>() };
  const feed: RuntimeFeed<undefined> = {
    id,
    async scan() {
      if (!looks.asked) return { instances: [], sightings: [], problems: [] };
      const found = await scan();
      looks.done.resolve();
      return found;
    },
    async watch(_context, sink) {
      watch.resolve(sink);
      return { close: async () => {}, status: () => 'a recording' };
    },
  };
  const resident = await startResident({
    socketPath,
    home: dirname(socketPath),
    build: { version: 'test' },
    env: {},
    // Pids of a recording are others' here: nobody may take them for owners.
    host: { ...systemHost, procRoot: join(dirname(socketPath), 'no-processes') },
    clock: { now: () => clock.now, awakeMs: () => clock.now },
    // Nothing comes by itself: a recording's time stands still between two of its events.
    scheduler: { after: () => () => {} },
    feeds: [feed],
    context: undefined,
    builders: { list: () => ({}), why: () => ({}) },
  });
  cleanup.add(() => resident.stop());
  const sink = await watch.promise;
  await settle();
  const wire = await connectWire(socketPath);
  cleanup.add(() => wire.close());
  const sent = { count: 0 };
  return {
    clock,
    sink,
    async hook(agent, payload, at) {
      const op = mapHook(agent, payload);
      if (!op) return;
      sent.count += 1;
      const { op: name, ...rest } = op;
      const stamp = { ts: new Date(at).toISOString(), seq: `1-${sent.count}` };
      const base = { session_id: payload['session_id'], cwd: payload['cwd'], stamp };
      const who = agent === 'claude' ? {} : { agent };
      const child = payload['agent_id'];
      const named = typeof child === 'string' ? { agent_id: child } : {};
      const reply = await wire.ask({
        service: 'sessions',
        op: name,
        payload: { ...base, ...who, ...(name === 'observe' ? named : {}), ...rest },
      });
      if (reply['ok'] !== true) throw new Error(String(reply['error']));
    },
    async look() {
      looks.asked = true;
      looks.done = Promise.withResolvers();
      sink.changed();
      await looks.done.promise;
      await settle();
    },
    find: (ref) => resident.source.find(ref),
    sessions: () => resident.source.sessions(),
    close: () => cleanup.run(),
  };
}
