import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TimerPort } from '../../../src/runtime/files/coalesce.ts';
import { countFiles } from '../../../src/runtime/files/file-system.ts';
import {
  type FolderWatch,
  POLL_EVERY_MS,
  type WatchOptions,
  watchFolders,
} from '../../../src/runtime/files/watch.ts';
import { systemWatch, type WatchListener, type WatchPort } from '../../../src/runtime/files/watch-port.ts';
import type { WatchRoot } from '../../../src/runtime/files/watch-tree.ts';

let folder = '';
let root = '';
let reports: string[][] = [];
let lines: string[] = [];
let open: FolderWatch[] = [];

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'watch-')));
  root = join(folder, 'projects');
  mkdirSync(root);
  reports = [];
  lines = [];
  open = [];
});

afterEach(() => {
  for (const watch of open) watch.close();
  rmSync(folder, { recursive: true, force: true });
});

function watch(spec: Partial<WatchRoot> = {}, options: Partial<WatchOptions> = {}): FolderWatch {
  const made = watchFolders([{ path: root, depth: 1, ...spec }], {
    onChange: (paths) => void reports.push([...paths]),
    log: (line) => void lines.push(line),
    ...options,
  });
  open.push(made);
  return made;
}

const seen = (path: string): boolean => reports.some((report) => report.includes(path));

/** Waits for a condition; fails the test by its timeout if it never comes. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** Time that stands still until a test moves it. */
function handTimers(): TimerPort & { advance(milliseconds: number): void } {
  const due = new Set<{ at: number; call: () => void }>();
  let now = 0;
  return {
    now: () => now,
    after(milliseconds, call) {
      const timer = { at: now + milliseconds, call };
      due.add(timer);
      return () => void due.delete(timer);
    },
    advance(milliseconds) {
      const end = now + milliseconds;
      for (;;) {
        const next = [...due].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        due.delete(next);
        now = Math.max(now, next.at);
        next.call();
      }
      now = end;
    },
  };
}

/** A notifier that tests speak for; refuses with a code where they say so. */
function handPort(recursive = false) {
  const watches = new Map<string, WatchListener>();
  const state = { refuse: undefined as string | undefined };
  const port: WatchPort = {
    recursive,
    watch(path, _recursive, listener) {
      if (state.refuse !== undefined) throw Object.assign(new Error(state.refuse), { code: state.refuse });
      watches.set(path, listener);
      return { close: () => void (watches.get(path) === listener && watches.delete(path)) };
    },
  };
  return { port, watches, state };
}

