import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemWriter } from '../../../src/runtime/files/private-file.ts';
import { ITEM_BYTES, privateDriver, privateStorage } from '../../../src/runtime/store/private-driver.ts';
import {
  CACHE_FOLDER,
  openProbeCache,
  PROBE_ENTRIES,
  PROBE_FILE,
} from '../../../src/runtime/store/probe-store.ts';

let folder = '';
let base = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'driver-'));
  base = join(folder, 'store');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a private storage', () => {
  test('keeps values by key, lists, counts and removes them', async () => {
    const storage = privateStorage({ base });
    await storage.setItem('jobs:1', { id: 1, name: 'é' });
    await storage.setItem('jobs:2', 'text');
    await storage.setItem('seq', 7);
    expect(await storage.getItem('jobs:1')).toEqual({ id: 1, name: 'é' });
    expect(await storage.getItem('seq')).toBe(7);
    expect((await storage.getKeys()).sort()).toEqual(['jobs:1', 'jobs:2', 'seq']);
    expect((await storage.getKeys('jobs')).sort()).toEqual(['jobs:1', 'jobs:2']);
    expect(await storage.hasItem('jobs:2')).toBe(true);
    expect((await storage.getMeta('jobs:2'))['size']).toBe(4);
    await storage.removeItem('jobs:2');
    expect(await storage.getItem('jobs:2')).toBeNull();
    await storage.clear();
    expect(await storage.getKeys()).toEqual([]);
  });

  test('bytes stay bytes', async () => {
    const storage = privateStorage({ base });
    await storage.setItemRaw('raw', Buffer.from([0, 255, 10]));
    expect(await storage.getItemRaw('raw')).toEqual(Buffer.from([0, 255, 10]));
  });

  test.skipIf(process.platform === 'win32')(
    'C1: folders 0700, files 0600, whatever the umask; atomic',
    async () => {
      const old = process.umask(0);
      const storage = privateStorage({ base });
      await storage.setItem('a:b', 'x');
      await storage.setItem('a:b', 'y');
      process.umask(old);
      const mode = (path: string): number => statSync(path).mode & 0o777;
      expect([mode(base), mode(join(base, 'a')), mode(join(base, 'a', 'b'))]).toEqual([0o700, 0o700, 0o600]);
      expect(readdirSync(join(base, 'a'))).toEqual(['b']);
    },
  );

  test('reading creates nothing', async () => {
    const storage = privateStorage({ base });
    expect(await storage.getItem('a')).toBeNull();
    expect(await storage.getKeys()).toEqual([]);
    await storage.removeItem('a');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('a key cannot leave its folder, and no file of others is taken for a key', async () => {
    const driver = privateDriver({ base });
    await driver.setItem?.('..:..:x/y', 'v', {});
    await driver.setItem?.('CON.', 'v', {});
    expect(readdirSync(folder)).toEqual(['store']);
    expect((await driver.getKeys('', {})).sort()).toEqual(['..:..:x/y', 'CON.']);
    writeFileSync(join(base, '.hidden.tmp'), '');
    writeFileSync(join(base, '100%'), '');
    expect((await driver.getKeys('', {})).length).toBe(2);
  });

  test('a write that fails rejects and leaves the old value', async () => {
    await privateStorage({ base }).setItem('a', 'old');
    const port = {
      ...systemWriter,
      rename: () => {
        throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      },
    };
    expect(privateStorage({ base, port }).setItem('a', 'new')).rejects.toThrow(
      'could not be written (ENOSPC)',
    );
    expect(await privateStorage({ base }).getItem('a')).toBe('old');
  });

  test('an item that is too large to be ours is not read', async () => {
    const storage = privateStorage({ base });
    await storage.setItem('a', 'x');
    truncateSync(join(base, 'a'), ITEM_BYTES + 1);
    expect(await storage.getItem('a')).toBeNull();
  });
});

describe('V4: the probe cache on disk', () => {
  const file = (): string => join(base, CACHE_FOLDER, PROBE_FILE);

  test('what was stored is there for the next command', async () => {
    await openProbeCache(base).set('version:/usr/bin/x:1:2', { version: '1.2.3', at: 5 });
    const next = openProbeCache(base);
    expect(await next.get('version:/usr/bin/x:1:2')).toEqual({ version: '1.2.3', at: 5 });
    expect(await next.get('other')).toBeUndefined();
  });

  test('eleven probes that end at once are all kept, and one file is read once', async () => {
    const cache = openProbeCache(base);
    await Promise.all(Array.from({ length: 11 }, (_, n) => cache.set(`k${n}`, n)));
    const next = openProbeCache(base);
    const all = await Promise.all(Array.from({ length: 11 }, (_, n) => next.get(`k${n}`)));
    expect(all).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test('two commands at once do not drop what the other stored', async () => {
    const [a, b] = [openProbeCache(base), openProbeCache(base)];
    await Promise.all([a.get('x'), b.get('x')]);
    await a.set('a', 1);
    await b.set('b', 2);
    expect(Object.keys(JSON.parse(readFileSync(file(), 'utf8')))).toEqual(['a', 'b']);
  });

  test('values are plain JSON: later changes of an object do not reach the cache', async () => {
    const cache = openProbeCache(base);
    const value = { list: [1] };
    await cache.set('k', value);
    value.list.push(2);
    expect(await cache.get('k')).toEqual({ list: [1] });
    await cache.set('nothing', undefined);
    expect(await cache.get('nothing')).toBeUndefined();
  });

  test('the oldest entries go first', async () => {
    mkdirSync(join(base, CACHE_FOLDER), { recursive: true });
    writeFileSync(
      file(),
      JSON.stringify(Object.fromEntries(Array.from({ length: PROBE_ENTRIES }, (_, n) => [`k${n}`, n]))),
    );
    await openProbeCache(base).set('k0', 'again');
    await openProbeCache(base).set('new', 1);
    const keys = Object.keys(JSON.parse(readFileSync(file(), 'utf8')));
    expect(keys.length).toBe(PROBE_ENTRIES);
    expect(keys.slice(-2)).toEqual(['k0', 'new']);
    expect(keys).not.toContain('k1');
  });

  test.each(['', 'no json', '[1]', 'null', '{"a":'])(
    'a file of %j is an empty cache, and is replaced',
    async (text) => {
      mkdirSync(join(base, CACHE_FOLDER), { recursive: true });
      writeFileSync(file(), text);
      const cache = openProbeCache(base);
      expect(await cache.get('a')).toBeUndefined();
      await cache.set('a', 1);
      expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({ a: 1 });
    },
  );

  test('a home that cannot be written is no cache, and no error', async () => {
    writeFileSync(base, 'a file');
    const cache = openProbeCache(base);
    await cache.set('a', 1);
    expect(await cache.get('a')).toBe(1);
    expect(await openProbeCache(base).get('a')).toBeUndefined();
  });
});
