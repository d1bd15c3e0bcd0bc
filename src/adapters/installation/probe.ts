import type { ProbeCache } from '../../runtime/process/probe-cache.ts';
import { scrubbedEnv } from '../../runtime/process/scrubbed-env.ts';
import type { Executable, ProgramSearch, SearchHost } from '../../runtime/process/search-path.ts';
import type { RunResult } from '../../runtime/process/types.ts';
import type { CatalogEntry } from '../catalog.ts';
import type { FoundProgram, VersionState } from './report.ts';
import { decodeOutput, firstLine, versionFrom } from './version-text.ts';

/** From TERM to KILL at the deadline; short, because the bound of the scan is the deadline + 100 ms (R-29). */
const GRACE_MS = 30;
/** A version is a line; what a lying program prints beyond this is dropped. */
const KEEP_BYTES = 64 * 1024;

const HOUR_MS = 60 * 60_000;
/** A shim stays the same file when the program behind it is replaced. */
const SHIM_AGE_MS = 10 * 60_000;
/** "Slow" and "failed" may have been the load of one moment. */
const PROBLEM_AGE_MS = 10 * 60_000;
/** For wrapper scripts of the user's own; a replaced binary is seen at once by its size and time. */
const KNOWN_AGE_MS = 24 * HOUR_MS;

/** What a probe found out; the part that is remembered. */
export interface ProbeAnswer {
  readonly versionState: VersionState;
  readonly version: string | null;
  readonly problem: string | null;
}

/** A program to ask, with what identifies its file. */
export interface Candidate {
  readonly entry: CatalogEntry;
  readonly command: string;
  readonly program: Executable;
}

/** The candidate with an answer. */
export function foundProgram(
  { command, program }: Candidate,
  answer: ProbeAnswer,
  cached: boolean,
): FoundProgram {
  return { command, path: program.path, realPath: program.realPath, ...answer, cached };
}

/**
 * Asks a program for its version: stdin closed, own group, scrubbed environment, its own PATH, the user's home as
 * current folder (a project's tool-version file must not decide, nor its settings be read). Ended at the deadline
 * with all that it started. Never a prompt, never anything but the catalog's version arguments.
 */
export async function probe(
  { entry, program }: Candidate,
  deadlineAt: number,
  search: ProgramSearch,
  host: SearchHost,
): Promise<ProbeAnswer> {
  const name = `\`${program.path} ${entry.versionArguments.join(' ')}\``;
  const result = await host.run({
    argv: [program.path, ...entry.versionArguments],
    env: {
      ...withoutPath(scrubbedEnv(host.env)),
      ...entry.probeEnvironment,
      ...quiet(await search.pathFor(program)),
    },
    cwd: host.home,
    timeoutMs: Math.max(1, deadlineAt - host.now()),
    graceMs: GRACE_MS,
    keepBytes: KEEP_BYTES,
  });
  return answerFrom(result, name, host.platform);
}

function quiet(path: string): Record<string, string> {
  return { PATH: path, NO_COLOR: '1', TERM: 'dumb' };
}

/** On Windows the name is `Path` in any case, and two of them would be a matter of luck. */
function withoutPath(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([key]) => key.toUpperCase() !== 'PATH'));
}

function answerFrom(result: RunResult, name: string, platform: NodeJS.Platform): ProbeAnswer {
  if (result.kind === 'failedToStart')
    return problem('failed', `${name} could not be started: ${result.message}`);
  if (result.kind !== 'exited') return slow(name);
  const stdout = decodeOutput(result.stdoutBytes, platform);
  if (result.code === 0) {
    const version = versionFrom(stdout, result.stderr);
    if (version !== null) return { versionState: 'known', version, problem: null };
    const said = firstLine(stdout) ?? firstLine(result.stderr);
    return problem(
      'unrecognised',
      `${name} named no version: ${said === null ? 'it printed nothing' : `“${said}”`}`,
    );
  }
  // Some print their version and still fail; an error text on stderr is no version, whatever numbers it has.
  const version = versionFrom(stdout, '');
  if (version !== null && /\d+\.\d+/.test(version)) return { versionState: 'known', version, problem: null };
  const how = result.signal === null ? `code ${result.code}` : result.signal;
  const said = errorLine(result.stderr) ?? firstLine(result.stderr) ?? firstLine(stdout);
  return problem('failed', `${name} ended with ${how}${said === null ? '' : `: ${said}`}`);
}

