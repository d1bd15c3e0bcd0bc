/**
 * The `bun` package puts its executable in place with an install script. Where npm does not run those
 * (--ignore-scripts, or a dependency that nobody approved), a placeholder of some hundred bytes is left,
 * and this runs the script itself: the executable is already there, in the package of the platform.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PLACEHOLDER_MAX_BYTES = 64 * 1024;

const root = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..');
const home = join(root, 'node_modules', 'bun');
const executable = join(home, 'bin', 'bun.exe');

if (!existsSync(executable)) {
  console.error('node_modules holds no bun: run `npm ci` first');
  process.exitCode = 1;
} else if (statSync(executable).size <= PLACEHOLDER_MAX_BYTES) {
  const { status } = spawnSync(process.execPath, ['install.js'], {
    cwd: home,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  process.exitCode = status ?? 1;
}
