import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  linkSync,
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
import { dirname, join } from 'node:path';
import { type Change, createEditor, type Editor, type Proposed } from '../../../src/install/edit/editor.ts';
import { STEPS_KEPT } from '../../../src/install/edit/history.ts';
import { setValue } from '../../../src/install/edit/operation.ts';
import type { Wiring } from '../../../src/install/edit/wiring.ts';
import { acquireLock } from '../../../src/runtime/daemon/lock.ts';
import { systemWriter, type WriterPort } from '../../../src/runtime/files/private-file.ts';
import { hooksWiring } from './helpers.ts';

const posix = process.platform !== 'win32';
const claude = hooksWiring('json', '/a/bin');
const THEIRS = '{\r\n\t"model": "opus",\r\n\t"hooks": { }\r\n}';

let folder = '';
let home = '';
let path = '';
let editor: Editor;

const withPort = (port?: WriterPort): Editor =>
  createEditor({ home, now: () => new Date(0), ...(port === undefined ? {} : { port }) });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'editor-'));
  home = join(folder, 'home');
  path = join(folder, 'claude', 'settings.json');
  mkdirSync(dirname(path));
  editor = withPort();
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const read = (name = path): string => readFileSync(name, 'utf8');
const mode = (name: string): number => statSync(name).mode & 0o7777;

function changeOf(proposed: Proposed): Change {
  if (proposed.kind !== 'change') throw new Error(`not a change: ${proposed.kind}`);
  return proposed;
}

const install = (wiring: Wiring = claude, by = editor, at = path) =>
  by.commit(changeOf(by.install(at, wiring)));
const remove = (wiring: Wiring = claude, by = editor, at = path) =>
  by.commit(changeOf(by.remove(at, wiring)));
const undo = (by = editor, at = path) => by.commit(changeOf(by.undo(at)));

/** A writer that does something else to the target when it is about to be, or has just been, replaced. */
const meddling = (when: 'before' | 'after', meddle: (target: string) => void): WriterPort => ({
  ...systemWriter,
  fsync(fd) {
    systemWriter.fsync(fd);
    if (when === 'before' && existsSync(path)) meddle(path);
  },
  rename(from, to) {
    systemWriter.rename(from, to);
    if (when === 'after' && to === path) meddle(to);
  },
});

