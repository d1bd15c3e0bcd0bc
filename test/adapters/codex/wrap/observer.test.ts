import { describe, expect, test } from 'bun:test';
import { linkServer } from '../../../../src/adapters/codex/control/socket.ts';
import { type CodexObserver, observeServer } from '../../../../src/adapters/codex/wrap/observer.ts';
import type { Report } from '../../../../src/runtime/daemon/reporter.ts';
import { FakeServer } from '../fake-server.ts';
import { ID, inHome } from '../home.ts';

interface Watched {
  readonly server: FakeServer;
  readonly reports: Report[];
  readonly observer: CodexObserver;
  readonly gate: { open: boolean };
  /** Waits for the report number `count`. */
  reported(count: number): Promise<void>;
}

async function watching(
  behaviour: ConstructorParameters<typeof FakeServer>[1],
  use: (watched: Watched) => Promise<void>,
  open = true,
): Promise<void> {
  await inHome(async (home) => {
    const server = new FakeServer(home.path('s.sock'), behaviour);
    const reports: Report[] = [];
    const gate = { open };
    server.status(ID, { type: 'active', activeFlags: [] });
    const observer = observeServer({
      mayConnect: () => gate.open,
      connect: () => linkServer(home.path('s.sock'), { notified() {}, asked() {}, lost() {} }),
      send: (report) => reports.push(report),
      pollMs: 5,
    });
    const reported = async (count: number): Promise<void> => {
      while (reports.length < count) await Bun.sleep(2);
    };
    try {
      await use({ server, reports, observer, gate, reported });
    } finally {
      observer.end();
      await observer.stopped;
      await server.stop();
    }
  });
}

const wordOf = ({ op, payload }: Report): unknown => (op === 'end' ? 'end' : payload.event);

describe('the observer of the wrapper’s own server', () => {
  test('C-292 C-295 S-762: every look reports again, with four methods and no other', () =>
    watching({}, async ({ server, reports, reported }) => {
      await reported(10);
      expect(new Set(reports.map(wordOf).map((word) => JSON.stringify(word)))).toEqual(
        new Set(['{"stream_state":"working"}']),
      );
      expect(server.methods).toEqual(
        new Set(['initialize', 'initialized', 'thread/loaded/list', 'thread/read']),
      );
      expect(server.connections).toBe(1);
    }));

  test('S-762 S-902: what the server asks is left unanswered', () =>
    watching({}, async ({ server, reported }) => {
      await reported(1);
      server.send({ id: 0, method: 'item/commandExecution/requestApproval', params: { threadId: ID } });
      await reported(5);
      expect(server.received.filter((message) => 'result' in message || 'error' in message)).toEqual([]);
    }));

  test('C-293: a thread that is no longer loaded has ended', () =>
    watching({}, async ({ server, reports, reported }) => {
      await reported(1);
      server.threads.clear();
      while (reports.every(({ op }) => op !== 'end')) await Bun.sleep(2);
      expect(reports.filter(({ op }) => op === 'end')).toEqual([{ op: 'end', payload: { session_id: ID } }]);
    }));

  test('C-298 S-766: the terminal’s end ends what was reported, once', () =>
    watching({}, async ({ observer, reports, reported }) => {
      await reported(1);
      observer.end();
      observer.end();
      await observer.stopped;
      expect(reports.map(({ op }) => op).filter((op) => op === 'end')).toHaveLength(1);
    }));

  test('R-22: nobody connects before the terminal has a thread', () =>
    watching(
      {},
      async ({ server, gate, reported }) => {
        await Bun.sleep(30);
        expect(server.connections).toBe(0);
        gate.open = true;
        await reported(1);
      },
      false,
    ));

  test('S-766: a server that is gone is looked at three times, and then no more', () =>
    watching({}, async ({ server, observer, reported }) => {
      await reported(1);
      await server.stop();
      await observer.stopped;
    }));
});
