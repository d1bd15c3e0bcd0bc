import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { matrixRows } from '../../push-matrix.ts';
import { messages, nothingLeft, openStage, type Stage, until } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

describe.skipIf(process.platform !== 'linux')('R-47: the push matrix of docs/acting.md', () => {
  /** Puts a session into the hands of one owner, who works on it. */
  const OWNERS: Record<string, (stage: Stage) => Promise<string>> = {
    nobody: async (stage) => stage.session(),
    ours: async (stage) => {
      const id = stage.session();
      await stage.run(['session-send', id, '--message', 'hang']);
      return id;
    },
    'a server': async (stage) => {
      const id = stage.session();
      const { url } = await stage.server();
      const directory = encodeURIComponent(stage.folder);
      await fetch(`${url}/session/${id}/prompt_async?directory=${directory}`, {
        method: 'POST',
        body: JSON.stringify({ parts: [{ type: 'text', text: 'hang' }] }),
      });
      await until(() => messages(stage).includes('hang'));
      return id;
    },
    'a locked server': async (stage) => {
      const id = stage.session();
      await stage.server({ OPENCODE_SERVER_PASSWORD: 'secret' });
      return id;
    },
    'a terminal': async (stage) => {
      const id = stage.session();
      await stage.terminal();
      stage.openTurn(id);
      return id;
    },
    'a terminal with our plugin': async (stage) => {
      const id = stage.session();
      await stage.pluggedIn(id);
      return id;
    },
  };

  test('has a row for every owner, and only those', () => {
    expect(
      matrixRows('opencode')
        .map(({ owner }) => owner)
        .sort(),
    ).toEqual(Object.keys(OWNERS).sort());
  });

  for (const { owner, send, abort } of matrixRows('opencode')) {
    test(`${owner}: send ${send}, abort ${abort}`, async () => {
      await using stage = openStage();
      const id = (await OWNERS[owner]?.(stage)) ?? '';
      const sent = await stage.run(['session-send', id, '--message', 'hello', '--json']);
      // A turn that this message has begun is the owner's own when nobody had it.
      if (owner === 'nobody') await nothingLeft(stage);
      const aborted = await stage.run(['session-abort', id, '--json']);
      expect([sent.code, aborted.code]).toEqual([send, abort]);
      await stage.run(['session-abort', id, '--kill']);
      await nothingLeft(stage);
    });
  }
});
