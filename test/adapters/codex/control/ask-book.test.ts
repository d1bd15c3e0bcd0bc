import { describe, expect, test } from 'bun:test';
import { createAskBook } from '../../../../src/adapters/codex/control/ask-book.ts';
import { overheard, recordedTurns } from './recorded.ts';

const request = (rpcId: number, message = 'Which ticket?') => ({
  rpcId,
  method: 'mcpServer/elicitation/request',
  params: { threadId: 'T', turnId: 'U', serverName: 'tickets', mode: 'form', message, requestedSchema: {} },
});

describe('A2: the ids of requests', () => {
  test('two requests that are alike at one time are two, and each is settled for itself', () => {
    const book = createAskBook();
    const ids = [book.take(request(1)), book.take(request(2))].map((ask) => ask?.pending.requestId);
    expect(new Set(ids).size).toBe(2);
    expect(book.learn('serverRequest/resolved', { threadId: 'T', requestId: 2 })).toBe(ids[1]);
    expect(book.list().map(({ pending }) => pending.requestId)).toEqual([ids[0] ?? '']);
  });

  test('an id that was answered never comes to mean a later request that is alike', () => {
    const book = createAskBook();
    const first = book.take(request(1))?.pending.requestId;
    book.learn('serverRequest/resolved', { threadId: 'T', requestId: 1 });
    const second = book.take(request(2))?.pending.requestId;
    expect(second).not.toBe(first);
    expect(book.get(first ?? '')).toBeUndefined();
  });

  test('A6: the same request on another connection has the same id, whatever its number there', () => {
    const asked = recordedTurns
      .flatMap(({ messages }) => messages)
      .filter(({ out, value }) => !out && value['id'] !== undefined);
    expect(asked.length).toBeGreaterThan(3);
    const idsAt = (shift: number) => {
      const book = createAskBook();
      return asked.map(
        ({ value }) =>
          book.take({
            rpcId: Number(value['id']) + shift,
            method: String(value['method']),
            params: value['params'] as Record<string, unknown>,
          })?.pending.requestId,
      );
    };
    expect(idsAt(7)).toEqual(idsAt(0));
    expect(new Set(idsAt(0)).size).toBe(asked.length);
  });

  test('tui-subagent-v2-approval: a request with the number 0 waits until the server says that it is settled', () => {
    const book = createAskBook();
    const waited = overheard('tui-subagent-v2-approval').map((msg) => {
      const params = msg['params'] as Record<string, unknown>;
      const method = String(msg['method']);
      if (msg['id'] === undefined) book.learn(method, params);
      else book.take({ rpcId: Number(msg['id']), method, params });
      return book.list().map(({ pending }) => pending.session.sessionId);
    });
    const asked = waited.filter((list) => list.length > 0);
    expect(new Set(asked.flat())).toEqual(new Set(['01a22e27-759e-7921-8295-848cb9d4128f']));
    expect(waited.at(-1)).toEqual([]);
  });
});
