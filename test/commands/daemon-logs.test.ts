import { afterEach, describe, expect, test } from 'bun:test';
import { appendFileSync, mkdirSync, realpathSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { age } from '../../src/commands/output/age.ts';
import { EXIT } from '../../src/runtime/errors.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { bareEnvironment, cli, temporaryHome } from '../helpers/cli.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

function bench(lines = 0) {
  const temporary = temporaryHome();
  cleanup.add(() => temporary[Symbol.dispose]());
  const home = realpathSync(temporary.path);
  const log = join(home, '.shadowob', 'connector', 'daemon.log');
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 });
  const text = Array.from({ length: lines }, (_, n) => `line ${n}\n`).join('');
  if (lines > 0) writeFileSync(log, text, { mode: 0o600 });
  return { home, log };
}

describe('daemon logs', () => {
  test('C-379 S-342: without a file it says so; else the last 200 lines, or as many as asked for', async () => {
    const none = await cli(['daemon', 'logs'], { home: bench().home });
    expect([none.code, none.stderr]).toEqual([EXIT.notFound, expect.stringContaining('no log yet')]);
    const { home } = bench(500);
    const shown = async (...args: string[]) =>
      (await cli(['daemon', 'logs', ...args], { home })).stdout.trim().split('\n');
    const last = (count: number) => Array.from({ length: count }, (_, n) => `line ${500 - count + n}`);
    expect(await shown()).toEqual(last(200));
    expect(await shown('-n', '10')).toEqual(last(10));
  });

  test('C-379 S-342: followed across a truncation; a reader that leaves is a clean end', async () => {
    const { home, log } = bench(3);
    const child = Bun.spawn([await compiledBinary(), 'daemon', 'logs', '--follow'], {
      cwd: home,
      env: bareEnvironment(home),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    cleanup.add(() => child.kill('SIGKILL'));
    const reader = child.stdout.getReader();
    const seen = { text: '' };
    const until = async (wanted: string): Promise<void> => {
      while (!seen.text.includes(wanted)) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`ended before ${wanted}`);
        seen.text += new TextDecoder().decode(value);
      }
    };
    await until('line 2\n');
    appendFileSync(log, 'one more\n');
    await until('one more\n');
    truncateSync(log, 0);
    appendFileSync(log, 'anew\n');
    await until('anew\n');
    await reader.cancel();
    appendFileSync(log, 'to nobody\n');
    expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, '']);
  }, 30_000);
});

test('C-353: a time in the future is now, and none is a dash', () => {
  expect([age(2_000, 1_000), age(undefined, 1_000)]).toEqual(['now', '-']);
});
