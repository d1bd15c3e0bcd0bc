import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { cut } from '../../../src/runtime/control/host-sink.ts';
import { createTicket, type Ticket } from '../../../src/runtime/control/ticket.ts';
import type { ControlEvent } from '../../../src/runtime/control.ts';
import { CONTROL } from '../../../src/runtime/limits.ts';

const never = new AbortController().signal;
const progress = (text: string): ControlEvent => ({ type: 'progress', at: 1, doing: 'running', text });
const done: ControlEvent = { type: 'done', at: 2, outcome: 'completed' };

async function readAll(ticket: Ticket): Promise<ControlEvent[]> {
  const events: ControlEvent[] = [];
  for (let from = 0; ; ) {
    const news = await ticket.follow(from, 0, never);
    events.push(...news.events);
    from = news.next;
    if (news.ended || news.events.length === 0) return events;
  }
}

describe('the events of one message', () => {
  test('come whole and in order, in replies that fit a line', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 60_000 }), { maxLength: 30 }), async (sizes) => {
        const ticket = createTicket('t', true);
        const events = sizes.map((size, i) => progress(`${i} ${'x'.repeat(size)}`));
        for (const event of events) ticket.emit(event);
        expect(await readAll(ticket)).toEqual(events);
        const first = await ticket.follow(0, 0, never);
        expect(Buffer.byteLength(JSON.stringify(first))).toBeLessThan(1024 * 1024);
      }),
      { numRuns: 30 },
    );
  });

  test('one that waits is told at once', async () => {
    const ticket = createTicket('t', true);
    const waiting = ticket.follow(0, 60_000, never);
    ticket.emit(progress('now'));
    expect(await waiting).toMatchObject({ events: [{ text: 'now' }], next: 1, ended: false });
  });

  test('after the end nothing comes', async () => {
    const ticket = createTicket('t', true);
    ticket.emit(done);
    ticket.emit(progress('late'));
    expect(await ticket.follow(0, 0, never)).toEqual({ events: [done], next: 1, ended: true, dropped: 0 });
  });

  test('of very many the oldest are dropped, and counted', async () => {
    const ticket = createTicket('t', true);
    for (let i = 0; i < CONTROL.events + 5; i += 1) ticket.emit(progress(`${i}`));
    const news = await ticket.follow(0, 0, never);
    expect([news.dropped, news.next]).toEqual([5, CONTROL.events + 5]);
  });

  test('the end is delivered when it was handed out, or when nobody is owed it', async () => {
    const settledBy = async (ticket: Ticket) =>
      Promise.race([ticket.delivered.then(() => true), Promise.resolve().then(() => false)]);
    const owed = createTicket('t', true);
    owed.emit(done);
    expect(await settledBy(owed)).toBe(false);
    await owed.follow(0, 0, never);
    await owed.delivered;
    const nobody = createTicket('t', false);
    nobody.emit(done);
    await nobody.delivered;
    const left = createTicket('t', true);
    left.leave();
    left.emit(done);
    await left.delivered;
  });

  test('a follower whose connection breaks is owed nothing', async () => {
    const ticket = createTicket('t', true);
    const gone = new AbortController();
    const waiting = ticket.follow(0, 60_000, gone.signal);
    gone.abort();
    expect((await waiting).events).toEqual([]);
    ticket.emit(done);
    await ticket.delivered;
  });
});

describe('cutting text', () => {
  test('never leaves half a character, and never more than asked', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 80 }),
        fc.integer({ min: 3, max: 60 }),
        (text, bytes) => {
          const short = cut(text, bytes);
          expect(Buffer.byteLength(short)).toBeLessThanOrEqual(Math.max(bytes, 3));
          expect(short.isWellFormed()).toBe(true);
          if (Buffer.byteLength(text) <= bytes) expect(short).toBe(text);
          else expect(text.startsWith(short.slice(0, -1))).toBe(true);
        },
      ),
    );
  });
});
