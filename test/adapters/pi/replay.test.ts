import { afterAll, describe, expect, test } from 'bun:test';
import { createPi } from '../../../src/adapters/pi/index.ts';
import { refOf, sightingOf } from '../../../src/adapters/pi/sightings.ts';
import { readTranscript } from '../../../src/adapters/pi/transcript.ts';
import { systemFiles } from '../../../src/runtime/files/file-system.ts';
import { createFileReader } from '../../../src/runtime/files/head-tail.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import { contextFor, emptyMachine, inFolder, layDown, newestTime, recordings } from './recordings.ts';

const counts = { alive: 0, dead: 0, all: 0 };
afterAll(() => {
  console.log(`pi, files alone, its process alive: ${counts.alive} of ${counts.all} states right`);
  console.log(`pi, files alone, its process gone: ${counts.dead} of ${counts.all} states right`);
});

/** A tool that runs is `running` in these keys; before a first prompt `unknown` and `idle` are equal. */
function plain(state: string): string {
  if (state === 'tool_call' || state === 'streaming') return 'running';
  return state === 'idle' ? 'unknown' : state;
}

/** What the key's word becomes once nobody is left who could go on: an open turn was cut. */
function whenDead(state: string): string {
  return state === 'running' ? 'stopped' : state;
}

/**
 * Rows of the keys that are wrong. `json-length` ends with the edit that takes the cut answer out of the context, and no
 * attempt follows: the program's own stream says `blocked` at its `agent_settled`, and exits.
 */
const WRONG_KEYS: ReadonlyMap<string, string> = new Map([['json-length 7', 'blocked']]);

describe('pi: every state of the recordings, line by line (R-20)', () => {
  for (const { name, lines, id, key } of recordings()) {
    test(name, async () => {
      await inFolder(async (folder) => {
        for (const { state, ...rest } of key) {
          const row = { ...rest, state: WRONG_KEYS.get(`${name} ${rest.line}`) ?? state };
          const written = lines.slice(0, row.line);
          const next = lines[row.line] ?? '';
          // A failed answer that pi tries again is told by the very next line, which a file alone has only then.
          const retried = row.state === 'running' && row.record === 'message:assistant:error';
          const seen = retried ? [...written, next] : written;
          const path = layDown(folder, id, seen);
          const now = newestTime(seen) + 1_000;

          const result = readTranscript(createFileReader(systemFiles), path, id);
          if (result.kind !== 'read') throw new Error(result.kind);
          const registry = createRegistry();
          const found = { sessionId: id, path, stat: result.stat };
          registry.replace('pi', [sightingOf(found, result.value, { life: 'alive', pid: 12 })], now);
          const alive = registry.find(refOf(id));
          expect(`${row.line} ${alive ? plain(publicState(alive.shown.state)) : 'unknown'}`).toBe(
            `${row.line} ${row.state}`,
          );
          counts.alive += 1;

          const scan = await createPi(emptyMachine(folder)).scan(contextFor(folder, { now: () => now }));
          const other = createRegistry();
          other.replace('pi', scan.sightings, now);
          const dead = other.find(refOf(id));
          expect(`${row.line} ${dead ? plain(publicState(dead.shown.state)) : 'unknown'}`).toBe(
            `${row.line} ${whenDead(row.state)}`,
          );
          counts.dead += 1;
          counts.all += 1;
        }
      });
    });
  }
});
