import { afterEach, describe, expect, test } from 'bun:test';
import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFolders, transcriptListing } from '../../../../src/adapters/claude-code/listing.ts';
import { createTranscriptTracker } from '../../../../src/runtime/daemon/feeds/transcripts.ts';
import { countFiles } from '../../../../src/runtime/files/file-system.ts';
import { createCleanup, tempFolder } from '../harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const A = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
const B = '1c8f7d2b-3a5e-4b9f-8d4c-6e2f8a0b3c5d';
const NOW = 1_790_000_000_000;
const silent = { debug() {}, warn() {} };
const nobody = () => ({ spoken: false, dead: false });

function file(size: number, ageS: number, id = A, path = `/p/x/${id}.jsonl`) {
  return { id, path, size, mtimeMs: NOW - ageS * 1_000 };
}

function events(result: { sightings: readonly { id: string; event: string }[] }) {
  return result.sightings.map(({ id, event }) => [id, event]);
}

describe('feed 2: transcripts by presence, size and time', () => {
  test('C-201 S-603: one older than 300 s is silent until it grows', () => {
    const tracker = createTranscriptTracker();
    expect(tracker.scan([file(10, 301)], NOW, nobody)).toMatchObject({ sightings: [], quiet: 1 });
    expect(events(tracker.scan([file(20, 1)], NOW, nobody))).toEqual([[A, 'transcript_grew']]);
    expect(events(tracker.scan([file(20, 1)], NOW, nobody))).toEqual([]);
    expect(events(tracker.scan([file(15, 1)], NOW, nobody))).toEqual([]);
  });

  test('S-603 K-11: at 300 s it is still recent; a time in the future is, too', () => {
    const tracker = createTranscriptTracker();
    const seen = [file(1, 300), file(1, -600, B)];
    expect(events(tracker.scan(seen, NOW, nobody))).toEqual([
      [A, 'transcript_discovered'],
      [B, 'transcript_discovered'],
    ]);
  });

  test('R-01: growth of a session that a hook, a live file or a row has spoken for is a sign of life only', () => {
    const tracker = createTranscriptTracker();
    tracker.scan([file(10, 1), file(10, 1, B)], NOW, nobody);
    const result = tracker.scan([file(20, 1), file(20, 1, B)], NOW, (id) => ({
      spoken: id === A,
      dead: false,
    }));
    expect(events(result)).toEqual([
      [A, 'transcript_discovered'],
      [B, 'transcript_grew'],
    ]);
    expect(result).toMatchObject({ spokenFor: 1, grew: 1 });
  });

  test('R-12: one whose owner is proven gone is history, until it grows', () => {
    const tracker = createTranscriptTracker();
    const gone = () => ({ spoken: true, dead: true });
    expect(tracker.scan([file(10, 1)], NOW, gone)).toMatchObject({ sightings: [], ownerGone: 1 });
    expect(events(tracker.scan([file(11, 1)], NOW, gone))).toEqual([[A, 'transcript_discovered']]);
  });

  test('C-203 S-605: 10,000 files that come and go leave nothing behind', () => {
    const tracker = createTranscriptTracker();
    for (let round = 0; round < 100; round += 1) {
      const seen = Array.from({ length: 100 }, (_, n) => file(1, 1, A, `/p/${round}-${n}.jsonl`));
      tracker.scan(seen, NOW, nobody);
    }
    expect(tracker.size).toBe(100);
    tracker.scan([], NOW, nobody);
    expect(tracker.size).toBe(0);
  });
});

describe('where transcripts are looked for', () => {
  test('C-202 S-601 S-604: exactly two levels, UUID names only; what is not there does not throw', () => {
    const home = tempFolder(cleanup);
    const context = { env: {}, home, log: silent };
    expect(transcriptListing(context).list()).toEqual([]);
    const put = (...path: string[]) => {
      const target = join(home, '.claude', 'projects', ...path);
      mkdirSync(join(target, '..'), { recursive: true });
      writeFileSync(target, '{}\n');
      utimesSync(target, NOW / 1_000, NOW / 1_000);
      return target;
    };
    put(`${B}.jsonl`);
    put('-p', 'notes.txt');
    put('-p', '.jsonl');
    put('-p', 'agent-x.jsonl');
    put('-p', 'subagents', `${B}.jsonl`);
    const path = put('-p', `${A}.jsonl`);
    expect(transcriptListing(context).list()).toEqual([{ id: A, path, size: 3, mtimeMs: NOW }]);
    rmSync(path);
    expect(transcriptListing(context).list()).toEqual([]);
  });

  test('C-204: the projects folder that is named, before CLAUDE_CONFIG_DIR, before the home', () => {
    const config = tempFolder(cleanup);
    const named = { SHADOWOB_CONNECTOR_CLAUDE_PROJECTS_DIR: '/named', CLAUDE_CONFIG_DIR: config };
    expect(projectFolders({ env: named, home: '/h' })).toEqual(['/named']);
    // The home stays behind it: a session that was started without the variable writes there.
    expect(projectFolders({ env: { CLAUDE_CONFIG_DIR: config }, home: '/h' })).toEqual([
      join(config, 'projects'),
      join('/h', '.claude', 'projects'),
    ]);
    expect(projectFolders({ env: { CLAUDE_CONFIG_DIR: '' }, home: '/h' })).toEqual([
      join('/h', '.claude', 'projects'),
    ]);
  });

  test('C-386 S-602: 1,000 transcripts are listed without one being opened', () => {
    const home = tempFolder(cleanup);
    const folder = join(home, '.claude', 'projects', '-p');
    mkdirSync(folder, { recursive: true });
    for (let n = 0; n < 1_000; n += 1)
      writeFileSync(join(folder, `0b7e6c1a-2f4d-4a8e-9c3b-${String(n).padStart(12, '0')}.jsonl`), '{}\n');
    const { files, work } = countFiles();
    expect(transcriptListing({ env: {}, home, log: silent, files }).list()).toHaveLength(1_000);
    expect(work.opened).toBe(0);
  });
});
