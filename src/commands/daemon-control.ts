import { unitsWithoutManager } from '../install/service/manager.ts';
import type { ServiceReport } from '../install/service/types.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { scrubbedEnv } from '../runtime/process/scrubbed-env.ts';
import { startDetached } from '../runtime/process/spawn.ts';
import { ensureHome } from '../runtime/store/home.ts';
import type { Answer } from './command.ts';
import { logPathIn } from './daemon-log-path.ts';
import { readTail } from './daemon-logs.ts';
import {
  BUDGET_MS,
  clientOf,
  likelyHolder,
  managerOf,
  ping,
  type Running,
  serviceWords,
  specOf,
  systemOf,
  waitForAnswer,
  waitUntilGone,
} from './daemon-reach.ts';
import type { StartedBy } from './daemon-run.ts';
import type { World } from './world.ts';

export interface Place {
  readonly socketPath: string;
  readonly home: string;
  /** Who asks: the task at log-on names itself. */
  readonly startedBy: StartedBy;
  /** `install`: the user wants it to outlive the log-out (D5). */
  readonly linger: boolean;
}

export type ControlAction = 'start' | 'stop' | 'restart' | 'install' | 'uninstall';

/** What was done, for people and programs. */
export interface ControlOutcome {
  readonly running: Running | undefined;
  readonly done: readonly string[];
  readonly notes: readonly string[];
}

/** Starts, stops, installs (S-338 … S-340). Throws a `ConnectorError` of kind `daemon` with the reason. */
export async function daemonControl(action: ControlAction, world: World, place: Place): Promise<Answer> {
  const outcome = await controlDaemon(action, world, place);
  const { running, done, notes } = outcome;
  const said = done.length > 0 ? done : ['nothing to do'];
  return {
    kind: 'document',
    data: { action, running: running ?? null, done, notes },
    text: () => said.join('\n'),
    warnings: notes,
  };
}

/** {@link daemonControl} for a command that does it among other things. Throws the same. */
export function controlDaemon(action: ControlAction, world: World, place: Place): Promise<ControlOutcome> {
  switch (action) {
    case 'start':
      return start(world, place);
    case 'stop':
      return stop(world, place);
    case 'restart':
      return restart(world, place);
    case 'install':
      return install(world, place);
    case 'uninstall':
      return uninstall(world, place);
  }
}

async function start(world: World, place: Place): Promise<ControlOutcome> {
  const client = clientOf(world, place.socketPath);
  // Slow is not gone (D10): who holds the lock gets the time to answer.
  const running = await ping(client, likelyHolder(place.socketPath) ? BUDGET_MS : undefined);
  if (running) return alreadyRunning(running, world);
  const manager = managerOf(world, place.home);
  if (!manager || manager.kind === 'windows-task') return startAlone(world, place);
  return armed(world, place, await manager.install(specOf(world, place.socketPath, place.home)));
}

/** The manager has been told; the first ping makes it start the daemon. */
async function armed(world: World, place: Place, report: ServiceReport): Promise<ControlOutcome> {
  const running = report.ok ? await waitForAnswer(clientOf(world, place.socketPath)) : undefined;
  if (running) return { running, done: [...report.done, startedWords(running)], notes: report.notes };
  const tail = readTail(logPathIn(place.home), 5);
  throw new ConnectorError(
    'daemon',
    [`the daemon did not start: ${[...report.notes, ...tail].join('; ') || 'no answer'}`].join(''),
    'See: shadowob-connector daemon logs',
  );
}

/** How long a daemon of ours may take until it says that it serves. */
const READY_MS = 10_000;

