import { afterEach, describe, expect, test } from 'bun:test';
import { appendFileSync, closeSync, openSync, statSync, unlinkSync, writeSync } from 'node:fs';
import fc from 'fast-check';
import { type JournalFiles, systemJournalFiles } from '../../../../src/runtime/daemon/journal/files.ts';
import { type Cleanup, createCleanup } from '../harness.ts';
import { A } from '../sessions/dsl.ts';
import { journalBench, line } from './bench.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const KIB = 1024;
const filler = (at: number) => line(at, 'post', { cwd: `/${'p'.repeat(900)}`, seq: `f${at}` });

/** A journal of at least so many bytes, one filler a second, ending just before now. */
function journalOf(bytes: number): { lines: string[]; from: number } {
  const count = Math.ceil(bytes / filler(-1).length);
  return { lines: Array.from({ length: count }, (_, n) => filler(n - count)), from: -count };
}

const seqsIn = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((one) => String(JSON.parse(one).seq));

describe('compaction (S-528, R-39)', () => {
  test('C-188 K-22: over 128 KiB it is cut to 64 KiB, the dropped prompt first, 0600, whole lines', async () => {
    const b = journalBench(cleanup);
    const { lines, from } = journalOf(131 * KIB);
    const prompt = line(from - 1, 'prompt', { seq: 'the-prompt' });
    b.write([line(from - 3, 'start'), line(from - 2, 'prompt', { seq: 'earlier' }), prompt, ...lines]);
    expect(statSync(b.pathOf(A, 'claude')).size).toBeGreaterThan(128 * KIB);
    await b.scan();
    const text = b.text();
    expect(text.startsWith(prompt)).toBe(true);
    expect(text.length).toBeLessThanOrEqual(64 * KIB + prompt.length);
    expect(text.length).toBeGreaterThan(63 * KIB);
    expect(text.endsWith(lines.at(-1) ?? 'x')).toBe(true);
    expect(statSync(b.pathOf(A, 'claude')).mode & 0o777).toBe(0o600);
    b.restart();
    b.engine.end({ session_id: A }, 'local');
    b.clock.plus(11);
    expect(b.rows()).toEqual([]);
    await b.scan();
    expect(b.engine.entry(A)?.prompted).toBe(true);
  });

  test('C-188 K-22: exactly 128 KiB is left as it is', async () => {
    const b = journalBench(cleanup);
    const { lines } = journalOf(100 * KIB);
    const missing = 128 * KIB - lines.join('').length;
    // JSON may end in blanks.
    const padded = (lines[0] ?? '').replace('\n', `${' '.repeat(missing)}\n`);
    b.write([padded, ...lines.slice(1)]);
    expect(statSync(b.pathOf(A, 'claude')).size).toBe(128 * KIB);
    await b.scan();
    expect(statSync(b.pathOf(A, 'claude')).size).toBe(128 * KIB);
    b.write([line(0, 'stop')]);
    await b.scan();
    expect(statSync(b.pathOf(A, 'claude')).size).toBeLessThan(66 * KIB);
  });

  test('C-190: after it nothing is applied again', async () => {
    const b = journalBench(cleanup);
    b.write(journalOf(140 * KIB).lines);
    await b.scan();
    const { version } = { version: b.engine.version() };
    const records = b.journalEvents.length;
    await b.scan();
    expect(b.engine.version()).toBe(version);
    expect(
      b.journalEvents.slice(records).find(({ event }) => event === 'watcher_scanned')?.fields,
    ).toMatchObject({ records: 0 });
    b.write([line(0, 'stop')]);
    await b.scan();
    expect(b.state(A)).toBe('idle');
  });

  test('S-526: what was set aside is gone after two quiet minutes', async () => {
    const b = journalBench(cleanup);
    b.write(journalOf(140 * KIB).lines);
    await b.scan();
    expect(b.asides()).toHaveLength(1);
    b.O(A, 'pre');
    b.clock.plus(119);
    await b.scan();
    expect(b.asides()).toHaveLength(1);
    b.clock.plus(2);
    await b.scan();
    expect(b.asides()).toEqual([]);
    expect(b.names()).toEqual([`${A}.jsonl`]);
  });
});

