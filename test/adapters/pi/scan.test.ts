import { describe, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readEntry } from '../../../src/adapters/pi/entries.ts';
import { createPi } from '../../../src/adapters/pi/index.ts';
import { judgePi } from '../../../src/adapters/pi/owners.ts';
import { decodeSummary, encodeSummary } from '../../../src/adapters/pi/scan.ts';
import { refOf } from '../../../src/adapters/pi/sightings.ts';
import { summaryOf } from '../../../src/adapters/pi/transcript.ts';
import { countFiles } from '../../../src/runtime/files/file-system.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import { memoryIndex } from './memory-index.ts';
import { contextFor, emptyMachine, inFolder, layDown, recording } from './recordings.ts';

const tui = recording('tui');
const LONG = '0'.repeat(8);

describe('pi: the inventory of its session files', () => {
  test('a row has title, folder, model and times of the rows, and its file for local use', async () => {
    await inFolder(async (folder) => {
      const path = layDown(folder, tui.id, tui.lines);
      const scan = await createPi(emptyMachine(folder)).scan(contextFor(folder));
      expect(scan.problems).toEqual([]);
      const [only] = scan.sightings;
      expect(only?.session).toEqual({ runtimeId: 'pi', instanceId: 'transcripts', sessionId: tui.id });
      expect(only?.facts).toMatchObject({
        title: 'ship it',
        workDir: '/home/dev2/acme-app',
        model: 'mock-1',
        source: 'transcript',
        startedAt: Date.parse('2026-11-30T20:35:15.410Z'),
        file: path,
      });
    });
  });

  test('files that were put flat are found, too, and every session once (tricky case 14)', async () => {
    await inFolder(async (folder) => {
      layDown(folder, tui.id, tui.lines, '.');
      layDown(folder, tui.id, tui.lines);
      const other = recording('print-text');
      const flat = join(folder, 'elsewhere');
      layDown(flat, other.id, other.lines, '.');
      const env = { PI_CODING_AGENT_SESSION_DIR: join(flat, 'sessions') };
      const scan = await createPi(emptyMachine(folder)).scan(contextFor(folder, { env }));
      expect(scan.sightings.map(({ session }) => session.sessionId).sort()).toEqual(
        [tui.id, other.id].sort(),
      );
    });
  });

  test('what is no session file is never opened, and a header of another session is left out by name', async () => {
    await inFolder(async (folder) => {
      const { files, work } = countFiles();
      const place = join(folder, 'sessions', '--x--');
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, 'notes.jsonl'), tui.lines.join('\n'));
      symlinkSync('/etc/hostname', join(place, `2026-11-30T20-33-22-115Z_${tui.id}.jsonl`));
      const scan = await createPi(emptyMachine(folder)).scan(contextFor(folder, { files }));
      expect(scan.sightings).toEqual([]);
      expect(work.opened).toBe(0);
      const wrong = tui.id.replace(/^.{8}/, LONG);
      layDown(folder, wrong, tui.lines);
      const again = await createPi(emptyMachine(folder)).scan(contextFor(folder, { files }));
      expect(again.sightings).toEqual([]);
      expect(again.problems.map(({ reason }) => reason)).toEqual(['line 1 is no header of this session']);
    });
  });

  test('an unchanged file is not opened again, and says the same (R-27)', async () => {
    await inFolder(async (folder) => {
      layDown(folder, tui.id, tui.lines);
      const index = memoryIndex();
      const { files, work } = countFiles();
      const pi = createPi(emptyMachine(folder));
      const first = await pi.scan(contextFor(folder, { index, files }));
      expect(work.opened).toBe(1);
      const second = await pi.scan(contextFor(folder, { index, files }));
      expect(work.opened).toBe(1);
      expect(second.sightings).toEqual(first.sightings);
    });
  });

  test('the index holds no message, no command and no error text (R-38)', () => {
    for (const name of ['tui', 'json-auth-error', 'rpc-slow-tool-sigterm']) {
      const { lines, id } = recording(name);
      const text = encodeSummary(summaryOf(lines.flatMap(entry), lines.flatMap(entry), id));
      expect(text).not.toContain('command');
      expect(text).not.toContain('errorMessage');
      expect(decodeSummary(text)?.ours).toBe(true);
    }
    expect(decodeSummary('{"state":"completed"}')).toBeUndefined();
  });

  test('no folder: the instance is missing, and that is no problem', async () => {
    await inFolder(async (folder) => {
      const scan = await createPi(emptyMachine(folder)).scan(contextFor(join(folder, 'nothing')));
      expect(scan.problems).toEqual([]);
      expect(scan.instances.map(({ status }) => status)).toEqual(['missing']);
    });
  });

  test('G8 a fork names the session that it came from', () => {
    const header = JSON.parse(tui.lines[0] ?? '{}');
    const other = recording('resume').id;
    const line = JSON.stringify({
      ...header,
      parentSession: `/home/dev2/x/2026-11-30T20-35-15-410Z_${other}.jsonl`,
    });
    expect(summaryOf([line].flatMap(entry), [], tui.id).forkedFromId).toBe(other);
  });

  test('the newest name that its owner gave is the title', () => {
    const named = [...tui.lines, '{"type":"session_info","id":"a","parentId":null,"name":"  The   deploy "}'];
    expect(summaryOf(named.flatMap(entry), named.flatMap(entry), tui.id).title).toBe('The deploy');
  });

  test('another branch of the tree says nothing of the newest turn', () => {
    const id = (line: string | undefined): string => JSON.parse(line ?? '{}').id;
    const rewound = {
      type: 'message',
      id: 'ffffffff',
      parentId: id(tui.lines[4]),
      timestamp: '2026-11-30T20:36:00.000Z',
      message: { role: 'assistant', content: [], stopReason: 'stop' },
    };
    const lines = [...tui.lines, JSON.stringify(rewound)];
    const { turn } = summaryOf(lines.flatMap(entry), lines.flatMap(entry), tui.id);
    expect(turn.facts).toMatchObject({ openedAt: Date.parse('2026-11-30T20:35:18.840Z'), end: 'completed' });
  });
});