/** A process in a session of its own; nothing starts it again at login (S-338). */
async function startAlone(world: World, place: Place): Promise<ControlOutcome> {
  const made = ensureHome(place.home, world.platform);
  if (made.kind !== 'ready') throw new ConnectorError('daemon', `${place.home} can't be made: ${made.code}`);
  const startedBy = place.startedBy === 'foreground' ? 'detached' : place.startedBy;
  const words = ['daemon', 'run', '--json', '--started-by', startedBy];
  const files = ['--log-file', logPathIn(place.home), '--socket', place.socketPath];
  const child = startDetached({
    argv: [...world.self, ...words, ...files],
    env: scrubbedEnv(world.env),
    cwd: place.home,
    stdin: '',
  });
  if (child.kind !== 'started')
    throw new ConnectorError('daemon', `it could not be started: ${child.message}`);
  const said = await firstLine(child.stdout);
  child.letGo();
  const running = said.ready ? await ping(clientOf(world, place.socketPath), BUDGET_MS) : undefined;
  if (running) {
    const login =
      world.platform === 'win32' ? 'daemon install adds a start at log-on' : 'nothing starts it at login';
    return {
      running,
      done: [startedWords(running)],
      notes: [`It runs detached, in a session of its own; ${login}.`],
    };
  }
  // Somebody else's start was quicker: what was asked for is true all the same.
  const other = likelyHolder(place.socketPath)
    ? await waitForAnswer(clientOf(world, place.socketPath))
    : undefined;
  if (other) return alreadyRunning(other, world);
  throw new ConnectorError(
    'daemon',
    `the daemon did not start: ${said.why}`,
    'See: shadowob-connector daemon logs',
  );
}

function alreadyRunning(running: Running, world: World): ControlOutcome {
  return {
    running,
    done: [`already running (pid ${running.pid}, version ${running.version})`],
    notes: skew(running, world),
  };
}

function startedWords(running: Running): string {
  return `started (pid ${running.pid}, ${running.startedBy})`;
}

async function firstLine(stdout: ReadableStream<Uint8Array>): Promise<{ ready: boolean; why: string }> {
  const reader = stdout.getReader();
  const timer = setTimeout(() => reader.cancel(), READY_MS);
  const decoder = new TextDecoder();
  const state = { text: '' };
  try {
    while (!isWhole(state.text)) {
      const next = await reader.read();
      if (next.done) break;
      state.text += decoder.decode(next.value, { stream: true });
    }
  } finally {
    clearTimeout(timer);
    reader.releaseLock();
  }
  return readHello(state.text);
}

/** `ready` is one line; an error document may have several. */
function isWhole(text: string): boolean {
  return text.endsWith('\n') && parse(text) !== undefined;
}

function readHello(text: string): { ready: boolean; why: string } {
  const value = parse(text);
  if (typeof value !== 'object' || value === null)
    return { ready: false, why: 'it ended before it was ready' };
  if ('type' in value && value.type === 'ready') return { ready: true, why: '' };
  const error: unknown = Reflect.get(value, 'error');
  const message: unknown =
    typeof error === 'object' && error !== null ? Reflect.get(error, 'message') : undefined;
  return { ready: false, why: typeof message === 'string' ? message : 'it said something strange' };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Half a line, or none of ours.
    return undefined;
  }
}

/** How long a stop may take: the drain (K-35) and a little (K-36). */
const STOP_MS = 2 * BUDGET_MS;

async function stop(world: World, place: Place): Promise<ControlOutcome> {
  const stopped = await shutDown(world, place);
  const manager = managerOf(world, place.home);
  if (!manager?.installed()) return stopped;
  // Only now, or the shutdown itself would have no socket to come by (S-339).
  const disarmed = await manager.disarm();
  return {
    running: undefined,
    done: [...stopped.done, ...disarmed.done],
    notes: [...stopped.notes, ...disarmed.notes],
  };
}

