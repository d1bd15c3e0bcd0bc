import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createDesk, type Desk } from '../../../../src/runtime/daemon/inside/desk.ts';
import { readInside } from '../../../../src/runtime/daemon/inside/schema.ts';
import { insideOps } from '../../../../src/runtime/daemon/inside/service.ts';
import { INSIDE } from '../../../../src/runtime/limits.ts';
import { createFakeTime } from '../harness.ts';

const REF = { runtimeId: 'opencode', instanceId: 'local-data', sessionId: 'ses_1' };
const REQUEST = {
  requestId: 'per_1',
  sessionId: 'ses_1',
  subject: 'bash',
  detail: 'rm -rf build',
  allows: ['allow-once', 'deny'],
};

function open() {
  const time = createFakeTime();
  const gone: string[] = [];
  const desk = createDesk({
    now: () => time.at,
    scheduler: time,
    events: { changed: () => {}, gone: ({ id }) => void gone.push(id) },
  });
  return { desk, time, gone };
}

/** A program that holds one session and asks for one permission. */
function attach(desk: Desk, pid = 42, can: readonly string[] = ['prompt', 'abort', 'approve']) {
  const hello = { runtimeId: 'opencode', instanceId: 'local-data', pid, generation: 1, can };
  const { id, leave } = desk.attach(readInside.attach(hello));
  desk.report(readInside.report({ attachment: id, sessions: ['ses_1'], requests: [REQUEST] }));
  return { id, leave };
}

function lay(desk: Desk, order: string, text = 'Hello') {
  desk.part(order, 0, Buffer.from(text));
  return desk.order(order, REF, { kind: 'prompt', parts: 1 });
}

describe('the desk: orders for programs with an extension inside', () => {
  test('a message is taken in parts, accepted and done, and its program sees it until then', () => {
    const { desk } = open();
    const { id } = attach(desk);
    lay(desk, 'a', 'Grüße');
    expect(desk.ordersOf(id).map((one) => one.id)).toEqual(['a']);
    expect(desk.take(id, 'a', 0).toString()).toBe('Grüße');
    desk.answer({ attachment: id, order: 'a', state: 'accepted' } as never);
    expect(desk.find('a')).toMatchObject({ state: 'accepted', pid: 42 });
    desk.answer({ attachment: id, order: 'a', state: 'done', outcome: 'completed', text: 'Yes' } as never);
    expect(desk.find('a')).toMatchObject({ state: 'done', outcome: 'completed', text: 'Yes' });
    expect(desk.ordersOf(id)).toEqual([]);
  });

  test('the same id again is the same order; another wish under it is refused', () => {
    const { desk } = open();
    const { id } = attach(desk);
    lay(desk, 'a');
    lay(desk, 'a');
    expect(desk.ordersOf(id)).toHaveLength(1);
    expect(() => desk.order('a', REF, { kind: 'abort' })).toThrow('another order');
  });

  test('A2: an answer goes only to a request that waits now, in its own session, by a way that it takes', () => {
    const { desk } = open();
    const { id } = attach(desk);
    const reply = (requestId: string, decision: string, session = REF) =>
      desk.order(crypto.randomUUID(), session, { kind: 'reply', requestId, decision });
    expect(() => reply('per_0', 'allow-once')).toThrow('no request per_0');
    expect(() => reply('per_1', 'allow-session')).toThrow('takes allow-once, deny');
    expect(reply('per_1', 'allow-once').state).toBe('waiting');
    desk.report(readInside.report({ attachment: id, requests: [] }));
    expect(() => reply('per_1', 'allow-once')).toThrow('no request per_1');
  });

  test('A8: what nobody accepts is withdrawn, and can’t be taken or answered any more', () => {
    const { desk, time } = open();
    const { id } = attach(desk);
    lay(desk, 'a');
    time.advance(INSIDE.acceptMs);
    expect(desk.find('a')).toMatchObject({ state: 'refused', kind: 'timedOut' });
    expect(() => desk.take(id, 'a', 0)).toThrow('it is over');
    desk.answer({ attachment: id, order: 'a', state: 'accepted' } as never);
    expect(desk.find('a')?.state).toBe('refused');
  });

  test('a program that leaves: what waited is refused, what ran is done without a confirmation', () => {
    const { desk, gone } = open();
    const { id, leave } = attach(desk);
    for (const order of ['waits', 'taken', 'runs']) lay(desk, order);
    desk.take(id, 'taken', 0);
    desk.answer({ attachment: id, order: 'runs', state: 'accepted' } as never);
    leave();
    leave();
    expect(gone).toEqual([id]);
    expect(desk.find('waits')).toMatchObject({
      state: 'refused',
      detail: 'process 42 left before it took it',
    });
    expect(desk.find('taken')?.detail).toContain('left before it said what came of it');
    expect(desk.find('runs')).toMatchObject({ state: 'done', confirmed: false });
    expect(() => lay(desk, 'later')).toThrow('no extension of ours holds session ses_1');
  });

  test('nobody takes or answers the orders of another program', () => {
    const { desk } = open();
    const first = attach(desk, 42);
    const hello = { runtimeId: 'opencode', instanceId: 'local-data', pid: 43, generation: 1, can: [] };
    const other = desk.attach(readInside.attach(hello));
    lay(desk, 'a');
    expect(() => desk.take(other.id, 'a', 0)).toThrow('unknown order');
    expect(() => desk.answer({ attachment: other.id, order: 'a', state: 'done' } as never)).toThrow(
      'unknown order',
    );
    expect(desk.ordersOf(first.id)).toHaveLength(1);
  });

  test('of two programs that hold a session the one that said so last has it', () => {
    const { desk } = open();
    attach(desk, 42);
    attach(desk, 43);
    expect(lay(desk, 'a').pid).toBe(43);
  });

  test('what a program can’t do is refused by name', () => {
    const { desk } = open();
    attach(desk, 42, ['prompt']);
    expect(() => desk.order('a', REF, { kind: 'abort' })).toThrow('unsupported');
  });

  test('R-40: limits hold at the limit and one past it', () => {
    const { desk } = open();
    const { id } = attach(desk);
    for (let n = 0; n < INSIDE.openOrders; n += 1) lay(desk, `o${n}`);
    expect(() => lay(desk, 'one more')).toThrow('too many orders');
    const sessions = (count: number) => ({ attachment: id, sessions: Array.from({ length: count }, String) });
    expect(readInside.report(sessions(INSIDE.sessions)).sessions).toHaveLength(INSIDE.sessions);
    expect(() => readInside.report(sessions(INSIDE.sessions + 1))).toThrow('sessions');
    for (let n = 1; n < INSIDE.attachments; n += 1) attach(desk, 100 + n);
    expect(desk.hasRoom()).toBe(false);
    expect(() => desk.order('x', REF, { kind: 'prompt', parts: 1 })).toThrow('a part of the text is missing');
  });

  test('S-318: whatever comes as a payload is taken or refused by the name of its operation', () => {
    const { desk } = open();
    const { ops, subscriptions } = insideOps(desk);
    const context = { signal: new AbortController().signal };
    const names = [...Object.keys(ops), ...Object.keys(subscriptions)];
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.anything(), (name, payload) => {
        try {
          ops[name]?.(payload, context);
          subscriptions[name]?.(payload);
        } catch (error) {
          expect(error).toMatchObject({ name: 'RequestError' });
        }
      }),
    );
  });
});
