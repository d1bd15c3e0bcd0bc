import { afterEach, describe, expect, test } from 'bun:test';
import { createSessionsEngine } from '../../../../src/runtime/daemon/sessions/engine.ts';
import { createRepoLookup } from '../../../../src/runtime/daemon/sessions/repo.ts';
import { createSessionsService } from '../../../../src/runtime/daemon/sessions/service.ts';
import { createCleanup, createFakeTime, settle, startServer } from '../harness.ts';
import { connectWire, type WireClient } from '../wire-client.ts';
import { A, B, fakeClock } from './dsl.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

async function serve() {
  const clock = fakeClock();
  const time = createFakeTime();
  const engine = createSessionsEngine({ clock });
  const repos = createRepoLookup({
    clock,
    files: { kind: async () => 'missing', head: async () => undefined },
  });
  const { path } = await startServer(cleanup, [createSessionsService(engine, repos)], { scheduler: time });
  const open = async (): Promise<WireClient> => {
    const wire = await connectWire(path);
    cleanup.add(() => wire.close());
    return wire;
  };
  return { clock, time, engine, open };
}

const ask = (op: string, payload?: unknown) => ({
  service: 'sessions',
  op,
  ...(payload === undefined ? {} : { payload }),
});

describe('the sessions service on its socket', () => {
  test('C-376 S-312 S-313: the literal lines of the protocol', async () => {
    const { open } = await serve();
    const wire = await open();
    wire.raw(
      '{"service":"sessions","op":"observe","payload":{"session_id":"0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c","cwd":"/home/me/web","event":"pre_tool_use","pid":4242,"stamp":{"ts":"2026-11-12T08:15:42.507331904Z","seq":"30917-1794471342507331904"}}}\n',
    );
    expect(await wire.nextText()).toBe('{"ok":true,"payload":{"ok":true}}');
    wire.raw(
      '{"service":"sessions","op":"end","payload":{"session_id":"0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c","reason":"clear","pid":4242}}\n',
    );
    expect(await wire.nextText()).toBe('{"ok":true,"payload":{"ended":true}}');
    expect(await wire.ask(ask('end', { session_id: 'ghost' }))).toEqual({
      ok: true,
      payload: { ended: false },
    });
  });

  test('R-48: when each agent was last heard by its own hooks; wrappers, files and ends of the unknown don’t count', () => {
    const clock = fakeClock();
    const engine = createSessionsEngine({ clock });
    engine.observe({ session_id: A, event: 'transcript_grew' }, 'local');
    engine.observe({ session_id: A, event: 'transcript_discovered' }, 'socket');
    engine.observe({ session_id: A, event: { stream_state: 'working' } }, 'socket');
    engine.observe({ session_id: B, event: 'stop', agent: 'pi' }, 'socket');
    engine.end({ session_id: 'ghost' }, 'socket');
    expect(engine.heard().size).toBe(0);
    const stamp = { ts: new Date(clock.now() - 5_000).toISOString().replace('Z', '000000Z'), seq: '1-1' };
    engine.observe({ session_id: A, event: 'stop', stamp }, 'journal');
    engine.observe({ session_id: B, event: { notification: 'other' }, agent: 'codex' }, 'socket');
    expect([...engine.heard()]).toEqual([
      ['claude', clock.now() - 5_000],
      ['codex', clock.now()],
    ]);
  });

  test('S-314 S-315 S-316: windows and the list', async () => {
    const { open } = await serve();
    const wire = await open();
    expect(await wire.ask(ask('list'))).toEqual({ ok: true, payload: { sessions: [] } });
    expect(
      await wire.ask(ask('window', { key: 'b81d', folders: ['/home/me/web'], tabs: 1, terminals: 0 })),
    ).toEqual({
      ok: true,
      payload: { ok: true },
    });
    const sighting = {
      session_id: A,
      cwd: '/home/me/web',
      model: 'claude-opus-5',
      repo: 'web',
      event: { notification: 'permission_prompt' },
    };
    await wire.ask(ask('observe', sighting));
    expect(await wire.ask(ask('list'))).toEqual({
      ok: true,
      payload: {
        sessions: [
          {
            session_id: A,
            agent: 'claude',
            state: 'waiting_for_permission',
            cwd: '/home/me/web',
            repo: 'web',
            model: 'claude-opus-5',
            source: { kind: 'vs_code', window_key: 'b81d' },
            last_event: { notification: 'permission_prompt' },
            started_at: '2026-10-03T03:40:00Z',
            last_seen: '2026-10-03T03:40:00Z',
          },
        ],
      },
    });
    expect(await wire.ask(ask('window-unregister', { key: 'b81d' }))).toEqual({
      ok: true,
      payload: { removed: true },
    });
    expect(await wire.ask(ask('window-unregister', { key: 'b81d' }))).toEqual({
      ok: true,
      payload: { removed: false },
    });
  });

  test('C-015 S-317 S-318: bad payloads leave no row, no bump, and the connection open', async () => {
    const { open, engine } = await serve();
    const wire = await open();
    const version = engine.version();
    for (const payload of [
      { session_id: '  ', event: 'stop' },
      { event: 'stop' },
      { session_id: A, event: 'frobnicate' },
      { session_id: A, event: 'stop', agent: 'grok' },
    ]) {
      expect(await wire.ask(ask('observe', payload))).toMatchObject({
        ok: false,
        error: expect.stringContaining('invalid `observe` payload'),
      });
    }
    expect(await wire.ask(ask('window', { key: '' }))).toMatchObject({
      error: expect.stringContaining('key'),
    });
    expect(await wire.ask(ask('nope'))).toEqual({ ok: false, error: 'unknown sessions op: nope' });
    expect(await wire.ask(ask('list'))).toEqual({ ok: true, payload: { sessions: [] } });
    expect(engine.version()).toBe(version);
  });

  test('C-116 S-320: an empty snapshot first, then one frame with the row', async () => {
    const { open } = await serve();
    const subscriber = await open();
    const other = await open();
    expect(await subscriber.ask(ask('subscribe'))).toEqual({ ok: true, payload: { sessions: [] } });
    await other.ask(ask('observe', { session_id: A, event: 'pre_tool_use' }));
    expect(await subscriber.next()).toMatchObject({
      payload: { sessions: [{ session_id: A, state: 'working' }] },
    });
    expect(subscriber.waiting).toBe(0);
  });

  test('C-118 S-121: heartbeats within a tick are one frame at the tick', async () => {
    const { open, clock, time, engine } = await serve();
    const subscriber = await open();
    engine.observe({ session_id: A, event: 'pre_tool_use' }, 'socket');
    await subscriber.ask(ask('subscribe'));
    for (let n = 0; n < 5; n += 1) {
      clock.plus(1);
      engine.observe({ session_id: A, event: 'pre_tool_use' }, 'socket');
    }
    await settle();
    expect(subscriber.waiting).toBe(0);
    await time.advance(10_000);
    expect(await subscriber.next()).toMatchObject({
      payload: { sessions: [{ last_seen: '2026-10-03T03:40:05Z' }] },
    });
    await time.advance(30_000);
    expect(subscriber.waiting).toBe(0);
  });

  test('S-324 C-085: ageing out is seen at a tick', async () => {
    const { open, clock, time, engine } = await serve();
    engine.observe({ session_id: A, event: 'stop' }, 'socket');
    const subscriber = await open();
    await subscriber.ask(ask('subscribe'));
    clock.plus(301);
    await time.advance(10_000);
    expect(await subscriber.next()).toEqual({ ok: true, payload: { sessions: [] } });
  });

  test('C-117 S-321: list and subscribe have one body', async () => {
    const { open, engine } = await serve();
    engine.observe({ session_id: A, event: 'stop', cwd: '/p' }, 'socket');
    engine.observe({ session_id: B, event: { stream_state: 'working' }, agent: 'pi' }, 'socket');
    const [lister, subscriber] = [await open(), await open()];
    lister.raw(`${JSON.stringify(ask('list'))}\n`);
    subscriber.raw(`${JSON.stringify(ask('subscribe'))}\n`);
    expect(await subscriber.nextText()).toBe(await lister.nextText());
  });

  test('S-310 S-341: status has the summary and the rows', async () => {
    const { open, engine } = await serve();
    engine.observe({ session_id: A, event: 'pre_tool_use' }, 'socket');
    expect(await (await open()).ask({ op: 'status' })).toMatchObject({
      payload: {
        services: [
          {
            name: 'sessions',
            healthy: true,
            summary: '1 session(s): 1 working, 0 waiting, 0 idle',
            detail: { sessions: [{ session_id: A }] },
          },
        ],
      },
    });
  });

  test('S-013: the repository is found before the event is applied, and a name that was sent is kept', async () => {
    const clock = fakeClock();
    const engine = createSessionsEngine({ clock });
    const asked: string[] = [];
    const nameOf = async (cwd: string) => {
      asked.push(cwd);
      return 'found';
    };
    const repos = { cached: 0, nameOf };
    const { path } = await startServer(cleanup, [createSessionsService(engine, repos)]);
    const wire = await connectWire(path);
    await wire.ask(ask('observe', { session_id: A, event: 'stop', cwd: '/p' }));
    await wire.ask(ask('observe', { session_id: B, event: 'stop', cwd: '/q', repo: 'sent' }));
    await wire.ask(ask('observe', { session_id: 'c', event: 'stop' }));
    expect(engine.entries().map(({ repo }) => repo)).toEqual(['found', 'sent', undefined]);
    expect(asked).toEqual(['/p']);
    wire.close();
  });

  test('C-360 S-203 S-907: a flood of 10,000 new ids leaves 512 rows, and others are answered meanwhile', async () => {
    const { open } = await serve();
    const flood = await open();
    const other = await open();
    const lines = Array.from({ length: 10_000 }, (_, n) =>
      JSON.stringify(ask('observe', { session_id: `flood-${n}`, event: 'stop' })),
    );
    flood.raw(`${lines.join('\n')}\n`);
    const answered = { flood: 0, pings: 0 };
    const draining = (async () => {
      for (; answered.flood < 10_000; answered.flood += 1) await flood.next();
    })();
    while (answered.flood < 10_000) {
      expect(await other.ask({ op: 'ping' })).toMatchObject({ ok: true });
      answered.pings += 1;
    }
    await draining;
    // Answered many times while the flood went on: nobody waits for the end of somebody else's.
    expect(answered.pings).toBeGreaterThan(50);
    const { payload } = await other.ask(ask('list'));
    expect((payload as { sessions: unknown[] }).sessions).toHaveLength(512);
  }, 20_000);
});
