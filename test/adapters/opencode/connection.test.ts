import { expect, test } from 'bun:test';
import { createServer, type ServerResponse } from 'node:http';
import { holdStream } from '../../../src/adapters/opencode/connection.ts';
import { createLiveServers } from '../../../src/adapters/opencode/live-servers.ts';
import { createServerApi } from '../../../src/adapters/opencode/server-api.ts';
import { pollServer } from '../../../src/adapters/opencode/server-view.ts';
import { localRef } from '../../../src/adapters/opencode/sightings.ts';
import { systemTimers } from '../../../src/runtime/files/coalesce.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';

const ID = 'ses_a';

test('R-13 a turn that begins after the server has answered and before it listens to itself is not missed', async () => {
  const stream = Promise.withResolvers<ServerResponse>();
  const running = new Map<string, unknown>();
  await using server = createServer((request, response) => {
    if (request.url === '/global/event') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      stream.resolve(response);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const isStatus = request.url?.startsWith('/session/status') === true;
    response.end(JSON.stringify(isStatus ? Object.fromEntries(running) : { data: {} }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const endpoint = { url: `http://127.0.0.1:${port}`, named: true };
  const registry = createRegistry();
  const live = createLiveServers();
  const ending = new AbortController();
  const api = createServerApi(endpoint, Date.now);
  const asked = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  const held = holdStream({
    server: { endpoint, version: '1.18.33', api },
    local: true,
    live,
    timers: systemTimers,
    now: Date.now,
    signal: ending.signal,
    snapshot() {
      asked.resolve();
      return pollServer(api, { version: '1.18.33' }, []);
    },
    sink: {
      changed: () => told.resolve(),
      sighted: (scope, sightings) => registry.apply(scope, sightings, Date.now()),
      lost: (scope) => registry.withdraw(scope, Date.now()),
    },
  });
  const response = await stream.promise;
  // The headers are at the client once something that was asked later has its answer.
  await api.health();
  const early = await Promise.race([asked.promise.then(() => 'asked'), api.health().then(() => 'not asked')]);
  // Nobody is told of this turn's beginning: the event has no listener yet.
  running.set(ID, { type: 'busy' });
  response.write('data: {"payload":{"type":"server.connected","properties":{}}}\n\n');
  await told.promise;
  const session = registry.find(localRef(ID));
  expect([early, session && publicState(session.shown.state)]).toEqual(['not asked', 'running']);
  ending.abort();
  await held;
});
