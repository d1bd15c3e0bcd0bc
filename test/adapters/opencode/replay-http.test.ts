import { afterAll, describe, expect, test } from 'bun:test';
import { readBusEvent } from '../../../src/adapters/opencode/bus.ts';
import { createOpencode } from '../../../src/adapters/opencode/index.ts';
import {
  type Exchange,
  isGlobal,
  type Json,
  type KeyRow,
  keyOf,
  lines,
  type StreamLine,
  scenarios,
  startOf,
} from './recordings.ts';
import { createScore } from './scoring.ts';
import { contextFor, createStore, fakeMachine, inFolder, registryOf, stateIn, tui } from './world.ts';

const score = createScore('one-shot answers of a server, and the database beside it');
afterAll(() => score.print());

/** The directory of the recorded servers. */
const HOME = '/home/dev2/acme-app';

/** A recorded round of questions: status, permissions and questions asked at one moment. */
interface Round {
  readonly t: number;
  readonly note: string;
  readonly answers: ReadonlyMap<string, unknown>;
}

const ASKED = new Set(['/session/status', '/permission', '/question', '/api/session/active']);

function roundsOf(scenario: string): readonly Round[] {
  const rounds: { t: number; note: string; answers: Map<string, unknown> }[] = [];
  for (const exchange of lines<Exchange>(scenario, 'http.jsonl')) {
    if (exchange.req?.method !== 'GET' || exchange.res.status !== 200) continue;
    const { pathname, searchParams } = new URL(exchange.req.path, 'http://x');
    if (!ASKED.has(pathname)) continue;
    const directory = searchParams.get('directory') ?? '';
    const key = `${pathname} ${directory}`;
    const last = rounds.at(-1);
    const sameRound = last && !last.answers.has(key) && exchange.t - last.t < 60;
    const round = sameRound ? last : { t: exchange.t, note: exchange.note ?? '', answers: new Map() };
    if (!sameRound) rounds.push(round);
    round.answers.set(key, exchange.res.body);
  }
  return rounds.filter((round) => [...round.answers.keys()].some((key) => key.startsWith('/session/status')));
}

/** Answers as recorded; what was not asked then is answered as a server without anything to say does. */
function serve(round: Round, sessions: readonly Json[]) {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === '/global/health') return Response.json({ healthy: true, version: '1.18.33' });
      if (pathname === '/experimental/session') return Response.json(sessions);
      const directory = searchParams.get('directory') ?? '';
      // The server's own directory answers alike whether it is named or not.
      const own = directory === HOME ? '' : directory;
      const recorded =
        round.answers.get(`${pathname} ${directory}`) ?? round.answers.get(`${pathname} ${own}`);
      if (recorded !== undefined) return Response.json(recorded);
      const nothing = { '/session/status': {}, '/api/session/active': { data: {} } }[pathname] ?? [];
      return Response.json(nothing);
    },
  });
}

/**
 * The keys are written from the stream, which ends with its server. Where a key's own `why` says what is so for one
 * who knows more, a scan that looks at processes is scored by that.
 */
const KNOWS_MORE: Readonly<
  Record<string, { readonly from: number; readonly state: string; readonly why: string }>
> = {
  'sigkill-mid-turn': {
    from: 1_022,
    state: 'stopped',
    why: 'key: "on disk the turn is unfinished, so once the process is known to be dead: stopped"; http.jsonl: killed at 1022',
  },
};

/** The states that hold at a time: what the newest row before it says, and within 0.1 s what its neighbour says. */
function truthsAt(key: readonly KeyRow[], session: string, t: number): readonly string[] {
  const rows = key.filter((row) => row.session === session && row.t !== null);
  const wordOf = (row: KeyRow): string => row.this_server ?? row.state;
  const before = rows.filter((row) => (row.t ?? 0) <= t).at(-1);
  const near = rows.filter((row) => Math.abs((row.t ?? 0) - t) <= 100);
  return [...new Set([...(before ? [before] : []), ...near].map(wordOf))];
}

/** The durable events up to a time, stored as the program stores them. */
function storeUntil(scenario: string, data: string, t: number, base: number): readonly string[] {
  const store = createStore(data);
  const ids = new Set<string>();
  for (const line of lines<StreamLine>(scenario, 'sse.jsonl')) {
    const event = isGlobal(line) && line.t <= t ? readBusEvent(line.data) : undefined;
    if (!event) continue;
    store.event({ type: event.type, properties: event.properties }, base + line.t);
    if (event.type === 'session.created') ids.add(String((event.properties['info'] as Json)['id']));
    if (event.type === 'session.deleted') ids.delete(String((event.properties['info'] as Json)['id']));
  }
  store.close();
  return [...ids];
}

const scored = scenarios().filter((name) => keyOf(name, 'sse.jsonl').length > 0 && roundsOf(name).length > 0);