async function shutDown(world: World, place: Place): Promise<ControlOutcome> {
  const holder = likelyHolder(place.socketPath);
  const idle = { running: undefined, done: ['not running'], notes: [] };
  const armed = managerOf(world, place.home)?.installed() === true;
  // Where a manager holds the socket, whoever connects starts a daemon only to stop it (S-340).
  if (!holder && armed) return idle;
  const client = clientOf(world, place.socketPath);
  const reply = await client.request('daemon', 'shutdown');
  if (reply.kind === 'unreachable' && reply.reason === 'none') return idle;
  if (reply.kind !== 'ok') {
    const who = holder ? ` (pid ${holder.pid})` : '';
    const why = reply.kind === 'rejected' ? reply.error : reply.detail;
    throw new ConnectorError(
      'daemon',
      `the daemon${who} was not stopped: ${why}`,
      'shadowob-connector daemon status',
    );
  }
  if (holder && !(await waitUntilGone(holder.pid, STOP_MS))) {
    throw new ConnectorError(
      'daemon',
      `the daemon (pid ${holder.pid}) is still there after ${STOP_MS / 1_000} s`,
    );
  }
  return { running: undefined, done: [holder ? `stopped (pid ${holder.pid})` : 'stopped'], notes: [] };
}

async function restart(world: World, place: Place): Promise<ControlOutcome> {
  const stopped = await shutDown(world, place);
  const manager = managerOf(world, place.home);
  // Not disarmed in between: a start that fails must not leave the user without it (S-339).
  const started =
    manager && manager.kind !== 'windows-task'
      ? await armed(world, place, await manager.install(specOf(world, place.socketPath, place.home)))
      : await startAlone(world, place);
  return { running: started.running, done: [...stopped.done, ...started.done], notes: started.notes };
}

async function install(world: World, place: Place): Promise<ControlOutcome> {
  const manager = managerOf(world, place.home);
  if (!manager) {
    throw new ConnectorError(
      'daemon',
      'there is no service manager of this user here (no systemd --user)',
      'shadowob-connector daemon start runs it without one',
    );
  }
  const spec = specOf(world, place.socketPath, place.home);
  const other = manager.kind === 'windows-task' ? [] : await makeRoom(world, place, manager.kind);
  const report = await manager.install({ ...spec, linger: place.linger });
  if (manager.kind !== 'windows-task') {
    const { running, done, notes } = await armed(world, place, report);
    // Which of the two it is now.
    const kept = `kept by ${serviceWords(manager, spec)}`;
    return { running, done: [...other, ...done, kept], notes: [...notes, ...skew(running, world)] };
  }
  if (!report.ok) throw new ConnectorError('daemon', report.notes.join('; '));
  const started = await start(world, place);
  return { ...started, done: [...report.done, ...started.done], notes: report.notes };
}

/**
 * Stops a daemon that was started without the manager: it holds the lock, and the manager's own could never take the
 * socket over.
 */
async function makeRoom(world: World, place: Place, manager: StartedBy): Promise<readonly string[]> {
  if (!likelyHolder(place.socketPath)) return [];
  const running = await ping(clientOf(world, place.socketPath), BUDGET_MS);
  if (!running || running.startedBy === manager) return [];
  return (await shutDown(world, place)).done;
}

async function uninstall(world: World, place: Place): Promise<ControlOutcome> {
  const manager = managerOf(world, place.home);
  if (!manager && unitsWithoutManager(systemOf(world))) {
    throw new ConnectorError(
      'daemon',
      'it is installed, but the service manager of this user can’t be reached (XDG_RUNTIME_DIR)',
      'Run it from a login of this user: shadowob-connector daemon uninstall',
    );
  }
  if (!manager) return { running: undefined, done: ['not installed'], notes: [] };
  const stopped = manager.installed() ? (await shutDown(world, place)).done : [];
  // Also asked without its files: what was removed by hand leaves a loaded job, a link, or lingering (D5).
  const report = await manager.uninstall(specOf(world, place.socketPath, place.home));
  const done = [...stopped, ...report.done];
  const nothing = done.length === 0 && report.notes.length === 0;
  return { running: undefined, done: nothing ? ['not installed'] : done, notes: report.notes };
}

function skew(running: Running | undefined, world: World): readonly string[] {
  if (running === undefined || running.version === world.version) return [];
  return [
    `The daemon is version ${running.version}, this program ${world.version}: shadowob-connector daemon restart`,
  ];
}
