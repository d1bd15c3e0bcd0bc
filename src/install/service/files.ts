import { lstatSync, rmSync } from 'node:fs';
import { writePrivate } from '../../runtime/files/private-file.ts';
import type { RunResult } from '../../runtime/process/types.ts';
import type { ServiceFile, ServiceSystem } from './types.ts';

/** Longest that one call of a manager's own program may take. */
const CALL_MS = 10_000;

/** Writes the files that differ; what was done, or the first failure. */
export function writeFiles(files: readonly ServiceFile[]): { ok: boolean; changed: boolean; done: string[] } {
  const done: string[] = [];
  for (const file of files) {
    const bytes = file.encoding === 'utf16le' ? utf16(file.text) : file.text;
    const result = writePrivate(file.path, bytes);
    if (result.kind === 'written') done.push(`wrote ${file.path}`);
    if (result.kind === 'failed')
      return { ok: false, changed: true, done: [...done, `${file.path}: ${result.code}`] };
  }
  return { ok: true, changed: done.length > 0, done };
}

/** With its byte order mark, which schtasks needs. */
function utf16(text: string): Uint8Array {
  return Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')]);
}

/** Whether anything lies at a path, a link to nowhere, too: a unit that was removed by hand leaves one. */
export function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Removes files that are there. */
export function removeFiles(paths: readonly string[]): string[] {
  const there = paths.filter(isThere);
  for (const path of there) rmSync(path, { force: true });
  return there.map((path) => `removed ${path}`);
}

/** Calls a manager's program; true when it says that all is well. */
export async function call(
  system: Pick<ServiceSystem, 'run'>,
  argv: readonly string[],
): Promise<{ readonly ok: boolean; readonly said: string }> {
  return sayOf(await system.run({ argv, timeoutMs: CALL_MS }));
}

function sayOf(result: RunResult): { readonly ok: boolean; readonly said: string } {
  if (result.kind === 'failedToStart') return { ok: false, said: result.message };
  const said = (result.stdout.trim() || result.stderr.trim()).split('\n', 1)[0] ?? '';
  return { ok: result.kind === 'exited' && result.code === 0, said };
}

/** Tries again while it fails (S-338). */
export async function retry(
  system: Pick<ServiceSystem, 'run' | 'pause'>,
  argv: readonly string[],
  times: number,
  pauseMs: number,
): Promise<{ readonly ok: boolean; readonly said: string }> {
  const first = await call(system, argv);
  if (first.ok || times <= 1) return first;
  await system.pause(pauseMs);
  return retry(system, argv, times - 1, pauseMs);
}
