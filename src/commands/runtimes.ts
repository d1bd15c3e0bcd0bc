import { cpus } from 'node:os';
import type { Adapter } from '../adapters/adapter.ts';
import { BRIDGES, CATALOG, installCommandOf, installCommandsOf } from '../adapters/catalog.ts';
import type { InstallationReport } from '../adapters/installation/report.ts';
import { type InstallationHost, SCAN_MS, scanInstallations } from '../adapters/installation/scan.ts';
import { type SignIn, signInsOf } from '../adapters/installation/sign-in.ts';
import { type RuntimeReadiness, readinessOf } from '../adapters/readiness.ts';
import type { Capability, RuntimeInstance } from '../runtime/feed.ts';
import { run } from '../runtime/process/spawn.ts';
import { oneLine } from '../runtime/session/text.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { openProbeCache } from '../runtime/store/probe-store.ts';
import { type Paint, paint, type Style } from './output/style.ts';
import { table, width } from './output/table.ts';
import type { World } from './world.ts';

/** One runtime or bridge: its installation and what can be done with it. */
export interface RuntimeLook {
  readonly installation: InstallationReport;
  readonly readiness: RuntimeReadiness;
}

export interface RuntimesLook {
  /** By runtime id; absent: not asked, or it has no command that says so. */
  readonly signIns: ReadonlyMap<string, SignIn>;
  readonly runtimes: readonly InstallationReport[];
  readonly bridges: readonly InstallationReport[];
}

export interface RuntimesRequest {
  /** What hasn't answered by then is "installed, version unknown (slow)" (R-29), milliseconds. */
  readonly budgetMs?: number;
  /** Ask every program again instead of believing the cache. */
  readonly refresh: boolean;
  /** Whether status commands may be run to learn of a sign-in; else what they said last is believed. */
  readonly signIn: 'ask' | 'remembered';
}

/** Finds the programs of all runtimes and bridges, and whether they are signed in. Never throws, never sends a prompt. */
export async function lookAtRuntimes(world: World, request: RuntimesRequest): Promise<RuntimesLook> {
  const entries = [...CATALOG, ...BRIDGES];
  const host = installationHost(world);
  const { refresh, signIn } = request;
  const deadlineAt = world.now() + (request.budgetMs ?? SCAN_MS);
  const scan = await scanInstallations(host, { entries, deadlineAt, refresh });
  const signIns = await signInsOf(scan.reports, host, { how: signIn, refresh, deadlineAt });
  const isBridge = (report: InstallationReport) => report.entry.kind === 'bridge';
  return {
    signIns,
    runtimes: scan.reports.filter((report) => !isBridge(report)),
    bridges: scan.reports.filter(isBridge),
  };
}

/** This computer, as a scan for programs sees it. */
export function installationHost(world: World): InstallationHost {
  const home = connectorHome(world.env, world.home);
  return {
    platform: world.platform,
    env: world.env,
    home: world.home,
    connectorHome: home,
    run,
    cache: openProbeCache(home),
    now: world.now,
    cores: cpus().length,
  };
}

/** What an adapter can do at all, as the reference's words: its optional members, so nothing is declared twice. */
export function capabilitiesOf(adapter: Adapter | undefined): readonly Capability[] {
  if (!adapter) return [];
  return [
    'sessionList',
    ...(adapter.history ? (['sessionHistory'] as const) : []),
    ...(adapter.watch ? (['liveWatch'] as const) : []),
    ...(adapter.control ? (['sendMessage', 'abort', 'approval'] as const) : []),
  ];
}

/** Adds readiness: what is installed, seen together with what runs. */
export function readiness(
  report: InstallationReport,
  adapters: readonly Adapter[],
  instances: readonly RuntimeInstance[],
  signIns: RuntimesLook['signIns'],
): RuntimeLook {
  const own = instances.filter((instance) => instance.runtimeId === report.runtimeId);
  const adapter = adapters.find((one) => one.id === report.runtimeId);
  const auth = signIns.get(report.runtimeId);
  return {
    installation: report,
    readiness: readinessOf({
      runtimeId: report.runtimeId,
      installation: report,
      capabilities: capabilitiesOf(adapter),
      instances: own,
      ...(auth === undefined ? {} : { auth }),
    }),
  };
}

