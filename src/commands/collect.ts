import type { Adapter } from '../adapters/adapter.ts';
import { CATALOG } from '../adapters/catalog.ts';
import { sessionWithTitles } from '../runtime/config/titles.ts';
import { hostedKeys } from '../runtime/control/hosted.ts';
import { ConnectorError } from '../runtime/errors.ts';
import type { RuntimeInstance, ScanOptions, ScanProblem } from '../runtime/feed.ts';
import { createMonitor, type Monitor } from '../runtime/monitor.ts';
import { sortByNeed } from '../runtime/session/order.ts';
import { redactRow, type SessionRow, sessionRow } from '../runtime/session/row.ts';
import type { Session } from '../runtime/session/session.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { passes, type SessionFilter } from './filter.ts';
import { type Privacy, privacyOf } from './privacy.ts';
import { nearest } from './suggest.ts';
import { adapterContext, type World } from './world.ts';

/** What a look shows, whoever looked: a monitor of our own, or the daemon. */
export interface SessionsView {
  readonly registry: Pick<Monitor['registry'], 'sessions' | 'find' | 'size'>;
  instances(): readonly RuntimeInstance[];
  problems(ids?: readonly string[]): readonly ScanProblem[];
}

/** Everything that one look at the computer gave. */
export interface Collected {
  readonly monitor: SessionsView;
  readonly adapters: readonly Adapter[];
  readonly instances: readonly RuntimeInstance[];
  readonly problems: readonly ScanProblem[];
  /** Filtered, those that wait for the user first. */
  readonly sessions: readonly Session[];
}

/** The snapshot of `session-list` and `runtime-watch` (`cli-surface.md` §5) with what we add. */
export interface Snapshot {
  readonly scannedAt: string;
  readonly runtimeIds: readonly string[];
  readonly instances: readonly RuntimeInstance[];
  readonly sessions: readonly SessionRow[];
  /** Present when rows were left out (R-28). */
  readonly truncated?: { readonly shown: number; readonly total: number };
  /** What could not be read; the rest is complete. */
  readonly problems?: readonly ScanProblem[];
}

/**
 * The adapters that a `--runtime` filter names.
 *
 * @throws ConnectorError `notFound` for a runtime that does not exist, `unsupported` for one whose sessions can't be
 *   seen (never an empty success)
 */
export async function chosenAdapters(world: World, filter: SessionFilter): Promise<readonly Adapter[]> {
  const adapters = await world.adapters();
  if (!filter.runtimes) return adapters;
  for (const id of filter.runtimes) assertMonitored(id, adapters);
  return adapters.filter((adapter) => filter.runtimes?.includes(adapter.id));
}

function assertMonitored(id: string, adapters: readonly Adapter[]): void {
  if (adapters.some((adapter) => adapter.id === id)) return;
  const entry = CATALOG.find((known) => known.id === id);
  const watched = adapters.map((adapter) => adapter.id).join(', ');
  if (entry) {
    throw new ConnectorError(
      'unsupported',
      `${entry.label}: monitoring not available yet`,
      `Sessions can be seen of: ${watched}. Its installation: shadowob-connector runtime-scan`,
    );
  }
  const hint = nearest(
    id,
    CATALOG.map((known) => known.id),
  );
  throw new ConnectorError(
    'notFound',
    `there is no runtime "${id}"${hint ? `; did you mean "${hint}"?` : ''}`,
    `The runtimes are: ${CATALOG.map((known) => known.id).join(', ')}`,
  );
}

const systemClock = (world: World) => ({
  now: world.now,
  after(ms: number, run: () => void) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
});

/** A monitor over the chosen runtimes. */
export async function openMonitor(
  world: World,
  filter: SessionFilter,
  pollMs?: number,
): Promise<{ monitor: Monitor; adapters: readonly Adapter[] }> {
  const adapters = await chosenAdapters(world, filter);
  const scan: ScanOptions = {
    ...(filter.since === undefined ? {} : { since: filter.since }),
    ...(filter.opencodeUrl === undefined ? {} : { endpoint: filter.opencodeUrl }),
  };
  const monitor = createMonitor({
    feeds: adapters,
    context: adapterContext(world),
    clock: systemClock(world),
    scan,
    owned: () => hostedKeys(connectorHome(world.env, world.home)),
    ...(pollMs === undefined ? {} : { pollMs }),
  });
  return { monitor, adapters };
}

