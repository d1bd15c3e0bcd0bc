/**
 * The real programs, as a person has them from npm, in a cache of this checkout. The one place that names versions.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** Package, version, and the script that puts its binary in place; npm itself runs no scripts here. */
const PINS = [
  { name: '@anthropic-ai/claude-code', version: '2.1.332', setUp: 'install.cjs' },
  { name: '@openai/codex', version: '0.171.0' },
  { name: 'opencode-ai', version: '1.18.33', setUp: 'postinstall.mjs' },
  { name: '@earendil-works/pi-coding-agent', version: '1.6.0' },
  // What pi runs on: it needs 22.19 or newer, whatever this computer has.
  { name: 'node', version: '24.9.0', setUp: 'installArchSpecificPackage.js' },
] as const;

/** What the programs say about themselves. */
export const VERSIONS = {
  'claude-code': '2.1.332',
  codex: '0.171.0',
  opencode: '1.18.33',
  pi: '1.6.0',
} as const;

const CACHE = resolve(import.meta.dir, '..', '..', '..', '.cache', 'e2e');
const NAMED = PINS.map((pin) => `${pin.name}@${pin.version}`);
/** Its content says which pins a cache holds; written last, so that half an installation counts for nothing. */
const SEAL = 'installed.json';

/** The folder to put into PATH: `claude`, `codex`, `opencode` and `pi`. */
export const PROGRAMS_PATH = join(CACHE, 'programs', 'node_modules', '.bin');

/** The folder of the `node` that pi needs; not in PATH otherwise. */
export const NODE_PATH = join(CACHE, 'programs', 'node_modules', 'node', 'bin');

/** Whether the pinned programs are there. */
export async function programsInstalled(): Promise<boolean> {
  const seal = join(CACHE, 'programs', SEAL);
  return existsSync(seal) && (await readFile(seal, 'utf8')) === JSON.stringify(NAMED);
}

/**
 * Installs the pinned programs with npm, once: 1 GB, from the registry that npm is set up for. Does nothing when they
 * are there. Throws with npm's words when it fails.
 */
export async function installPrograms(log: (line: string) => void): Promise<void> {
  if (await programsInstalled()) return;
  log(`installs ${NAMED.join(', ')} into .cache/e2e`);
  await mkdir(CACHE, { recursive: true });
  const work = await mkdtemp(join(CACHE, 'work-'));
  try {
    await writeFile(join(work, 'package.json'), '{"private":true}');
    await run(
      ['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--save-exact', ...NAMED],
      work,
    );
    for (const pin of PINS) {
      if ('setUp' in pin) await run(['node', pin.setUp], join(work, 'node_modules', pin.name));
    }
    await writeFile(join(work, SEAL), JSON.stringify(NAMED));
    await rm(join(CACHE, 'programs'), { recursive: true, force: true });
    await rename(work, join(CACHE, 'programs'));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function run(command: string[], cwd: string): Promise<void> {
  const child = Bun.spawn(command, { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.slice(0, 2).join(' ')} failed in ${cwd}:\n${out}\n${err}`);
}
