import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  appendPrivate,
  followLinks,
  RENAME_PATIENCE_MS,
  readBounded,
  systemWriter,
  type WriterPort,
  writePrivate,
} from '../../../src/runtime/files/private-file.ts';

const posix = process.platform !== 'win32';
let folder = '';
let path = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'private-'));
  path = join(folder, 'a.json');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const mode = (name: string): number => statSync(name).mode & 0o777;
const text = (name: string): string => readFileSync(name, 'utf8');
const failWith = (code: string): never => {
  throw Object.assign(new Error(code), { code });
};

function withUmask<T>(mask: number, run: () => T): T {
  const old = process.umask(mask);
  try {
    return run();
  } finally {
    process.umask(old);
  }
}

describe('C1: private whatever the umask', () => {
  test.skipIf(!posix).each([0, 0o002, 0o022, 0o377])('a new file and its new folders, umask %o', (mask) => {
    const deep = join(folder, 'x', 'y', 'z.json');
    if (mask === 0o377) mkdirSync(join(folder, 'x', 'y'), { recursive: true });
    expect(withUmask(mask, () => writePrivate(deep, '{}'))).toEqual({ kind: 'written', path: deep });
    expect(mode(deep)).toBe(0o600);
    if (mask === 0o377) return;
    expect(mode(join(folder, 'x'))).toBe(0o700);
    expect(mode(join(folder, 'x', 'y'))).toBe(0o700);
  });

  test.skipIf(!posix)('a rewrite keeps it 0600, and takes access from others where it had it', () => {
    writeFileSync(path, 'old');
    chmodSync(path, 0o644);
    withUmask(0o002, () => writePrivate(path, 'new'));
    expect(mode(path)).toBe(0o600);
    chmodSync(path, 0o664);
    expect(writePrivate(path, 'new').kind).toBe('unchanged');
    expect(mode(path)).toBe(0o600);
  });

  test.skipIf(!posix)('an existing folder of someone else keeps its mode', () => {
    chmodSync(folder, 0o755);
    writePrivate(path, 'x');
    expect(mode(folder)).toBe(0o755);
  });

  test.skipIf(!posix)('the temporary file is never open to others either', () => {
    const seen: number[] = [];
    const port: WriterPort = {
      ...systemWriter,
      rename: (from, to) => {
        seen.push(mode(from));
        systemWriter.rename(from, to);
      },
    };
    withUmask(0, () => writePrivate(path, 'x', { port }));
    expect(seen).toEqual([0o600]);
  });
});

describe('only if bytes differ', () => {
  test('the same content leaves the file alone', () => {
    writePrivate(path, '{"a":1}');
    utimesSync(path, 1, 1);
    const before = statSync(path);
    expect(writePrivate(path, Buffer.from('{"a":1}'))).toEqual({ kind: 'unchanged', path });
    expect(statSync(path).ino).toBe(before.ino);
    expect(statSync(path).mtimeMs).toBe(1000);
  });

  test('H10: bytes are bytes: a BOM and CRLF are kept as given', () => {
    writePrivate(path, '\ufeff{\r\n}\r\n');
    expect([...readFileSync(path)]).toEqual([0xef, 0xbb, 0xbf, 0x7b, 13, 10, 0x7d, 13, 10]);
  });

  test('H12: a file that is not as expected is not overwritten', () => {
    expect(writePrivate(path, 'b', { expected: 'a' }).kind).toBe('conflict');
    expect(writePrivate(path, 'b', { expected: null }).kind).toBe('written');
    expect(writePrivate(path, 'c', { expected: null }).kind).toBe('conflict');
    expect(writePrivate(path, 'c', { expected: Buffer.from('x') }).kind).toBe('conflict');
    expect(text(path)).toBe('b');
    expect(writePrivate(path, 'c', { expected: 'b' }).kind).toBe('written');
    expect(text(path)).toBe('c');
  });

  test('H12: nor one that someone wrote while ours went to the disk', () => {
    writeFileSync(path, 'old');
    const meddled: WriterPort = {
      ...systemWriter,
      fsync(fd) {
        systemWriter.fsync(fd);
        writeFileSync(path, 'theirs');
      },
    };
    expect(writePrivate(path, 'ours', { expected: 'old', port: meddled })).toEqual({
      kind: 'conflict',
      path,
    });
    expect(text(path)).toBe('theirs');
    expect(readdirSync(folder)).toEqual(['a.json']);
  });
});

