import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { serviceManager } from '../install/service/manager.ts';
import type { ServiceManager, ServiceSpec, ServiceSystem } from '../install/service/types.ts';
import { readConfig } from '../runtime/config/read.ts';
import { createClient, type ServiceClient } from '../runtime/daemon/client.ts';
import { LOCK_NAME } from '../runtime/daemon/endpoint.ts';
import { type LockHolder, readHolder } from '../runtime/daemon/lock.ts';
import { isAlive } from '../runtime/process/identity.ts';
import { run } from '../runtime/process/spawn.ts';
import { logPathIn } from './daemon-log-path.ts';
import type { World } from './world.ts';

/** What a running daemon says of itself. */
export interface Running {
  readonly pid: number;
  readonly version: string;
  readonly commit: string | undefined;
  readonly startedAt: string;
  readonly startedBy: string;
}

/** K-36: one ping, the pause between two, and how long it may take in all, milliseconds. */
const PING_MS = 250;
const PAUSE_MS = 100;
export const BUDGET_MS = 5_000;

/** The client of a socket. */
export function clientOf(world: World, socketPath: string): ServiceClient {
  return createClient({ socketPath, platform: world.platform });
}

/** Asks who is there; undefined when nobody answers in time. */
export async function ping(client: ServiceClient, timeoutMs: number = PING_MS): Promise<Running | undefined> {
  const reply = await client.request('daemon', 'ping', undefined, { timeoutMs });
  return reply.kind === 'ok' ? readRunning(reply.payload) : undefined;
}

function readRunning(payload: unknown): Running | undefined {
  if (typeof payload !== 'object' || payload === null || !('pid' in payload)) return undefined;
  const field = (name: string) => {
    const value: unknown = Reflect.get(payload, name);
    return typeof value === 'string' ? value : undefined;
  };
  return {
    pid: Number(payload.pid),
    version: field('version') ?? 'unknown',
    commit: field('commit'),
    startedAt: field('started_at') ?? '',
    startedBy: field('started_by') ?? 'unknown',
  };
}

/** Pings until somebody answers, at most {@link BUDGET_MS}. */
export async function waitForAnswer(client: ServiceClient): Promise<Running | undefined> {
  const deadline = performance.now() + BUDGET_MS;
  while (performance.now() < deadline) {
    const running = await ping(client);
    if (running) return running;
    await Bun.sleep(PAUSE_MS);
  }
  return undefined;
}

/**
 * Who wrote himself into the lock file and lives. A hint that wakes nobody, unlike a ping where a service manager
 * holds the socket (S-339); a pid may have been given to another process since (D1).
 */
export function likelyHolder(socketPath: string): LockHolder | undefined {
  const holder = readHolder(join(dirname(socketPath), LOCK_NAME));
  return holder && isAlive(holder.pid) ? holder : undefined;
}

/** Waits without a ping until a process is gone. */
export async function waitUntilGone(pid: number, budgetMs: number): Promise<boolean> {
  const deadline = performance.now() + budgetMs;
  while (performance.now() < deadline) {
    if (!isAlive(pid)) return true;
    await Bun.sleep(PAUSE_MS);
  }
  return !isAlive(pid);
}

/** The service manager of this user, if any. */
export function managerOf(world: World, home: string): ServiceManager | undefined {
  return serviceManager(systemOf(world), home);
}

/** This computer, as service managers see it. */
export function systemOf(world: World): ServiceSystem {
  return {
    platform: world.platform,
    env: world.env,
    userHome: world.home,
    uid: process.getuid?.(),
    run,
    pause: (ms: number) => Bun.sleep(ms),
  };
}

/** What the service would be made from; with notifications on it also starts at login and after a failure. */
export function specOf(world: World, socketPath: string, home: string): ServiceSpec {
  const always = readConfig(home).config.notifications.enabled;
  return { program: world.self, home, socketPath, logPath: logPathIn(home), always };
}

/**
 * Which of the two the installed service is, by what is written in its files: started by the first client, or
 * at login and after a failure, too.
 */
export function serviceWords(manager: ServiceManager, spec: ServiceSpec): string {
  if (manager.kind === 'windows-task') return manager.words;
  const name = manager.kind === 'launchd' ? 'launchd' : 'systemd --user';
  if (stands(manager, spec, true)) return `${name} (starts at login and after a failure)`;
  if (stands(manager, spec, false)) return manager.words;
  return `${manager.words}; its files are not those of this build: shadowob-connector daemon install`;
}

/** Whether the installed service starts this build, as one of the two that it can be. */
export function isOfThisBuild(manager: ServiceManager, spec: ServiceSpec): boolean {
  // The task's file is UTF-16 and holds an account that only Windows knows: that it is there has to do.
  if (manager.kind === 'windows-task') return true;
  return stands(manager, spec, true) || stands(manager, spec, false);
}

function stands(manager: ServiceManager, spec: ServiceSpec, always: boolean): boolean {
  return manager.files({ ...spec, always }).every(({ path, text }) => readText(path) === text);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not there, or not ours to read: then it is not what we would write.
    return undefined;
  }
}
