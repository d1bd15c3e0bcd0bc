/** Temporary folders, fake time and small servers for the tests of the service. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scheduler } from '../../../src/runtime/daemon/clock.ts';
import { acquireLock, type HeldLock } from '../../../src/runtime/daemon/lock.ts';
import type { LogFields, LogLevel, ServiceLog } from '../../../src/runtime/daemon/log.ts';
import { createServer, type Server, type ServerOptions } from '../../../src/runtime/daemon/server.ts';
import type { Service, SnapshotSource } from '../../../src/runtime/daemon/service.ts';

/** Things to undo, newest first. */
export interface Cleanup {
  add(undo: () => unknown): void;
  run(): Promise<void>;
}

export function createCleanup(): Cleanup {
  const undos: (() => unknown)[] = [];
  return {
    add: (undo) => void undos.push(undo),
    async run() {
      for (const undo of undos.splice(0).reverse()) await undo();
    },
  };
}

/** A short path: socket paths have a limit that a long temporary folder would reach. */
export function tempFolder(cleanup: Cleanup): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sc-')));
  cleanup.add(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Time that only moves when told to. Callbacks run in the order of their times. */
export interface FakeTime extends Scheduler {
  advance(ms: number): Promise<void>;
  readonly at: number;
}

export function createFakeTime(): FakeTime {
  const state = { at: 0, next: 1 };
  const timers = new Map<number, { at: number; run: () => void }>();
  return {
    after(ms, run) {
      const id = state.next++;
      timers.set(id, { at: state.at + ms, run });
      return () => void timers.delete(id);
    },
    async advance(ms) {
      const end = state.at + ms;
      for (;;) {
        const due = [...timers]
          .filter(([, timer]) => timer.at <= end)
          .sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0];
        if (!due) break;
        timers.delete(due[0]);
        state.at = due[1].at;
        due[1].run();
        await settle();
      }
      state.at = end;
      await settle();
    },
    get at() {
      return state.at;
    },
  };
}

/** Lets everything that is ready run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

/** Waits for a condition, by looking again; fails after a generous time that no healthy run comes near. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 15_000,
): Promise<void> {
  const end = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never happened: ${what}`);
    await Bun.sleep(2);
  }
}

export interface LoggedEvent {
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: LogFields;
}

export function recordLog(): { readonly log: ServiceLog; readonly events: LoggedEvent[] } {
  const events: LoggedEvent[] = [];
  return { log: (level, event, fields = {}) => void events.push({ level, event, fields }), events };
}

/** A lock of this process on a folder. */
export async function holdLock(folder: string, cleanup: Cleanup): Promise<HeldLock> {
  const holder = { pid: process.pid, version: 'test', since: new Date().toISOString() };
  const lock = await acquireLock({ path: join(folder, 'daemon.lock'), holder });
  if (lock.kind !== 'held') throw new Error(`the lock is ${lock.kind}`);
  cleanup.add(() => lock.release());
  return lock;
}

/** A server on a socket of its own, already listening; stopped by the cleanup. */
export async function startServer(
  cleanup: Cleanup,
  services: readonly Service[],
  options: Partial<ServerOptions> = {},
): Promise<{ readonly server: Server; readonly path: string; readonly folder: string }> {
  const folder = tempFolder(cleanup);
  const path = join(folder, 'daemon.sock');
  const lock = await holdLock(folder, cleanup);
  const server = createServer({
    plan: { kind: 'bind', endpoint: { kind: 'unix', path }, lock },
    services,
    build: { version: '1.2.3', commit: 'abc' },
    ...options,
  });
  await server.listen();
  cleanup.add(() => server.stop());
  return { server, path, folder };
}

/** A value that can be watched, for subscription tests. */
export function watchable(
  initial: unknown,
): SnapshotSource & { set(value: unknown, bump?: boolean): void; samples: number } {
  const listeners = new Set<() => void>();
  const state = { value: initial, version: 0 };
  return {
    samples: 0,
    set(value, bump = true) {
      state.value = value;
      if (!bump) return;
      state.version += 1;
      for (const listener of listeners) listener();
    },
    version: () => state.version,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    sample() {
      this.samples += 1;
      return state.value;
    },
  };
}