describe.skipIf(!posix)('H9: links stay links', () => {
  test('a link, a chain of links, relative and absolute', () => {
    mkdirSync(join(folder, 'repo'));
    writeFileSync(join(folder, 'repo', 'settings.json'), 'old');
    symlinkSync('repo/settings.json', join(folder, 'second'));
    symlinkSync(join(folder, 'second'), path);
    expect(writePrivate(path, 'new', { keep: true })).toEqual({
      kind: 'written',
      path: join(folder, 'repo', 'settings.json'),
    });
    expect(text(join(folder, 'repo', 'settings.json'))).toBe('new');
    expect(readlinkSync(path)).toBe(join(folder, 'second'));
    expect(readlinkSync(join(folder, 'second'))).toBe('repo/settings.json');
    expect(readdirSync(join(folder, 'repo'))).toEqual(['settings.json']);
    expect(readdirSync(folder).sort()).toEqual(['a.json', 'repo', 'second']);
  });

  test('a dangling link: its target is made, also where its folder is missing', () => {
    symlinkSync('repo/deep/settings.json', path);
    expect(writePrivate(path, 'new', { keep: true }).kind).toBe('written');
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(text(join(folder, 'repo', 'deep', 'settings.json'))).toBe('new');
  });

  test('a link to a folder is passed through', () => {
    mkdirSync(join(folder, 'real'));
    symlinkSync('real', join(folder, 'dir'));
    writePrivate(join(folder, 'dir', 'x'), '1');
    expect(text(join(folder, 'real', 'x'))).toBe('1');
    expect(lstatSync(join(folder, 'dir')).isSymbolicLink()).toBe(true);
  });

  test('a circle is refused, and nothing is left', () => {
    symlinkSync('b', join(folder, 'a'));
    symlinkSync('a', join(folder, 'b'));
    expect(writePrivate(join(folder, 'a'), 'x')).toMatchObject({ kind: 'failed', code: 'ELOOP' });
    expect(() => followLinks(join(folder, 'b'))).toThrow('ELOOP');
    expect(readdirSync(folder).sort()).toEqual(['a', 'b']);
  });
});

describe.skipIf(!posix)('keep: settings of someone else', () => {
  test.each([0o644, 0o664, 0o600, 0o755])('mode %o stays, whatever the umask', (was) => {
    writeFileSync(path, 'old');
    chmodSync(path, was);
    withUmask(0o077, () => writePrivate(path, 'new', { keep: true }));
    expect(text(path)).toBe('new');
    expect(mode(path)).toBe(was);
    expect(writePrivate(path, 'new', { keep: true }).kind).toBe('unchanged');
    expect(mode(path)).toBe(was);
  });

  test('a new one is private', () => {
    writePrivate(path, 'new', { keep: true });
    expect(mode(path)).toBe(0o600);
  });

  test.skipIf(process.getuid?.() !== 0)('the owner stays when root edits', () => {
    writeFileSync(path, 'old');
    chownSync(path, 12345, 23456);
    writePrivate(path, 'new', { keep: true });
    expect([statSync(path).uid, statSync(path).gid]).toEqual([12345, 23456]);
  });
});

describe('a failure leaves the old file and nothing else', () => {
  test('rename, fsync', () => {
    writeFileSync(path, 'old');
    const broken: Partial<WriterPort>[] = [
      { rename: () => failWith('EXDEV') },
      { fsync: () => failWith('EIO') },
    ];
    const codes = broken.map((part) => writePrivate(path, 'new', { port: { ...systemWriter, ...part } }));
    expect(codes).toEqual([
      { kind: 'failed', path, code: 'EXDEV' },
      { kind: 'failed', path, code: 'EIO' },
    ]);
    expect(text(path)).toBe('old');
    expect(readdirSync(folder)).toEqual(['a.json']);
  });

  test('a cache does not wait for the disk', () => {
    const port: WriterPort = { ...systemWriter, fsync: () => failWith('EIO') };
    expect(writePrivate(path, 'new', { port, durable: false }).kind).toBe('written');
  });

  test('a folder in the place of the file, a file in the place of a folder', () => {
    mkdirSync(path);
    expect(writePrivate(path, 'x')).toMatchObject({ kind: 'failed', code: 'ENOTFILE' });
    writeFileSync(join(folder, 'f'), '');
    expect(writePrivate(join(folder, 'f', 'x'), 'x')).toMatchObject({ kind: 'failed' });
    expect(readdirSync(folder).sort()).toEqual(['a.json', 'f']);
  });

  test.skipIf(!posix || process.getuid?.() === 0)('a folder that may not be written', () => {
    chmodSync(folder, 0o500);
    expect(writePrivate(path, 'x')).toMatchObject({ kind: 'failed', code: 'EACCES' });
    chmodSync(folder, 0o700);
  });
});

