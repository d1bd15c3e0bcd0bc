import { describe, expect, test } from 'bun:test';
import { createOpencode } from '../../../src/adapters/opencode/index.ts';
import type { HistoryBounds } from '../../../src/runtime/feed.ts';
import { startServer } from './fake-server.ts';
import { type Json, type Look, lines } from './recordings.ts';
import { contextFor, createStore, fakeMachine, inFolder, refOf, type Store } from './world.ts';

const BOUNDS: HistoryBounds = { entries: 50, bytes: 10_000 };

async function historyOf(fill: (store: Store) => string, bounds = BOUNDS) {
  return inFolder(async (folder) => {
    const store = createStore(`${folder}/data`);
    const id = fill(store);
    store.close();
    const adapter = createOpencode(fakeMachine(folder, [], Date.now()));
    const history = await adapter.history?.(contextFor(`${folder}/data`), refOf(id), bounds);
    if (!history) throw new Error('no history');
    return history;
  });
}

const recorded = (scenario: string, line: number) => (store: Store) => {
  const look = lines<Look>(scenario, 'db.jsonl')[line - 1];
  const id = String(look?.session?.['id']);
  for (const row of look?.messages ?? []) store.message(id, row);
  for (const row of look?.parts ?? []) store.part(id, row);
  return id;
};

const one =
  (parts: readonly unknown[], info: Json = { role: 'assistant' }) =>
  (store: Store) => {
    store.message('ses_a', { id: 'msg_1', time_created: 5, time_updated: 5, data: info });
    for (const [index, data] of parts.entries()) {
      store.part('ses_a', {
        id: `prt_${index}`,
        message_id: 'msg_1',
        time_created: 5,
        time_updated: 5,
        data,
      });
    }
    return 'ses_a';
  };

describe('the history of a session', () => {
  test('who said what, oldest first, with the calls in one line each (disk-permission)', async () => {
    const { entries, more, skipped } = await historyOf(recorded('disk-permission', 2));
    expect(entries.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'please run the tests'],
      ['assistant', 'I will run the tests.'],
      ['tool', 'bash: echo tests-pass'],
      ['assistant', 'The tests pass.'],
    ]);
    expect(entries[0]?.at).toBe(1_796_069_738_183);
    expect({ more, skipped }).toEqual({ more: false, skipped: 0 });
  });

  test('is cut to its bounds from the newest end, and says that there is more', async () => {
    const few = await historyOf(recorded('disk-permission', 9), { entries: 3, bytes: 10_000 });
    expect(few.entries).toHaveLength(3);
    expect(few.more).toBe(true);
    const short = await historyOf(one([{ type: 'text', text: 'é'.repeat(5_000) }]), {
      entries: 5,
      bytes: 400,
    });
    expect(short.entries[0]?.cut).toBe(true);
    expect(Buffer.byteLength(short.entries[0]?.text ?? '')).toBeLessThanOrEqual(200);
  });

  test('text is safe to print, secrets are masked, what the program said to itself is left out', async () => {
    const { entries } = await historyOf(
      one([
        { type: 'text', text: `\u001b[31mred\u001b[0m\r\n  code\u202e sk-${'a1B2c3'.repeat(6)}` },
        { type: 'text', synthetic: true, text: 'The following tool was executed' },
        { type: 'reasoning', text: 'thinking' },
      ]),
    );
    expect(entries).toHaveLength(1);
    expect(entries[0]?.text).toStartWith('red\n  code');
    expect(entries[0]?.text).not.toContain('a1B2c3');
  });

  test('an error stands as the system’s word; rows that can’t be read are counted', async () => {
    const { entries, skipped } = await historyOf((store) => {
      store.message('ses_a', { id: 'msg_0', time_created: 1, time_updated: 1, data: 'not json' });
      return one(['{"type":'], {
        role: 'assistant',
        error: { name: 'APIError', data: { message: 'Overloaded' } },
      })(store);
    });
    expect(entries).toEqual([{ role: 'system', text: 'Overloaded', at: 5 }]);
    expect(skipped).toBe(1);
  });

  test('an output of 5 MB costs no more than its call’s line', async () => {
    const state = { status: 'completed', input: { command: 'make' }, output: 'x'.repeat(5_000_000) };
    const { entries } = await historyOf(one([{ type: 'tool', tool: 'bash', state }]));
    expect(entries.map(({ text }) => text)).toEqual(['bash']);
  });
});

describe('the history of a store that is not here', () => {
  test('comes through its server, if the user named that server, and never from another address', () =>
    inFolder(async (folder) => {
      const server = startServer();
      server.messages = {
        ses_a: [
          {
            info: { id: 'msg_1', role: 'user', time: { created: 7 } },
            parts: [{ type: 'text', text: 'hi' }],
          },
        ],
      };
      try {
        const adapter = createOpencode(fakeMachine(folder, [], Date.now()));
        const named = contextFor(`${folder}/data`, { env: { SHADOWOB_CONNECTOR_OPENCODE_URL: server.url } });
        const history = await adapter.history?.(named, refOf('ses_a', server.url), BOUNDS);
        expect(history?.entries).toEqual([{ role: 'user', text: 'hi', at: 7 }]);
        const asked = server.asked.length;
        const other = await adapter.history?.(
          contextFor(`${folder}/data`),
          refOf('ses_a', server.url),
          BOUNDS,
        );
        expect(other?.entries).toEqual([]);
        expect(server.asked).toHaveLength(asked);
      } finally {
        await server.stop();
      }
    }));
});