describe('proposing', () => {
  test('writes nothing, and shows a unified diff', () => {
    writeFileSync(path, '{\n  "a": 1\n}\n');
    const proposed = changeOf(editor.install(path, { ...claude, install: () => [setValue(['b'], 2)] }));
    expect(proposed.diff).toBe(
      `--- ${path}\n+++ ${path}\n@@ -1,3 +1,4 @@\n {\n-  "a": 1\n+  "a": 1,\n+  "b": 2\n }\n`,
    );
    expect(read()).toBe('{\n  "a": 1\n}\n');
    expect(existsSync(home)).toBe(false);
  });

  test('a new file is shown as one', () => {
    const proposed = changeOf(editor.install(path, claude));
    expect(proposed.diff).toStartWith(`--- /dev/null\n+++ ${path}\n@@ -0,0 +1,`);
    expect(proposed.before).toBeNull();
  });

  test.each([
    ['not UTF-8', Buffer.from([0xff, 0xfe, 0x7b, 0x00]), 'encoding'],
    ['too large', Buffer.alloc(4 * 1024 * 1024 + 1, ' '), 'too-large'],
    ['broken', Buffer.from('{'), 'invalid'],
  ])('%s: refused untouched, with the lines to paste', (_, bytes, code) => {
    writeFileSync(path, bytes);
    const proposed = editor.install(path, claude);
    expect(proposed).toMatchObject({ kind: 'refused', path, code });
    if (proposed.kind === 'refused') expect(proposed.byHand.paste).toContain('"SessionStart": [');
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  test('S-841: a removal from a broken file names the lines to take out', () => {
    writeFileSync(path, '{ // x\n}');
    const proposed = editor.remove(path, claude);
    expect(proposed).toMatchObject({ kind: 'refused', byHand: { paste: undefined } });
    if (proposed.kind === 'refused') expect(proposed.byHand.remove).toContain('"SessionStart": [');
  });

  test('a folder in its place is refused', () => {
    mkdirSync(path);
    expect(editor.install(path, claude)).toMatchObject({ kind: 'refused', code: 'not-a-file' });
  });

  test('a read-only file was closed on purpose', () => {
    writeFileSync(path, '{}');
    chmodSync(path, 0o444);
    expect(editor.install(path, claude)).toMatchObject({ kind: 'refused', code: 'read-only' });
  });

  test('a read-only file is read, and refused only where there is something to do', () => {
    writeFileSync(path, '{"a": 1}');
    chmodSync(path, 0o444);
    expect(editor.read(path, 'json')).toEqual({ kind: 'data', data: { a: 1 } });
    expect(editor.remove(path, claude)).toEqual({ kind: 'nothing', path });
    chmodSync(path, 0o644);
    install();
    chmodSync(path, 0o444);
    expect(editor.install(path, claude)).toEqual({ kind: 'nothing', path });
    expect(editor.remove(path, claude)).toMatchObject({ kind: 'refused', code: 'read-only' });
  });

  test('a second name of the file would be cut off', () => {
    writeFileSync(path, '{}');
    linkSync(path, join(folder, 'other.json'));
    expect(editor.install(path, claude)).toMatchObject({ kind: 'refused', code: 'hard-linked' });
  });

  test('reading says what is there', () => {
    expect(editor.read(path, 'json')).toEqual({ kind: 'data', data: {} });
    writeFileSync(path, '{"a": 1}');
    expect(editor.read(path, 'json')).toEqual({ kind: 'data', data: { a: 1 } });
    writeFileSync(path, '{');
    expect(editor.read(path, 'json')).toMatchObject({ kind: 'refused', code: 'invalid' });
  });
});

describe('writing', () => {
  test('H12: one that comes second with the same plan writes nothing, and leaves the record of the first', () => {
    writeFileSync(path, THEIRS);
    const [first, second] = [withPort(), withPort()];
    const [one, two] = [first, second].map((each) => changeOf(each.install(path, claude)));
    if (one === undefined || two === undefined) throw new Error('two plans');
    expect(first.commit(one).kind).toBe('written');
    expect(second.commit(two).kind).toBe('conflict');
    remove();
    expect(read()).toBe(THEIRS);
  });

  test('one that another of us is at work on is not touched', async () => {
    if (!posix) return;
    writeFileSync(path, THEIRS);
    mkdirSync(home, { mode: 0o700 });
    const holder = { pid: process.pid, version: 'test', since: '' };
    const lock = await acquireLock({ path: join(home, 'edits.lock'), holder });
    expect(install().kind).toBe('conflict');
    expect(read()).toBe(THEIRS);
    if (lock.kind === 'held') lock.release();
    expect(install().kind).toBe('written');
  });

  test('install, upgrade, removal and undo on disk end at the first bytes', () => {
    writeFileSync(path, THEIRS);
    expect(install()).toMatchObject({ kind: 'written', file: path });
    install(hooksWiring('json', '/b'));
    remove();
    expect(read()).toBe(THEIRS);
    undo();
    undo();
    undo();
    expect(read()).toBe(THEIRS);
    expect(editor.undo(path).kind).toBe('nothing');
  });

  test('T5: nothing to do, nothing written: the time of the file stays', () => {
    writeFileSync(path, THEIRS);
    install();
    utimesSync(path, 1000, 1000);
    expect(editor.install(path, claude)).toEqual({ kind: 'nothing', path });
    expect(statSync(path).mtimeMs).toBe(1_000_000);
  });

  test.skipIf(!posix)('mode of the file stays; a new one is private', () => {
    writeFileSync(path, '{}');
    chmodSync(path, 0o640);
    install();
    expect(mode(path)).toBe(0o640);
    const fresh = join(folder, 'new', 'deep', 'settings.json');
    install(claude, editor, fresh);
    expect([mode(fresh), mode(dirname(fresh))]).toEqual([0o600, 0o700]);
  });

  test('a file and folders that were not there are not there again', () => {
    const fresh = join(folder, 'new', 'deep', 'settings.json');
    install(claude, editor, fresh);
    expect(remove(claude, editor, fresh)).toMatchObject({ kind: 'removed', file: fresh });
    expect(existsSync(join(folder, 'new'))).toBe(false);
    expect(undo(editor, fresh)).toMatchObject({ kind: 'written' });
    expect(read(fresh)).toContain('shadowob-connector');
    undo(editor, fresh);
    expect(existsSync(join(folder, 'new'))).toBe(false);
  });

  test('a folder of ours that someone uses stays', () => {
    const fresh = join(folder, 'new', 'settings.json');
    install(claude, editor, fresh);
    writeFileSync(join(folder, 'new', 'theirs'), '');
    remove(claude, editor, fresh);
    expect(readdirSync(join(folder, 'new'))).toEqual(['theirs']);
  });

  test.skipIf(!posix)('H9: links and chains of links stay, and the file at their end is edited', () => {
    const real = join(folder, 'dotfiles', 'settings.json');
    mkdirSync(dirname(real));
    writeFileSync(real, THEIRS);
    symlinkSync('../dotfiles/link', path);
    symlinkSync('settings.json', join(folder, 'dotfiles', 'link'));
    expect(install()).toMatchObject({ kind: 'written', file: real });
    expect(readlinkSync(path)).toBe('../dotfiles/link');
    expect(lstatSync(real).isSymbolicLink()).toBe(false);
    expect(read(real)).toContain('shadowob-connector');
    remove();
    expect(read(real)).toBe(THEIRS);
  });

  test.skipIf(!posix)('H9: a dangling link comes to lead to the new file, and dangles again', () => {
    symlinkSync('../dotfiles/settings.json', path);
    expect(install()).toMatchObject({ kind: 'written', file: join(folder, 'dotfiles', 'settings.json') });
    expect(read()).toContain('shadowob-connector');
    expect(remove()).toMatchObject({ kind: 'removed' });
    expect(readlinkSync(path)).toBe('../dotfiles/settings.json');
    expect(existsSync(join(folder, 'dotfiles'))).toBe(false);
  });

  test.skipIf(!posix)('a link in a circle is refused', () => {
    symlinkSync('settings.json', path);
    expect(editor.install(path, claude)).toMatchObject({
      kind: 'refused',
      code: 'unreadable',
      message: 'cannot be read (ELOOP)',
    });
  });
});

describe('H12: the file changes under us', () => {
  test('between looking and writing: nothing is written', () => {
    writeFileSync(path, THEIRS);
    const change = changeOf(editor.install(path, claude));
    writeFileSync(path, '{"mine": 1}');
    expect(editor.commit(change)).toEqual({ kind: 'conflict', file: path });
    expect(read()).toBe('{"mine": 1}');
    expect(editor.undo(path).kind).toBe('nothing');
  });

  test('it appears, or goes away', () => {
    const fresh = changeOf(editor.install(path, claude));
    writeFileSync(path, '{}');
    expect(editor.commit(fresh).kind).toBe('conflict');
    const change = changeOf(editor.install(path, claude));
    rmSync(path);
    expect(editor.commit(change).kind).toBe('conflict');
    expect(existsSync(path)).toBe(false);
  });

  test('while ours is written to disk', () => {
    writeFileSync(path, THEIRS);
    const meddled = withPort(meddling('before', (target) => writeFileSync(target, '{"mine": 1}')));
    expect(install(claude, meddled)).toEqual({ kind: 'conflict', file: path });
    expect(read()).toBe('{"mine": 1}');
    expect(readdirSync(dirname(path))).toEqual(['settings.json']);
  });

  test('before a file of ours is removed', () => {
    install();
    const change = changeOf(editor.remove(path, claude));
    writeFileSync(path, '{"mine": 1}');
    expect(editor.commit(change).kind).toBe('conflict');
    expect(read()).toBe('{"mine": 1}');
  });

  test.skipIf(!posix)('its link leads elsewhere', () => {
    const [one, two] = [join(folder, 'one.json'), join(folder, 'two.json')];
    writeFileSync(one, '{}');
    writeFileSync(two, '{}');
    symlinkSync(one, path);
    const change = changeOf(editor.install(path, claude));
    rmSync(path);
    symlinkSync(two, path);
    expect(editor.commit(change).kind).toBe('conflict');
    expect([read(one), read(two)]).toEqual(['{}', '{}']);
  });
});

describe('what was written is read back', () => {
  test('H11: a program that writes at once has the last word, and is told of', () => {
    writeFileSync(path, THEIRS);
    const meddled = withPort(meddling('after', (target) => writeFileSync(target, '{"mine": 1}')));
    expect(install(claude, meddled)).toEqual({ kind: 'overwritten', file: path });
    expect(read()).toBe('{"mine": 1}');
  });

  test('bytes that make no sense are replaced by the former ones', () => {
    writeFileSync(path, THEIRS);
    let spoiled = false;
    const meddled = withPort(
      meddling('after', (target) => {
        if (spoiled) return;
        spoiled = true;
        writeFileSync(target, '{"hooks": {');
      }),
    );
    expect(install(claude, meddled)).toEqual({ kind: 'restored', file: path });
    expect(read()).toBe(THEIRS);
    expect(editor.undo(path).kind).toBe('nothing');
  });

  test('and a file that was not there goes', () => {
    const meddled = withPort(meddling('after', (target) => writeFileSync(target, '{"hooks": {')));
    expect(install(claude, meddled)).toEqual({ kind: 'restored', file: path });
    expect(existsSync(path)).toBe(false);
  });
});

describe('what the system refuses', () => {
  const failing = (code: string, at: (target: string) => boolean): WriterPort => ({
    ...systemWriter,
    rename(from, to) {
      if (at(to)) throw Object.assign(new Error(code), { code });
      systemWriter.rename(from, to);
    },
  });

  test.each(['EACCES', 'EROFS', 'ENOSPC'])(
    'C-311: %s at the file: the old one is whole, nothing is left',
    (code) => {
      writeFileSync(path, THEIRS);
      const failed = install(claude, withPort(failing(code, (to) => to === path)));
      expect(failed).toEqual({ kind: 'failed', file: path, code, while: 'write' });
      expect(read()).toBe(THEIRS);
      expect(readdirSync(dirname(path))).toEqual(['settings.json']);
      expect(editor.undo(path).kind).toBe('nothing');
    },
  );

  test('without a backup nothing is written', () => {
    writeFileSync(path, THEIRS);
    const failed = install(claude, withPort(failing('ENOSPC', (to) => to.startsWith(home))));
    expect(failed).toEqual({ kind: 'failed', file: path, code: 'ENOSPC', while: 'backup' });
    expect(read()).toBe(THEIRS);
  });

  test.skipIf(!posix || process.getuid?.() === 0)('a folder that may not be written', () => {
    writeFileSync(path, THEIRS);
    chmodSync(dirname(path), 0o555);
    expect(install()).toMatchObject({ kind: 'failed', code: 'EACCES', while: 'write' });
    chmodSync(dirname(path), 0o755);
    expect(read()).toBe(THEIRS);
  });
});

describe('backups and records', () => {
  const recordFolder = () => join(home, 'edits', readdirSync(join(home, 'edits'))[0] ?? '');

  test.skipIf(!posix)('C1: private files in private folders, whatever the file allowed', () => {
    writeFileSync(path, '{"token": "secret"}');
    chmodSync(path, 0o644);
    install();
    const inside = recordFolder();
    expect([mode(home), mode(join(home, 'edits')), mode(inside)]).toEqual([0o700, 0o700, 0o700]);
    expect(readdirSync(inside).map((name) => mode(join(inside, name)))).toEqual([0o600, 0o600]);
  });

  test('the backup is the former file', () => {
    writeFileSync(path, THEIRS);
    const written = install();
    expect(written.kind === 'written' && read(written.backup ?? '')).toBe(THEIRS);
  });

  test('a bounded number is kept, and the first bytes still come back', () => {
    writeFileSync(path, THEIRS);
    for (let index = 0; index < STEPS_KEPT + 5; index += 1) install(hooksWiring('json', `/place${index}`));
    const names = readdirSync(recordFolder());
    // One text before each step that is kept, the text without us, and the record.
    expect(names.length).toBe(STEPS_KEPT + 2);
    remove();
    expect(read()).toBe(THEIRS);
  });

  test('a crash between record and write leaves a step that never happened', () => {
    writeFileSync(path, THEIRS);
    install();
    // The record is there, and the file as it was: what such a crash leaves.
    writeFileSync(path, THEIRS);
    expect(editor.undo(path).kind).toBe('nothing');
    install();
    remove();
    expect(read()).toBe(THEIRS);
    undo();
    undo();
    expect(editor.undo(path).kind).toBe('nothing');
  });

  test.each([
    ['torn', (text: string) => text.slice(0, 40)],
    ['of another version', (text: string) => text.replace('"version": 1', '"version": 2')],
  ])('case 20: a record that is %s is set aside; removal goes entry by entry', (_, spoil) => {
    writeFileSync(path, '{"a": 1}');
    install();
    const record = join(recordFolder(), 'steps.json');
    const spoiled = spoil(read(record));
    writeFileSync(record, spoiled);
    expect(editor.undo(path).kind).toBe('nothing');
    remove();
    expect(JSON.parse(read())).toEqual({ a: 1, hooks: {} });
    expect(read(join(recordFolder(), 'steps.broken.json'))).toBe(spoiled);
  });

  test('a damaged backup is not put back', () => {
    writeFileSync(path, THEIRS);
    const written = install();
    if (written.kind !== 'written' || written.backup === undefined) throw new Error('no backup');
    writeFileSync(written.backup, 'something else');
    expect(editor.undo(path).kind).toBe('nothing');
    expect(remove().kind).toBe('written');
    expect(JSON.parse(read())).toMatchObject({ model: 'opus' });
  });

  test('an undo that is refused shows what was changed since', () => {
    writeFileSync(path, THEIRS);
    install();
    writeFileSync(path, read().replaceAll('/a/bin', 'nice /a/bin'));
    const proposed = editor.undo(path);
    expect(proposed.kind).toBe('changed-since');
    if (proposed.kind === 'changed-since') {
      expect(proposed.diff).toContain('+\t\t\t\t\t\t"command": "nice /a/bin/shadowob-connector hook');
    }
  });
});
