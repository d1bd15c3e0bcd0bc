import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  chmodSync,
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
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countFiles, type FileSystemPort, systemFiles } from '../../../src/runtime/files/file-system.ts';
import { createFileReader, TAIL_CAP, TAIL_FIRST_STEP } from '../../../src/runtime/files/head-tail.ts';
import type { Line } from '../../../src/runtime/files/jsonl.ts';

let folder = '';
let path = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'head-tail-'));
  path = join(folder, 'a.jsonl');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const row = (n: number, filler = 0): string => `${JSON.stringify({ n, filler: 'x'.repeat(filler) })}\n`;
const rows = (count: number, filler = 0): string =>
  Array.from({ length: count }, (_, index) => row(index, filler)).join('');
const numbers = (lines: readonly Line[]): number[] => lines.map((line) => (line.record as { n: number }).n);
const never = (): boolean => false;
const always = (): boolean => true;
const hasRow = (n: number) => (lines: readonly Line[]) => lines.some((line) => line.has(`"n":${n},`));

describe('the tail', () => {
  test('whole lines from the end in file order, from one step if that is enough', () => {
    writeFileSync(path, rows(1000, 1000));
    const { files, work } = countFiles();
    const read = createFileReader(files).read(path, (file) => {
      const tail = file.tail({ enough: (lines) => lines.length > 0 });
      return { numbers: numbers(tail.lines), whole: tail.whole, satisfied: tail.satisfied };
    });
    expect(read.kind).toBe('read');
    const value = read.kind === 'read' ? read.value : undefined;
    expect(value).toEqual({
      numbers: Array.from({ length: 16 }, (_, index) => 984 + index),
      whole: false,
      satisfied: true,
    });
    expect(work).toEqual({ opened: 1, bytesRead: TAIL_FIRST_STEP, stats: 1, listed: 0 });
  });

  test('grows over bookkeeping rows of more than 64 KB to the last conversation row (R-27)', () => {
    writeFileSync(path, rows(50, 100) + row(777, 10) + row(1, 90_000) + row(2, 90_000));
    const { files, work } = countFiles();
    const steps: number[] = [];
    createFileReader(files).read(path, (file) =>
      file.tail({
        enough: (lines) => {
          steps.push(lines.length);
          return hasRow(777)(lines);
        },
      }),
    );
    expect(steps).toEqual([0, 0, 53]);
    expect(work.opened).toBe(1);
    expect(work.bytesRead).toBeLessThan(TAIL_FIRST_STEP * (1 + 4 + 16));
  });

  test('each line is given once and parsed once, however many steps it takes', () => {
    writeFileSync(path, rows(2000, 100));
    createFileReader().read(path, (file) => {
      const seen = new Map<number, Line>();
      const tail = file.tail({
        firstStep: 1024,
        factor: 2,
        enough: (lines) => {
          for (const line of lines) {
            expect(seen.get(line.start) ?? line).toBe(line);
            seen.set(line.start, line);
          }
          return false;
        },
      });
      expect(numbers(tail.lines)).toEqual(Array.from({ length: 2000 }, (_, index) => index));
      expect(tail.whole).toBe(true);
      expect(tail.satisfied).toBe(false);
    });
  });

  test('stops at the cap', () => {
    writeFileSync(path, rows(100, 1000));
    const { files, work } = countFiles();
    createFileReader(files).read(path, (file) => {
      const tail = file.tail({ enough: never, firstStep: 1000, cap: 10_000 });
      expect(tail.whole).toBe(false);
      expect(tail.satisfied).toBe(false);
      expect(numbers(tail.lines)).toEqual([91, 92, 93, 94, 95, 96, 97, 98, 99]);
    });
    expect(work.bytesRead).toBeLessThanOrEqual(1000 + 4000 + 10_000);
  });

  test('X1: a torn last line is given apart', () => {
    writeFileSync(path, `${rows(3)}{"n":3,"fil`);
    createFileReader().read(path, (file) => {
      const tail = file.tail({ enough: always });
      expect(numbers(tail.lines)).toEqual([0, 1, 2]);
      expect(tail.torn?.text).toBe('{"n":3,"fil');
    });
  });

  test('X1: a torn last line that is longer than the first step', () => {
    writeFileSync(path, `${rows(3)}{"n":3,"filler":"${'x'.repeat(40_000)}`);
    createFileReader().read(path, (file) => {
      const tail = file.tail({ enough: (lines) => lines.length > 0 });
      expect(numbers(tail.lines)).toEqual([0, 1, 2]);
      expect(tail.torn?.size).toBe(40_000 + 17);
    });
  });

  test('X6: a row over the line cap at the end is skipped and counted, and the row before it found', () => {
    writeFileSync(path, rows(3) + row(3, 1_100_000));
    const reader = createFileReader();
    reader.read(path, (file) => {
      expect(numbers(file.tail({ enough: (lines) => lines.length > 0 }).lines)).toEqual([0, 1, 2]);
    });
    expect(reader.counts.oversized).toBe(1);
  });

  test('X13: one line of 5 MB and an empty file give no lines, within the cap', () => {
    writeFileSync(path, row(0, 5_000_000));
    const { files, work } = countFiles();
    const reader = createFileReader(files);
    const big = reader.read(path, (file) => file.tail({ enough: never }).lines.length);
    expect(big).toMatchObject({ kind: 'read', value: 0 });
    expect(work.bytesRead).toBeLessThan(TAIL_CAP * 1.5);
    writeFileSync(path, '');
    const empty = reader.read(path, (file) => ({ ...file.tail({ enough: never }) }));
    expect(empty).toMatchObject({ kind: 'read', value: { lines: [], torn: undefined, whole: true } });
  });
});

