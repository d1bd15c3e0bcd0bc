import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countFiles, type FileSystemPort, systemFiles } from '../../../src/runtime/files/file-system.ts';
import { createFollower, type FollowPoll } from '../../../src/runtime/files/follow.ts';
import { createFileReader } from '../../../src/runtime/files/head-tail.ts';
import { noCounts } from '../../../src/runtime/files/jsonl.ts';

let folder = '';
let path = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'follow-'));
  path = join(folder, 'a.jsonl');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const row = (n: number, filler = 0): string => `{"n":${n},"filler":"${'x'.repeat(filler)}"}\n`;
const rows = (from: number, to: number, filler = 0): string =>
  Array.from({ length: to - from }, (_, index) => row(from + index, filler)).join('');

/** A poll as plain data: numbers of the rows, and what else it said. */
function said(poll: FollowPoll): unknown {
  if (poll.kind !== 'lines') return poll.kind;
  const numbers = poll.lines.map((line) => (line.record as { n: number } | undefined)?.n);
  if (poll.restarted === undefined && !poll.gap) return numbers;
  return { numbers, ...(poll.restarted && { restarted: poll.restarted }), ...(poll.gap && { gap: true }) };
}

describe('appends', () => {
  test('each row is given once, whole, in order', () => {
    writeFileSync(path, rows(0, 2));
    const follower = createFollower(path);
    expect(said(follower.poll())).toEqual([0, 1]);
    expect(said(follower.poll())).toEqual([]);
    appendFileSync(path, rows(2, 4));
    expect(said(follower.poll())).toEqual([2, 3]);
  });

  test('X1: half a line is held, its other half completes it', () => {
    writeFileSync(path, `${row(0)}{"n":1,"fil`);
    const follower = createFollower(path);
    expect(said(follower.poll())).toEqual([0]);
    expect(follower.state?.offset).toBe(row(0).length);
    appendFileSync(path, 'ler":"é'.slice(0, 7));
    expect(said(follower.poll())).toEqual([]);
    appendFileSync(path, '"}\n');
    expect(said(follower.poll())).toEqual([1]);
    expect(follower.state?.offset).toBe(statSync(path).size);
  });

  test('a character that is cut in the middle of its bytes is whole in the end', () => {
    const bytes = Buffer.from('{"n":1,"x":"日"}\n');
    const counts = noCounts();
    const follower = createFollower(path, { counts });
    for (const byte of bytes) {
      appendFileSync(path, Buffer.from([byte]));
      const poll = follower.poll();
      if (poll.kind === 'lines' && poll.lines.length > 0)
        expect(poll.lines[0]?.record).toEqual({ n: 1, x: '日' });
    }
    expect(follower.state?.offset).toBe(bytes.length);
    expect(counts.invalidUtf8).toBe(0);
  });

  test('while nothing changes nothing is opened', () => {
    writeFileSync(path, rows(0, 100));
    const { files, work } = countFiles();
    const follower = createFollower(path, { files });
    follower.poll();
    for (let n = 0; n < 10; n += 1) follower.poll();
    expect(work.opened).toBe(1);
    appendFileSync(path, row(1));
    const before = work.bytesRead;
    follower.poll();
    expect(work.opened).toBe(2);
    expect(work.bytesRead - before).toBe(64 + row(1).length);
  });

  test('a file that appears later', () => {
    const follower = createFollower(path);
    expect(said(follower.poll())).toBe('missing');
    expect(follower.state).toBeUndefined();
    writeFileSync(path, rows(0, 2));
    expect(said(follower.poll())).toEqual([0, 1]);
  });

  test('through a link', () => {
    symlinkSync('real.jsonl', path);
    writeFileSync(join(folder, 'real.jsonl'), rows(0, 1));
    const follower = createFollower(path);
    expect(said(follower.poll())).toEqual([0]);
    appendFileSync(join(folder, 'real.jsonl'), row(1));
    expect(said(follower.poll())).toEqual([1]);
  });
});