/** Node prints where an error came from before it says what it is: too old a Node, most often. */
function errorLine(text: string): string | null {
  return firstLine(/^\w*Error: .+$/m.exec(text)?.[0] ?? '');
}

/** The answer of a program that gave none in time. */
export function slow(name: string): ProbeAnswer {
  return problem('slow', `installed, version unknown (slow): ${name} gave no answer in time`);
}

function problem(versionState: VersionState, text: string): ProbeAnswer {
  return { versionState, version: null, problem: text };
}

/**
 * What an earlier scan learned of exactly this file (path, real path, size, modification time); null when there
 * is nothing or it is too old. `wasSlow` tells that the last attempt took too long, however old it is; whoever has
 * more patience than that attempt asks again.
 *
 * @param patienceMs how long this scan would wait for an answer
 */
export async function remembered(
  candidate: Candidate,
  cache: ProbeCache,
  now: number,
  patienceMs: number,
): Promise<{ readonly answer: ProbeAnswer | null; readonly wasSlow: boolean }> {
  const stored = read(await cache.get(keyOf(candidate)));
  const none = { answer: null, wasSlow: false };
  if (stored === null || stored.file !== fileOf(candidate)) return none;
  const age = now - stored.at;
  const wasSlow = stored.answer.versionState === 'slow';
  const triedAsHard = !wasSlow || stored.waitedMs >= patienceMs * SAME_PATIENCE;
  const fresh = age >= 0 && age <= longestAge(stored.answer, candidate) && triedAsHard;
  return { answer: fresh ? stored.answer : null, wasSlow };
}

/** A scan gives its probes a little less than its whole time. */
const SAME_PATIENCE = 0.5;

/** Keeps an answer for the next scan, with how long the program was given. */
export async function remember(
  candidate: Candidate,
  answer: ProbeAnswer,
  cache: ProbeCache,
  { now, waitedMs }: { readonly now: number; readonly waitedMs: number },
) {
  await cache.set(keyOf(candidate), { at: now, file: fileOf(candidate), waitedMs, ...answer });
}

/** One record a path, so that a replaced file replaces its record. */
function keyOf({ program }: Candidate): string {
  return `version:${program.path}`;
}

function fileOf({ program }: Candidate): string {
  return `${program.realPath}|${program.size}|${program.mtimeMs}`;
}

function longestAge(answer: ProbeAnswer, { program }: Candidate): number {
  if (answer.versionState !== 'known') return PROBLEM_AGE_MS;
  return isShim(program) ? SHIM_AGE_MS : KNOWN_AGE_MS;
}

function isShim({ path, realPath }: Executable): boolean {
  return (
    /[\\/]shims[\\/][^\\/]+$/.test(path) || /[\\/](volta-shim|mise|asdf|proto|rtx)(\.exe)?$/.test(realPath)
  );
}

const STATES: readonly VersionState[] = ['known', 'slow', 'failed', 'unrecognised', 'editor'];

function read(value: unknown): { at: number; file: string; waitedMs: number; answer: ProbeAnswer } | null {
  if (typeof value !== 'object' || value === null) return null;
  const field = (key: string): unknown => Reflect.get(value, key);
  const [at, file, version, text] = [field('at'), field('file'), field('version'), field('problem')];
  const versionState = STATES.find((state) => state === field('versionState'));
  if (typeof at !== 'number' || typeof file !== 'string' || versionState === undefined) return null;
  const known = typeof version === 'string' ? version : null;
  if (versionState === 'known' && known === null) return null;
  const waited = field('waitedMs');
  return {
    at,
    file,
    waitedMs: typeof waited === 'number' ? waited : 0,
    answer: { versionState, version: known, problem: typeof text === 'string' ? text : null },
  };
}