describe('the head', () => {
  test('grows to a first line of 22 KB, and no further', () => {
    writeFileSync(path, row(0, 22_000) + rows(1000, 1000));
    const { files, work } = countFiles();
    createFileReader(files).read(path, (file) => {
      const head = file.head({ enough: (lines) => lines.length > 0 });
      expect(head.lines[0]?.record).toMatchObject({ n: 0 });
      expect(head.torn).toBeUndefined();
    });
    expect(work.bytesRead).toBe(8 * 1024 + 32 * 1024);
  });

  test('a whole small file says so, with its torn line', () => {
    writeFileSync(path, `\ufeff${rows(2)}{`);
    createFileReader().read(path, (file) => {
      const head = file.head({ enough: never });
      expect(numbers(head.lines)).toEqual([0, 1]);
      expect(head.whole).toBe(true);
      expect(head.torn?.text).toBe('{');
    });
  });

  test('head and tail of one file cost one open', () => {
    writeFileSync(path, rows(5000, 100));
    const { files, work } = countFiles();
    createFileReader(files).read(
      path,
      (file) => {
        expect(numbers(file.head({ enough: always }).lines)[0]).toBe(0);
        expect(numbers(file.tail({ enough: always }).lines).at(-1)).toBe(4999);
      },
      systemFiles.stat(path),
    );
    expect(work.opened).toBe(1);
    expect(work.stats).toBe(0);
  });
});

describe('X9: the cost does not depend on the size', () => {
  function sparse(size: number): void {
    const fd = openSync(path, 'w');
    writeSync(fd, rows(100, 100));
    const end = rows(200, 100);
    ftruncateSync(fd, size - end.length);
    writeSync(fd, end, size - end.length);
    closeSync(fd);
  }

  test('20 GB sparse and 20 KB: the same reads', () => {
    const read = (): unknown => {
      const { files, work } = countFiles();
      createFileReader(files).read(path, (file) => {
        expect(numbers(file.head({ enough: always }).lines)[0]).toBe(0);
        expect(numbers(file.tail({ enough: hasRow(199) }).lines).at(-1)).toBe(199);
      });
      return work;
    };
    writeFileSync(path, rows(170, 100));
    sparse(40_000);
    const small = read();
    sparse(20 * 1024 ** 3);
    expect(statSync(path).size).toBe(20 * 1024 ** 3);
    expect(read()).toEqual(small);
  });

  test('a hole at the end costs at most the cap', () => {
    writeFileSync(path, rows(10));
    truncateSync(path, 20 * 1024 ** 3);
    const { files, work } = countFiles();
    const read = createFileReader(files).read(path, (file) => file.tail({ enough: never }).lines.length);
    expect(read).toMatchObject({ kind: 'read', value: 0 });
    expect(work.bytesRead).toBeLessThan(TAIL_CAP * 1.5);
  });
});

