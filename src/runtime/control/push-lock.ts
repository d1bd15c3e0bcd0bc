import { acquireLock, type LockResult } from '../daemon/lock.ts';
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
