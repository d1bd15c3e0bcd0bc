import { describe, expect, test } from 'bun:test';
import type { StoredSession } from '../../../src/adapters/opencode/database.ts';
import { createLiveServers } from '../../../src/adapters/opencode/live-servers.ts';
import type { ServerView } from '../../../src/adapters/opencode/server-view.ts';
import { type LocalLook, localSightings } from '../../../src/adapters/opencode/sightings.ts';

const NOW = 1_796_000_000_000;
const FOLDER = '/home/dev/acme-app';
const URL = 'http://127.0.0.1:4096';

/** A server of this store that says it runs nothing. */
const rests: ServerView = {
  endpoint: { url: URL, named: false, pid: 7 },
  version: '1.18.33',
  statuses: new Map(),
  requests: [],
  covers: () => true,
  coversV2: true,
  failures: [],
  skipped: 0,
};

const openTurn = (lastWriteAt: number): StoredSession => ({
  info: { id: 'ses_1', directory: FOLDER },
  activityAt: lastWriteAt,
  turn: { openedAt: lastWriteAt - 10, lastWriteAt },
});

function lifeOf(lastWriteAt: number, view: ServerView): readonly (string | undefined)[] {
  const look: LocalLook = {
    store: { source: 'database', sessions: [openTurn(lastWriteAt)] },
    views: [view],
    owners: {
      processes: [{ pid: 7, startedAt: NOW - 60_000, holdsStore: true, serves: true, urls: [URL] }],
      certain: true,
    },
    streamed: new Set(),
    now: NOW,
  };
  return localSightings(look).flatMap(({ claims }) => (claims ?? []).map((claim) => claim.life));
}

describe('R-13 an open turn, and the only server that could run it says that it rests', () => {
  test('a turn that was just written to may be newer than the server’s word: it lives', () => {
    expect(lifeOf(NOW - 100, rests)).toContain('alive');
    expect(lifeOf(NOW + 100, rests)).not.toContain('dead');
  });

  test('a turn that nobody has written to for seconds was left', () => {
    expect(lifeOf(NOW - 2_000, rests)).toContain('dead');
  });

  test('a server that has told of this turn’s end is believed at once, but not of one before, nor of an end after the rows were read', () => {
    expect(lifeOf(NOW - 100, { ...rests, endedAt: () => NOW - 50 })).toContain('dead');
    expect(lifeOf(NOW - 100, { ...rests, endedAt: () => NOW - 5_000 })).toContain('alive');
    expect(lifeOf(NOW - 100, { ...rests, endedAt: () => NOW + 50 })).toContain('alive');
  });
});

describe('the servers of a watch', () => {
  const server = (url: string) =>
    ({ server: { endpoint: { url } }, local: true, view: () => rests }) as unknown as Parameters<
      ReturnType<typeof createLiveServers>['put']
    >[0];

  test('are settled once they were looked for and each has told what it runs, or was lost', () => {
    const live = createLiveServers();
    expect(live.settled()).toBe(false);
    live.await([URL, 'http://127.0.0.1:4097']);
    expect(live.settled()).toBe(false);
    live.put(server(URL));
    expect(live.settled()).toBe(false);
    live.drop('http://127.0.0.1:4097');
    expect(live.settled()).toBe(true);
  });

  test('are settled when there are none', () => {
    const live = createLiveServers();
    live.await([]);
    expect(live.settled()).toBe(true);
  });
});