describe('files that change under the reader', () => {
  /** Does something once, just before the first read. */
  function meddle(what: () => void): FileSystemPort {
    const pending = [what];
    return {
      ...systemFiles,
      read: (...args) => {
        pending.pop()?.();
        return systemFiles.read(...args);
      },
    };
  }

  test('truncated between open and read: read again, with the stat that fits', () => {
    writeFileSync(path, rows(100, 1000));
    const known = systemFiles.stat(path);
    const files = meddle(() => writeFileSync(path, rows(2)));
    const read = createFileReader(files).read(
      path,
      (file) => numbers(file.tail({ enough: never }).lines),
      known,
    );
    expect(read).toMatchObject({ kind: 'read', value: [0, 1], stat: { size: rows(2).length } });
  });

  test('truncated between stat and open: the stat of the open file counts, not the known one', () => {
    writeFileSync(path, rows(100, 1000));
    const known = systemFiles.stat(path);
    writeFileSync(path, rows(2));
    const read = createFileReader().read(path, (file) => numbers(file.tail({ enough: never }).lines), known);
    expect(read).toMatchObject({ kind: 'read', value: [0, 1], stat: { size: rows(2).length } });
  });

  test('replaced by another file: one of the two, with its own stat', () => {
    writeFileSync(path, rows(3, 50));
    writeFileSync(`${path}.new`, rows(1));
    const old = systemFiles.stat(path);
    const files = meddle(() => renameSync(`${path}.new`, path));
    const read = createFileReader(files).read(path, (file) => numbers(file.tail({ enough: never }).lines));
    expect(read).toMatchObject({ kind: 'read', value: [0, 1, 2], stat: { ino: old.ino, size: old.size } });
    expect(systemFiles.stat(path).ino).not.toBe(old.ino);
  });

  test('grown meanwhile: what was there when it was opened', () => {
    writeFileSync(path, rows(3));
    const files = meddle(() => appendFileSync(path, row(3)));
    const read = createFileReader(files).read(path, (file) => numbers(file.tail({ enough: never }).lines));
    expect(read).toMatchObject({ kind: 'read', value: [0, 1, 2], stat: { size: rows(3).length } });
  });

  test('shrinking at every read: `changed`, and the file is closed', () => {
    writeFileSync(path, rows(100));
    const open = new Set<number>();
    const files: FileSystemPort = {
      ...systemFiles,
      open: (name) => {
        const fd = systemFiles.open(name);
        open.add(fd);
        return fd;
      },
      read: (...args) => {
        truncateSync(path, Math.floor(statSync(path).size / 2));
        return systemFiles.read(...args);
      },
      close: (fd) => {
        open.delete(fd);
        systemFiles.close(fd);
      },
    };
    const read = createFileReader(files).read(path, (file) => file.tail({ enough: never }).lines.length);
    expect(read).toEqual({ kind: 'changed' });
    expect(open.size).toBe(0);
  });

  test('an error while reading is a problem, an error of the caller is thrown; both close the file', () => {
    writeFileSync(path, rows(1));
    const closed: number[] = [];
    const failing: FileSystemPort = {
      ...systemFiles,
      read: () => {
        throw Object.assign(new Error('disk'), { code: 'EIO' });
      },
      close: (fd) => {
        closed.push(fd);
        systemFiles.close(fd);
      },
    };
    const tail = createFileReader(failing).read(path, (file) => file.tail({ enough: never }).lines.length);
    expect(tail).toEqual({ kind: 'unreadable', code: 'EIO' });
    const reader = createFileReader({ ...failing, read: systemFiles.read });
    expect(() =>
      reader.read(path, () => {
        throw new Error('mine');
      }),
    ).toThrow('mine');
    expect(closed.length).toBe(2);
  });
});

