/** Compares `2.1.139`-like versions number by number; text after the numbers is ignored. Negative: `a` is older. */
export function compareVersions(a: string, b: string): number {
  const left = numbersOf(a);
  const right = numbersOf(b);
  const length = Math.max(left.length, right.length);
  const differing = Array.from({ length }, (_, i) => (left[i] ?? 0) - (right[i] ?? 0)).find((d) => d !== 0);
  return differing ?? 0;
}

function numbersOf(version: string): readonly number[] {
  return (/^\d+(\.\d+)*/.exec(version)?.[0] ?? '').split('.').map(Number);
}

/** The first version that writes `sessions/<pid>.json` for its terminal sessions (S14). */
const LIVE_FILES_SINCE = '2.1.139';
/** The oldest version in which print mode was seen to write one; before that its absence proves nothing. */
const HEADLESS_LIVE_FILES_SINCE = '2.1.197';

/**
 * Whether a process that wrote these rows would have a live file while it runs, so that the absence of one
 * proves that it is gone.
 */
export function writesLiveFile(version: string | undefined, entrypoint: string | undefined): boolean {
  if (!version) return false;
  const isTerminal = entrypoint === 'cli';
  const answers = isTerminal ? inTerminal : inPrintMode;
  const known = answers.get(version);
  if (known !== undefined) return known;
  const since = isTerminal ? LIVE_FILES_SINCE : HEADLESS_LIVE_FILES_SINCE;
  const answer = compareVersions(version, since) >= 0;
  if (answers.size < ANSWERS_KEPT) answers.set(version, answer);
  return answer;
}

/** Thousands of sessions share a handful of versions. Bounded, since a version is whatever a row says. */
const ANSWERS_KEPT = 256;
const inTerminal = new Map<string, boolean>();
const inPrintMode = new Map<string, boolean>();
