import { describe, expect, test } from 'bun:test';
import {
  LIVE_FILE_NAME,
  type LiveFile,
  liveClaim,
  parseLiveFile,
} from '../../../src/adapters/claude-code/live-file.ts';
import { writesLiveFile } from '../../../src/adapters/claude-code/version.ts';
import { fuse } from '../../../src/runtime/session/fuse.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { linesOf, scenarios } from './recording.ts';

const BASE = {
  pid: 4242,
  sessionId: '5c67492c-2d72-4a53-a1fc-d1e5f72d20b8',
  cwd: '/home/dev/acme-app',
  startedAt: 1_796_000_000_000,
  procStart: '93469',
  version: '2.1.332',
  kind: 'interactive',
  entrypoint: 'cli',
};
const content = (more: object): string => JSON.stringify({ ...BASE, ...more });
function live(more: object): LiveFile {
  const read = parseLiveFile(content(more));
  if (read.kind !== 'live') throw new Error(read.kind);
  return read.file;
}
const shown = (more: object): string =>
  publicState(fuse([liveClaim(live(more), 'alive')], undefined, BASE.startedAt + 60_000).state);

describe('live file: what is one (S14, R-16)', () => {
  const table: readonly [string, string, 'live' | 'torn' | 'ignored'][] = [
    [
      'both generations: without procStart it proves nothing',
      JSON.stringify({ pid: 1234, sessionId: 'x' }),
      'ignored',
    ],
    ['without a status it is one', content({}), 'live'],
    ['a numeric procStart is one', content({ procStart: 93469 }), 'live'],
    ['empty, caught in a rewrite', '', 'torn'],
    ['half of it', content({}).slice(0, 60), 'torn'],
    ['not an object', '[1]', 'ignored'],
    ['without a session', JSON.stringify({ ...BASE, sessionId: undefined }), 'ignored'],
    ['pid 1 is never an agent', content({ pid: 1 }), 'ignored'],
    ['Claude’s own daemon', content({ kind: 'daemon' }), 'ignored'],
    ['a worker of it', content({ kind: 'daemon-worker' }), 'ignored'],
  ];
  test.each(table)('%s', (_, text, want) => {
    expect(parseLiveFile(text).kind).toBe(want);
  });

  test('S14 names of the old generation and of keys are none', () => {
    const names = ['4242.json', 'pid-4242.json', '4242.0a1b.key', '4242.json.tmp', 'x.json'];
    expect(names.filter((name) => LIVE_FILE_NAME.test(name))).toEqual(['4242.json']);
  });

  test('every recorded version is read, and the one torn read is seen as torn', () => {
    const kinds = scenarios().flatMap((scenario) =>
      linesOf(scenario, 'live-status.jsonl').flatMap((line) => {
        const { file, content: value, gone } = JSON.parse(line);
        if (gone || !/sessions\/\d+\.json$/.test(file)) return [];
        return [parseLiveFile(typeof value === 'string' ? value : JSON.stringify(value)).kind];
      }),
    );
    const count = (kind: string): number => kinds.filter((k) => k === kind).length;
    expect({ live: count('live'), torn: count('torn'), ignored: count('ignored') }).toEqual({
      live: 525,
      torn: 1,
      ignored: 0,
    });
  });
});

describe('live file: what it says (R-16)', () => {
  const table: readonly [string, object, string][] = [
    ['busy', { status: 'busy' }, 'running'],
    ['idle, and no turn yet', { status: 'idle' }, 'idle'],
    ['S14 shell: rested', { status: 'shell' }, 'idle'],
    ['no status: alive and nothing more', {}, 'idle'],
    ['a status of tomorrow: alive and nothing more', { status: 'pondering' }, 'idle'],
    ['permission prompt', { status: 'waiting', waitingFor: 'permission prompt' }, 'waiting_for_approval'],
    ['worker request', { status: 'waiting', waitingFor: 'worker request' }, 'waiting_for_approval'],
    ['sandbox request', { status: 'waiting', waitingFor: 'sandbox request' }, 'waiting_for_approval'],
    ['goal proposal', { status: 'waiting', waitingFor: 'goal proposal' }, 'waiting_for_approval'],
    ['input needed', { status: 'waiting', waitingFor: 'input needed' }, 'blocked'],
    ['a wait of tomorrow', { status: 'waiting', waitingFor: 'blood sample' }, 'blocked'],
    ['a wait that names nothing', { status: 'waiting' }, 'blocked'],
    ['dialog open is no wait', { status: 'waiting', waitingFor: 'dialog open' }, 'idle'],
  ];
  test.each(table)('%s', (_, more, want) => {
    expect(shown(more)).toBe(want);
  });

  test('S14 a shell in the background is counted beside the rest', () => {
    expect(liveClaim(live({ status: 'shell' }), 'alive').backgroundWork).toBe(1);
  });

  test('a derived name is no title; a given one is', () => {
    expect(live({ name: 'acme-app-3c', nameSource: 'derived' }).name).toBeUndefined();
    expect(live({ name: 'my session', nameSource: 'user' }).name).toBe('my session');
  });

  test('S12 what a dead process left behind is no exact word any more', () => {
    const now = BASE.startedAt + 60_000;
    expect(
      fuse([liveClaim(live({ status: 'busy', statusUpdatedAt: now - 5_000 }), 'dead')], undefined, now),
    ).toMatchObject({
      state: { kind: 'ended', outcome: 'stopped' },
      life: 'dead',
    });
  });

  test('a writer that can’t be judged only reports, and ages', () => {
    const claim = liveClaim(live({ status: 'busy', statusUpdatedAt: BASE.startedAt }), 'unknown');
    expect(claim.confidence).toBe('reported');
    expect(publicState(fuse([claim], undefined, BASE.startedAt + 1_000).state)).toBe('running');
    expect(publicState(fuse([claim], undefined, BASE.startedAt + 3_600_000).state)).toBe('unknown');
  });
});

describe('live file: whose absence proves something', () => {
  const table: readonly [string | undefined, string | undefined, boolean][] = [
    ['2.1.332', 'cli', true],
    ['2.1.139', 'cli', true],
    ['2.1.138', 'cli', false],
    ['2.1.99', 'cli', false],
    ['2.2.0', 'cli', true],
    ['10.0', 'cli', true],
    ['1.0.128', 'cli', false],
    ['2.1.197', 'sdk-cli', true],
    ['2.1.196', 'sdk-cli', false],
    ['2.1.150', 'claude-vscode', false],
    ['2.1.197-beta.1', 'sdk-cli', true],
    [undefined, 'cli', false],
    ['', 'cli', false],
    ['2.1.332', undefined, true],
  ];
  test.each(table)('%s, %s: %s', (version, entrypoint, want) => {
    expect(writesLiveFile(version, entrypoint)).toBe(want);
  });
});
