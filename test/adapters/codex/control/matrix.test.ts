import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { matrixRows } from '../../push-matrix.ts';
import { noHosts, openStage, type Stage } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

describe.skipIf(process.platform !== 'linux')('R-47: the push matrix of docs/acting.md', () => {
  /** Puts a thread into the hands of one owner. */
  const OWNERS: Record<string, (stage: Stage) => Promise<string>> = {
    nobody: async (stage) => stage.session(),
    ours: async (stage) => {
      const id = stage.session();
      await stage.run(['session-send', id, '--message', 'Write a long answer', '--keep', '1m']);
      return id;
    },
    'its server': async (stage) => {
      const id = stage.session();
      await stage.server([id], 'Write a long answer');
      return id;
    },
    'a terminal without it, at rest': async (stage) => holds(stage, 'tui', stage.session()),
    'a terminal without it, at work': async (stage) => holds(stage, 'tui', stage.session({ open: true })),
    'an editor’s own server': async (stage) => holds(stage, 'app-server', stage.session()),
    'codex exec': async (stage) => holds(stage, 'exec', stage.session({ open: true })),
    'its parent (a sub-agent)': async (stage) => {
      const id = stage.session({ parent: stage.session() });
      await stage.server([id], 'Write a long answer');
      return id;
    },
  };

  async function holds(stage: Stage, word: string, id: string): Promise<string> {
    await stage.owner([word, '--hold', id]);
    return id;
  }

  test('has a row for every owner, and only those', () => {
    expect(
      matrixRows('codex')
        .map(({ owner }) => owner)
        .sort(),
    ).toEqual(Object.keys(OWNERS).sort());
  });

  for (const { owner, send, abort } of matrixRows('codex')) {
    test(`${owner}: send ${send}, abort ${abort}`, async () => {
      await using stage = openStage();
      const id = (await OWNERS[owner]?.(stage)) ?? '';
      const sent = await stage.run(['session-send', id, '--message', 'Write a long answer', '--json']);
      // A turn that this message has begun is the owner's own when nobody had it.
      if (owner === 'nobody') {
        await stage.run(['session-abort', id]);
        await noHosts(stage);
      }
      const aborted = await stage.run(['session-abort', id, '--json']);
      expect([sent.code, aborted.code]).toEqual([send, abort]);
      await stage.run(['session-abort', id, '--kill']);
      await noHosts(stage);
    });
  }
});
