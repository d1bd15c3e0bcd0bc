import { describe, expect, test } from 'bun:test';
import { createAskBook } from '../../../../src/adapters/codex/control/ask-book.ts';
import { recordedTurns } from './recorded.ts';

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
});
