import type { CatalogEntry } from '../catalog.ts';

/**
 * What is known of a found program's version:
 * - `known`: it said so;
 * - `slow`: it didn't answer by the deadline: installed, version unknown (V3, R-29), never missing;
 * - `failed`: it can't be started, or ended with an error and no version;
 * - `unrecognised`: what answered isn't the program that we look for;
 * - `editor`: only the product's editor is there; it is never started.
 */
export type VersionState = 'known' | 'slow' | 'failed' | 'unrecognised' | 'editor';

/** One program that was found under one of a runtime's names. */
export interface FoundProgram {
  /** The name that was looked for. */
  readonly command: string;
  readonly path: string;
  readonly realPath: string;
  readonly versionState: VersionState;
  /** Clean, at most 120 characters; only with `known`. */
  readonly version: string | null;
  /** One line: why there is no version. Null with `known` and `editor`. */
  readonly problem: string | null;
  /** The answer was remembered and no process was started for it. */
  readonly cached: boolean;
}

/** Another program of the same name that was found and not used. */
export type OtherProgram = Pick<FoundProgram, 'command' | 'path' | 'realPath' | 'problem'>;

/** The installation of one runtime or bridge. */
export interface InstallationReport {
  readonly runtimeId: string;
  readonly entry: CatalogEntry;
  /** The wire's word: `missing` also when all that was found is somebody else's program. */
  readonly status: 'available' | 'missing';
  /** Of the reference's Runtime Readiness Model; `installing` and `upgradeAvailable` come from an installer. */
  readonly installState: 'missing' | 'installed' | 'installError';
  /** The name that answered, else the first one tried (`cli-surface.md` §4). */
  readonly command: string;
  /** The path to start; null when there is none. */
  readonly path: string | null;
  readonly version: string | null;
  /** Null when nothing was found. */
  readonly versionState: VersionState | null;
  /** One line; null when the scan has nothing to complain of. */
  readonly scanError: string | null;
  /** Further programs of these names, in the order of the search path. */
  readonly others: readonly OtherProgram[];
  /** Epoch milliseconds. */
  readonly detectedAt: number;
}

/** All installations, and what the scan cost. */
export interface InstallationScan {
  /** In the order of the catalog. */
  readonly reports: readonly InstallationReport[];
  /** Processes that were started: 0 when everything was remembered. */
  readonly spawned: number;
}

/** Who answers better comes first: a version, then a reason to believe that the program is there. */
const RANK: readonly VersionState[] = ['known', 'slow', 'failed', 'editor', 'unrecognised'];

/** The report on a runtime from all programs that were found under its names, in the order of the search. */
export function reportOn(
  entry: CatalogEntry,
  found: readonly FoundProgram[],
  now: number,
): InstallationReport {
  const [chosen] = found.toSorted((a, b) => RANK.indexOf(a.versionState) - RANK.indexOf(b.versionState));
  const first = entry.binaries[0]?.name ?? entry.id;
  if (chosen === undefined) {
    return {
      ...nothing(entry, first, now),
      installState: 'missing',
      versionState: null,
      scanError: null,
      others: [],
    };
  }
  const others = found
    .filter((program) => program !== chosen)
    .map(({ command, path, realPath, problem }) => ({ command, path, realPath, problem }));
  const state = chosen.versionState;
  const scanError = chosen.problem;
  if (isStranger(entry, chosen)) {
    const stranger = {
      command: chosen.command,
      path: chosen.path,
      realPath: chosen.realPath,
      problem: scanError,
    };
    const rest = [stranger, ...others];
    return {
      ...nothing(entry, first, now),
      installState: 'installError',
      versionState: state,
      scanError,
      others: rest,
    };
  }
  return {
    runtimeId: entry.id,
    entry,
    status: 'available',
    installState: state === 'failed' || state === 'unrecognised' ? 'installError' : 'installed',
    command: chosen.command,
    path: chosen.path,
    version: chosen.version,
    versionState: state,
    scanError,
    others,
    detectedAt: now,
  };
}

function nothing(entry: CatalogEntry, command: string, now: number) {
  return {
    runtimeId: entry.id,
    entry,
    status: 'missing',
    command,
    path: null,
    version: null,
    detectedAt: now,
  } as const;
}

/** Why a program of the right name is another author's, by where it really lies; null when it may be ours. */
export function strangerReason(entry: CatalogEntry, command: string, realPath: string): string | null {
  const binary = entry.binaries.find(({ name }) => name === command);
  const folders = `${realPath.replaceAll('\\', '/')}/`;
  const foreign = binary?.neverUnder !== undefined && folders.includes(`/${binary.neverUnder}/`);
  const unproven = binary?.onlyUnder !== undefined && !folders.includes(`/${binary.onlyUnder}/`);
  if (!foreign && !unproven) return null;
  return `${realPath} is not ${entry.label}: another program has the name \`${command}\``;
}

function isStranger(entry: CatalogEntry, program: FoundProgram): boolean {
  return strangerReason(entry, program.command, program.realPath) !== null;
}
