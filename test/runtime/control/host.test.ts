import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostSpec, Message } from '../../../src/runtime/control/driver.ts';
import { createHost, type Host } from '../../../src/runtime/control/host.ts';
import { openQueue } from '../../../src/runtime/control/queue.ts';
import type { ControlEvent } from '../../../src/runtime/control.ts';
import { CONTROL } from '../../../src/runtime/limits.ts';
import type { KillReport } from '../../../src/runtime/process/types.ts';
import { createTestClock, settle, type TestClock } from './clock.ts';
import { FakeDriver, messageOf, OWNED, requestOf, SESSION, specOf } from './fake-driver.ts';

interface Stage {
  readonly host: Host;
  readonly driver: FakeDriver;
  readonly ended: Promise<KillReport>;
  readonly over: { done: boolean };
}

const world = { home: '', clock: createTestClock() as TestClock };

beforeEach(() => {
  world.home = mkdtempSync(join(tmpdir(), 'connector-host-'));
  world.clock = createTestClock();
});
afterEach(() => rmSync(world.home, { recursive: true, force: true }));

const queue = () => openQueue(world.home, SESSION);
const waitingTexts = () =>
  queue()
    .list()
    .map((message) => message.text);

function stage(spec: Partial<HostSpec> = {}): Stage {
  const made: { driver?: FakeDriver } = {};
  const host = createHost({
    spec: specOf(spec),
    queue: queue(),
    scheduler: world.clock.scheduler,
    now: () => world.clock.now(),
    driver: (sink) => {
      made.driver = new FakeDriver(sink);
      return made.driver;
    },
    onChild: () => {},
  });
  if (!made.driver) throw new Error('no driver');
  const over = { done: false };
  const ended = host.run().finally(() => {
    over.done = true;
  });
  return { host, driver: made.driver, ended, over };
}

function submit(host: Host, text: string, more: Partial<Message> = {}): { seen: ControlEvent[]; id: string } {
  const message = messageOf(text, more);
  const result = host.submit(message);
  if (result.kind !== 'ticket') throw new Error(result.kind);
  const seen: ControlEvent[] = [];
  const follow = async (from: number): Promise<void> => {
    const news = await result.ticket.follow(from, 60_000, new AbortController().signal);
    seen.push(...news.events);
    if (!news.ended) await follow(news.next);
  };
  void follow(0);
  return { seen, id: message.id };
}

const types = (events: readonly ControlEvent[]) => events.map((event) => event.type);
const completed = { kind: 'done', outcome: 'completed', text: 'Done.' } as const;

describe('one message', () => {
  test('is accepted when the runtime says so, and done when its turn has ended', async () => {
    const { host, driver, ended } = stage();
    const { seen } = submit(host, 'one');
    await settle();
    expect(types(seen)).toEqual([]);
    driver.last.accept();
    await settle();
    expect(seen).toMatchObject([{ type: 'accepted', session: SESSION, mode: 'process', resume: 'go on' }]);
    driver.last.end(completed);
    await ended;
    expect(types(seen)).toEqual(['accepted', 'done']);
    expect(driver.closes).toEqual(['rest']);
  });

  test('the same id twice is one message', async () => {
    const { host, driver } = stage();
    const message = messageOf('one');
    expect(host.submit(message)).toEqual(host.submit(message));
    await settle();
    expect(driver.turns.length).toBe(1);
    host.stop();
  });

  test('a refusal before the turn reaches whoever sent it, although the host ends with it', async () => {
    const { host, driver, ended } = stage();
    driver.obstacle = { ...OWNED, kind: 'other' };
    const { seen } = submit(host, 'one');
    await ended;
    expect(seen).toMatchObject([{ type: 'refused', kind: 'ownedElsewhere' }]);
    expect(driver.turns).toEqual([]);
  });

  test('a sender that never asks for its news keeps the host for a moment only', async () => {
    const { host, over } = stage();
    host.submit(messageOf('one'));
    await settle();
    host.stop();
    await world.clock.advance(CONTROL.farewellMs - 1);
    expect(over.done).toBe(false);
    await world.clock.advance(1);
    expect(over.done).toBe(true);
  });
});

