/**
 * The compiled executable, for tests that need the real thing. Compiled at most once per state of the
 * sources, also when several test processes ask at the same time.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dir, '..', '..');
const CACHE = join(ROOT, '.cache', 'test-binary');
const NAME = process.platform === 'win32' ? 'shadowob-connector.exe' : 'shadowob-connector';

/** A build of 110 MB per state of the sources: an hour after its last use nobody needs it any more. */
const KEEP_MS = 60 * 60 * 1000;

/** What the executable is made from. */
const INPUTS = ['src', 'scripts/build-binaries.ts', 'scripts/lib', 'package.json', 'package-lock.json'];

let shared: Promise<string> | undefined;

/**
 * The path of the executable made from `src/main.ts` as it is now, for this machine. The commit in it is
 * `test`. Lies in `.cache/test-binary/<hash>/`; tests must not change or delete it. `SHADOWOB_TEST_BINARY`
 * replaces it, so that the same tests can run against a release asset. Throws with the bundler's words
 * when the sources do not compile.
 */
export function compiledBinary(): Promise<string> {
  shared ??= findOrCompile();
  return shared;
}

async function findOrCompile(): Promise<string> {
  const given = process.env['SHADOWOB_TEST_BINARY'];
  if (given) return resolve(given);
  await mkdir(CACHE, { recursive: true });
  await forgetOld();
  for (const _attempt of [1, 2, 3]) {
    const hash = await hashInputs();
    const home = join(CACHE, hash);
    const binary = join(home, NAME);
    if (existsSync(binary)) {
      await touch(home);
      return binary;
    }
    const work = await mkdtemp(join(CACHE, 'work-'));
    try {
      await compileInto(work);
      // The sources moved while the bundler read them: what it made belongs to no hash.
      if ((await hashInputs()) !== hash) continue;
      await publish(work, home);
      return binary;
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
  throw new Error('the sources changed during each of three builds');
}

async function compileInto(folder: string): Promise<void> {
  const builder = join(ROOT, 'scripts', 'build-binaries.ts');
  // `bun test` sets NODE_ENV, and a build must not see that.
  const { NODE_ENV: _dropped, ...env } = process.env;
  const child = Bun.spawn([process.execPath, builder, '--host', '--commit', 'test', '--out-dir', folder], {
    cwd: folder,
    env,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  });
  const [err, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`the executable could not be built:\n${err}`);
}

/** A rename onto a folder with content fails; then another process was faster, and its build is as good. */
async function publish(work: string, home: string): Promise<void> {
  try {
    await rename(work, home);
  } catch (error) {
    if (!existsSync(join(home, NAME))) throw error;
  }
}

async function touch(folder: string): Promise<void> {
  const now = new Date();
  await utimes(folder, now, now);
}

async function forgetOld(): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const folder = join(CACHE, name);
    // Another process may delete the same folder at this moment; gone is what we want.
    const age = await stat(folder).then(
      (seen) => Date.now() - seen.mtimeMs,
      () => 0,
    );
    if (age > KEEP_MS) await rm(folder, { recursive: true, force: true });
  }
}

async function hashInputs(): Promise<string> {
  const hash = createHash('sha256').update(`${Bun.version} ${process.platform} ${process.arch}`);
  for (const input of INPUTS) await hashPath(hash, input);
  return hash.digest('hex').slice(0, 24);
}

async function hashPath(hash: ReturnType<typeof createHash>, path: string): Promise<void> {
  const full = join(ROOT, path);
  if (!existsSync(full)) return;
  if ((await stat(full)).isFile()) {
    hash.update(`\0${path}\0`).update(await readFile(full));
    return;
  }
  for (const name of (await readdir(full)).sort()) await hashPath(hash, `${path}/${name}`);
}
