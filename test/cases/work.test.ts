import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClaudeCode } from '../../src/adapters/claude-code/index.ts';
import { memoryIndex } from '../../src/runtime/store/memory-index.ts';
import {
  createTempHome,
  idOf,
  NOW,
  pathOf,
  rowsOf,
  type TempHome,
} from '../adapters/claude-code/temp-home.ts';
import { cli, temporaryHome } from '../helpers/cli.ts';
import { layClaude, layCodex, write } from '../helpers/recorded-home.ts';

let temp: TempHome;
beforeEach(() => {
  temp = createTempHome();
  mkdirSync(join(temp.home, '.claude', 'sessions'), { recursive: true });
});
afterEach(() => temp.close());

const finished = (id: string): string => {
  const rows = rowsOf(id, NOW - 120_000);
  return rows.prompt('Make a build dir') + rows.done('Done');
};

/** Every file below a folder with its bytes and times. */
function picture(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => {
      const path = join(folder, name);
      const { mtimeMs, ctimeMs, mode } = statSync(path);
      return `${name} ${mtimeMs} ${ctimeMs} ${mode} ${Bun.hash(readFileSync(path))}`;
    })
    .sort();
}

describe('what a list costs', () => {
  test('X7, R-27 what has not changed is not opened: 0 files, 0 bytes', async () => {
    for (let i = 0; i < 50; i += 1) temp.write(pathOf(idOf(i)), finished(idOf(i)));
    const index = memoryIndex();
    const first = temp.context({ index });
    await createClaudeCode(temp.host).scan(first.context);
    const again = temp.context({ index });
    const scan = await createClaudeCode(temp.host).scan(again.context);
    expect(scan.sightings).toHaveLength(50);
    expect([first.work.opened, again.work.opened, again.work.bytesRead]).toEqual([50, 0, 0]);
  });

  test('G1 thousands of sub-agent files in a project are neither stat’ed nor opened', async () => {
    for (let i = 0; i < 11; i += 1) temp.write(pathOf(idOf(i)), finished(idOf(i)));
    const folder = join(temp.home, pathOf(idOf(0)), '..');
    for (let i = 0; i < 3_000; i += 1)
      writeFileSync(join(folder, `agent-${i.toString(16).padStart(8, '0')}.jsonl`), '');
    const { context, work } = temp.context();
    const scan = await createClaudeCode(temp.host).scan(context);
    expect(scan.sightings).toHaveLength(11);
    expect(work.stats).toBeLessThan(40);
    expect(work.opened).toBe(11);
  });

  test('X9 the bytes that are read of a transcript do not grow with it', async () => {
    const rows = rowsOf(idOf(1), NOW - 120_000);
    const filler = rows.call('Bash', { command: 'x'.repeat(900) }).repeat(20_000);
    temp.write(pathOf(idOf(1)), rows.prompt('Go on') + filler + finished(idOf(1)));
    const { context, work } = temp.context();
    await createClaudeCode(temp.host).scan(context);
    expect(work.bytesRead).toBeLessThan(64 * 1024);
  });
});

describe('what a list shows', () => {
  test('P3 a session is found by its id in whatever folder it lies', async () => {
    using home = temporaryHome();
    const id = layClaude(home.path, 'h-simple');
    const text = readFileSync(join(home.path, '.claude', 'projects', '-home-dev-acme-app', `${id}.jsonl`));
    const other = 'ffffffff-0000-4000-8000-000000000001';
    write(
      home.path,
      `.claude/projects/not an encoded folder/${other}.jsonl`,
      text.toString().replaceAll(id, other),
    );
    const shown = await cli(['session-show', other, '--json'], { home: home.path });
    expect(JSON.parse(shown.stdout).session).toMatchObject({
      sessionId: other,
      workDir: '/home/dev/acme-app',
    });
  });

  test('X10 the size of a session’s file is in its row, so that a push into a huge one can warn', async () => {
    using home = temporaryHome();
    const id = layClaude(home.path, 'h-simple');
    const file = join(home.path, '.claude', 'projects', '-home-dev-acme-app', `${id}.jsonl`);
    const list = JSON.parse((await cli(['session-list', '--json'], { home: home.path })).stdout);
    expect(list.sessions[0].sizeBytes).toBe(statSync(file).size);
  });

  test('D13, design §8 looking changes nothing of what the runtimes have', async () => {
    using home = temporaryHome();
    layClaude(home.path, 'i-simple');
    layCodex(home.path, 'exec-tool');
    const before = [picture(join(home.path, '.claude')), picture(join(home.path, '.codex'))];
    for (const command of [
      ['session-list'],
      ['runtime-scan', '--sessions'],
      ['runtime-watch', '--once'],
      [],
    ]) {
      expect((await cli(command, { home: home.path })).code).toBe(0);
    }
    expect([picture(join(home.path, '.claude')), picture(join(home.path, '.codex'))]).toEqual(before);
  });

  test('V7 a program that hangs on --version does not hold up the sessions', async () => {
    using home = temporaryHome();
    layClaude(home.path, 'h-simple');
    const binary = write(home.path, 'bin/claude', '#!/bin/sh\nexec sleep 600\n');
    chmodSync(binary, 0o755);
    const path = `${join(home.path, 'bin')}:/usr/bin:/bin`;
    const list = await cli(['session-list', '--json'], { home: home.path, env: { PATH: path } });
    expect(JSON.parse(list.stdout).sessions).toHaveLength(1);
    const overview = await cli(['--json'], { home: home.path, env: { PATH: path } });
    const runtimes: { id: string; status: string; version: string | null }[] = JSON.parse(
      overview.stdout,
    ).runtimes;
    expect(runtimes.find((one) => one.id === 'claude-code')).toMatchObject({
      status: 'available',
      version: null,
    });
  });
});
