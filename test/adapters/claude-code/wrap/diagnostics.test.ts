import { afterEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { openDiagnostics } from '../../../../src/adapters/claude-code/wrap/diagnostics.ts';
import { WRAP } from '../../../../src/runtime/limits.ts';
import { createCleanup, tempFolder } from '../../../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const open = (path: string | undefined) =>
  openDiagnostics({ path, pid: 77, now: () => 1_796_069_455_000, platform: process.platform });

describe('the diagnostics file (S-740, S-741)', () => {
  test('C-276: a new file is private, and every line is one JSON object', async () => {
    const path = join(tempFolder(cleanup), 'wrap.log');
    const diagnostics = open(path);
    diagnostics?.record('start', { child_pid: 5 });
    diagnostics?.record('state', { session_id: 'a', child_pid: 5, state: 'idle' });
    await diagnostics?.finish();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const lines = readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([
      { time: '2026-11-30T20:10:55.000Z', wrapper_pid: 77, event: 'start', child_pid: 5 },
      {
        time: '2026-11-30T20:10:55.000Z',
        wrapper_pid: 77,
        event: 'state',
        session_id: 'a',
        child_pid: 5,
        state: 'idle',
      },
    ]);
  });

  test('S-740: an existing file is appended to, with the mode that it has', async () => {
    const path = join(tempFolder(cleanup), 'wrap.log');
    writeFileSync(path, 'before\n');
    chmodSync(path, 0o644);
    const diagnostics = open(path);
    diagnostics?.record('start', {});
    await diagnostics?.finish();
    expect([statSync(path).mode & 0o777, readFileSync(path, 'utf8').split('\n')[0]]).toEqual([
      0o644,
      'before',
    ]);
  });

  test.each(['link', 'pipe', 'folder', 'nowhere'])(
    'C-277: a %s is refused, silently and at once',
    async (kind) => {
      const folder = tempFolder(cleanup);
      const path = join(folder, 'target');
      if (kind === 'link') symlinkSync(join(folder, 'secret'), path);
      if (kind === 'pipe') Bun.spawnSync(['mkfifo', path]);
      if (kind === 'folder') mkdirSync(path);
      const diagnostics = open(kind === 'nowhere' ? join(path, 'deeper', 'wrap.log') : path);
      diagnostics?.record('start', {});
      await diagnostics?.finish();
      diagnostics?.record('exit', {});
      expect([existsSync(join(folder, 'secret')), diagnostics?.dropped]).toEqual([false, 2]);
    },
  );

  test.each([undefined, '', 'relative/wrap.log'])('C-278: %p switches nothing on', (path) => {
    expect(open(path)).toBeUndefined();
  });

  test('K-34: at most 128 records wait, the others are counted', async () => {
    const path = join(tempFolder(cleanup), 'wrap.log');
    const diagnostics = open(path);
    for (let count = 0; count < WRAP.records + 9; count += 1) diagnostics?.record('report', {});
    expect(diagnostics?.dropped).toBe(9);
    await diagnostics?.finish();
    expect(readFileSync(path, 'utf8').trim().split('\n')).toHaveLength(WRAP.records);
  });
});
