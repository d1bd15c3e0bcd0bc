import { describe, expect, test } from 'bun:test';
import { createReporter, type Report } from '../../../src/runtime/daemon/reporter.ts';
import type { PostOutcome } from '../../../src/runtime/daemon/sink/post.ts';
import { WRAP } from '../../../src/runtime/limits.ts';

const observe = (session_id: string, n: number): Report => ({
  op: 'observe',
  payload: { session_id, event: { stream_state: 'working' }, model: `m${n}` },
});

/** A service that answers when it is told to. */
function bench(waitMs?: number) {
  const sent: string[] = [];
  const open: ((outcome: PostOutcome) => void)[] = [];
  const outcomes: PostOutcome[] = [];
  const reporter = createReporter({
    address: '/nowhere',
    ...(waitMs === undefined ? {} : { waitMs }),
    post(_address, line) {
      const { op, payload } = JSON.parse(line);
      sent.push(op === 'end' ? `end ${payload.session_id}` : `${payload.session_id} ${payload.model}`);
      const { promise, resolve } = Promise.withResolvers<PostOutcome>();
      open.push(resolve);
      return promise;
    },
    done: (_report, outcome) => outcomes.push(outcome),
  });
  /** Answers the report that is under way. */
  const answer = async (outcome: PostOutcome): Promise<void> => {
    open.shift()?.(outcome);
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  return { reporter, sent, outcomes, answer };
}

describe('reports of a wrapper (S-705)', () => {
  test('one is under way at a time, so that they arrive in order', async () => {
    const { reporter, sent, outcomes, answer } = bench();
    for (const n of [1, 2, 3]) reporter.send(observe('a', n));
    expect(sent).toEqual(['a m1']);
    await answer('delivered');
    await answer('daemon_rejected');
    await answer('transport_failed');
    expect([sent, outcomes]).toEqual([
      ['a m1', 'a m2', 'a m3'],
      ['delivered', 'daemon_rejected', 'transport_failed'],
    ]);
  });

  test('after a timeout only the newest of each session is still said', async () => {
    const { reporter, sent, answer } = bench();
    reporter.send(observe('a', 1));
    for (const n of [2, 3, 4]) reporter.send(observe('a', n));
    reporter.send(observe('b', 5));
    reporter.send({ op: 'end', payload: { session_id: 'a' } });
    await answer('timeout');
    await answer('delivered');
    await answer('delivered');
    expect(sent).toEqual(['a m1', 'b m5', 'end a']);
  });

  test('what waits is bounded, and the oldest goes first', async () => {
    const { reporter, sent, answer } = bench();
    for (let n = 0; n <= WRAP.reports + 5; n += 1) reporter.send(observe('a', n));
    for (let n = 0; n <= WRAP.reports + 5; n += 1) await answer('delivered');
    expect([sent.length, sent.at(-1)]).toEqual([WRAP.reports + 1, `a m${WRAP.reports + 5}`]);
  });

  test('the end waits for what is under way, and not for ever', async () => {
    const { reporter, answer, outcomes } = bench();
    reporter.send(observe('a', 1));
    const finished = reporter.finish();
    await answer('delivered');
    await finished;
    expect(outcomes).toEqual(['delivered']);
    const wedged = bench(20);
    wedged.reporter.send(observe('a', 1));
    await wedged.reporter.finish();
    expect(wedged.outcomes).toEqual([]);
  });
});
