import type { Refusal } from '../control.ts';
import { systemScheduler } from '../daemon/clock.ts';
import { endpointOf } from '../daemon/endpoint.ts';
import { createServer } from '../daemon/server.ts';
import { reasonOf } from '../errors.ts';
import { identityFromProc } from '../process/identity.ts';
import type { ProcessIdentity } from '../process/types.ts';
import type { ActingContext } from './context.ts';
import type { HostDriver, HostSpec, TurnSink } from './driver.ts';
import { createHost } from './host.ts';
import { hostService } from './host-service.ts';
import { placesOf } from './places.ts';
import { lockSession } from './push-lock.ts';
import { openQueue } from './queue.ts';
import { removeRecord, writeRecord } from './record.ts';
import { endOrphan } from './sweep.ts';

/** What a starting host says on its stdout: one line, and nothing after it. */
export type HostHello =
  | { readonly type: 'ready' }
  /** Another process of ours has the session: talk to that one. */
  | { readonly type: 'busy' }
  | ({ readonly type: 'refused' } & Refusal);

/**
 * Runs a session's host in this process: takes the session's lock for its life, ends what a killed predecessor left,
 * binds the private socket, writes its record, and works until nothing is left to do or `signal` is aborted. Yields
 * its one line, then stays silent; all files but the lock are gone when it returns.
 */
export async function* runHost(
  context: ActingContext,
  spec: HostSpec,
  makeDriver: (sink: TurnSink) => HostDriver,
  signal: AbortSignal,
): AsyncGenerator<HostHello, void> {
  const { session } = spec;
  const home = context.connectorHome;
  const lock = await lockSession(context, session);
  if (lock.kind === 'busy') {
    yield { type: 'busy' };
    return;
  }
  if (lock.kind === 'unavailable') {
    yield refusedBecause(`the session can’t be locked: ${lock.reason}`);
    return;
  }
  await endOrphan(context, session);

  const me: ProcessIdentity = identityFromProc(process.pid) ?? { pid: process.pid, startToken: null };
  const startedAt = context.now();
  const note = (child?: ProcessIdentity): void => {
    const written = writeRecord(home, { session, host: me, startedAt, ...(child ? { child } : {}) });
    if (written.kind === 'failed') context.log.warn(`the host record: ${written.code}`);
  };
  const host = createHost({
    spec,
    queue: openQueue(home, session),
    scheduler: systemScheduler,
    now: () => context.now(),
    driver: makeDriver,
    onChild: note,
  });
  const server = createServer({
    plan: { kind: 'bind', endpoint: endpointOf(placesOf(home, session).socket, context.platform), lock },
    services: [hostService(host)],
    build: { version: context.version },
  });
  try {
    await server.listen();
  } catch (thrown) {
    lock.release();
    yield refusedBecause(reasonOf(thrown));
    return;
  }
  note();
  const stop = (): void => host.stop();
  signal.addEventListener('abort', stop, { once: true });
  server.shutdownRequested.then(stop);
  const finished = host.run();
  yield { type: 'ready' };
  const report = await finished;
  signal.removeEventListener('abort', stop);
  await server.stop();
  // With a survivor the record stays: it is how the survivor is found again.
  if (report.gone) removeRecord(home, session);
  lock.release();
}

function refusedBecause(reason: string): HostHello {
  return { type: 'refused', reason, kind: 'refused', next: 'Look at the connector home, then try again.' };
}
