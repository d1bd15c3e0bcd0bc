import { Database } from 'bun:sqlite';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AdapterContext } from '../../../src/adapters/adapter.ts';
import { LOCAL_INSTANCE, RUNTIME_ID } from '../../../src/adapters/opencode/sightings.ts';
import type { FeedScan } from '../../../src/runtime/feed.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import type { ProcessHost } from '../../../src/runtime/process/types.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry, type Registry } from '../../../src/runtime/session/registry.ts';
import type { Session } from '../../../src/runtime/session/session.ts';
import { type Json, schema } from './recordings.ts';

/** Nothing listens on port 1, and a named address keeps a test away from the default one of this machine. */
export const NOWHERE = 'http://127.0.0.1:1';

/** A folder of its own, gone after `run`. */
export async function inFolder<T>(run: (folder: string) => Promise<T> | T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'opencode-'));
  try {
    return await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function contextFor(data: string, more: Partial<AdapterContext> = {}): AdapterContext {
  const { env, ...rest } = more;
  return {
    env: { OPENCODE_DATA_DIR: data, SHADOWOB_CONNECTOR_OPENCODE_URL: NOWHERE, ...env },
    home: '/nonexistent',
    platform: 'linux',
    now: () => Date.now(),
    log: { debug: () => {}, warn: () => {} },
    ...rest,
  };
}

/** An `opencode.db` of the recorded schema, in WAL mode as the program keeps it. */
export interface Store {
  readonly path: string;
  readonly database: Database;
  session(row: Json): void;
  message(sessionId: string, row: Json): void;
  part(sessionId: string, row: Json): void;
  sequence(sessionId: string, seq: number): void;
  /** Applies a durable event of the stream as the program itself would store it. */
  event(payload: Json, at: number): void;
  close(): void;
}

export function createStore(data: string): Store {
  mkdirSync(data, { recursive: true });
  const path = join(data, 'opencode.db');
  const database = new Database(path, { create: true });
  database.run('PRAGMA journal_mode = WAL');
  // A test’s store need not outlive a power cut: hundreds of rows would wait for the disk one by one.
  database.run('PRAGMA synchronous = OFF');
  const made = database.query("SELECT name FROM sqlite_master WHERE name = 'session'").all();
  if (made.length === 0) database.exec(schema());
  const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const store: Store = {
    path,
    database,
    session(row) {
      const model = row['model'] === undefined || row['model'] === null ? null : text(row['model']);
      database
        .query(
          `INSERT OR REPLACE INTO session (id, project_id, parent_id, slug, directory, title, version, agent, model,
            time_created, time_updated, time_archived) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        )
        .run(
          String(row['id']),
          String(row['project_id'] ?? 'project'),
          (row['parent_id'] as string | null | undefined) ?? null,
          String(row['slug'] ?? 'slug'),
          String(row['directory']),
          String(row['title']),
          String(row['version'] ?? '1.18.33'),
          (row['agent'] as string | null | undefined) ?? null,
          model,
          Number(row['time_created']),
          Number(row['time_updated']),
          (row['time_archived'] as number | null | undefined) ?? null,
        );
    },
    message(sessionId, row) {
      database
        .query(
          'INSERT OR REPLACE INTO message (id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?)',
        )
        .run(
          String(row['id']),
          sessionId,
          Number(row['time_created']),
          Number(row['time_updated']),
          text(row['data']),
        );
    },
    part(sessionId, row) {
      database
        .query(
          'INSERT OR REPLACE INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?)',
        )
        .run(
          String(row['id']),
          String(row['message_id']),
          sessionId,
          Number(row['time_created']),
          Number(row['time_updated']),
          text(row['data']),
        );
    },
    sequence(sessionId, seq) {
      database
        .query('INSERT OR REPLACE INTO event_sequence (aggregate_id, seq) VALUES (?, ?)')
        .run(sessionId, seq);
    },
    event(payload, at) {
      applyDurable(store, payload, at);
    },
    close() {
      database.close();
    },
  };
  return store;
}

function applyDurable(store: Store, payload: Json, at: number): void {
  const properties = (payload['properties'] ?? {}) as Json;
  const info = (properties['info'] ?? {}) as Json;
  const time = (info['time'] ?? {}) as Json;
  const part = (properties['part'] ?? {}) as Json;
  const bump = (id: unknown): void => {
    store.database
      .query(
        'INSERT INTO event_sequence (aggregate_id, seq) VALUES (?, 0) ON CONFLICT (aggregate_id) DO UPDATE SET seq = seq + 1',
      )
      .run(String(id));
  };
  switch (payload['type']) {
    case 'session.created':
    case 'session.updated':
      store.session({
        ...info,
        parent_id: info['parentID'],
        time_created: time['created'],
        time_updated: time['updated'],
        time_archived: time['archived'],
      });
      bump(info['id']);
      return;
    case 'session.deleted':
      store.database.query('DELETE FROM session WHERE id = ?').run(String(info['id']));
      return;
    case 'message.updated': {
      const { id, sessionID, ...data } = info;
      store.message(String(sessionID), { id, time_created: time['created'], time_updated: at, data });
      bump(sessionID);
      return;
    }
    case 'message.part.updated': {
      const { id, sessionID, messageID, ...data } = part;
      store.part(String(sessionID), { id, message_id: messageID, time_created: at, time_updated: at, data });
      bump(sessionID);
      return;
    }
    default:
  }
}

/** A process as `/proc` would show it. */
export interface FakeProcess {
  readonly pid: number;
  readonly comm: string;
  readonly argv: readonly string[];
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly cwd?: string;
  readonly open?: readonly string[];
  /** Ports of 127.0.0.1 that it listens on. */
  readonly ports?: readonly number[];
  /** Its open files can't be read, as another user's. */
  readonly closed?: boolean;
}

const TICK_MS = 10;
const UPTIME_S = 1_000_000;

/** A Linux machine with these processes and no others. */
export function fakeMachine(folder: string, processes: readonly FakeProcess[], now: number): ProcessHost {
  const root = mkdtempSync(join(folder, 'proc-'));
  mkdirSync(join(root, 'net'));
  writeFileSync(join(root, 'uptime'), `${UPTIME_S}.00 0.00\n`);
  const listeners = processes.flatMap((one) =>
    (one.ports ?? []).map((port) => ({ port, inode: one.pid * 100_000 + port })),
  );
  const uid = process.getuid?.() ?? 0;
  const rows = listeners.map(
    ({ port, inode }, index) =>
      `  ${index}: 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 ${uid} 0 ${inode} 1 0 100 0 0 10 0`,
  );
  writeFileSync(join(root, 'net', 'tcp'), `  sl  local_address rem_address   st\n${rows.join('\n')}\n`);
  for (const one of processes) {
    const home = join(root, String(one.pid));
    mkdirSync(join(home, 'fd'), { recursive: true });
    const ticks = Math.round((one.startedAt - (now - UPTIME_S * 1_000)) / TICK_MS);
    const fields = ['S', 1, one.pid, one.pid, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 1, 0, ticks, 0, 0];
    writeFileSync(join(home, 'stat'), `${one.pid} (${one.comm}) ${fields.join(' ')}\n`);
    writeFileSync(join(home, 'cmdline'), `${one.argv.join('\0')}\0`);
    if (one.cwd) symlinkSync(one.cwd, join(home, 'cwd'));
    const sockets = (one.ports ?? []).map((port) => `socket:[${one.pid * 100_000 + port}]`);
    for (const [index, target] of [...(one.open ?? []), ...sockets].entries()) {
      symlinkSync(target, join(home, 'fd', String(index + 3)));
    }
    if (one.closed) rmSync(join(home, 'fd'), { recursive: true });
  }
  return { ...systemHost, platform: 'linux', procRoot: root, now: () => now };
}

/** An `opencode` that has the database open and runs in a folder. */
export function tui(pid: number, store: string, cwd: string, startedAt: number): FakeProcess {
  return { pid, comm: 'opencode', argv: ['opencode'], startedAt, cwd, open: [store] };
}

export function refOf(sessionId: string, instanceId: string = LOCAL_INSTANCE) {
  return { runtimeId: RUNTIME_ID, instanceId, sessionId };
}

export function registryOf(scan: FeedScan, now: number): Registry {
  const registry = createRegistry();
  registry.replace(RUNTIME_ID, scan.sightings, now);
  return registry;
}

export function stateIn(registry: Registry, sessionId: string, instanceId: string = LOCAL_INSTANCE): string {
  const session = registry.find(refOf(sessionId, instanceId));
  return session ? publicState(session.shown.state) : 'unknown';
}

/** Public states of the top rows of a list, by session id. */
export function states(sessions: readonly Session[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    sessions.map((session) => [session.ref.sessionId, publicState(session.shown.state)]),
  );
}
