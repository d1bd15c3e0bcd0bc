import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { selfCommand } from '../../../src/runtime/control/context.ts';
import { placesOf } from '../../../src/runtime/control/places.ts';
import { lockSession } from '../../../src/runtime/control/push-lock.ts';
import { openQueue, type QueuedMessage } from '../../../src/runtime/control/queue.ts';
import { listRecords, recordOf, removeRecord, writeRecord } from '../../../src/runtime/control/record.ts';
import { endOrphan, sweepHosts } from '../../../src/runtime/control/sweep.ts';
import { fitsSocketPath } from '../../../src/runtime/daemon/endpoint.ts';
import { identityFromProc, isAlive } from '../../../src/runtime/process/identity.ts';
import { run, start } from '../../../src/runtime/process/spawn.ts';
import { messageOf, SESSION } from './fake-driver.ts';

const temp = { home: '' };
beforeEach(() => {
  temp.home = mkdtempSync(join(tmpdir(), 'connector-files-'));
});
afterEach(() => rmSync(temp.home, { recursive: true, force: true }));

const quiet = { debug: () => {}, warn: () => {} };
const context = () => ({
  env: {},
  home: temp.home,
  platform: process.platform,
  now: () => Date.now(),
  connectorHome: temp.home,
  self: [],
  version: '1',
  run,
  log: quiet,
});
const modeOf = (path: string) => statSync(path).mode & 0o777;
const isPosix = process.platform !== 'win32';

describe('names', () => {
  test('hold nothing of an id, and their socket can be bound below a usual home', () => {
    const hostile = { ...SESSION, sessionId: '../../etc/passwd\n' };
    const places = Object.values(placesOf('/home/someone-with-a-name/.shadowob/connector', hostile));
    for (const path of places) expect(path).toMatch(/\/control\/(hosts|locks|queue)\/[0-9a-f]{16}(\.\w+)?$/);
    expect(fitsSocketPath(placesOf('/home/someone-with-a-name/.shadowob/connector', hostile).socket)).toBe(
      true,
    );
  });

  test('do not lie in the folder that says that a service has run (R-39)', () => {
    expect(placesOf('/h', SESSION).record.startsWith('/h/run/')).toBe(false);
  });

  test('the program starts itself again by what it is', () => {
    expect(selfCommand('/opt/shadowob-connector', '/$bunfs/root/shadowob-connector')).toEqual([
      '/opt/shadowob-connector',
    ]);
    expect(selfCommand('C:\\x.exe', 'B:\\~BUN\\root\\x.exe')).toEqual(['C:\\x.exe']);
    expect(selfCommand('/bin/bun', '/src/main.ts')).toEqual(['/bin/bun', '/src/main.ts']);
  });
});

describe('the queue (R-38)', () => {
  const queued = (text: string, more: Partial<QueuedMessage> = {}): QueuedMessage => ({
    ...messageOf(text),
    session: SESSION,
    createdAt: 1_800_000_000_000,
    expiresAt: 1_900_000_000_000,
    attempted: false,
    ...more,
  });

  test('any text comes back as it was, from a file of our own eyes only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const queue = openQueue(temp.home, SESSION);
        const message = queued(text);
        expect(queue.put(message)).toBeUndefined();
        expect(queue.list()).toEqual([message]);
        const folder = placesOf(temp.home, SESSION).queue;
        const [name = ''] = readdirSync(folder);
        if (isPosix) expect([modeOf(folder), modeOf(join(folder, name))]).toEqual([0o700, 0o600]);
        queue.remove(message.id);
        expect([queue.list(), existsSync(folder)]).toEqual([[], false]);
      }),
      { numRuns: 30 },
    );
  });

  test('is oldest first, and damaged files are left alone', () => {
    const queue = openQueue(temp.home, SESSION);
    for (const at of [3, 1, 2]) queue.put(queued(`${at}`, { createdAt: 1_800_000_000_000 + at }));
    const folder = placesOf(temp.home, SESSION).queue;
    writeFileSync(join(folder, `01800000000000-${crypto.randomUUID()}.json`), '{"version":1');
    writeFileSync(join(folder, 'notes.txt'), 'mine');
    expect(queue.list().map((message) => message.text)).toEqual(['1', '2', '3']);
    for (const message of queue.list()) queue.remove(message.id);
    expect(readdirSync(folder).length).toBe(2);
  });

  test('sessions have queues of their own', () => {
    openQueue(temp.home, SESSION).put(queued('mine'));
    expect(openQueue(temp.home, { ...SESSION, sessionId: 'other' }).list()).toEqual([]);
  });
});

