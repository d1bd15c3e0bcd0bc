import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connectorHome, ensureHome, shadowHome } from '../../../src/runtime/store/home.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'home-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('R-30: where the connector home is', () => {
  test.each([
    [{}, join('/u', '.shadowob', 'connector')],
    [{ SHADOWOB_HOME: '/s' }, join('/s', 'connector')],
    [{ SHADOWOB_CONNECTOR_HOME: '/c' }, '/c'],
    [{ SHADOWOB_CONNECTOR_HOME: '/c', SHADOWOB_HOME: '/s' }, '/c'],
    [{ SHADOWOB_CONNECTOR_HOME: '', SHADOWOB_HOME: '' }, join('/u', '.shadowob', 'connector')],
    [{ SHADOWOB_CONNECTOR_HOME: 'rel' }, resolve('rel')],
  ])('%j', (env, expected) => {
    expect(connectorHome(env, '/u')).toBe(expected);
  });

  test('SHADOWOB_CONNECTOR_HOME does not move the parent, where the device identity lies', () => {
    expect(shadowHome({ SHADOWOB_CONNECTOR_HOME: '/c' }, '/u')).toBe(join('/u', '.shadowob'));
  });
});

describe.skipIf(process.platform === 'win32')('C1: making it', () => {
  const mode = (path: string): number => statSync(path).mode & 0o777;

  test('0700 for every folder that is made, whatever the umask', () => {
    const old = process.umask(0);
    expect(ensureHome(join(folder, 'a', 'b'))).toEqual({ kind: 'ready' });
    process.umask(old);
    expect(mode(join(folder, 'a', 'b'))).toBe(0o700);
    expect(mode(join(folder, 'a'))).toBe(0o700);
  });

  test('access of others is taken away from one that exists; its parent is left alone', () => {
    mkdirSync(join(folder, 'a', 'b'), { recursive: true });
    chmodSync(join(folder, 'a'), 0o755);
    chmodSync(join(folder, 'a', 'b'), 0o775);
    expect(ensureHome(join(folder, 'a', 'b'))).toEqual({ kind: 'ready' });
    expect(mode(join(folder, 'a', 'b'))).toBe(0o700);
    expect(mode(join(folder, 'a'))).toBe(0o755);
  });

  test('a link to a folder is used as it is', () => {
    mkdirSync(join(folder, 'real'), { mode: 0o755 });
    symlinkSync('real', join(folder, 'link'));
    expect(ensureHome(join(folder, 'link'))).toEqual({ kind: 'ready' });
    expect(mode(join(folder, 'real'))).toBe(0o700);
    expect(readdirSync(folder).sort()).toEqual(['link', 'real']);
  });

  test('a file in the way is said, not thrown', () => {
    writeFileSync(join(folder, 'a'), '');
    expect(ensureHome(join(folder, 'a', 'b'))).toEqual({ kind: 'unavailable', code: 'ENOTDIR' });
    expect(ensureHome(join(folder, 'a'))).toEqual({ kind: 'unavailable', code: 'EEXIST' });
  });

  test('with Windows injected no mode is set', () => {
    mkdirSync(join(folder, 'a'), { mode: 0o755 });
    chmodSync(join(folder, 'a'), 0o755);
    expect(ensureHome(join(folder, 'a'), 'win32')).toEqual({ kind: 'ready' });
    expect(mode(join(folder, 'a'))).toBe(0o755);
  });
});
