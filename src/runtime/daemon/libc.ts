import { dlopen, type FFIFunction } from 'bun:ffi';
import { readFileSync } from 'node:fs';

/** Where the C library of macOS lies; it is in no folder, the loader knows it by this name. */
const MAC_LIBC = '/usr/lib/libSystem.B.dylib';

/**
 * Absolute paths of the C library that this process runs on, best first. Linux: taken from the process's own
 * memory map, which is right for glibc, musl (`ld-musl-*.so.1` is loader and library in one) and any prefix. A
 * bare name is never used: where the system's loader does not find it, Bun looks in the current folder, which
 * may be anybody's.
 */
export function libcPaths(
  platform: NodeJS.Platform = process.platform,
  readMaps: () => string = () => readFileSync('/proc/self/maps', 'utf8'),
): readonly string[] {
  if (platform === 'darwin') return [MAC_LIBC];
  if (platform !== 'linux') return [];
  const mapped = mapsOrNothing(readMaps)
    .split('\n')
    .map((line) => line.slice(line.indexOf('/')))
    .filter((path) =>
      /^\/.*\/(?:libc\.so\.6|libc-2\.\d+\.so|ld-musl-[\w-]+\.so\.1|libc\.musl-[\w-]+\.so\.1)$/.test(path),
    );
  return [...new Set(mapped)];
}

function mapsOrNothing(readMaps: () => string): string {
  try {
    return readMaps();
  } catch {
    // No /proc: then there is no library to be found, and the caller does without.
    return '';
  }
}

/** The functions asked for, or `undefined` when no C library with all of them can be had. */
export function openLibc<Symbols extends Record<string, FFIFunction>>(
  symbols: Symbols,
  paths: readonly string[] = libcPaths(),
): ReturnType<typeof dlopen<Symbols>>['symbols'] | undefined {
  for (const path of paths) {
    try {
      return dlopen(path, symbols).symbols;
    } catch {
      // Not this one; the next path, or nothing, is the answer.
    }
  }
  return undefined;
}