describe('host records', () => {
  const record = { session: SESSION, host: { pid: 4, startToken: '4' }, startedAt: 1 };

  test('hold ids and times, privately', () => {
    writeRecord(temp.home, { ...record, child: { pid: 5, startToken: '5' } });
    const path = placesOf(temp.home, SESSION).record;
    expect(recordOf(temp.home, SESSION)).toEqual({ ...record, child: { pid: 5, startToken: '5' } });
    expect(Object.keys(JSON.parse(readFileSync(path, 'utf8'))).sort()).toEqual([
      ...['child', 'host', 'session', 'startedAt', 'version'],
    ]);
    if (isPosix) expect([modeOf(path), modeOf(dirname(path))]).toEqual([0o600, 0o700]);
  });

  test('what is none is skipped', () => {
    writeRecord(temp.home, record);
    const folder = dirname(placesOf(temp.home, SESSION).record);
    for (const [i, text] of ['', '{', '[]', '{"version":2}'].entries()) {
      writeFileSync(join(folder, `${i}.json`), text);
    }
    expect(listRecords(temp.home)).toEqual([record]);
    removeRecord(temp.home, SESSION);
    expect(listRecords(temp.home)).toEqual([]);
  });

  test('a home without any host has none', () => {
    expect(listRecords(join(temp.home, 'nowhere'))).toEqual([]);
  });
});

describe('the lock of a session', () => {
  test('is held by one, and free again when it is let go', async () => {
    const [first, second] = [await lockSession(context(), SESSION), await lockSession(context(), SESSION)];
    expect([first.kind, second.kind]).toEqual(['held', 'busy']);
    const other = await lockSession(context(), { ...SESSION, sessionId: 'other' });
    expect(other.kind).toBe('held');
    if (other.kind === 'held') other.release();
    if (first.kind === 'held') first.release();
    const third = await lockSession(context(), SESSION);
    expect(third.kind).toBe('held');
    if (third.kind === 'held') third.release();
  });

  test('a home that can’t be written is said, not ignored', async () => {
    writeFileSync(join(temp.home, 'file'), '');
    const result = await lockSession({ ...context(), connectorHome: join(temp.home, 'file') }, SESSION);
    expect(result).toMatchObject({ kind: 'unavailable', reason: expect.stringContaining('file') });
  });
});

describe.skipIf(process.platform !== 'linux')('what a killed host has left', () => {
  const child = async () => {
    const started = start({ argv: ['sh', '-c', 'sleep 1000 & wait'] });
    if (started.kind !== 'started') throw new Error(started.message);
    return started;
  };

  test('is ended with its tree, and its record goes', async () => {
    const orphan = await child();
    writeRecord(temp.home, {
      session: SESSION,
      host: { pid: 999_999, startToken: '1' },
      child: orphan.identity,
      startedAt: 1,
    });
    expect(await sweepHosts(context())).toEqual([
      { session: SESSION, pid: orphan.identity.pid, ended: true },
    ]);
    await orphan.exited;
    expect([isAlive(orphan.identity.pid), listRecords(temp.home)]).toEqual([false, []]);
  });

  test('a pid that belongs to somebody else by now is never signalled', async () => {
    const stranger = await child();
    const { pid } = stranger.identity;
    writeRecord(temp.home, {
      session: SESSION,
      host: { pid: 999_999, startToken: '1' },
      child: { pid, startToken: '1' },
      startedAt: 1,
    });
    expect(await endOrphan(context(), SESSION)).toBeUndefined();
    expect([isAlive(pid), listRecords(temp.home)]).toEqual([true, []]);
    await stranger.end(0);
  });

  test('a session whose lock is held has a living host, and is left alone', async () => {
    const busy = await child();
    const lock = await lockSession(context(), SESSION);
    const host = identityFromProc(process.pid) ?? { pid: process.pid, startToken: null };
    writeRecord(temp.home, { session: SESSION, host, child: busy.identity, startedAt: 1 });
    expect(await sweepHosts(context())).toEqual([]);
    expect([isAlive(busy.identity.pid), listRecords(temp.home).length]).toEqual([true, 1]);
    if (lock.kind === 'held') lock.release();
    await busy.end(0);
  });
});