describe('files that are not only appended to', () => {
  test('shrunk: what was given is void, and the file is read anew', () => {
    writeFileSync(path, rows(0, 3));
    const follower = createFollower(path);
    follower.poll();
    writeFileSync(path, row(7));
    expect(said(follower.poll())).toEqual({ numbers: [7], restarted: 'shrunk' });
    appendFileSync(path, row(8));
    expect(said(follower.poll())).toEqual([8]);
  });

  test('another inode under the name', () => {
    writeFileSync(path, rows(0, 3));
    const follower = createFollower(path);
    follower.poll();
    writeFileSync(`${path}.new`, rows(0, 5));
    renameSync(`${path}.new`, path);
    expect(said(follower.poll())).toEqual({ numbers: [0, 1, 2, 3, 4], restarted: 'replaced' });
  });

  test('a row taken out in place and rows added before the next poll: longer than before, yet rewritten', () => {
    writeFileSync(path, rows(0, 10));
    const follower = createFollower(path);
    follower.poll();
    const fd = openSync(path, 'r+');
    ftruncateSync(fd, 0);
    closeSync(fd);
    appendFileSync(path, rows(0, 4) + rows(5, 20));
    const numbers = [0, 1, 2, 3, ...Array.from({ length: 15 }, (_, index) => index + 5)];
    expect(said(follower.poll())).toEqual({ numbers, restarted: 'rewritten' });
  });

  test('rewritten to the same size', () => {
    writeFileSync(path, rows(0, 3));
    const follower = createFollower(path);
    follower.poll();
    writeFileSync(path, rows(5, 8));
    utimesSync(path, 5, 5);
    expect(said(follower.poll())).toEqual({ numbers: [5, 6, 7], restarted: 'rewritten' });
  });

  test('only touched: nothing new', () => {
    writeFileSync(path, rows(0, 3));
    const follower = createFollower(path);
    follower.poll();
    utimesSync(path, 5, 5);
    expect(said(follower.poll())).toEqual([]);
  });

  test('a torn line that was replaced by another is not glued to it', () => {
    writeFileSync(path, `${row(0)}{"n":1,"abc`);
    const follower = createFollower(path);
    follower.poll();
    truncateSync(path, row(0).length);
    appendFileSync(path, row(2, 30));
    expect(said(follower.poll())).toEqual({ numbers: [0, 2], restarted: 'rewritten' });
  });

  test('deleted, and made again (an inode may be reused)', () => {
    writeFileSync(path, rows(0, 2));
    const follower = createFollower(path);
    follower.poll();
    rmSync(path);
    expect(said(follower.poll())).toBe('missing');
    writeFileSync(path, rows(0, 2));
    expect(said(follower.poll())).toEqual({ numbers: [0, 1], restarted: 'replaced' });
  });

  test('a folder in its place, then a file again', () => {
    writeFileSync(path, rows(0, 2));
    const follower = createFollower(path);
    follower.poll();
    rmSync(path);
    mkdirSync(path);
    expect(said(follower.poll())).toBe('not-a-file');
    rmSync(path, { recursive: true });
    writeFileSync(path, rows(3, 4));
    expect(said(follower.poll())).toEqual({ numbers: [3], restarted: 'replaced' });
  });

  test('X3: an error in between is a problem, and nothing is lost or given twice', () => {
    writeFileSync(path, rows(0, 2));
    const failures: string[] = [];
    const files: FileSystemPort = {
      ...systemFiles,
      open: (name) => {
        const code = failures.pop();
        if (code !== undefined) throw Object.assign(new Error(code), { code });
        return systemFiles.open(name);
      },
    };
    const follower = createFollower(path, { files });
    expect(said(follower.poll())).toEqual([0, 1]);
    appendFileSync(path, row(2));
    failures.push('EMFILE');
    expect(follower.poll()).toEqual({ kind: 'unreadable', code: 'EMFILE' });
    expect(said(follower.poll())).toEqual([2]);
  });
});