describe('several messages (x-push-two-at-once)', () => {
  test('go one after the other, each with a turn of its own; those that wait lie in private files', async () => {
    const { host, driver, ended } = stage();
    const [one, two, three] = ['one', 'two', 'three'].map((text) => submit(host, text));
    await settle();
    expect(driver.turns.map((turn) => turn.text)).toEqual(['one']);
    expect(waitingTexts()).toEqual(['two', 'three']);
    const folder = join(world.home, 'control', 'queue');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.json'),
    );
    if (process.platform !== 'win32') {
      expect(files.map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([0o600, 0o600]);
    }
    expect(types(two?.seen ?? [])).toEqual(['queued']);
    for (const text of ['one', 'two', 'three']) {
      expect(driver.last.text).toBe(text);
      driver.last.accept();
      driver.last.end(completed);
      await settle();
    }
    await ended;
    expect([one, two, three].map((each) => types(each?.seen ?? []).at(-1))).toEqual(['done', 'done', 'done']);
    expect(waitingTexts()).toEqual([]);
  });

  test('A4: a message behind a request says which one it waits for', async () => {
    const { host, driver } = stage();
    submit(host, 'one');
    await settle();
    driver.last.accept();
    driver.sink.request(requestOf('r-1'));
    const { seen } = submit(host, 'two');
    await settle();
    expect(seen).toMatchObject([
      { type: 'queued', reason: expect.stringContaining('approval: Bash'), behind: { requestId: 'r-1' } },
    ]);
    host.stop();
  });

  test('more than the limit are refused by number', async () => {
    const { host } = stage();
    submit(host, 'first');
    await settle();
    for (let i = 0; i < CONTROL.queued; i += 1) submit(host, `${i}`);
    expect(host.submit(messageOf('one too many'))).toMatchObject({
      kind: 'refused',
      refusal: { reason: `${CONTROL.queued} messages wait for this session already` },
    });
    host.stop();
  });
});

describe('a session that somebody else has (M1)', () => {
  test('is refused with its choices, unless the message may wait', async () => {
    const { host, driver, ended } = stage();
    driver.obstacle = OWNED;
    const { seen } = submit(host, 'one');
    await ended;
    expect(seen).toMatchObject([{ type: 'refused', kind: 'ownedElsewhere', next: 'close it' }]);
  });

  test('queue: it lies in a file until the owner has left, and is then sent', async () => {
    const { host, driver, ended } = stage();
    driver.obstacle = OWNED;
    const { seen } = submit(host, 'later', { whenOwned: 'queue' });
    await world.clock.advance(10 * CONTROL.ownerPollMs);
    expect(seen).toMatchObject([{ type: 'queued', reason: OWNED.until }]);
    expect(waitingTexts()).toEqual(['later']);
    expect(host.status()).toMatchObject({ state: 'waiting for the owner', queued: 1 });
    driver.obstacle = undefined;
    await world.clock.advance(CONTROL.ownerPollMs);
    expect(driver.last.text).toBe('later');
    driver.last.accept();
    expect(waitingTexts()).toEqual([]);
    driver.last.end(completed);
    await ended;
    expect(types(seen)).toEqual(['queued', 'accepted', 'done']);
  });

  test('queue: after a day it is refused, and its file is gone', async () => {
    const { host, driver, ended } = stage();
    driver.obstacle = OWNED;
    const message = messageOf('later', { whenOwned: 'queue' });
    const result = host.submit(message, world.clock.now() + 3_000);
    await world.clock.advance(2_999);
    expect(waitingTexts()).toEqual(['later']);
    await world.clock.advance(CONTROL.ownerPollMs + 1);
    const news =
      result.kind === 'ticket' ? await result.ticket.follow(0, 0, new AbortController().signal) : undefined;
    expect(news?.events.at(-1)).toMatchObject({ type: 'refused', kind: 'timedOut' });
    await ended;
    expect(waitingTexts()).toEqual([]);
  });

  test('queue: abort withdraws it', async () => {
    const { host, driver, ended } = stage();
    driver.obstacle = OWNED;
    const { seen } = submit(host, 'later', { whenOwned: 'queue' });
    await world.clock.advance(CONTROL.ownerPollMs);
    expect(await host.abort(false)).toEqual({
      kind: 'stopped',
      detail: 'nothing was sent; 1 waiting message withdrawn',
    });
    await ended;
    expect(types(seen)).toEqual(['queued', 'refused']);
    expect([waitingTexts(), driver.turns]).toEqual([[], []]);
  });

  test('force: it is sent, and says over whose head', async () => {
    const { host, driver } = stage();
    driver.obstacle = OWNED;
    const { seen } = submit(host, 'now', { whenOwned: 'force' });
    await settle();
    expect(driver.last.text).toBe('now');
    expect(seen).toMatchObject([{ type: 'note', text: 'sent although it is open in a terminal' }]);
    host.stop();
  });
});