describe('R-26: the system announces changes', () => {
  test('an append, a new file, a new project and its first file, a removed file', async () => {
    mkdirSync(join(root, 'p'));
    writeFileSync(join(root, 'p', 'a.jsonl'), '1\n');
    watch();
    appendFileSync(join(root, 'p', 'a.jsonl'), '2\n');
    await until(() => seen(join(root, 'p', 'a.jsonl')));
    writeFileSync(join(root, 'p', 'b.jsonl'), '');
    await until(() => seen(join(root, 'p', 'b.jsonl')));
    mkdirSync(join(root, 'new'));
    writeFileSync(join(root, 'new', 'c.jsonl'), '');
    await until(() => seen(join(root, 'new', 'c.jsonl')));
    reports = [];
    appendFileSync(join(root, 'new', 'c.jsonl'), 'x');
    await until(() => seen(join(root, 'new', 'c.jsonl')));
    reports = [];
    rmSync(join(root, 'p', 'a.jsonl'));
    await until(() => seen(join(root, 'p', 'a.jsonl')));
    expect(lines).toEqual([]);
  });

  test('a project that is removed and made again', async () => {
    mkdirSync(join(root, 'p'));
    const watcher = watch();
    rmSync(join(root, 'p'), { recursive: true });
    await until(() => watcher.status().folders === 1);
    mkdirSync(join(root, 'p'));
    await until(() => watcher.status().folders === 2);
    writeFileSync(join(root, 'p', 'a.jsonl'), '');
    await until(() => seen(join(root, 'p', 'a.jsonl')));
  });

  test('a root that is removed and made again, with what is in it by then', async () => {
    mkdirSync(join(root, 'p'));
    const watcher = watch();
    rmSync(root, { recursive: true });
    await until(() => watcher.status().missing.length === 1);
    mkdirSync(join(root, 'q'), { recursive: true });
    writeFileSync(join(root, 'q', 'a.jsonl'), '');
    await until(() => seen(join(root, 'q', 'a.jsonl')));
    reports = [];
    appendFileSync(join(root, 'q', 'a.jsonl'), 'x');
    await until(() => seen(join(root, 'q', 'a.jsonl')));
  });

  test('a root that is renamed away and another put in its place', async () => {
    const watcher = watch();
    renameSync(root, `${root}.old`);
    await until(() => watcher.status().missing.length === 1);
    mkdirSync(root);
    writeFileSync(join(root, 'a'), '');
    await until(() => seen(join(root, 'a')));
    reports = [];
    writeFileSync(join(`${root}.old`, 'b'), '');
    writeFileSync(join(root, 'c'), '');
    await until(() => seen(join(root, 'c')));
    expect(reports.flat().filter((path) => path.endsWith('b'))).toEqual([]);
  });

  test('a root whose parents are missing too appears without a poll', async () => {
    const deep = join(folder, 'x', '.claude', 'projects');
    const watcher = watch({ path: deep });
    expect(watcher.status()).toEqual({ kind: 'watching', folders: 0, missing: [deep] });
    mkdirSync(join(folder, 'x'));
    mkdirSync(join(folder, 'x', '.claude'));
    mkdirSync(join(deep, 'p'), { recursive: true });
    writeFileSync(join(deep, 'p', 'a.jsonl'), '');
    await until(() => seen(join(deep, 'p', 'a.jsonl')));
    expect(watcher.status()).toEqual({ kind: 'watching', folders: 2, missing: [] });
  });

  test('a linked home and a linked project are seen under the name that was given', async () => {
    mkdirSync(join(folder, 'real', 'projects', 'p'), { recursive: true });
    mkdirSync(join(folder, 'elsewhere'));
    symlinkSync('real', join(folder, 'home'));
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'real', 'projects', 'linked'));
    watch({ path: join(folder, 'home', 'projects') });
    writeFileSync(join(folder, 'real', 'projects', 'p', 'a.jsonl'), '');
    await until(() => seen(join(folder, 'home', 'projects', 'p', 'a.jsonl')));
    writeFileSync(join(folder, 'elsewhere', 'b.jsonl'), '');
    await until(() => seen(join(folder, 'home', 'projects', 'linked', 'b.jsonl')));
  });

  test('folders below the depth and excluded names are neither watched nor reported', async () => {
    mkdirSync(join(root, 'p', 'session', 'subagents'), { recursive: true });
    mkdirSync(join(root, 'tool-results'));
    const watcher = watch({ exclude: new Set(['tool-results']) });
    expect(watcher.status().folders).toBe(2);
    writeFileSync(join(root, 'p', 'session', 'subagents', 'agent-1.jsonl'), '');
    writeFileSync(join(root, 'tool-results', 'x'), '');
    writeFileSync(join(root, 'p', 'a.jsonl'), '');
    await until(() => seen(join(root, 'p', 'a.jsonl')));
    expect(reports.flat()).toEqual([join(root, 'p', 'a.jsonl')]);
  });

  test.skipIf(process.platform !== 'linux')('5,000 sub-agent folders cost no watch (G1, X12)', () => {
    mkdirSync(join(root, 'p'));
    for (let n = 0; n < 5000; n += 1) mkdirSync(join(root, 'p', `${n}`, 'subagents'), { recursive: true });
    const counted: string[] = [];
    const real = systemWatch();
    const port: WatchPort = {
      recursive: false,
      watch: (path, recursive, listener) => {
        counted.push(path);
        return real.watch(path, recursive, listener);
      },
    };
    watch({}, { port });
    expect(counted).toEqual([root, join(root, 'p')]);
  });

  test('after close nothing is reported and nothing is left running', async () => {
    const watcher = watch();
    const other = watch();
    const before = reports.length;
    watcher.close();
    reports = [];
    writeFileSync(join(root, 'a'), '');
    await until(() => seen(join(root, 'a')));
    expect(reports.length - before).toBe(1);
    other.close();
  });
});

