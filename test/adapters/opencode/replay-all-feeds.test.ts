import { afterAll, describe, expect, test } from 'bun:test';
import { readBusEvent } from '../../../src/adapters/opencode/bus.ts';
import { homeCandidates } from '../../../src/adapters/opencode/homes.ts';
import type { OpencodeProcess, StoreOwners } from '../../../src/adapters/opencode/owners.ts';
import { localSightings, RUNTIME_ID } from '../../../src/adapters/opencode/sightings.ts';
import { readStore } from '../../../src/adapters/opencode/store.ts';
import { createStreamSessions } from '../../../src/adapters/opencode/stream-sessions.ts';
import { systemFiles } from '../../../src/runtime/files/file-system.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import {
  type Exchange,
  isGlobal,
  type Json,
  keyOf,
  lines,
  type StreamLine,
  scenarios,
  startOf,
} from './recordings.ts';
import { createScore } from './scoring.ts';
import { createStore, inFolder, type Store, stateIn } from './world.ts';

const URL = 'http://127.0.0.1:4096';
const score = createScore('all feeds together: stream, growing database, processes');
afterAll(() => score.print());

/** When a recorded server was killed, and when the next one was there, milliseconds of the recording. */
const KILLED: Readonly<Record<string, { readonly at: number; readonly backAt: number }>> = {
  'sigkill-mid-turn': { at: 1_022, backAt: 4_000 },
};

/** The session that a terminal streams while this server is listened to; its rows were there before. */
const TERMINAL = {
  scenario: 'two-processes',
  session: 'ses_dd1d83bf4ffewIho51gHE3dg9Z',
  directory: '/home/dev2/acme-app',
};

function layTerminalRows(store: Store, base: number): void {
  const { scenario, session, directory } = TERMINAL;
  store.session({
    id: session,
    directory,
    title: 'Held',
    time_created: base - 20_000,
    time_updated: base - 19_000,
  });
  const tail = lines<Exchange>(scenario, 'http.jsonl').find(
    (one) => one.req?.path === `/session/${session}/message`,
  );
  for (const message of (tail?.res.body ?? []) as readonly Json[]) {
    const { id, sessionID: _session, ...data } = message['info'] as Json;
    const created = (data['time'] as Json)['created'];
    store.message(session, { id, time_created: created, time_updated: created, data });
  }
}

function ownersAt(scenario: string, t: number, base: number): StoreOwners {
  const killed = KILLED[scenario];
  const server: OpencodeProcess = {
    pid: 100,
    startedAt: killed && t >= killed.at ? base + killed.backAt : base - 60_000,
    cwd: '/home/dev2/acme-app',
    holdsStore: true,
    serves: true,
    urls: [URL],
  };
  const isDown = killed && t >= killed.at && t < killed.backAt;
  const terminal: OpencodeProcess = {
    pid: 200,
    startedAt: base - 30_000,
    cwd: TERMINAL.directory,
    holdsStore: true,
    serves: false,
    urls: [],
  };
  const processes = [...(isDown ? [] : [server]), ...(scenario === TERMINAL.scenario ? [terminal] : [])];
  return { processes, certain: true };
}

describe('every row of the answer keys, with all feeds of a daemon', () => {
  for (const scenario of scenarios().filter((name) => keyOf(name, 'sse.jsonl').length > 0)) {
    test(scenario, () =>
      inFolder((folder) => {
        const key = keyOf(scenario, 'sse.jsonl');
        const base = startOf(scenario);
        const clock = { now: base };
        const registry = createRegistry();
        const store = createStore(folder);
        if (scenario === TERMINAL.scenario) layTerminalRows(store, base);
        const [home] = homeCandidates({
          env: { OPENCODE_DATA_DIR: folder },
          home: '/nonexistent',
          platform: 'linux',
        });
        const stream = createStreamSessions({
          server: { endpoint: { url: URL, named: true, pid: 100 }, version: '1.18.33' },
          local: true,
          sink: {
            changed: () => {},
            sighted: (scope, sightings) => registry.apply(scope, sightings, clock.now),
            lost: (scope) => registry.withdraw(scope, clock.now),
          },
          timers: { after: () => () => {} },
          now: () => clock.now,
        });
        stream.seed({ statuses: new Map(), requests: [], covers: () => true, coversV2: true });
        const scan = (t: number): void => {
          const isUp = ownersAt(scenario, t, base).processes.some(({ pid }) => pid === 100);
          const read = readStore(home, { files: systemFiles, platform: 'linux', now: clock.now });
          const sightings = localSightings({
            store: read,
            views: isUp ? [stream.view()] : [],
            owners: ownersAt(scenario, t, base),
            streamed: new Set([URL]),
            now: clock.now,
          });
          registry.replace(RUNTIME_ID, sightings, clock.now);
        };

        const before = score.wrong.length;
        for (const [index, line] of lines<StreamLine>(scenario, 'sse.jsonl').entries()) {
          clock.now = base + line.t;
          if (!isGlobal(line)) continue;
          if (line.closed) stream.lose('the server was killed');
          const event = readBusEvent(line.data);
          if (event) {
            store.event({ type: event.type, properties: event.properties }, clock.now);
            stream.hear(event);
          }
          if (line.closed || (event && !event.type.endsWith('.delta'))) scan(line.t);
          registry.tick(clock.now);
          for (const row of key.filter((one) => one.line === index + 1)) {
            const where = `${scenario} ${row.file}:${row.line} ${row.record} (…${row.session?.slice(-6)})`;
            const got = stateIn(registry, row.session ?? '');
            // With the processes in view a killed server's turn is known to be stopped; the key says so in its `why`.
            const known = KILLED[scenario] && row.state === 'unknown' ? 'stopped' : row.state;
            // What a terminal without a port does is known from its rows only: at work, not with which words. Once the
            // server has ended a newer turn, the terminal's is an older open row, by which nobody judges.
            const asOne = { streamingIsRunning: scenario === TERMINAL.scenario };
            const byServer = row.this_server === 'completed' ? row.this_server : known;
            score.row(where, got, byServer, asOne);
          }
        }
        store.close();
        expect(score.wrong.slice(before)).toEqual([]);
      }),
    );
  }
});
