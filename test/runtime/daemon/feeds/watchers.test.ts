import { describe, expect, test } from 'bun:test';
import type { TranscriptSeen } from '../../../../src/runtime/daemon/feeds/ports.ts';
import { createDiscoveryWatchers } from '../../../../src/runtime/daemon/feeds/watchers.ts';
import { silent } from '../../../../src/runtime/daemon/log.ts';
import { createSessionsEngine } from '../../../../src/runtime/daemon/sessions/engine.ts';
import { createRepoLookup } from '../../../../src/runtime/daemon/sessions/repo.ts';
import { createFakeTime } from '../harness.ts';

/** Keeps the process busy, as what follows a report in a large registry does. */
function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('many files at once', () => {
  test('S-648: the socket gets its turn while thousands of new transcripts are announced', async () => {
    const time = createFakeTime();
    const clock = { now: () => 1_000_000 + time.at, awakeMs: () => time.at };
    const engine = createSessionsEngine({ clock });
    const turns: number[] = [];
    const state = { observed: 0 };
    const slow: typeof engine = {
      ...engine,
      observe(observe, origin) {
        busy(25);
        state.observed += 1;
        return engine.observe(observe, origin);
      },
    };
    const seen = Array.from({ length: 4 }, (_, index): TranscriptSeen => {
      const id = `0b7e6c1a-2f4d-4a8e-9c3b-00000000000${index}`;
      return { id, path: `/p/${id}.jsonl`, size: 1, mtimeMs: 1_000_000 };
    });
    const [watcher] = createDiscoveryWatchers({
      engine: slow,
      repos: createRepoLookup({ clock, log: silent }),
      clock,
      scheduler: time,
      log: silent,
      ports: { transcripts: { list: () => seen } },
      known: () => ({ spoken: false, dead: false }),
    });
    const look = (): void => {
      turns.push(state.observed);
      if (state.observed < seen.length) setImmediate(look);
    };
    setImmediate(look);
    await watcher?.scan();
    expect(state.observed).toBe(4);
    expect(turns.filter((observed) => observed > 0 && observed < 4).length).toBeGreaterThan(0);
  });
});
