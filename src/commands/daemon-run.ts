import { join } from 'node:path';
import type { Adapter } from '../adapters/adapter.ts';
import { labelOf } from '../adapters/catalog.ts';
import { followConfig, type LiveConfig } from '../runtime/config/live.ts';
import { systemScheduler } from '../runtime/daemon/clock.ts';
import { serveUntilStopped } from '../runtime/daemon/daemon.ts';
import { type Resident, startResident } from '../runtime/daemon/feeds/resident.ts';
import { createLog, resolveLogLevel, type ServiceLog } from '../runtime/daemon/log.ts';
import { EXIT, reasonOf } from '../runtime/errors.ts';
import { appendPrivate } from '../runtime/files/private-file.ts';
import { LEDGER_NAME, openLedger } from '../runtime/notify/ledger.ts';
import { type Notifier, startNotifier } from '../runtime/notify/notifier.ts';
import { sinksOf } from '../runtime/notify/sinks/all.ts';
import { run, systemHost } from '../runtime/process/spawn.ts';
import type { Answer } from './command.ts';
import { actHandlers } from './daemon-acts.ts';
import { connectorBuilders } from './daemon-builders.ts';
import { startDelivering } from './daemon-deliver.ts';
import { discoveryPorts } from './daemon-discovery.ts';
import { focusHandler } from './daemon-focus.ts';
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
  const settings = followConfig(plan.home, systemScheduler);
  const log = openLog(world, plan, settings);
  const held: { resident?: Resident; notifier?: Notifier } = {};
  const about = () => ({
    config: configStatus(settings),
    notifications: held.notifier?.status() ?? { enabled: false },
  });
  const launcher = { platform: world.platform, env: world.env, run };
  return {
    kind: 'events',
    async *lines() {
      const resident = await startResident({
        ...options(world, plan, adapters, log),
        about: () => ({ started_by: plan.startedBy, world: worldPrint(world), ...about() }),
        feeds: adapters,
        context: { ...adapterContext(world), log: adapterLog(log) },
        builders: connectorBuilders(adapters, () => settings.current().config.privacy.titles),
        acts: {
          ...actHandlers(world, () => held.resident?.source),
          focus: focusHandler(() => held.resident?.engine, launcher),
        },
        discovery: discoveryPorts(world),
        settled: () => world.index()?.flush(),
        ...(plan.pollMs === undefined ? {} : { pollMs: plan.pollMs }),
      });
      held.resident = resident;
      const notifier = startNotifying(world, plan, resident, settings, log);
      held.notifier = notifier;
      const stopDelivering = startDelivering(world, resident, log);
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
      await serveUntilStopped({
        ...resident,
        async stop() {
          settings.stop();
          stopDelivering();
          await notifier.stop();
          await resident.stop();
        },
      });
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
  };
}

/** The lock of a Codex thread, where this build knows Codex (S-522). */
function lockOf(world: World, adapters: readonly Adapter[], id: string) {
  const codex = adapters.find((adapter) => adapter.id === 'codex');
  return codex?.lockOf?.(adapterContext(world), id) ?? 'unknown';
}

/** Tells the owner what happens, as far as the settings want it. */
function startNotifying(
  world: World,
  plan: RunPlan,
  { source }: Resident,
  config: LiveConfig,
  log: ServiceLog,
): Notifier {
  const host = {
    platform: world.platform,
    env: world.env,
    run,
    scheduler: systemScheduler,
    agent: `shadowob-connector/${world.version}`,
  };
  return startNotifier({
    source,
    config,
    log,
    labelOf,
    scheduler: systemScheduler,
    ledger: openLedger(join(plan.home, LEDGER_NAME)),
    sinks: (settings) => sinksOf(settings, host),
  });
}

function configStatus(settings: LiveConfig): { readonly path: string; readonly problem?: string } {
  const { path, problem } = settings.current();
  return { path, ...(problem === undefined ? {} : { problem }) };
}

/** The log at the level of the settings and the environment, followed as the settings change (S-930). */
function openLog(world: World, plan: RunPlan, settings: LiveConfig): ServiceLog {
  const levelNow = () =>
    resolveLogLevel(settings.current().config.daemon.log_level, world.env['SHADOWOB_CONNECTOR_LOG']);
  const { logFile } = plan;
  const write = (line: string): void => {
    // A log that can't be written is no reason to stop; `status` still tells everything.
    if (logFile !== undefined) appendPrivate(logFile, line, { rotateAt: LOG_ROTATE_BYTES });
    else printErr(line);
  };
  const { level, warning } = levelNow();
  const held = { log: createLog(level, world.now, write) };
  const log: ServiceLog = (at, event, fields) => held.log(at, event, fields);
  if (warning !== undefined) log('warn', 'log_level', { warning });
  const sayProblem = () => {
    const { problem } = settings.current();
    if (problem !== undefined) log('warn', 'config', { problem });
  };
  sayProblem();
  settings.onChange(() => {
    held.log = createLog(levelNow().level, world.now, write);
    sayProblem();
  });
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
