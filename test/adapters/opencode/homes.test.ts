import { describe, expect, test } from 'bun:test';
import { findHome, homeCandidates } from '../../../src/adapters/opencode/homes.ts';

const folders = (
  env: Record<string, string>,
  platform: NodeJS.Platform = 'linux',
  home = '/home/dev',
): readonly string[] => homeCandidates({ env, home, platform }).map(({ data }) => data);

describe('where OpenCode’s data lies', () => {
  test('a folder that the user named is the only one', () => {
    expect(folders({ OPENCODE_DATA_DIR: '/data/oc', XDG_DATA_HOME: '/xdg' })).toEqual(['/data/oc']);
  });

  test('then XDG_DATA_HOME, then the usual place, on macOS too', () => {
    expect(folders({ XDG_DATA_HOME: '/xdg' })).toEqual(['/xdg/opencode', '/home/dev/.local/share/opencode']);
    expect(folders({}, 'darwin', '/Users/dev')).toEqual(['/Users/dev/.local/share/opencode']);
  });

  test('relative values are no folders', () => {
    expect(folders({ OPENCODE_DATA_DIR: 'oc', XDG_DATA_HOME: 'share' })).toEqual([
      '/home/dev/.local/share/opencode',
    ]);
  });

  test('OPENCODE_DB is the database, from the data folder where it is relative (1.18.33)', () => {
    const database = (named: string, platform: NodeJS.Platform = 'linux') =>
      homeCandidates({ env: { OPENCODE_DB: named }, home: '/home/dev', platform })[0].database;
    expect(database('/srv/oc/my.db')).toBe('/srv/oc/my.db');
    expect(database('other.db')).toBe('/home/dev/.local/share/opencode/other.db');
    expect(database(':memory:')).toBe('/home/dev/.local/share/opencode/opencode.db');
    expect(database('')).toBe('/home/dev/.local/share/opencode/opencode.db');
    expect(database('D:\\oc\\my.db', 'win32')).toBe('D:\\oc\\my.db');
  });

  test('Windows: roaming, local, and the usual place, with its own separators', () => {
    const env = {
      APPDATA: 'C:\\Users\\dev\\AppData\\Roaming',
      LOCALAPPDATA: 'C:\\Users\\dev\\AppData\\Local',
    };
    expect(folders(env, 'win32', 'C:\\Users\\dev')).toEqual([
      'C:\\Users\\dev\\AppData\\Roaming\\opencode',
      'C:\\Users\\dev\\AppData\\Local\\opencode',
      'C:\\Users\\dev\\.local\\share\\opencode',
    ]);
    expect(folders({ ...env, XDG_DATA_HOME: '/xdg' }, 'linux')).toEqual([
      '/xdg/opencode',
      '/home/dev/.local/share/opencode',
    ]);
  });

  test('the first that holds anything is read; where none does, the first, to be watched for', () => {
    const context = { env: { XDG_DATA_HOME: '/xdg' }, home: '/home/dev', platform: 'linux' } as const;
    const there = (...paths: readonly string[]) => findHome(context, (path) => paths.includes(path)).data;
    expect(there('/home/dev/.local/share/opencode/opencode.db')).toBe('/home/dev/.local/share/opencode');
    expect(there('/home/dev/.local/share/opencode/storage')).toBe('/home/dev/.local/share/opencode');
    expect(there('/xdg/opencode/opencode.db', '/home/dev/.local/share/opencode/opencode.db')).toBe(
      '/xdg/opencode',
    );
    expect(there()).toBe('/xdg/opencode');
  });
});
