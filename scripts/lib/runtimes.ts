/**
 * Fetches the Bun runtime of another platform from its npm package. `Bun.build` would download it by
 * itself from elsewhere and without a checksum; a package has a pinned one, and mirrors serve it too.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BUN_VERSION, type Target } from './targets.ts';

/** The runtime could not be had, or is not the one that the table pins. */
export class RuntimeFetchError extends Error {
  override readonly name = 'RuntimeFetchError';
}

/** `sha512-<base64>`, as npm writes it. */
export function integrityOf(bytes: Uint8Array): string {
  return `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
}

/** Throws unless the archive's bytes are the pinned ones. */
export function requireIntegrity(target: Target, bytes: Uint8Array): void {
  const seen = integrityOf(bytes);
  if (seen === target.integrity) return;
  throw new RuntimeFetchError(
    `${target.runtimePackage}@${BUN_VERSION}: expected ${target.integrity}, got ${seen}`,
  );
}

/**
 * The path of this target's Bun, fetched once into `cacheDir`. The archive is checked before it is
 * unpacked, and the runtime appears under its final name only when whole. Throws `RuntimeFetchError`.
 */
export async function fetchRuntime(target: Target, cacheDir: string): Promise<string> {
  const file = target.os === 'windows' ? 'bun.exe' : 'bun';
  const home = join(cacheDir, `${target.runtimePackage.replace('/', '__')}@${BUN_VERSION}`);
  const runtime = join(home, file);
  if (existsSync(runtime)) return runtime;

  await mkdir(home, { recursive: true });
  const work = await mkdtemp(join(cacheDir, 'fetch-'));
  try {
    const archive = await npmPack(target, work);
    const bytes = await readFile(archive);
    requireIntegrity(target, bytes);
    await new Bun.Archive(bytes).extract(work, { glob: 'package/bin/*' });
    await rename(join(work, 'package', 'bin', file), runtime);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return runtime;
}

async function npmPack(target: Target, folder: string): Promise<string> {
  const npm = Bun.which('npm');
  if (npm === null) throw new RuntimeFetchError('npm is not on PATH; it fetches the Bun runtimes');
  const child = Bun.spawn(
    [npm, 'pack', `${target.runtimePackage}@${BUN_VERSION}`, '--silent', '--pack-destination', folder],
    { cwd: folder, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  );
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const name = out.trim().split('\n').at(-1);
  if (code === 0 && name) return join(folder, name);
  throw new RuntimeFetchError(`npm pack ${target.runtimePackage}@${BUN_VERSION} failed: ${err.trim()}`);
}