describe('pi: an open turn needs a living owner (design rule 3)', () => {
  const turn = { lastWriteAt: 10_000, directory: '/work' };
  test('one pi in the folder since before the last write is at it', () => {
    const processes = [{ pid: 7, startedAt: 5_000, cwd: '/work' }];
    expect(judgePi({ processes, certain: true }, turn)).toEqual({ life: 'alive', pid: 7 });
  });
  test('two in one folder, or one elsewhere, can’t be told apart', () => {
    const two = [7, 8].map((pid) => ({ pid, startedAt: 5_000, cwd: '/work' }));
    expect(judgePi({ processes: two, certain: true }, turn)).toEqual({ life: 'unknown' });
    const elsewhere = [{ pid: 7, startedAt: 5_000, cwd: '/other' }];
    expect(judgePi({ processes: elsewhere, certain: true }, turn)).toEqual({ life: 'unknown' });
  });
  test('one that began after the last write can’t have written it', () => {
    const processes = [{ pid: 7, startedAt: 50_000, cwd: '/work' }];
    expect(judgePi({ processes, certain: true }, turn)).toEqual({ life: 'dead' });
    expect(judgePi({ processes, certain: false }, turn)).toEqual({ life: 'unknown' });
  });
  test('where nothing can be told the session is unknown, never running', async () => {
    await inFolder(async (folder) => {
      const { id, lines } = recording('rpc-slow-tool-sigterm');
      layDown(folder, id, lines.slice(0, 6));
      const host = { ...emptyMachine(folder), procRoot: join(folder, 'no-proc') };
      const registry = createRegistry();
      const scan = await createPi(host).scan(contextFor(folder));
      registry.replace('pi', scan.sightings, Date.now());
      expect(registry.find(refOf(id))?.shown.state.kind).toBe('unknown');
    });
  });
});

describe('pi: history', () => {
  test('prompts, answers and calls of the branch, oldest first, within the bounds', async () => {
    await inFolder(async (folder) => {
      layDown(folder, tui.id, tui.lines);
      const pi = createPi(emptyMachine(folder));
      const all = await pi.history?.(contextFor(folder), refOf(tui.id), { entries: 50, bytes: 10_000 });
      expect(all?.entries.map(({ role, text }) => `${role}: ${text.split('\n')[0]?.trim()}`)).toEqual([
        'user: ship it',
        'assistant: Deploying.',
        'tool: bash: echo deploy done',
        'assistant: Deployed.',
        'user: tell me a long story',
        'assistant: Once upon a time',
        'system: Operation aborted',
      ]);
      const two = await pi.history?.(contextFor(folder), refOf(tui.id), { entries: 2, bytes: 10_000 });
      expect(two?.entries).toHaveLength(2);
      expect(two?.more).toBe(true);
    });
  });
});

describe('pi: damaged files', () => {
  test('torn and foreign lines are skipped and counted, the rest is there (X)', async () => {
    await inFolder(async (folder) => {
      const path = layDown(folder, tui.id, [...tui.lines.slice(0, 8), '{"type":', '[1]', 'null']);
      utimesSync(path, 1_796_070_999, 1_796_070_999);
      const scan = await createPi(emptyMachine(folder)).scan(contextFor(folder));
      const [claim] = scan.sightings[0]?.claims ?? [];
      expect(claim?.skipped).toBe(1);
      expect(claim?.says).toEqual({ kind: 'rested', outcome: 'completed' });
    });
  });
});

function entry(line: string) {
  const one = readEntry(JSON.parse(line));
  return one ? [one] : [];
}
