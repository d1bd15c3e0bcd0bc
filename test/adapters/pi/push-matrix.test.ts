import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join, resolve } from 'node:path';
import { matrixRows } from '../push-matrix.ts';
import { inFolder, layDown, recording } from './recordings.ts';

// Each starts two programs, and the machine may be busy.
setDefaultTimeout(60_000);

const MAIN = resolve(import.meta.dir, '..', '..', '..', 'src', 'main.ts');
/** The row of a terminal with our extension needs the real program: `test/e2e/real/pi.e2e.ts`. */
const WITHOUT = 'a terminal without it, or nobody';

describe('R-47: the push matrix of docs/acting.md, for pi', () => {
  test('has a row with our extension, and one for everything else', () => {
    expect(matrixRows('pi').map(({ owner }) => owner)).toEqual(['a terminal with our extension', WITHOUT]);
  });

  test(`${WITHOUT}: both are refused with their reason and what to do, and nothing is started`, () =>
    inFolder(async (home) => {
      const tui = recording('tui');
      layDown(join(home, '.pi', 'agent'), tui.id, tui.lines);
      const run = (...args: string[]) => {
        const env = { HOME: home, PATH: '/usr/bin:/bin', SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1' };
        const { exitCode, stdout } = Bun.spawnSync([process.execPath, MAIN, ...args, '--json'], {
          cwd: home,
          env,
          stdin: 'ignore',
        });
        const { error } = JSON.parse(stdout.toString()) as { error: { message: string; next: string } };
        return { exitCode, ...error };
      };
      const row = matrixRows('pi').find(({ owner }) => owner === WITHOUT);
      const sent = run('session-send', tui.id, '--message', 'hello');
      const aborted = run('session-abort', tui.id);
      expect([sent.exitCode, aborted.exitCode]).toEqual([row?.send ?? 0, row?.abort ?? 0]);
      for (const { message, next } of [sent, aborted]) {
        expect(message).not.toBe('');
        expect(next).toContain('shadowob-connector');
      }
      expect(await Array.fromAsync(new Bun.Glob('**/hosts/*.json').scan({ cwd: home, dot: true }))).toEqual(
        [],
      );
    }));
});
