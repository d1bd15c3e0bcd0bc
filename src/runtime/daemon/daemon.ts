import { dirname, join } from 'node:path';
import { ConnectorError } from '../errors.ts';
import { SESSIONS } from '../limits.ts';
import { findProcess } from '../process/identity.ts';
import type { ProcessHost } from '../process/types.ts';
import { ensureHome } from '../store/home.ts';
import { adoptSocket } from './activation.ts';
import type { BuildInfo } from './builtin.ts';
import { every, type Scheduler, type ServiceClock, systemClock, systemScheduler } from './clock.ts';
import { endpointOf, LOCK_NAME } from './endpoint.ts';
import type { LifeProbes } from './journal/judge.ts';
import { runFolder } from './journal/record.ts';
import { createJournalWatcher } from './journal/watcher.ts';
import { prepareSocketFolder } from './listener.ts';
import { acquireLock, type HeldLock, type LockHolder } from './lock.ts';
import { type ServiceLog, silent } from './log.ts';
import type { Periodic } from './periodic.ts';
import { createPidWatcher, systemPidProbe } from './pid-watcher.ts';
import { createServer, type Server } from './server.ts';
import type { Service } from './service.ts';
import { createSessionsEngine, type EngineOptions, type SessionsEngine } from './sessions/engine.ts';
import { createRepoLookup } from './sessions/repo.ts';
import { createSessionsService } from './sessions/service.ts';
import { streamTickMs } from './subscription.ts';

export interface DaemonOptions {
  readonly socketPath: string;
  /** The connector home; the folder of the socket unless `--socket` named another one. */
  readonly home: string;
  readonly build: BuildInfo;
  /** Its `LISTEN_*` are taken out (S-334). */
  readonly env: Record<string, string | undefined>;
  readonly host: ProcessHost;
  readonly log?: ServiceLog;
  readonly clock?: ServiceClock;
  readonly scheduler?: Scheduler;
  /** Whether a Codex thread's writer lock is held (S-522); absent: nothing is known of locks. */
  readonly codexLock?: LifeProbes['codexLock'];
  readonly ownerProof?: EngineOptions['ownerProof'];
  readonly shownState?: EngineOptions['shownState'];
  /** More services beside `sessions`, such as `connector`. */
  readonly services?: (engine: SessionsEngine) => readonly Service[];
  /** More for `ping` and `status`. */
  readonly about?: () => Readonly<Record<string, unknown>>;
}

export interface Daemon {
  readonly engine: SessionsEngine;
  readonly server: Server;
  /** The watchers that read journals and look at processes; more may be started beside them. */
  readonly journals: Periodic;
  readonly pids: Periodic;
  /** Who made the socket. */
  readonly activatedBy: 'systemd' | 'launchd' | undefined;
  /** Stops in the order of S-336, and lets the lock go last. */
  stop(): Promise<void>;
}

/** How long clients wait at most for the journals to be read before the first of them is served. */
const FIRST_PASS_MS = 1_000;

/**
 * Starts the service in this process: takes the lock, makes the folders, adopts or binds the socket, restores what
 * the journals prove, serves. Throws a `ConnectorError` of kind `daemon` that says why not; another running service
 * is told by the lock alone.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { socketPath, host } = options;
  const { platform } = host;
  const log = options.log ?? silent;
  const clock = options.clock ?? systemClock(platform);
  const scheduler = options.scheduler ?? systemScheduler;

  prepareSocketFolder(socketPath, options.home, platform);
  const lock = await takeLock(socketPath, options.build, clock, platform);
  try {
    const run = ensureHome(runFolder(socketPath), platform);
    // Without it hooks still report; only a restart forgets what they said.
    if (run.kind !== 'ready') log('warn', 'no_run_folder', { code: run.code });
    const activated = adoptSocket({ env: options.env, pid: process.pid, platform });
    const engine = createSessionsEngine({
      clock,
      log,
      platform,
      ...(options.ownerProof ? { ownerProof: options.ownerProof } : {}),
      ...(options.shownState ? { shownState: options.shownState } : {}),
    });
    const repos = createRepoLookup({ clock, log });
    const server = createServer({
      plan: activated
        ? { kind: 'adopted', socket: activated }
        : { kind: 'bind', endpoint: endpointOf(socketPath, platform), lock },
      services: [createSessionsService(engine, repos), ...(options.services?.(engine) ?? [])],
      build: options.build,
      log,
      scheduler,
      now: clock.now,
      awakeMs: clock.awakeMs,
      tickMs: streamTickMs(options.env['SHADOWOB_CONNECTOR_DAEMON_STREAM_TICK']),
      ...(options.about ? { about: options.about } : {}),
    });
    const journals = createJournalWatcher({
      socketPath,
      engine,
      repos,
      clock,
      scheduler,
      log,
      probes: {
        process: async (pid) => findProcess(pid, host),
        codexLock: options.codexLock ?? (() => 'unknown'),
      },
    });
    const pids = createPidWatcher({ engine, probe: systemPidProbe(host), scheduler, log });

    // Whoever connects first finds what was there before; a slow disk does not keep everybody out.
    await Promise.race([journals.scan(), after(scheduler, FIRST_PASS_MS)]);
    await server.listen();
    journals.start();
    pids.start();
    // Hooks write no line without the folder, and only a daemon makes it: one that was removed comes back. Not
    // where the whole home is gone, which this daemon ends for.
    const endKeeping = every(scheduler, SESSIONS.filesPollMs, () => {
      if (lock.inPlace()) ensureHome(runFolder(socketPath), platform);
    });
    log('info', 'started', {
      pid: process.pid,
      version: options.build.version,
      activated: activated?.manager ?? 'no',
    });

    return {
      engine,
      server,
      journals,
      pids,
      activatedBy: activated?.manager,
      async stop() {
        endKeeping();
        await server.stop();
        journals.stop();
        pids.stop();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function takeLock(
  socketPath: string,
  build: BuildInfo,
  clock: ServiceClock,
  platform: NodeJS.Platform,
): Promise<HeldLock> {
  const path = join(dirname(socketPath), LOCK_NAME);
  const holder: LockHolder = {
    pid: process.pid,
    version: build.version,
    since: new Date(clock.now()).toISOString(),
  };
  const lock = await acquireLock({ path, holder, platform });
  if (lock.kind === 'held') return lock;
  if (lock.kind === 'unavailable')
    throw new ConnectorError('daemon', `the lock can't be taken: ${lock.reason}`);
  const who = lock.holder ? ` (pid ${lock.holder.pid}, version ${lock.holder.version})` : '';
  throw new ConnectorError(
    'daemon',
    `another daemon is already running${who}`,
    'shadowob-connector daemon status',
  );
}

function after(scheduler: Scheduler, ms: number): Promise<void> {
  return new Promise((resolve) => {
    scheduler.after(ms, resolve);
  });
}

const ENDING_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Waits for `shutdown` on the socket or for a signal, then stops (S-336). A second signal has its usual effect. */
export async function serveUntilStopped(
  daemon: Daemon,
  signals: Pick<NodeJS.Process, 'once' | 'off'> = process,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onSignal = (): void => resolve();
  for (const name of ENDING_SIGNALS) signals.once(name, onSignal);
  await Promise.race([promise, daemon.server.shutdownRequested]);
  for (const name of ENDING_SIGNALS) signals.off(name, onSignal);
  await daemon.stop();
}
