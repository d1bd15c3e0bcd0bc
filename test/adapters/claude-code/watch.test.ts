import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createClaudeCode } from '../../../src/adapters/claude-code/index.ts';
import { matters } from '../../../src/adapters/claude-code/watch.ts';
import type { FeedWatch } from '../../../src/runtime/feed.ts';
import { createTempHome, idOf, NOW, pathOf, rowsOf, type TempHome } from './temp-home.ts';

let temp: TempHome;
let watch: FeedWatch | undefined;
beforeEach(() => {
  temp = createTempHome();
  mkdirSync(join(temp.home, '.claude', 'sessions'), { recursive: true });
});
afterEach(async () => {
  await watch?.close();
  watch = undefined;
  temp.close();
});

/** Starts watching; each call of the result waits for the next change. */
async function start(): Promise<() => Promise<void>> {
  const state = { count: 0, taken: 0, wake: () => {} };
  watch = await createClaudeCode(temp.host).watch?.(temp.context().context, {
    changed() {
      state.count += 1;
      state.wake();
    },
    sighted() {},
    lost() {},
  });
  return async () => {
    if (state.count <= state.taken) {
      await new Promise<void>((resolve) => {
        state.wake = resolve;
      });
    }
    state.taken = state.count;
  };
}

describe('watch: what makes it look again', () => {
  const table: readonly [string, boolean][] = [
    [`/p/-x/${idOf(1)}.jsonl`, true],
    ['/s/4242.json', true],
    ['/j/14a017a9/state.json', true],
    ['/p/-home-dev-new', true],
    ['/p/-x/agent-a1b2.jsonl', false],
    ['/s/4242.0a1b.key', false],
    ['/p/-x/notes.md', false],
  ];
  test.each(table)('%s: %s', (path, want) => {
    expect(matters(path)).toBe(want);
  });
});

describe('watch: real folders (R-26)', () => {
  test('a row that is appended, a live file that changes, a project that is new', async () => {
    const rows = rowsOf(idOf(1), NOW);
    temp.write(pathOf(idOf(1)), rows.prompt('Go'));
    const next = await start();
    temp.append(pathOf(idOf(1)), rows.done());
    await next();
    temp.write('.claude/sessions/4242.json', '{}');
    await next();
    temp.write(pathOf(idOf(2), '-home-dev-new'), rows.prompt('New'));
    await next();
    expect(watch?.status()).toMatch(/watching|polling/);
  });

  test('a home that is not there yet is seen when it comes', async () => {
    const next = await start();
    temp.write(pathOf(idOf(1)), rowsOf(idOf(1), NOW).prompt('First ever'));
    await next();
  });
});