describe('bursts', () => {
  test('a thousand events of one file in a moment are one report', () => {
    const timers = handTimers();
    const { port, watches } = handPort();
    watch({}, { port, timers });
    for (let n = 0; n < 1000; n += 1) watches.get(root)?.event('content', 'a.jsonl');
    watches.get(root)?.event('content', 'b.jsonl');
    timers.advance(20);
    expect(reports).toEqual([[join(root, 'a.jsonl'), join(root, 'b.jsonl')]]);
  });

  test('a storm without a pause is reported all the same', () => {
    const timers = handTimers();
    const { port, watches } = handPort();
    watch({}, { port, timers });
    for (let n = 0; n < 300; n += 1) {
      watches.get(root)?.event('content', 'a.jsonl');
      timers.advance(1);
    }
    expect(reports.length).toBeGreaterThanOrEqual(4);
    expect(reports.length).toBeLessThanOrEqual(6);
  });

  test('more paths than a report may hold: the first of them, and `overflow`', () => {
    const timers = handTimers();
    const { port, watches } = handPort();
    const overflows: boolean[] = [];
    watch(
      {},
      {
        port,
        timers,
        onChange: (paths, overflow) => {
          overflows.push(overflow);
          reports.push([...paths]);
        },
      },
    );
    for (let n = 0; n < 5001; n += 1) watches.get(root)?.event('content', `${n}`);
    timers.advance(20);
    watches.get(root)?.event('content', 'again');
    timers.advance(20);
    expect(reports.map((report) => report.length)).toEqual([5000, 1]);
    expect(overflows).toEqual([true, false]);
  });
});

describe('the poll, as safety net', () => {
  test('while nothing changes it stats the folders and the hot files, and opens and reports nothing', () => {
    for (const name of ['p', 'q', 'r']) {
      mkdirSync(join(root, name));
      for (let n = 0; n < 50; n += 1) writeFileSync(join(root, name, `${n}.jsonl`), '');
    }
    const timers = handTimers();
    const { files, work } = countFiles();
    const hot = [join(root, 'p', '1.jsonl'), join(root, 'q', '2.jsonl')];
    watch({}, { port: handPort().port, timers, files, hot: () => hot });
    timers.advance(POLL_EVERY_MS);
    const before = { ...work };
    timers.advance(POLL_EVERY_MS);
    expect(work.opened).toBe(0);
    expect(work.listed - before.listed).toBe(0);
    expect(work.stats - before.stats).toBe(4 + 2);
    timers.advance(POLL_EVERY_MS * 30);
    expect(reports).toEqual([]);
  });

  test('K-10: a hot file that grows without a word is reported at the next poll, once', () => {
    const hot = join(root, 'a.jsonl');
    writeFileSync(hot, '1');
    const timers = handTimers();
    watch({}, { port: handPort().port, timers, hot: () => [hot] });
    timers.advance(POLL_EVERY_MS);
    appendFileSync(hot, '2');
    timers.advance(POLL_EVERY_MS + 100);
    expect(reports).toEqual([[hot]]);
    timers.advance(POLL_EVERY_MS * 3);
    expect(reports.length).toBe(1);
  });

  test('one that was announced is not reported again', () => {
    const hot = join(root, 'a.jsonl');
    writeFileSync(hot, '1');
    const timers = handTimers();
    const { port, watches } = handPort();
    watch({}, { port, timers, hot: () => [hot] });
    timers.advance(POLL_EVERY_MS);
    appendFileSync(hot, '2');
    watches.get(root)?.event('content', 'a.jsonl');
    timers.advance(POLL_EVERY_MS * 20);
    expect(reports).toEqual([[hot]]);
  });

  test('a project that was never announced is found by its folder, watched and reported', () => {
    const timers = handTimers();
    const { port, watches } = handPort();
    watch({}, { port, timers });
    mkdirSync(join(root, 'p'));
    writeFileSync(join(root, 'p', 'a.jsonl'), '');
    timers.advance(POLL_EVERY_MS + 100);
    expect(reports.flat()).toContain(join(root, 'p', 'a.jsonl'));
    expect(watches.has(join(root, 'p'))).toBe(true);
  });

  test('a root that appears where nothing can be watched at all', () => {
    const timers = handTimers();
    const { port, state } = handPort();
    state.refuse = 'EMFILE';
    const late = join(folder, 'late');
    watch({ path: late }, { port, timers });
    mkdirSync(late);
    writeFileSync(join(late, 'a'), '');
    timers.advance(POLL_EVERY_MS + 100);
    expect(reports.flat()).toContain(join(late, 'a'));
  });

  test('after a jump of the clock it can be run at once', () => {
    const hot = join(root, 'a.jsonl');
    writeFileSync(hot, '1');
    const timers = handTimers();
    const watcher = watch({}, { port: handPort().port, timers, hot: () => [hot] });
    watcher.pollNow();
    appendFileSync(hot, '2');
    watcher.pollNow();
    timers.advance(20);
    expect(reports).toEqual([[hot]]);
  });
});

