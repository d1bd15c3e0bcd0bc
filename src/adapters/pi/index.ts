import { systemFiles } from '../../runtime/files/file-system.ts';
import { systemHost } from '../../runtime/process/spawn.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { Adapter } from '../adapter.ts';
import { discoverSessions } from './discover.ts';
import { readHistory } from './history.ts';
import { piHome, RUNTIME_ID } from './homes.ts';
import { joinOf, scanPi } from './scan.ts';
import { watchPi } from './watch.ts';

/**
 * All that we know of pi's sessions (1.6.0 was recorded): its session files, and for an open turn the processes that
 * could be at it. What runs is told by our extension inside it, on the socket (S-750). Only reads.
 *
 * @param host the system's processes; tests give their own
 */
export function createPi(host: ProcessHost = systemHost): Adapter {
  return {
    id: RUNTIME_ID,
    scan: (context, options) =>
      scanPi(
        context,
        host.platform === context.platform ? host : { ...host, platform: context.platform },
        options,
      ),
    watch: watchPi,
    async history(context, session, bounds) {
      const files = context.files ?? systemFiles;
      const { sessions } = discoverSessions(
        files,
        piHome(context),
        joinOf(context.platform),
        (id) => id === session.sessionId,
      );
      const path = sessions[0]?.path;
      return path ? readHistory(files, path, bounds) : { entries: [], more: false, skipped: 0 };
    },
    control: async () => (await import('./control.ts')).piControl,
  };
}

/** The pi adapter. */
export const pi: Adapter = createPi();