/** The moments in a compaction at which a hook may append. */
const MOMENTS = [
  'before the check',
  'before the rename',
  'after the rename',
  'after the new file',
  'much later',
] as const;
type Moment = (typeof MOMENTS)[number];

/**
 * Runs one compaction with a hook at one moment. `held`: the hook had the file open from the start and is slow;
 * else it opens the file by name at that moment.
 */
async function race(
  moment: Moment,
  held: boolean,
  into: Cleanup,
): Promise<{ seqs: string[]; state: string | undefined }> {
  const hook = { fired: false, fd: -1, path: '' };
  const fire = (at: Moment): void => {
    if (at !== moment || hook.fired || hook.path === '') return;
    hook.fired = true;
    if (held) writeSync(hook.fd, line(0, 'stop', { seq: 'late' }));
    else appendFileSync(hook.path, line(0, 'stop', { seq: 'late' }));
  };
  const files: JournalFiles = {
    ...systemJournalFiles,
    rename(from, to) {
      fire('before the rename');
      systemJournalFiles.rename(from, to);
      fire('after the rename');
    },
    create(path, bytes) {
      systemJournalFiles.create(path, bytes);
      fire('after the rename');
    },
    link(from, to) {
      const linked = systemJournalFiles.link(from, to);
      fire('after the new file');
      return linked;
    },
    stat(path) {
      if (path === hook.path && armed.yes) fire('before the check');
      return systemJournalFiles.stat(path);
    },
  };
  const armed = { yes: false };
  const b = journalBench(into, files);
  b.write(journalOf(140 * KIB).lines);
  hook.path = b.pathOf(A, 'claude');
  hook.fd = openSync(hook.path, 'a');
  into.add(() => closeSync(hook.fd));
  armed.yes = true;
  await b.scan();
  b.O(A, 'pre', { stamp: { ts: new Date(b.clock.now() - 1).toISOString(), seq: 'socket' } });
  fire('much later');
  await b.scan();
  await b.scan();
  expect(hook.fired).toBe(true);
  return { seqs: seqsIn(b.text()), state: b.state(A) };
}

describe('a hook that appends while its journal is compacted (R-39)', () => {
  const cases = MOMENTS.flatMap((moment) => [true, false].map((held) => [moment, held] as const));
  test.each(cases)(
    '%s (file open before: %p): the line is in the journal, and is applied',
    async (moment, held) => {
      const { seqs, state } = await race(moment, held, cleanup);
      expect(seqs.filter((seq) => seq === 'late')).toHaveLength(1);
      expect(state).toBe('idle');
    },
  );

  test('C-189 S-528: a file that grew since it was read is compacted in a later pass, and no temporary file is left', async () => {
    const grown = { done: false };
    const b = journalBench(cleanup, {
      ...systemJournalFiles,
      read(path, offset, length) {
        const result = systemJournalFiles.read(path, offset, length);
        if (
          offset === 0 &&
          b.journalEvents.some(({ event }) => event === 'session_journal_replayed') &&
          !grown.done
        ) {
          grown.done = true;
          appendFileSync(path, line(0, 'stop'));
        }
        return result;
      },
    });
    b.write(journalOf(140 * KIB).lines);
    await b.scan();
    expect(grown.done).toBe(true);
    expect(b.asides()).toEqual([]);
    expect(b.names()).toEqual([`${A}.jsonl`]);
    await b.scan();
    expect(b.state(A)).toBe('idle');
    expect(statSync(b.pathOf(A, 'claude')).size).toBeLessThan(66 * KIB);
    expect(b.names()).toEqual([`${A}.jsonl`]);
  });

  test('killed between setting aside and putting back: the next service finds all', async () => {
    for (const step of ['create', 'link'] as const) {
      const b = journalBench(cleanup, {
        ...systemJournalFiles,
        [step]: () => {
          throw new Error('killed');
        },
      });
      const { lines } = journalOf(140 * KIB);
      b.write(lines);
      await b.scan();
      expect(b.asides()).toHaveLength(1);
      const healthy = journalBench(cleanup);
      for (const name of b.asides()) {
        appendFileSync(
          `${healthy.folderOf('claude')}/${name}`,
          await Bun.file(`${b.folderOf('claude')}/${name}`).text(),
        );
      }
      await healthy.scan();
      expect(healthy.state(A)).toBe('working');
      const seqs = seqsIn(healthy.text());
      expect(seqs.at(-1)).toBe('f-1');
      healthy.clock.plus(121);
      healthy.O(A, 'pre');
      await healthy.scan();
      expect(healthy.asides()).toEqual([]);
      expect(healthy.names()).toEqual([`${A}.jsonl`]);
    }
  });

  test('a file system without second names still gets its lines back', async () => {
    const b = journalBench(cleanup, { ...systemJournalFiles, link: () => false });
    b.write([line(-500, 'prompt', { seq: 'p' }), ...journalOf(140 * KIB).lines]);
    await b.scan();
    expect(seqsIn(b.text())[0]).toBe('p');
    const version = b.engine.version();
    await b.scan();
    expect(b.engine.version()).toBe(version);
  });
});

