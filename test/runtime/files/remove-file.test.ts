import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeEmptyFolders, removeFile } from '../../../src/runtime/files/remove-file.ts';

let folder = '';
let path = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'remove-'));
  path = join(folder, 'a.json');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('removing what we made', () => {
  test('a file that is what we expect goes', () => {
    writeFileSync(path, 'ours');
    expect(removeFile(path, Buffer.from('ours'))).toEqual({ kind: 'removed', path });
    expect(existsSync(path)).toBe(false);
  });

  test('H12: one that has changed since stays', () => {
    writeFileSync(path, 'theirs');
    expect(removeFile(path, Buffer.from('ours'))).toEqual({ kind: 'conflict', path });
    expect(readFileSync(path, 'utf8')).toBe('theirs');
  });

  test('one that is gone already is a conflict, a folder a failure', () => {
    expect(removeFile(path, Buffer.from('ours'))).toEqual({ kind: 'conflict', path });
    mkdirSync(path);
    expect(removeFile(path, Buffer.from('ours'))).toMatchObject({ kind: 'failed', code: 'EISDIR' });
  });

  test.skipIf(process.platform === 'win32')('H9: of a link only the file at its end goes', () => {
    const real = join(folder, 'real.json');
    writeFileSync(real, 'ours');
    symlinkSync('real.json', path);
    expect(removeFile(path, Buffer.from('ours'))).toEqual({ kind: 'removed', path: real });
    expect([existsSync(real), lstatSync(path).isSymbolicLink()]).toEqual([false, true]);
  });

  test('folders go as far as they are empty, from the inside out', () => {
    const [outer, inner] = [join(folder, 'a'), join(folder, 'a', 'b')];
    mkdirSync(inner, { recursive: true });
    writeFileSync(join(outer, 'theirs'), '');
    removeEmptyFolders([outer, inner]);
    expect([existsSync(inner), existsSync(outer)]).toEqual([false, true]);
  });
});