describe('X12: where watching fails', () => {
  test('ENOSPC: all is polled, one line is logged, the status says so', () => {
    for (let n = 0; n < 20; n += 1) mkdirSync(join(root, `${n}`));
    writeFileSync(join(root, '3', 'a.jsonl'), '1');
    const timers = handTimers();
    const { port, state } = handPort();
    state.refuse = 'ENOSPC';
    const watcher = watch({}, { port, timers });
    timers.advance(POLL_EVERY_MS);
    appendFileSync(join(root, '3', 'a.jsonl'), '2');
    timers.advance(POLL_EVERY_MS + 100);
    expect(reports).toEqual([[join(root, '3', 'a.jsonl')]]);
    expect(lines).toEqual([
      `cannot watch ${root}: the limit of watches is reached (ENOSPC); looking every 5 s instead`,
    ]);
    expect(watcher.status()).toEqual({
      kind: 'polling',
      folders: 21,
      polled: 21,
      everyMs: POLL_EVERY_MS,
      reason: 'ENOSPC',
      missing: [],
    });
    expect(watcher.words()).toBe('polling all folders every 5 s: the limit of watches is reached (ENOSPC)');
  });

  test('a polled file that is removed, and one that is replaced, are reported', () => {
    writeFileSync(join(root, 'a'), '1');
    writeFileSync(join(root, 'b'), '1');
    const timers = handTimers();
    const { port, state } = handPort();
    state.refuse = 'ENOSPC';
    watch({}, { port, timers });
    timers.advance(POLL_EVERY_MS);
    rmSync(join(root, 'a'));
    writeFileSync(join(root, 'new'), '123');
    renameSync(join(root, 'new'), join(root, 'b'));
    timers.advance(POLL_EVERY_MS + 100);
    expect(reports.flat()).toContain(join(root, 'a'));
    expect(reports.flat()).toContain(join(root, 'b'));
  });

  test('it is tried again, and watching is taken up when there is room', () => {
    const timers = handTimers();
    const { port, state, watches } = handPort();
    state.refuse = 'ENOSPC';
    const watcher = watch({}, { port, timers });
    state.refuse = undefined;
    timers.advance(70_000);
    expect(watcher.status().kind).toBe('watching');
    expect(watches.has(root)).toBe(true);
  });

  test('beyond the limit the oldest projects are polled, the newest watched', () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      mkdirSync(join(root, name));
      Bun.spawnSync(['touch', '-d', `2020-01-0${name.charCodeAt(0) - 96}`, join(root, name)]);
    }
    const { port, watches } = handPort();
    const watcher = watch({}, { port, timers: handTimers(), limit: 3 });
    expect([...watches.keys()].sort()).toEqual([root, join(root, 'c'), join(root, 'd')]);
    expect(watcher.words()).toBe('polling 2 of 5 folders every 5 s: too many folders');
    expect(lines.length).toBe(1);
  });

  test('a watch that dies is polled; one that dies with its folder is no trouble', () => {
    mkdirSync(join(root, 'p'));
    const { port, watches } = handPort();
    const watcher = watch({}, { port, timers: handTimers() });
    rmSync(join(root, 'p'), { recursive: true });
    watches.get(join(root, 'p'))?.error('EPERM');
    expect(watcher.status()).toEqual({ kind: 'watching', folders: 1, missing: [] });
    watches.get(root)?.error('EIO');
    watches.get(root)?.error('EIO');
    expect(watcher.status()).toMatchObject({ kind: 'polling', polled: 1, reason: 'EIO' });
    expect(lines).toEqual([`cannot watch ${root}: the system refused (EIO); looking every 5 s instead`]);
  });

  test('R-26: a drive that takes watches and announces nothing is found out and polled', () => {
    const path = join(root, 'a.jsonl');
    writeFileSync(path, '1');
    const timers = handTimers();
    const watcher = watch({}, { port: handPort().port, timers });
    timers.advance(POLL_EVERY_MS);
    appendFileSync(path, '2');
    timers.advance(70_000);
    expect(reports).toEqual([[path]]);
    expect(watcher.words()).toBe('polling all folders every 5 s: changes are not announced');
    appendFileSync(path, '3');
    timers.advance(POLL_EVERY_MS + 100);
    expect(reports).toEqual([[path], [path]]);
  });

  test('an announcement that is only late does not count against the watch', () => {
    const path = join(root, 'a.jsonl');
    writeFileSync(path, '1');
    const timers = handTimers();
    const { port, watches } = handPort();
    const watcher = watch({}, { port, timers });
    timers.advance(POLL_EVERY_MS);
    appendFileSync(path, '2');
    timers.advance(60_000);
    watches.get(root)?.event('content', 'a.jsonl');
    timers.advance(POLL_EVERY_MS * 3);
    expect(watcher.status().kind).toBe('watching');
  });

  test('a poll that costs much comes less often', () => {
    for (let n = 0; n < 30; n += 1) mkdirSync(join(root, `${n}`));
    const timers = handTimers();
    const { files, work } = countFiles();
    const slow = {
      ...files,
      stat: (path: string) => {
        timers.advance(20);
        return files.stat(path);
      },
    };
    watch({}, { port: handPort().port, timers, files: slow });
    timers.advance(POLL_EVERY_MS * 2);
    const before = work.stats;
    timers.advance(POLL_EVERY_MS * 3);
    expect(work.stats - before).toBe(0);
  });
});