describe('R-46: on Windows', () => {
  const windows = (fails: string[]): { port: WriterPort; pauses: number[] } => {
    const pauses: number[] = [];
    const port: WriterPort = {
      platform: 'win32',
      fsync: systemWriter.fsync,
      pause: (milliseconds) => void pauses.push(milliseconds),
      rename: (from, to) => {
        const code = fails.shift();
        if (code !== undefined) failWith(code);
        systemWriter.rename(from, to);
      },
    };
    return { port, pauses };
  };

  test('a file that is held for a moment is replaced a little later', () => {
    const { port, pauses } = windows(['EPERM', 'EBUSY', 'EACCES']);
    expect(writePrivate(path, 'x', { port }).kind).toBe('written');
    expect(pauses).toEqual([5, 10, 20]);
    expect(text(path)).toBe('x');
  });

  test('one that stays held fails in bounded time, and any other error at once', () => {
    const held = windows(Array.from({ length: 100 }, () => 'EBUSY'));
    expect(writePrivate(path, 'x', { port: held.port })).toMatchObject({ kind: 'failed', code: 'EBUSY' });
    expect(held.pauses.reduce((sum, pause) => sum + pause, 0)).toBeLessThan(2 * RENAME_PATIENCE_MS + 500);
    const other = windows(['ENOSPC']);
    expect(writePrivate(path, 'x', { port: other.port })).toMatchObject({ kind: 'failed', code: 'ENOSPC' });
    expect(other.pauses).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.skipIf(!posix)('modes are not touched', () => {
    writeFileSync(path, 'x');
    chmodSync(path, 0o644);
    writePrivate(path, 'x', { port: windows([]).port });
    expect(mode(path)).toBe(0o644);
  });
});

describe('appending', () => {
  test.skipIf(!posix)('private from birth and repaired', () => {
    const log = join(folder, 'logs', 'connector.log');
    withUmask(0, () => appendPrivate(log, 'one\n'));
    expect([mode(log), mode(join(folder, 'logs'))]).toEqual([0o600, 0o700]);
    chmodSync(log, 0o644);
    appendPrivate(log, 'two\n');
    expect(mode(log)).toBe(0o600);
    expect(text(log)).toBe('one\ntwo\n');
  });

  test('rotates at the limit, not at it exactly, and keeps one old file', () => {
    const log = join(folder, 'connector.log');
    for (const line of ['aaaa\n', 'bbbb\n', 'cccc\n', 'dddd\n', 'eeee\n'])
      appendPrivate(log, line, { rotateAt: 10 });
    expect(text(log)).toBe('eeee\n');
    expect(text(`${log}.1`)).toBe('cccc\ndddd\n');
    expect(readdirSync(folder).sort()).toEqual(['connector.log', 'connector.log.1']);
  });

  test('what cannot be written is said, not thrown', () => {
    writeFileSync(join(folder, 'f'), '');
    expect(appendPrivate(join(folder, 'f', 'log'), 'x')).toBeString();
    mkdirSync(path);
    expect(appendPrivate(path, 'x')).toBe('EISDIR');
  });
});

describe('reading with a bound', () => {
  test('at the bound, one past it, missing, empty', () => {
    writeFileSync(path, 'x'.repeat(100));
    expect(readBounded(path, 100)).toMatchObject({ kind: 'read', bytes: Buffer.from('x'.repeat(100)) });
    expect(readBounded(path, 99)).toEqual({ kind: 'too-large', size: 100 });
    expect(readBounded(`${path}.no`, 1)).toEqual({ kind: 'missing' });
    writeFileSync(path, '');
    expect(readBounded(path, 0)).toMatchObject({ kind: 'read', bytes: Buffer.alloc(0) });
  });

  test('a folder; a FIFO does not block', () => {
    expect(readBounded(folder, 10)).toEqual({ kind: 'not-a-file' });
    if (!posix) return;
    expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
    expect(readBounded(path, 10)).toEqual({ kind: 'not-a-file' });
  });

  test.skipIf(process.platform !== 'linux')('a file whose size is a lie: /proc says 0', () => {
    expect(readBounded('/proc/self/stat', 4096)).toMatchObject({ kind: 'read' });
    const maps = readBounded('/proc/self/maps', 1024 * 1024);
    expect(maps.kind === 'read' && maps.bytes.length).toBeGreaterThan(4097);
    expect(readBounded('/proc/self/stat', 10)).toMatchObject({ kind: 'too-large' });
  });
});