describe('a hook that appends while its journal is removed (R-39)', () => {
  test.each([true, false])(
    'the line stays in a journal and is applied (file open before: %p)',
    async (held) => {
      const hook = { fired: false, fd: -1, path: '' };
      const b = journalBench(cleanup, {
        ...systemJournalFiles,
        rename(from, to) {
          if (!held) appendFileSync(from, line(0, 'prompt'));
          systemJournalFiles.rename(from, to);
          if (held && !hook.fired) writeSync(hook.fd, line(0, 'prompt'));
          hook.fired = true;
        },
      });
      b.write([line(-400, 'stop')]);
      hook.path = b.pathOf(A, 'claude');
      hook.fd = openSync(hook.path, 'a');
      cleanup.add(() => closeSync(hook.fd));
      await b.scan();
      expect(b.verdicts()[0]).toBe('stale');
      await b.scan();
      expect(b.state(A)).toBe('working');
      expect(seqsIn(b.text())).toEqual(['prompt0']);
    },
  );
});

describe('any schedule of appends, compactions and restarts (R-39)', () => {
  type Act = 'append' | 'grow' | 'scan' | 'restart' | 'wait' | 'remove by hand';
  const acts = fc.array(
    fc.constantFrom<Act>('append', 'append', 'grow', 'grow', 'scan', 'scan', 'restart', 'wait'),
    {
      maxLength: 30,
    },
  );

  test('the engine ends where the last hook led, and the journal is never lost', async () => {
    await fc.assert(
      fc.asyncProperty(acts, async (schedule) => {
        const own = createCleanup();
        const b = journalBench(own);
        const last = { at: -1_000, word: 'prompt' as 'prompt' | 'stop' };
        b.write([line(last.at, 'prompt')]);
        b.processes.set(500, -100_000);
        const append = (): void => {
          last.at += 1;
          last.word = last.word === 'prompt' ? 'stop' : 'prompt';
          b.write([line(last.at, last.word, { pid: 500 })]);
        };
        for (const act of schedule) {
          if (act === 'append') append();
          if (act === 'grow') {
            const bulk = Array.from({ length: 40 }, () => {
              last.at += 1;
              return line(last.at, last.word === 'prompt' ? 'post' : 'stop', {
                pid: 500,
                cwd: `/${'p'.repeat(900)}`,
                seq: `g${last.at}`,
              });
            });
            b.write(bulk);
          }
          if (act === 'scan') await b.scan();
          if (act === 'restart') b.restart();
          if (act === 'wait') {
            b.clock.plus(130);
            b.write([]);
          }
        }
        append();
        await b.scan();
        await b.scan();
        expect(b.state(A)).toBe(last.word === 'prompt' ? 'working' : 'idle');
        expect(seqsIn(b.text())).toContain(`${last.word}${last.at}`);
        await own.run();
      }),
      { numRuns: 60 },
    );
  });
});

test('unlinking under the watcher is no error', async () => {
  const b = journalBench(cleanup);
  b.write([line(-1, 'prompt')]);
  await b.scan();
  unlinkSync(b.pathOf(A, 'claude'));
  await b.scan();
  expect(b.state(A)).toBe('working');
});
