/** Temp folders for the packaging tests, and a wait for a condition. */
import { afterAll } from 'bun:test';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A function that makes temp folders which are gone after the file's last test. */
export function tempFolders(prefix: string): () => string {
  const made: string[] = [];
  afterAll(() => {
    for (const folder of made) rmSync(folder, { recursive: true, force: true });
  });
  return () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), `${prefix}-`)));
    made.push(folder);
    return folder;
  };
}

/** Polls until the condition holds; throws after `limitMs`, naming what was waited for. */
export async function until(what: string, condition: () => boolean, limitMs = 20_000): Promise<void> {
  const start = performance.now();
  while (!condition()) {
    if (performance.now() - start > limitMs) throw new Error(`waited in vain: ${what}`);
    await Bun.sleep(10);
  }
}