describe('a real scan of a real server that answers as recorded', () => {
  test('there are rounds to score', () => {
    expect(scored.length).toBeGreaterThan(15);
  });

  for (const scenario of scored) {
    test(scenario, async () => {
      const key = keyOf(scenario, 'sse.jsonl');
      const base = startOf(scenario);
      const before = score.wrong.length;
      for (const round of roundsOf(scenario)) {
        await inFolder(async (folder) => {
          const now = base + round.t;
          const ids = storeUntil(scenario, `${folder}/data`, round.t, base);
          const server = serve(
            round,
            ids.map((id) => ({ id, time: { created: base, updated: base } })),
          );
          try {
            const context = contextFor(`${folder}/data`, {
              now: () => now,
              env: { SHADOWOB_CONNECTOR_OPENCODE_URL: `http://127.0.0.1:${server.port}` },
            });
            const scan = await createOpencode(fakeMachine(folder, [], now)).scan(context);
            const registry = registryOf(scan, now);
            for (const id of ids) {
              const got = stateIn(registry, id);
              const [truth = 'unknown', ...near] = truthsAt(key, id, round.t);
              const where = `${scenario} http.jsonl at ${round.t} "${round.note}" (…${id.slice(-6)})`;
              const more = KNOWS_MORE[scenario];
              const known = more && round.t >= more.from && truth === 'unknown' ? more.state : truth;
              const nearby = near.find((word) => word === got || (got === 'running' && word === 'streaming'));
              score.row(where, got, nearby ?? known, { streamingIsRunning: true });
            }
          } finally {
            await server.stop(true);
          }
        });
      }
      expect(score.wrong.slice(before)).toEqual([]);
    });
  }
});

describe('R-13: a server’s {} about a session that a terminal runs', () => {
  const scenario = 'two-processes';
  const session = 'ses_dd1d83bf4ffewIho51gHE3dg9Z';
  const tail = lines<Exchange>(scenario, 'http.jsonl').find(
    (one) => one.req?.path === `/session/${session}/message`,
  );
  const base = startOf(scenario);
  const now = base + 460;

  /** The rows that the server itself showed at that moment. */
  const lay = (data: string): void => {
    const store = createStore(data);
    store.session({
      id: session,
      directory: '/home/dev2/acme-app',
      title: 'Held',
      time_created: now - 20_000,
      time_updated: now - 19_000,
    });
    for (const message of (tail?.res.body ?? []) as readonly Json[]) {
      const { id, sessionID: _session, ...data } = message['info'] as Json;
      const created = (data['time'] as Json)['created'];
      store.message(session, { id, time_created: created, time_updated: created, data });
      for (const part of message['parts'] as readonly Json[]) {
        const { id: partId, sessionID: _s, messageID, ...partData } = part;
        store.part(session, {
          id: partId,
          message_id: messageID,
          time_created: created,
          time_updated: created,
          data: partData,
        });
      }
    }
    store.close();
  };

  const stateWith = (
    processes: (folder: string, port: number) => Parameters<typeof fakeMachine>[1],
  ): Promise<string> =>
    inFolder(async (folder) => {
      lay(`${folder}/data`);
      const server = serve({ t: 0, note: '', answers: new Map() }, [
        { id: session, time: { created: base, updated: base } },
      ]);
      try {
        const host = fakeMachine(folder, processes(`${folder}/data/opencode.db`, server.port ?? 0), now);
        const url = `http://127.0.0.1:${server.port}`;
        const context = contextFor(`${folder}/data`, {
          now: () => now,
          env: { SHADOWOB_CONNECTOR_OPENCODE_URL: url },
        });
        return stateIn(registryOf(await createOpencode(host).scan(context), now), session);
      } finally {
        await server.stop(true);
      }
    });

  const theServer = (database: string, port: number) => ({
    pid: 13028,
    comm: 'opencode',
    argv: ['opencode', 'serve', '--port', String(port)],
    startedAt: now - 60_000,
    cwd: '/home/dev2/acme-app',
    open: [database],
    ports: [port],
  });

  test('is no evidence: while the terminal lives, its turn runs', async () => {
    const state = await stateWith((database, port) => [
      theServer(database, port),
      tui(11595, database, '/home/dev2/acme-app', now - 30_000),
    ]);
    expect(state).toBe('running');
  });

  test('and once the terminal is dead, the idle server is no owner of the turn: stopped', async () => {
    expect(await stateWith((database, port) => [theServer(database, port)])).toBe('stopped');
  });

  test('a terminal of another folder can’t be ruled out: unknown', async () => {
    const state = await stateWith((database, port) => [
      theServer(database, port),
      tui(11595, database, '/home/dev2/other-app', now - 30_000),
    ]);
    expect(state).toBe('unknown');
  });

  test('a terminal that started after the turn’s last write does not run it: stopped', async () => {
    const state = await stateWith((database, port) => [
      theServer(database, port),
      tui(11595, database, '/home/dev2/acme-app', now - 100),
    ]);
    expect(state).toBe('stopped');
  });
});