/** One runtime as JSON: the existing connector's fields (`cli-surface.md` §4) and readiness (R-41). */
export function runtimeData({ installation, readiness: ready }: RuntimeLook, platform: NodeJS.Platform) {
  const { entry } = installation;
  return {
    id: entry.id,
    label: entry.label,
    kind: entry.kind,
    status: installation.status,
    version: installation.version,
    command: installation.command,
    iconId: entry.iconId,
    installCommand: installCommandOf(entry, platform),
    installCommands: installCommandsOf(entry, platform),
    helpUrl: entry.helpUrl,
    detectedAt: new Date(installation.detectedAt).toISOString(),
    path: installation.path,
    installState: ready.installState,
    integrationState: ready.integrationState,
    monitorState: ready.monitorState,
    pushState: ready.pushState,
    readiness: ready.readiness,
    readinessScopes: ready.scopes,
    ...(ready.detail ? { detail: ready.detail } : {}),
    ...(installation.scanError ? { scanError: installation.scanError } : {}),
    ...(installation.others.length > 0 ? { otherPrograms: installation.others } : {}),
  };
}

const LOOKS: Partial<Record<RuntimeReadiness['readiness'], Paint>> = {
  Ready: 'green',
  Limited: 'yellow',
  'Needs setup': 'yellow',
  Error: 'red',
  'Not installed': 'dim',
};

/** The table of runtimes as people read it. */
export function runtimeTable(style: Style, looks: readonly RuntimeLook[]): string {
  const rows = looks.map(({ installation, readiness: ready }) => {
    const look = LOOKS[ready.readiness];
    return [
      { text: installation.entry.label },
      { text: ready.readiness, ...(look ? { look } : {}) },
      { text: installation.version ?? (installation.status === 'available' ? 'unknown' : '') },
      { text: oneLine(whatIsReady(ready)), look: 'dim' as const },
    ];
  });
  const columns = [
    { head: 'RUNTIME' },
    { head: 'READINESS' },
    { head: 'VERSION', shrinkTo: 12 },
    { head: '', shrinkTo: 20 },
  ];
  return table(style, columns, rows);
}

function whatIsReady(ready: RuntimeReadiness): string {
  // What is wrong is told where something can be done about it; that nothing was run yet is no fault.
  const telling =
    ready.readiness === 'Error' || ready.readiness === 'Needs setup' || ready.monitorState === 'error';
  return [...ready.scopes, ...(ready.detail && telling ? [ready.detail] : [])].join('; ');
}

/** As many names as fit into the terminal's width, and how many more there are. */
export function missingLine(names: readonly string[], columns: number | undefined): string {
  const line = (count: number): string => {
    const rest = names.length - count;
    const shown = names.slice(0, count);
    return `Not installed: ${[...shown, ...(rest > 0 ? [`${rest}${count > 0 ? ' more' : ''}`] : [])].join(', ')}`;
  };
  const counts = names.map((_, index) => names.length - index);
  const limit = columns ?? Number.POSITIVE_INFINITY;
  return line(counts.find((count) => width(line(count)) <= limit) ?? 0);
}

/** The short form for the overview: what is installed, a line each, and what isn't, in one line. */
export function runtimeLines(style: Style, looks: readonly RuntimeLook[]): string[] {
  const there = looks.filter((look) => look.installation.status === 'available');
  const missing = looks.filter((look) => look.installation.status !== 'available');
  const names = missing.map((look) => look.installation.entry.label);
  return [
    ...(there.length > 0 ? [runtimeTable(style, there)] : []),
    ...(missing.length > 0 ? [paint(style, 'dim', missingLine(names, style.columns))] : []),
  ];
}