describe('what an earlier host has left (R-38)', () => {
  const leave = (text: string, more: object = {}) => {
    const at = world.clock.now();
    const message = { ...messageOf(text), session: SESSION, createdAt: at, expiresAt: at + 60_000 };
    queue().put({ ...message, attempted: false, ...more });
  };

  test('is sent in its order, before anything new', async () => {
    leave('first', { createdAt: world.clock.now() - 2 });
    leave('second', { createdAt: world.clock.now() - 1 });
    const { host, driver } = stage();
    submit(host, 'new');
    for (const text of ['first', 'second', 'new']) {
      await settle();
      expect(driver.last.text).toBe(text);
      driver.last.accept();
      driver.last.end(completed);
    }
    expect(waitingTexts()).toEqual([]);
  });

  test('is never sent twice: one that may have arrived, or is too old, is told and deleted', async () => {
    leave('perhaps there', { attempted: true });
    leave('old', { createdAt: world.clock.now() + 1, expiresAt: world.clock.now() });
    const { host, driver } = stage();
    expect(waitingTexts()).toEqual([]);
    const { seen } = submit(host, 'new');
    await settle();
    expect(driver.turns.map((turn) => turn.text)).toEqual(['new']);
    expect(seen.map((event) => (event.type === 'note' ? event.text : event.type))).toEqual([
      expect.stringContaining('may have arrived and was not sent again'),
      expect.stringContaining('waited too long and was deleted'),
    ]);
    host.stop();
  });

  test('a host that is ended keeps what waits in its files, and refuses what lies in none', async () => {
    const { host, driver, ended } = stage();
    submit(host, 'running');
    await settle();
    driver.last.accept();
    const { seen } = submit(host, 'waiting');
    host.stop();
    await ended;
    expect(driver.closes).toContain('kill');
    expect(waitingTexts()).toEqual(['waiting']);
    expect(seen.at(-1)).toMatchObject({ type: 'left', reason: 'host lost' });
    expect(host.submit(messageOf('late'))).toEqual({ kind: 'closing' });
  });
});