describe('more than the cap in one poll', () => {
  test('the tail, from a whole line, and `gap`', () => {
    const follower = createFollower(path, { cap: 1000 });
    writeFileSync(path, rows(0, 100, 80));
    const poll = said(follower.poll()) as { numbers: number[]; gap: boolean };
    expect(poll).toEqual({ numbers: [91, 92, 93, 94, 95, 96, 97, 98, 99], gap: true });
    appendFileSync(path, row(100));
    expect(said(follower.poll())).toEqual([100]);
  });

  test('a tail that begins exactly at a line loses no line', () => {
    const size = row(10, 80).length;
    const follower = createFollower(path, { cap: size * 3 });
    writeFileSync(path, rows(10, 20, 80));
    expect(said(follower.poll())).toEqual({ numbers: [17, 18, 19], gap: true });
  });

  test('a line that is longer than the cap is skipped to its end, over several polls', () => {
    const follower = createFollower(path, { cap: 1000 });
    writeFileSync(path, row(0) + row(1, 5000).slice(0, -3));
    expect(said(follower.poll())).toEqual({ numbers: [], gap: true });
    appendFileSync(path, 'y'.repeat(500));
    expect(said(follower.poll())).toEqual([]);
    appendFileSync(path, `"}\n${row(2)}`);
    expect(said(follower.poll())).toEqual([2]);
    expect(follower.state?.offset).toBe(statSync(path).size);
  });

  test('X9: a file of 20 GB costs at most the cap', () => {
    writeFileSync(path, '');
    truncateSync(path, 20 * 1024 ** 3 - 1);
    appendFileSync(path, `\n${rows(0, 3)}`);
    const { files, work } = countFiles();
    const follower = createFollower(path, { files, cap: 64 * 1024 });
    expect(said(follower.poll())).toEqual({ numbers: [0, 1, 2], gap: true });
    expect(work.bytesRead).toBeLessThanOrEqual(64 * 1024 + 1);
  });

  test('X6: a row over the line cap that arrives in parts is skipped and counted', () => {
    const counts = noCounts();
    const follower = createFollower(path, { counts, maxLineBytes: 100 });
    writeFileSync(path, row(0));
    follower.poll();
    for (let n = 0; n < 10; n += 1) {
      appendFileSync(path, 'z'.repeat(50));
      expect(said(follower.poll())).toEqual([]);
    }
    appendFileSync(path, `\n${row(1)}`);
    expect(said(follower.poll())).toEqual([1]);
    expect(counts.oversized).toBe(1);
  });
});

describe('going on from a state', () => {
  test('another follower loses and repeats nothing, half lines included', () => {
    writeFileSync(path, `${rows(0, 3)}{"n":3,`);
    const first = createFollower(path);
    expect(said(first.poll())).toEqual([0, 1, 2]);
    const state = structuredClone(first.state);
    appendFileSync(path, `"x":1}\n${row(4)}`);
    expect(state && said(createFollower(path, { state }).poll())).toEqual([3, 4]);
  });

  test('it sees that the file was rewritten in between', () => {
    writeFileSync(path, rows(0, 3));
    const first = createFollower(path);
    first.poll();
    const state = first.state;
    writeFileSync(path, rows(3, 9));
    expect(state && said(createFollower(path, { state }).poll())).toEqual({
      numbers: [3, 4, 5, 6, 7, 8],
      restarted: 'rewritten',
    });
  });

  test('from the end of a tail that was read', () => {
    writeFileSync(path, `${rows(0, 3)}{"n":3,`);
    const read = createFileReader().read(path, (file) => file.tail({ enough: () => true }).committed);
    if (read.kind !== 'read' || read.value === undefined) throw new Error('no tail');
    const { ino, dev, size } = read.stat;
    const follower = createFollower(path, { state: { path, ino, dev, size, offset: read.value } });
    appendFileSync(path, '"x":1}\n');
    expect(said(follower.poll())).toEqual([3]);
  });
});
