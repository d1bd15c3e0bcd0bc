import { afterEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { systemJournalFiles } from '../../../../src/runtime/daemon/journal/files.ts';
import { readJournal } from '../../../../src/runtime/daemon/journal/read.ts';
import { createCleanup } from '../harness.ts';
import { A, B, stamp } from '../sessions/dsl.ts';
import { journalBench, line } from './bench.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
const bench = () => journalBench(cleanup);

const CODEX = '019a0000-0000-7000-8000-000000000001';
const DAY = 86_400;

describe('journals at the start (S-521 … S-524)', () => {
  test('C-170: a turn under way with a living owner is restored with its own times', async () => {
    const b = bench();
    b.processes.set(500, -3_600);
    b.write([
      line(-1_000, 'start', { pid: 500, cwd: '/home/me/web' }),
      line(-900, 'prompt', { pid: 500 }),
      line(-800, 'pre', { pid: 500, model: 'm' }),
    ]);
    await b.scan();
    expect(b.row(A)).toMatchObject({
      state: 'working',
      agent: 'claude',
      cwd: '/home/me/web',
      repo: 'web',
      model: 'm',
      started_at: stamp(-1_000, '').ts.replace('.000', ''),
      last_seen: stamp(-800, '').ts.replace('.000', ''),
    });
    expect(b.engine.entry(A)).toMatchObject({ prompted: true, pid: 500 });
    expect(b.verdicts()).toEqual(['proven:true']);
    expect(b.names()).toEqual([`${A}.jsonl`]);
  });

  test('C-171 S-521.5: without a pid, a recent one is restored', async () => {
    const b = bench();
    b.write([line(-20, 'start')]);
    await b.scan();
    expect(b.state(A)).toBe('starting');
    expect(b.verdicts()).toEqual(['proven:false']);
  });

  test('C-173 S-119: a resume that outlived its first process', async () => {
    const b = bench();
    b.processes.set(600, -61);
    b.write([
      line(-100, 'start', { pid: 500 }),
      line(-60, 'start', { pid: 600 }),
      line(-50, 'end', { pid: 500 }),
    ]);
    await b.scan();
    expect(b.state(A)).toBe('starting');
    expect(b.engine.entry(A)?.pid).toBe(600);
  });

  test.each([
    ['C-174 a day old, process gone', [[-DAY, 'stop', 500]], {}, 'stale'],
    ['C-176 the pid belongs to a younger process', [[-7_200, 'stop', 500]], { 500: -3_600 }, 'stale'],
    ['C-180 eight days old, however alive', [[-8 * DAY, 'stop', 500]], { 500: -30 * DAY }, 'too_old'],
    [
      'S-521.3 ended',
      [
        [-20, 'prompt', 500],
        [-10, 'end', 500],
      ],
      { 500: -60 },
      'ended',
    ],
    ['C-385 S-531 no pid, 301 s ago', [[-301, 'stop', undefined]], {}, 'stale'],
    ['an unreadable start proves nothing', [[-7_200, 'stop', 500]], { 500: null }, 'stale'],
  ] as const)('%s → no row, deleted (%s)', async (_what, events, processes, reason) => {
    const b = bench();
    for (const [pid, at] of Object.entries(processes)) b.processes.set(Number(pid), at);
    b.write(events.map(([at, word, pid]) => line(at, word, pid === undefined ? {} : { pid })));
    await b.scan();
    expect(b.rows()).toEqual([]);
    expect(b.names()).toEqual([]);
    expect(b.verdicts()).toEqual([reason, 'rejected']);
  });

  test('C-175 S-522: an old idle session of a process that is older still', async () => {
    const b = bench();
    b.processes.set(500, -DAY);
    b.write([line(-7_300, 'prompt', { pid: 500 }), line(-7_200, 'stop', { pid: 500 })]);
    await b.scan();
    expect(b.row(A)).toMatchObject({ state: 'idle', last_seen: stamp(-7_200, '').ts.replace('.000', '') });
  });

  test('S-522 K-26: two seconds of slack, and not a moment more', async () => {
    for (const [startedAt, alive] of [
      [-7_198, true],
      [-7_197.9, false],
    ] as const) {
      const b = bench();
      b.processes.set(500, startedAt);
      b.write([line(-7_200, 'stop', { pid: 500 })]);
      await b.scan();
      expect(b.state(A)).toBe(alive ? 'idle' : undefined);
    }
  });

  test('C-178 S-522: a pid that is gone may have been a shell: a recent one is kept', async () => {
    const b = bench();
    b.write([line(-30, 'prompt', { pid: 500 })]);
    await b.scan();
    expect(b.state(A)).toBe('working');
  });

  test('C-179 S-522: Codex by its lock: held, free, unknown, absent', async () => {
    for (const [lock, at, kept] of [
      ['held', -DAY, true],
      ['free', -60, false],
      ['unknown', -60, true],
      ['absent', -60, true],
    ] as const) {
      const b = bench();
      b.locks.set(CODEX, lock);
      b.write([line(at, 'stop', { id: CODEX, agent: 'codex' })], CODEX, 'codex');
      await b.scan();
      expect([lock, b.state(CODEX)]).toEqual([lock, kept ? 'idle' : undefined]);
      expect(b.names('codex')).toHaveLength(kept ? 1 : 0);
      if (kept) expect(b.row(CODEX)?.agent).toBe('codex');
      else expect(b.verdicts()).toEqual(['dead', 'rejected']);
    }
  });

  test('C-181 S-524: the awake time to live counts from the import', async () => {
    const b = bench();
    b.write([line(-200, 'stop')]);
    await b.scan();
    b.clock.plus(299);
    expect(b.state(A)).toBe('idle');
    b.clock.plus(2);
    expect(b.state(A)).toBeUndefined();
  });

  test('C-196: hooks that fired while no service ran, with their own times', async () => {
    const b = bench();
    b.write([line(-50, 'start'), line(-40, 'prompt'), line(-30, 'stop')]);
    await b.scan();
    expect(b.row(A)).toMatchObject({
      state: 'idle',
      started_at: stamp(-50, '').ts.replace('.000', ''),
      last_seen: stamp(-30, '').ts.replace('.000', ''),
    });
  });

  test('S-521: records are replayed in the order of their stamps, whatever their order in the file', async () => {
    const b = bench();
    b.write([line(-30, 'stop'), line(-50, 'start'), line(-40, 'prompt')]);
    await b.scan();
    expect(b.state(A)).toBe('idle');
    expect(b.engine.entry(A)?.prompted).toBe(true);
  });

  test('C-193 S-510: torn, foreign, newer and junk lines are no records', async () => {
    const b = bench();
    const good = line(-10, 'stop');
    const foreign = [
      'junk\n',
      '[]\n',
      '\n',
      line(-9, 'pre', { id: B }),
      line(-9, 'pre', { agent: 'codex' }),
      good.replace('"v":1', '"v":2').replace('"stop"', '"pre_tool_use"'),
      good.replace('"stop"', '"frobnicate"'),
      good.replace('"op":"observe"', '"op":"erase"'),
      good.replace(/"ts":"[^"]+"/, '"ts":"yesterday"'),
      good.replace('"stop"', '"pre_tool_use"').slice(0, -20),
    ];
    b.write([...foreign.slice(0, 5), good.replace('{', '{"extra":{"a":1},'), ...foreign.slice(5)]);
    await b.scan();
    expect(b.state(A)).toBe('idle');
    expect(b.row(A)?.last_event).toBe('stop');
    expect(b.rows()).toHaveLength(1);
  });

  test('S-510: a line that a full disk has cut does not swallow the next one', async () => {
    const b = bench();
    b.write([line(-20, 'prompt'), line(-19, 'perm').slice(0, 90), line(-10, 'stop')]);
    await b.scan();
    expect(b.state(A)).toBe('idle');
    expect(b.engine.entry(A)?.recentSeqs).toEqual(['prompt-20', 'stop-10']);
  });

  test('S-521.1 K-24: without a usable record it is left, and deleted once it is quiet', async () => {
    const b = bench();
    b.write(['junk\n']);
    await b.scan();
    b.clock.plus(119);
    await b.scan();
    expect(b.names()).toHaveLength(1);
    b.clock.plus(2);
    await b.scan();
    expect(b.names()).toEqual([]);
    expect(b.verdicts()).toEqual(['unreadable']);
  });
});

describe('journals while running (S-525, S-526)', () => {
  test('C-183 S-112: what the socket delivered is known already', async () => {
    const b = bench();
    await b.scan();
    b.O(A, 'pre', { stamp: stamp(0, 'pre0') });
    b.O(A, 'stop', { stamp: stamp(1, 'stop1') });
    b.write([line(0, 'pre'), line(1, 'stop')]);
    const version = b.engine.version();
    await b.scan();
    expect(b.engine.version()).toBe(version);
    expect(b.state(A)).toBe('idle');
  });

  test('C-184: an event that only the journal has arrives within one scan', async () => {
    const b = bench();
    b.write([line(-10, 'prompt')]);
    await b.scan();
    expect(b.state(A)).toBe('working');
    b.write([line(0, 'stop')]);
    await b.scan();
    expect(b.state(A)).toBe('idle');
  });

  test('C-185: a journal that appears later is judged and replayed', async () => {
    const b = bench();
    await b.scan();
    b.write([line(-5, 'prompt')]);
    await b.scan();
    expect(b.state(A)).toBe('working');
  });

  test('S-521: of a session that the service knows, even an end that only the journal has is applied', async () => {
    const b = bench();
    await b.scan();
    b.O(A, 'prompt', { stamp: stamp(-5, 'prompt-5') });
    b.write([line(-5, 'prompt'), line(-1, 'end')]);
    await b.scan();
    expect(b.state(A)).toBe('ended');
  });

  test('S-525 X1: an unfinished line is read when it is whole', async () => {
    const b = bench();
    b.write([line(-10, 'prompt')]);
    await b.scan();
    const whole = line(0, 'stop');
    appendFileSync(b.pathOf(A, 'claude'), whole.slice(0, 40));
    await b.scan();
    expect(b.state(A)).toBe('working');
    appendFileSync(b.pathOf(A, 'claude'), whole.slice(40));
    await b.scan();
    expect(b.state(A)).toBe('idle');
  });

  test('S-525: a replaced or shortened file is read anew, and nothing is applied twice', async () => {
    const b = bench();
    b.write([line(-10, 'prompt'), line(-9, 'pre')]);
    await b.scan();
    const path = b.pathOf(A, 'claude');
    writeFileSync(`${path}.new`, [line(-10, 'prompt'), line(-9, 'pre'), line(-1, 'stop')].join(''));
    renameSync(`${path}.new`, path);
    await b.scan();
    expect(b.state(A)).toBe('idle');
    writeFileSync(path, line(0, 'perm'));
    await b.scan();
    expect(b.state(A)).toBe('waiting_for_permission');
    expect(b.engine.entry(A)?.recentSeqs).toEqual(['prompt-10', 'pre-9', 'stop-1', 'perm0']);
  });

  test('C-186 S-526: an orphan is deleted after two quiet minutes, a live one never', async () => {
    const b = bench();
    b.write([line(-1, 'prompt')]);
    b.write([line(-1, 'prompt', { id: B })], B);
    await b.scan();
    b.E(A);
    b.clock.plus(119);
    await b.scan();
    expect(b.names()).toHaveLength(2);
    b.O(B, 'pre');
    b.clock.plus(2);
    await b.scan();
    expect(b.names()).toEqual([`${B}.jsonl`]);
    expect(b.verdicts()).toContain('orphan');
  });

  test('S-526 K-23: after a week a journal goes, whoever holds it', async () => {
    const b = bench();
    b.write([line(-1, 'prompt')]);
    await b.scan();
    b.clock.sleep(7 * DAY + 1);
    b.O(A, 'pre');
    await b.scan();
    expect(b.names()).toEqual([]);
    expect(b.verdicts()).toContain('too_old');
  });

  test('S-526: never in the pass that imported it', async () => {
    const b = bench();
    b.processes.set(500, -DAY);
    b.file(`${A}.jsonl`, line(-600, 'stop', { pid: 500 }), 600);
    await b.scan();
    expect(b.state(A)).toBe('idle');
    expect(b.names()).toHaveLength(1);
  });
});

describe('what lies in the folders (S-520)', () => {
  test('C-191: only our own left-overs go; links, folders and other names stay as they are', async () => {
    const b = bench();
    const old = b.file('.x.jsonl.tmp', '', 7_200);
    const fresh = b.file('.y.jsonl.tmp', '', 60);
    const kept = [
      b.file('README', 'hello', 30 * DAY),
      b.file(`${A.toUpperCase()}.jsonl`, line(-1, 'stop'), 30 * DAY),
      b.file('s1.jsonl', line(-1, 'stop'), 30 * DAY),
      b.file(`${A}.jsonl.bak`, line(-1, 'stop'), 30 * DAY),
    ];
    mkdirSync(join(b.folderOf('claude'), `${B}.jsonl`));
    const target = b.file('target', line(-1, 'stop', { id: CODEX }));
    const link = join(b.folderOf('claude'), `${CODEX}.jsonl`);
    symlinkSync(target, link);
    await b.scan();
    expect(b.rows()).toEqual([]);
    expect([existsSync(old), existsSync(fresh)]).toEqual([false, true]);
    for (const path of [...kept, link, target, join(b.folderOf('claude'), `${B}.jsonl`)])
      expect(existsSync(path)).toBe(true);
    expect(b.verdicts()).toEqual(['stale_tmp']);
  });

  test('S-343: one journal that can’t be read hinders no other', async () => {
    const b = journalBench(cleanup, {
      ...systemJournalFiles,
      read(path, offset, length) {
        if (path.includes(A)) throw Object.assign(new Error('EIO'), { code: 'EIO' });
        return systemJournalFiles.read(path, offset, length);
      },
    });
    b.write([line(-1, 'stop')]);
    b.write([line(-1, 'prompt', { id: B })], B);
    await b.scan();
    expect(b.rows().map((row) => row.session_id)).toEqual([B]);
    expect(b.journalEvents.find(({ event }) => event === 'watcher_scanned')?.fields).toMatchObject({
      errors: 1,
      journals: 2,
    });
  });

  test('no folder at all is nothing to read', async () => {
    const b = bench();
    renameSync(join(b.home, 'run'), join(b.home, 'elsewhere'));
    await b.scan();
    expect(b.journalEvents.at(-1)).toMatchObject({
      event: 'watcher_scanned',
      fields: { journals: 0, errors: 0 },
    });
  });

  test('C-194 S-527: of a backlog over 4 MiB only the tail is read, without the line the cut lands in', () => {
    const b = bench();
    const filler = line(-100, 'post', { cwd: `/${'p'.repeat(3_000)}` });
    const count = Math.ceil((6 * 1024 * 1024) / filler.length);
    b.file(`${A}.jsonl`, filler.repeat(count) + line(-1, 'stop'));
    const read = readJournal(systemJournalFiles, b.pathOf(A, 'claude'), { agent: 'claude', id: A }, 0);
    const whole = Math.floor((4 * 1024 * 1024) / filler.length);
    expect(Math.abs(read.records.length - whole)).toBeLessThanOrEqual(1);
    expect(read.records.at(-1)?.record).toMatchObject({ event: 'stop' });
    expect(read.next).toBe(statSync(b.pathOf(A, 'claude')).size);
  });
});
