import { acquireLock, type LockResult } from '../daemon/lock.ts';
import { CONTROL } from '../limits.ts';
import type { SessionRef } from '../session/session.ts';
import { ensureHome } from '../store/home.ts';
import type { ActingContext } from './context.ts';
import { foldersOf, placesOf } from './places.ts';

/**
 * The lock without which nothing of ours pushes into a session: two headless pushes at once both succeed by their
 * exit codes, and one turn is lost (`x-push-two-at-once`). Held by the system for its holder's life, so a holder that
 * is killed leaves nothing behind.
 */
export async function lockSession(
  context: Pick<ActingContext, 'connectorHome' | 'platform' | 'version' | 'now'>,
  session: SessionRef,
): Promise<LockResult> {
  for (const folder of foldersOf(context.connectorHome)) {
    const state = ensureHome(folder, context.platform);
    if (state.kind !== 'ready') return { kind: 'unavailable', reason: `${folder}: ${state.code}` };
  }
  return acquireLock({
    path: placesOf(context.connectorHome, session).lock,
    holder: {
      pid: process.pid,
      version: context.version,
      since: new Date(context.now()).toISOString(),
    },
    platform: context.platform,
  });
}

type LockContext = Parameters<typeof lockSession>[0];

/** Pause between two tries while another process of ours answers. */
const RETRY_MS = 20;

/**
 * Runs `use` while no other process of ours answers requests of this session. A runtime's server says yes to an answer
 * that came too late, and then says that the request is settled: two answers at once would both be told applied (A1, A2).
 * Where locks can't be had, or one answer takes too long, it runs nevertheless: the runtime takes only one of them.
 */
export async function whileAnswering<T>(
  context: LockContext,
  session: SessionRef,
  use: () => Promise<T>,
): Promise<T> {
  // Not the lock of pushing, which a host holds for as long as it lives.
  const answers = { ...session, sessionId: `${session.sessionId} answers` };
  const until = performance.now() + CONTROL.hostStartMs;
  for (;;) {
    const lock = await lockSession(context, answers);
    if (lock.kind === 'busy' && performance.now() < until) {
      await Bun.sleep(RETRY_MS);
      continue;
    }
    try {
      return await use();
    } finally {
      if (lock.kind === 'held') lock.release();
    }
  }
}