describe('requests (A1, A2, A6, A8)', () => {
  const asking = async (spec: Partial<HostSpec> = {}) => {
    const made = stage(spec);
    const { seen } = submit(made.host, 'one');
    await settle();
    made.driver.last.accept();
    return { ...made, seen };
  };

  test('are listed anew on every call, each with its exact action', async () => {
    const { host, driver } = await asking();
    driver.sink.request(requestOf('r-1'));
    driver.sink.request(requestOf('r-2'));
    expect(host.pending().map((one) => one.detail)).toEqual(['run r-1', 'run r-2']);
    expect(host.pending()).toEqual(host.pending());
    host.stop();
  });

  test('A2: an answer goes to the request that it names, whatever came after', async () => {
    const { host, driver, seen } = await asking();
    driver.sink.request(requestOf('r-1'));
    driver.sink.request(requestOf('r-2'));
    const answer = { session: SESSION, requestId: 'r-1', decision: 'allow-once' } as const;
    expect(await host.answer(answer)).toEqual({ kind: 'applied', detail: 'yes' });
    expect(driver.answers).toEqual([answer]);
    expect(host.pending().map((one) => one.requestId)).toEqual(['r-2']);
    await settle();
    expect(seen.at(-1)).toMatchObject({ type: 'resolved', requestId: 'r-1', decision: 'allow-once' });
    host.stop();
  });

  test('A2: an unknown id, a settled one, and an answer that does not fit are refused', async () => {
    const { host, driver } = await asking();
    driver.sink.request(requestOf('r-1'));
    driver.sink.request(requestOf('r-2'));
    const answer = (requestId: string, decision: 'deny' | 'answer') =>
      host.answer({ session: SESSION, requestId, decision });
    expect(await answer('r-9', 'deny')).toMatchObject({ refusal: { kind: 'notFound' } });
    expect(await answer('r-1', 'answer')).toMatchObject({ refusal: { kind: 'refused' } });
    await answer('r-1', 'deny');
    expect(await answer('r-1', 'deny')).toMatchObject({
      refusal: { kind: 'refused', reason: 'request r-1 is settled: deny' },
    });
    driver.sink.withdrawn('r-2');
    expect(await answer('r-2', 'deny')).toMatchObject({
      refusal: { reason: 'request r-2 is settled: withdrawn' },
    });
    expect(driver.answers.length).toBe(1);
    host.stop();
  });

  test('A1: an answer that the runtime has not confirmed is sent, not applied', async () => {
    const { host, driver } = await asking();
    driver.sink.request(requestOf('r-1'));
    driver.answerResult = { kind: 'sent', detail: 'no word' };
    const answer = { session: SESSION, requestId: 'r-1', decision: 'deny' } as const;
    expect(await host.answer(answer)).toEqual({ kind: 'sent', detail: 'no word' });
    host.stop();
  });

  test('A8: what nobody answers is denied in time, by itself, with the reason', async () => {
    const { host, driver, seen } = await asking({ approvalMs: 60_000 });
    driver.sink.request(requestOf('r-1'));
    await world.clock.advance(59_999);
    expect(driver.answers).toEqual([]);
    await world.clock.advance(1);
    expect(driver.answers).toMatchObject([{ requestId: 'r-1', decision: 'deny', note: expect.any(String) }]);
    expect(seen).toContainEqual(expect.objectContaining({ type: 'resolved', decision: 'expired' }));
    host.stop();
  });

  test('a request over the limit must be denied by the runtime’s side at once', async () => {
    const { host, driver } = await asking();
    for (let i = 0; i < CONTROL.requests; i += 1) expect(driver.sink.request(requestOf(`r-${i}`))).toBe(true);
    expect(driver.sink.request(requestOf('one too many'))).toBe(false);
    host.stop();
  });

  test('a long action is cut where it is shown, and says so', async () => {
    const { host, driver } = await asking();
    driver.sink.request(requestOf('r-1', { detail: 'é'.repeat(CONTROL.detailBytes) }));
    const [request] = host.pending();
    expect(request?.detailCut).toBe(true);
    expect(Buffer.byteLength(request?.detail ?? '')).toBeLessThanOrEqual(CONTROL.detailBytes);
    expect(request?.detail).toMatch(/^é+…$/);
    host.stop();
  });
});

describe('abort (K1)', () => {
  test('is stopped only when the turn’s end was seen; what waited is withdrawn', async () => {
    const { host, driver } = stage();
    const one = submit(host, 'one');
    await settle();
    driver.last.accept();
    const two = submit(host, 'two');
    expect(await host.abort(false)).toEqual({
      kind: 'stopped',
      detail: 'the turn was stopped; 1 waiting message withdrawn',
    });
    await settle();
    expect(one.seen.at(-1)).toMatchObject({ type: 'done', outcome: 'stopped' });
    expect(two.seen.at(-1)).toMatchObject({ type: 'refused', reason: expect.stringContaining('withdrawn') });
  });

  test('a runtime that does not stop is said to go on', async () => {
    const { host, driver } = stage();
    submit(host, 'one');
    await settle();
    driver.stopsOnInterrupt = false;
    expect(await host.abort(false)).toMatchObject({ kind: 'refused', refusal: { kind: 'timedOut' } });
    host.stop();
  });

  test('without a turn there is nothing to stop', async () => {
    const { host } = stage({ keepMs: 60_000 });
    expect(await host.abort(false)).toMatchObject({ kind: 'refused', refusal: { kind: 'refused' } });
    host.stop();
  });

  test('kill names what survived, and the host ends', async () => {
    const { host, driver, ended } = stage();
    const { seen } = submit(host, 'one');
    await settle();
    driver.last.accept();
    driver.report = { gone: false, survivors: [{ pid: 4_711, startToken: '1' }] };
    expect(await host.abort(true)).toEqual({ kind: 'survived', survivors: [{ pid: 4_711, command: '' }] });
    expect((await ended).gone).toBe(false);
    expect(seen.at(-1)).toMatchObject({ type: 'done', outcome: 'stopped' });
  });
});

