import { afterEach, describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { terminalTeller } from '../../src/commands/terminal-teller.ts';
import type { World } from '../../src/commands/world.ts';
import { configPathIn } from '../../src/runtime/config/path.ts';
import { RUNNING } from '../../src/runtime/session/state.ts';
import { createCleanup, tempFolder } from '../runtime/daemon/harness.ts';
import { rested, session, T } from '../runtime/notify/sessions.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

function place(settings: object | undefined, env: Record<string, string> = {}) {
  const folder = tempFolder(cleanup);
  const home = join(folder, '.shadowob', 'connector');
  mkdirSync(home, { recursive: true });
  if (settings) writeFileSync(configPathIn(home), JSON.stringify(settings));
  const clock = { now: T };
  const world = { env, home: folder, now: () => clock.now } as unknown as World;
  return { world, clock };
}

const on = (terminal: object, privacy: object = {}) => ({
  privacy,
  notifications: { enabled: true, sinks: { terminal } },
});

describe('a panel rings its own terminal', () => {
  test('R-25: not without settings, not while notifications are off, not without a style', async () => {
    const silent = [
      undefined,
      { notifications: { sinks: { terminal: { style: 'bell' } } } },
      on({ style: 'off' }),
    ];
    for (const settings of silent) expect(await terminalTeller(place(settings).world)).toBeUndefined();
  });

  test('R-44: what has settled since the panel was opened, once, and not what was over before', async () => {
    const { world, clock } = place(on({ style: 'osc9' }));
    const rung: string[] = [];
    const tell = await terminalTeller(world, (sequence) => rung.push(sequence) > 0);
    const over = session(rested('completed'), { id: 'over', opened: T - 9_000, ended: T - 8_000 });
    const see = (ms: number, ...sessions: Parameters<NonNullable<typeof tell>>[0]) => {
      clock.now = T + ms;
      tell?.([over, ...sessions]);
    };
    see(0, session(RUNNING, { opened: T - 1_000 }));
    const done = session(rested('completed'), {
      opened: T - 1_000,
      ended: T + 500,
      facts: { title: 'secret' },
    });
    for (const ms of [600, 1_600, 2_600, 3_600, 9_000]) see(ms, done);
    expect(rung).toEqual(['\u001b]9;Codex CLI · shop: Done.\u0007']);
  });

  test('R-37: a title only with details, and only as privacy.titles lets it be shown', async () => {
    for (const [settings, shown] of [
      [on({ style: 'osc777', details: true }), true],
      [on({ style: 'osc777', details: true }, { titles: 'hidden' }), false],
      [on({ style: 'osc777' }), false],
    ] as const) {
      const { world, clock } = place(settings, { TMUX: '/tmp/tmux,1,0' });
      const rung: string[] = [];
      const tell = await terminalTeller(world, (sequence) => rung.push(sequence) > 0);
      tell?.([session(RUNNING, { opened: T - 1_000 })]);
      const done = session(rested('completed'), { opened: T - 1_000, ended: T, facts: { title: 'a title' } });
      for (const ms of [100, 3_000]) {
        clock.now = T + ms;
        tell?.([done]);
      }
      expect(rung).toHaveLength(1);
      expect(rung[0]).toStartWith('\u001bPtmux;');
      expect(rung[0]?.includes('a title')).toBe(shown);
    }
  });
});