describe('what is no readable file', () => {
  const read = (name: string): unknown => {
    const { files, work } = countFiles();
    const result = createFileReader(files).read(name, (file) => file.tail({ enough: never }).lines.length);
    return { result, opened: work.opened };
  };

  test('missing, also below a file', () => {
    expect(read(path)).toEqual({ result: { kind: 'missing' }, opened: 0 });
    writeFileSync(path, '');
    expect(read(join(path, 'x.jsonl'))).toEqual({ result: { kind: 'missing' }, opened: 0 });
  });

  test('a folder named *.jsonl is not opened', () => {
    mkdirSync(path);
    expect(read(path)).toEqual({ result: { kind: 'not-a-file' }, opened: 0 });
  });

  test.skipIf(process.platform === 'win32')('a FIFO is neither opened nor waited for', () => {
    expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
    expect(read(path)).toEqual({ result: { kind: 'not-a-file' }, opened: 0 });
  });

  test.skipIf(process.platform === 'win32')('a file that became a FIFO since its stat does not block', () => {
    writeFileSync(path, rows(1));
    const known = systemFiles.stat(path);
    rmSync(path);
    expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
    expect(createFileReader().read(path, () => 1, known)).toEqual({ kind: 'not-a-file' });
  });

  test.skipIf(process.platform === 'win32')('a socket', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(path, resolve));
    expect(read(path)).toEqual({ result: { kind: 'not-a-file' }, opened: 0 });
    await new Promise((resolve) => server.close(resolve));
  });

  test('a link to a file is read, a dangling one is missing', () => {
    writeFileSync(join(folder, 'target'), rows(2));
    symlinkSync('target', path);
    expect(read(path)).toMatchObject({ result: { kind: 'read', value: 2 } });
    rmSync(join(folder, 'target'));
    expect(read(path)).toEqual({ result: { kind: 'missing' }, opened: 0 });
  });

  test.skipIf(process.platform === 'win32' || process.getuid?.() === 0)('without permission', () => {
    writeFileSync(path, rows(1));
    chmodSync(path, 0);
    expect(read(path)).toEqual({ result: { kind: 'unreadable', code: 'EACCES' }, opened: 1 });
  });

  test('a refusal of the system carries its code', () => {
    const files: FileSystemPort = {
      ...systemFiles,
      open: () => {
        throw Object.assign(new Error('no'), { code: 'EACCES' });
      },
    };
    writeFileSync(path, rows(1));
    expect(createFileReader(files).read(path, () => 1)).toEqual({ kind: 'unreadable', code: 'EACCES' });
  });
});

describe('buffers', () => {
  test('lines are dead once the callback has returned', () => {
    writeFileSync(path, rows(2));
    const read = createFileReader().read(path, (file) => file.tail({ enough: never }).lines);
    expect(read.kind === 'read' && (() => read.value[0]?.text)).toThrow('given back');
  });

  test('a read inside a read does not take its buffers away', () => {
    const other = join(folder, 'b.jsonl');
    writeFileSync(path, rows(3));
    writeFileSync(other, row(9));
    const reader = createFileReader();
    const read = reader.read(path, (file) => {
      const { lines } = file.tail({ enough: never });
      const inner = reader.read(other, (second) => numbers(second.tail({ enough: never }).lines));
      return [inner.kind === 'read' ? inner.value : undefined, numbers(lines)];
    });
    expect(read).toMatchObject({ value: [[9], [0, 1, 2]] });
  });
});
