import type { Adapter } from '../adapters/adapter.ts';
import { serveUntilStopped } from '../runtime/daemon/daemon.ts';
import { startResident } from '../runtime/daemon/feeds/resident.ts';
import { createLog, resolveLogLevel, type ServiceLog } from '../runtime/daemon/log.ts';
import { EXIT, reasonOf } from '../runtime/errors.ts';
import { appendPrivate } from '../runtime/files/private-file.ts';
import { systemHost } from '../runtime/process/spawn.ts';
import type { Answer } from './command.ts';
import { connectorBuilders } from './daemon-builders.ts';
import { buildCommit, worldPrint } from './daemon-world.ts';
import { printErr } from './output/print.ts';
import { adapterContext, type World } from './world.ts';

/** How the daemon came to run. */
export type StartedBy = 'foreground' | 'detached' | 'systemd' | 'launchd' | 'windows-task';

export interface RunPlan {
  readonly socketPath: string;
  readonly home: string;
  readonly startedBy: StartedBy;
  /** The log file; without one the log goes to stderr. */
  readonly logFile: string | undefined;
  readonly pollMs: number | undefined;
}

/** A log of this size becomes `daemon.log.1`, of which one is kept. */
const LOG_ROTATE_BYTES = 8 * 1024 * 1024;

/** Runs the daemon in this process until a signal or `shutdown` (S-336). The first line says that it serves. */
export async function runDaemon(world: World, plan: RunPlan): Promise<Answer> {
  const adapters = await world.adapters();
  const log = openLog(world, plan);
  return {
    kind: 'events',
    async *lines() {
      const resident = await startResident({
        ...options(world, plan, adapters, log),
        feeds: adapters,
        context: { ...adapterContext(world), log: adapterLog(log) },
        builders: connectorBuilders(adapters),
        settled: () => world.index()?.flush(),
        ...(plan.pollMs === undefined ? {} : { pollMs: plan.pollMs }),
      });
      const activated = resident.activatedBy;
      yield {
        data: {
          type: 'ready',
          pid: process.pid,
          socket: plan.socketPath,
          startedBy: activated ?? plan.startedBy,
        },
        text: () => ({ err: `daemon ${world.version} is ready on ${plan.socketPath} (pid ${process.pid})` }),
      };
      await serveUntilStopped(resident);
    },
    outcome: () => ({ exitCode: EXIT.ok }),
  };
}

function options(world: World, plan: RunPlan, adapters: readonly Adapter[], log: ServiceLog) {
  // `LISTEN_*` are taken out of it, and must then be gone for children, too (S-334).
  const env: Record<string, string | undefined> = process.env;
  return {
    socketPath: plan.socketPath,
    home: plan.home,
    build: { version: world.version, commit: buildCommit() },
    env,
    host: systemHost,
    log,
    codexLock: (id: string) => lockOf(world, adapters, id),
    about: () => ({ started_by: plan.startedBy, world: worldPrint(world) }),
  };
}

/** The lock of a Codex thread, where this build knows Codex (S-522). */
function lockOf(world: World, adapters: readonly Adapter[], id: string) {
  const codex = adapters.find((adapter) => adapter.id === 'codex');
  return codex?.lockOf?.(adapterContext(world), id) ?? 'unknown';
}

function openLog(world: World, plan: RunPlan): ServiceLog {
  const { level, warning } = resolveLogLevel(undefined, world.env['SHADOWOB_CONNECTOR_LOG']);
  const { logFile } = plan;
  const write = (line: string): void => {
    // A log that can't be written is no reason to stop; `status` still tells everything.
    if (logFile !== undefined) appendPrivate(logFile, line, { rotateAt: LOG_ROTATE_BYTES });
    else printErr(line);
  };
  const log = createLog(level, world.now, write);
  if (warning !== undefined) log('warn', 'log_level', { warning });
  if (logFile !== undefined) logDefects(log);
  return log;
}

/** A detached process has nobody to tell: a defect must at least stand in the log. */
function logDefects(log: ServiceLog): void {
  process.on('uncaughtExceptionMonitor', (error) => log('error', 'defect', { error: reasonOf(error) }));
}

function adapterLog(log: ServiceLog) {
  return {
    debug: (message: string) => log('debug', 'adapter', { message }),
    warn: (message: string) => log('warn', 'adapter', { message }),
  };
}
