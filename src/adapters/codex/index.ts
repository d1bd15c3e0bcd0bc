import { systemFiles } from '../../runtime/files/file-system.ts';
import type { Adapter } from '../adapter.ts';
import type { FollowedRollouts } from './followed.ts';
import { readHistory } from './history.ts';
import { codexHome } from './homes.ts';
import { type CodexHost, realHost } from './host.ts';
import { readThreadLocks } from './locks.ts';
import { scanCodex } from './scan.ts';
import { RUNTIME_ID } from './sightings.ts';
import { watchCodex } from './watch.ts';

export { type HookReport, mapCodexHook } from './hooks.ts';

/** The Codex adapter over an injected machine. */
export function createCodex(host: CodexHost): Adapter {
  const followed: FollowedRollouts = new Map();
  return {
    id: RUNTIME_ID,
    scan: (context, options = {}) => scanCodex(context, options, host, followed),
    watch: async (context, sink) => watchCodex(context, sink, host),
    control: async () => (await import('./control/index.ts')).codexControl,
    history: async (context, session, bounds) => readHistory(context, session, bounds),
    lockOf: (context, sessionId) =>
      readThreadLocks(codexHome(context), context.files ?? systemFiles, host).of(sessionId.toLowerCase())
        .kind,
  };
}

/** Codex CLI: rollouts, thread locks, the state database, and the app-servers that hold threads. */
export const codex: Adapter = createCodex(realHost);