describe('how long a host stays', () => {
  test('one that was given no message leaves by itself', async () => {
    const { over } = stage();
    await world.clock.advance(CONTROL.firstMs - 1);
    expect(over.done).toBe(false);
    await world.clock.advance(1);
    expect(over.done).toBe(true);
  });

  test('a session that is begun without a message is kept, and waited for while it starts', async () => {
    const { host, driver, over } = stage({ keepMs: 60_000 });
    const started = Promise.withResolvers<undefined>();
    driver.open = () => started.promise;
    const opened = host.open({ approvals: 'ask' });
    await world.clock.advance(2 * 60_000);
    expect(over.done).toBe(false);
    started.resolve(undefined);
    expect(await opened).toBeUndefined();
    await world.clock.advance(59_000);
    expect(over.done).toBe(false);
    await world.clock.advance(1_000);
    expect(over.done).toBe(true);
  });

  test('nothing is kept for a session that took no message', async () => {
    const { host, driver, ended } = stage({ keepMs: 60_000 });
    const { seen } = submit(host, 'one');
    await settle();
    const refusal = { reason: 'not installed', kind: 'runtimeMissing', next: 'install it' } as const;
    driver.last.end({ kind: 'refused', refusal });
    await ended;
    expect(seen).toMatchObject([{ type: 'refused', kind: 'runtimeMissing' }]);
  });

  test('a session of ours keeps its process after a turn, and no longer', async () => {
    const { host, driver, over } = stage({ keepMs: 60_000 });
    submit(host, 'one');
    await settle();
    driver.last.accept();
    driver.last.end(completed);
    await world.clock.advance(59_999);
    expect(over.done).toBe(false);
    submit(host, 'two');
    await settle();
    driver.last.accept();
    driver.last.end(completed);
    await world.clock.advance(59_999);
    expect(over.done).toBe(false);
    await world.clock.advance(1);
    expect([over.done, driver.closes]).toEqual([true, ['rest']]);
  });

  test('it stays for work in the background, and leaves when that has ended', async () => {
    const { host, driver, over } = stage();
    submit(host, 'one');
    await settle();
    driver.last.accept();
    driver.background = true;
    driver.last.end(completed);
    await world.clock.advance(CONTROL.backgroundMs - 1_000);
    expect(over.done).toBe(false);
    driver.background = false;
    await world.clock.advance(CONTROL.ownerPollMs);
    expect(over.done).toBe(true);
  });

  test('a defect in the driver ends that message, and not the host', async () => {
    const { host, driver } = stage({ keepMs: 60_000 });
    submit(host, 'zero');
    await settle();
    driver.last.accept();
    driver.last.end(completed);
    await settle();
    driver.turn = () => Promise.reject(new Error('boom'));
    const { seen } = submit(host, 'one');
    await settle();
    expect(seen).toMatchObject([{ type: 'refused', reason: 'a defect of the connector: boom' }]);
    driver.turn = () => {
      driver.sink.accepted('taken', 'owned');
      return Promise.reject(new Error('boom'));
    };
    const again = submit(host, 'two');
    await settle();
    expect(again.seen.at(-1)).toMatchObject({ type: 'done', outcome: 'failed' });
    expect(host.status().state).toBe('idle');
    host.stop();
  });
});
