/**
 * Makes the executables.
 *
 *   bun scripts/build-binaries.ts --host               dist/shadowob-connector for this machine
 *   bun scripts/build-binaries.ts --all                every row of the table, and SHA256SUMS
 *   bun scripts/build-binaries.ts --target linux-x64   one row or more
 *   bun scripts/build-binaries.ts --checksums          only rewrite SHA256SUMS (after signing)
 *
 * `--entry FILE`, `--out-dir DIR` and `--commit HASH` replace src/main.ts, dist and git's answer.
 * Every build also lays down cli.js, the launcher for Node (contracts: the desktop app runs it).
 */
import { chmod, copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeChecksums } from './lib/checksums.ts';
import { compile } from './lib/compile.ts';
import { currentHost } from './lib/host.ts';
import { fetchRuntime } from './lib/runtimes.ts';
import { signExecutable } from './lib/sign.ts';
import { assetName, BUN_VERSION, findTarget, TARGETS, type Target, targetName } from './lib/targets.ts';

const ROOT = resolve(import.meta.dir, '..');
const RUNTIME_CACHE = join(ROOT, '.cache', 'bun-runtimes');

type Build = {
  readonly entry: string;
  readonly outDir: string;
  readonly version: string;
  readonly commit: string;
};

async function packageVersion(): Promise<string> {
  const parsed: unknown = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) return String(parsed.version);
  throw new Error('package.json has no version');
}

/** A source archive has no repository; the version alone must do then. */
function gitCommit(): string {
  const git = Bun.which('git');
  if (git === null) return 'unknown';
  const answer = Bun.spawnSync([git, '-C', ROOT, 'rev-parse', '--short=12', 'HEAD'], { stderr: 'ignore' });
  return answer.success ? answer.stdout.toString().trim() : 'unknown';
}

async function buildHost(build: Build): Promise<void> {
  const host = currentHost();
  const row = findTarget(targetName(host));
  const outfile = join(build.outDir, host.os === 'windows' ? 'shadowob-connector.exe' : 'shadowob-connector');
  await compile({
    ...build,
    outfile,
    targetName: targetName(host),
    bytecode: row?.bytecode ?? true,
    windows: host.os === 'windows',
  });
  finish(host.os, outfile);
}

async function buildTarget(target: Target, build: Build): Promise<void> {
  const runtime = await fetchRuntime(target, RUNTIME_CACHE);
  const outfile = join(build.outDir, assetName(target));
  await compile({
    ...build,
    outfile,
    targetName: targetName(target),
    bytecode: target.bytecode,
    windows: target.os === 'windows',
    cross: { bun: target.bun, runtime },
  });
  await chmod(outfile, 0o755);
  finish(target.os, outfile);
}

function finish(os: Target['os'], outfile: string): void {
  if (os === 'darwin' && signExecutable(outfile) === 'unsigned') {
    console.error(`${outfile}: not signed. Run this build on macOS before anyone starts it there.`);
  }
  if (os === 'windows' && process.platform !== 'win32') {
    console.error(`${outfile}: Windows shows it as Bun. Run this build on Windows for our own name.`);
  }
  console.log(outfile);
}

async function layLauncher(outDir: string): Promise<void> {
  const launcher = join(outDir, 'cli.js');
  await copyFile(join(ROOT, 'scripts', 'cli.js'), launcher);
  await chmod(launcher, 0o755);
}

/** Assets that are really there: after a partial build the sums must not name what is absent. */
async function writeSums(outDir: string): Promise<void> {
  const present = new Set(await readdir(outDir));
  await writeChecksums(
    outDir,
    TARGETS.map(assetName).filter((name) => present.has(name)),
  );
}

function chosenTargets(all: boolean, names: readonly string[]): readonly Target[] {
  if (all) return TARGETS;
  return names.map((name) => {
    const target = findTarget(name);
    if (target) return target;
    throw new Error(`no target ${name}; there are ${TARGETS.map(targetName).join(', ')}`);
  });
}

async function main(argv: string[]): Promise<void> {
  const { values } = parseArgs({
    args: argv,
    options: {
      host: { type: 'boolean', default: false },
      all: { type: 'boolean', default: false },
      checksums: { type: 'boolean', default: false },
      target: { type: 'string', multiple: true, default: [] },
      entry: { type: 'string', default: join(ROOT, 'src', 'main.ts') },
      'out-dir': { type: 'string', default: join(ROOT, 'dist') },
      commit: { type: 'string' },
    },
  });
  if (Bun.version !== BUN_VERSION) {
    throw new Error(
      `this build is pinned to Bun ${BUN_VERSION}, but ${Bun.version} runs it: use npm run build`,
    );
  }
  const targets = chosenTargets(values.all, values.target);
  if (!values.host && !values.checksums && targets.length === 0) {
    throw new Error('say --host, --all, --checksums or --target NAME');
  }
  const outDir = resolve(values['out-dir']);
  await mkdir(outDir, { recursive: true });
  if (values.checksums) return writeSums(outDir);

  const build: Build = {
    entry: resolve(values.entry),
    outDir,
    version: await packageVersion(),
    commit: values.commit ?? gitCommit(),
  };
  await layLauncher(outDir);
  if (values.host) await buildHost(build);
  for (const target of targets) await buildTarget(target, build);
  if (targets.length > 0) await writeSums(outDir);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`build: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