describe('R-46: one recursive handle, as on macOS and Windows', () => {
  test('names with separators are placed in the tree; depth and exclusions hold', () => {
    mkdirSync(join(root, 'p'));
    const timers = handTimers();
    const { port, watches } = handPort(true);
    watch({ exclude: new Set(['subagents']) }, { port, timers });
    expect([...watches.keys()]).toEqual([root]);
    const listener = watches.get(root);
    listener?.event('content', 'p/a.jsonl');
    listener?.event('content', 'p\\b.jsonl');
    listener?.event('content', 'p/session/deep.jsonl');
    listener?.event('entry', 'p/subagents');
    listener?.event('content', 'subagents/x');
    timers.advance(20);
    expect(reports).toEqual([[join(root, 'p', 'a.jsonl'), join(root, 'p', 'b.jsonl')]]);
  });

  test('a new folder is taken in, a removed one let go', () => {
    const timers = handTimers();
    const { port, watches } = handPort(true);
    const watcher = watch({}, { port, timers });
    mkdirSync(join(root, 'p'));
    writeFileSync(join(root, 'p', 'a.jsonl'), '');
    watches.get(root)?.event('content', 'p/a.jsonl');
    expect(watcher.status().folders).toBe(2);
    timers.advance(20);
    expect(reports.flat()).toEqual([join(root, 'p', 'a.jsonl')]);
    rmSync(join(root, 'p'), { recursive: true });
    watches.get(root)?.event('entry', 'p');
    expect(watcher.status().folders).toBe(1);
  });

  test('if that handle is refused, all is polled', () => {
    mkdirSync(join(root, 'p'));
    const { port, state } = handPort(true);
    state.refuse = 'EMFILE';
    const watcher = watch({}, { port, timers: handTimers() });
    expect(watcher.status()).toMatchObject({ kind: 'polling', folders: 2, polled: 2, reason: 'EMFILE' });
    expect(lines.length).toBe(1);
  });

  test('which systems that is', () => {
    expect(
      (['linux', 'darwin', 'win32'] as const).map((platform) => systemWatch(platform).recursive),
    ).toEqual([false, true, true]);
  });
});
