/**
 * How eagerly JavaScriptCore compiles in this process (Bun 1.4.5; docs/decisions/0013).
 *
 * A list of 2,000 sessions is over before its compiled code has paid for itself: 68 functions were optimised in 40 ms
 * of other threads' time for a command of 55 ms, on a machine of two cores that has other things to do. One that must
 * read all the files is another matter: it wants the quick compilers, and never the slowest one.
 */
import { noFTL } from 'bun:jsc';

/** Times more reluctant than usual. With 200 an idle machine took longer, since all of a list was interpreted. */
const RELUCTANT = 8;
/** For a process that reads many files: hot code is compiled soon, and less often once more. */
const SPARING = 4;
/** Files that a short command reads before its code counts as hot. */
const MANY_FILES = 16;
/** Sessions from which on the same holds although no file is opened: 2,000 are over too soon. */
const MANY_SESSIONS = 10_000;

const state: { sparing: boolean; files: number } = { sparing: false, files: 0 };

/** For the process of a command that ends by itself; the daemon and a watch are compiled as usual. */
export function compileSparingly(): void {
  state.sparing = true;
  Bun.unsafe.setJITPolicy(RELUCTANT);
  // What lists are walked with: their compilation took longer than all walks together.
  const { findLast, map, reduce, filter, some } = Array.prototype;
  neverCompileTwice(findLast, map, reduce, filter, some);
}

/** A file was opened to be parsed: from some number of them on, compiling its reader pays. */
export function fileWasRead(): void {
  if (!state.sparing) return;
  state.files += 1;
  if (state.files === MANY_FILES) Bun.unsafe.setJITPolicy(SPARING);
}

/** So many sessions were found: walking and sorting them is work that compiling pays for (107,000: a third less). */
export function sessionsWereFound(count: number): void {
  if (state.sparing && count >= MANY_SESSIONS) Bun.unsafe.setJITPolicy(SPARING);
}

/** Keeps the last and slowest compiler from functions that run for a row each, and whose work is over in between. */
export function neverCompileTwice(...functions: readonly ((...args: never) => unknown)[]): void {
  for (const one of functions) noFTL(one as () => unknown);
}