/** One look at everything the filter asks for. */
export async function collect(world: World, filter: SessionFilter): Promise<Collected> {
  const { monitor, adapters } = await openMonitor(world, filter);
  await monitor.scan();
  for (const problem of monitor.problems()) world.log.debug(`${problem.subject}: ${problem.reason}`);
  return { monitor, adapters, ...readMonitor(monitor, filter, await privacyOf(world)) };
}

/** What a monitor shows through a filter, and through its owner's choice for titles (R-37). */
export function readMonitor(
  monitor: SessionsView,
  filter: SessionFilter,
  privacy: Privacy,
): Pick<Collected, 'instances' | 'problems' | 'sessions'> {
  const sessions = monitor.registry.sessions().filter((session) => passes(session, filter));
  return {
    instances: monitor.instances(),
    problems: [...privacy.problems, ...monitor.problems()],
    sessions: sortByNeed(sessions).map((session) => sessionWithTitles(session, privacy.titles)),
  };
}

/** JSON of a list stays under this many bytes without `--all` or `--limit` (R-28; the desktop reads 1 MiB). */
export const JSON_BUDGET = 1_000_000;

/** Makes the snapshot; cut to the limit, or to the byte budget with the newest and live sessions kept. */
export function toSnapshot(
  look: Pick<Collected, 'instances' | 'problems' | 'sessions'>,
  adapters: readonly Adapter[],
  filter: SessionFilter,
  now: number,
): Snapshot {
  const toRow = (session: Session) => (filter.redact ? redactRow(sessionRow(session)) : sessionRow(session));
  const head = {
    scannedAt: new Date(now).toISOString(),
    runtimeIds: adapters.map((adapter) => adapter.id),
    instances: filter.redact ? look.instances.map(redactInstance) : look.instances,
    ...(look.problems.length > 0 && !filter.redact ? { problems: look.problems.slice(0, MAX_PROBLEMS) } : {}),
  };
  const kept = keep(look.sessions, filter, toRow, JSON.stringify(head).length);
  const total = look.sessions.length;
  const truncated = kept.length < total ? { truncated: { shown: kept.length, total } } : {};
  return { ...head, sessions: kept, ...truncated };
}

const MAX_PROBLEMS = 200;

function redactInstance(instance: RuntimeInstance): RuntimeInstance {
  const { metadata: _metadata, error: _error, ...rest } = instance;
  return rest;
}

function keep(
  sessions: readonly Session[],
  filter: SessionFilter,
  toRow: (session: Session) => SessionRow,
  used: number,
): SessionRow[] {
  if (filter.all) return sessions.map(toRow);
  if (filter.limit !== undefined) return sessions.slice(0, filter.limit).map(toRow);
  // Sorted by need, the list has live and newest sessions first, so that it is cut at its end (R-28).
  const rows: SessionRow[] = [];
  let left = JSON_BUDGET - used - 1_000;
  for (const session of sessions) {
    const row = toRow(session);
    left -= sizeOf(row);
    if (left < 0) break;
    rows.push(row);
  }
  return rows;
}

/** Bytes of a row's names, times, words of closed sets and punctuation: 430 to 560 were seen. */
const ROW_FRAME = 600;

/** At most the bytes that a row takes as JSON, found without making it: the whole list is made only once. */
function sizeOf(row: SessionRow): number {
  let size = ROW_FRAME;
  size += jsonBytes(row.title) + jsonBytes(row.workDir) + jsonBytes(row.model);
  size += jsonBytes(row.error) + jsonBytes(row.note) + jsonBytes(row.endpoint);
  size += jsonBytes(row.petActivity?.label);
  for (const name in row.native) size += jsonBytes(row.native[name]);
  for (const id of row.subAgents ?? NONE) size += jsonBytes(id);
  for (const pid of row.pids ?? NONE) size += jsonBytes(pid);
  return size;
}

const NONE: readonly never[] = [];

/** Quotes, backslashes and control characters grow; a cleaned title has none of the last. */
function jsonBytes(value: string | number | boolean | null | undefined): number {
  if (typeof value !== 'string') return 24;
  const escapes = /["\\\p{Cc}]/u.test(value) ? value.length * 5 : 0;
  return Buffer.byteLength(value) + escapes + 4;
}
