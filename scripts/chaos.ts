/**
 * The long form of the chaos tests (`npm run chaos`): 1,000 seeded kills of the daemon, 2,000 hook processes, a full
 * disk, and the rest of what a long life brings.
 *
 *   bun scripts/chaos.ts [seed]        a failing run is repeated with its seed, which is printed
 */
import { resolve } from 'node:path';

const KILLS = 1_000;
const HOOKS = 2_000;

const seed = Number(process.argv[2]) || Math.floor(Math.random() * 2 ** 32);
process.stdout.write(`seed ${seed}: ${KILLS} kills, ${HOOKS} hooks\n`);
const files = ['chaos', 'hardship'].map((name) => `./test/runtime/daemon/${name}.test.ts`);
const child = Bun.spawn([process.execPath, 'test', '--timeout=3600000', ...files], {
  cwd: resolve(import.meta.dir, '..'),
  env: {
    ...process.env,
    SHADOWOB_CHAOS_KILLS: String(KILLS),
    SHADOWOB_CHAOS_HOOKS: String(HOOKS),
    SHADOWOB_CHAOS_SEED: String(seed),
  },
  stdio: ['ignore', 'inherit', 'inherit'],
});
process.exitCode = await child.exited;
