import { systemFiles } from '../../runtime/files/file-system.ts';
import { systemHost } from '../../runtime/process/spawn.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';
import type { Adapter, AdapterContext } from '../adapter.ts';
import { createDepartures } from './departures.ts';
import { discoverTranscripts } from './discover.ts';
import { readHistory } from './history.ts';
import { claudeHomes } from './homes.ts';
import { type ScanMemory, scanClaude } from './scan.ts';
import { RUNTIME_ID } from './session.ts';
import { watchClaude } from './watch.ts';

/**
 * All that we know of Claude Code's sessions: their transcripts, the live registry, background jobs and, for versions
 * without one, processes (2.1.197 and 2.1.332 were recorded). All but `control` only reads; it never starts or signals
 * anything of Claude's.
 *
 * @param host the system's processes; tests give their own
 */
export function createClaudeCode(host: ProcessHost = systemHost): Adapter {
  const memory: ScanMemory = { transcripts: new Map(), live: new Map(), departures: createDepartures() };
  return {
    id: RUNTIME_ID,
    scan: (context, options) => scanClaude(context, hostFor(host, context), memory, options),
    watch: watchClaude,
    async history(context, session, bounds) {
      const path = transcriptPath(context, session.sessionId);
      const files = context.files ?? systemFiles;
      return path ? readHistory(files, path, bounds) : { entries: [], more: false, skipped: 0 };
    },
    control: async () => (await import('./control/index.ts')).claudeControl,
  };
}

function hostFor(host: ProcessHost, context: AdapterContext): ProcessHost {
  return host.platform === context.platform ? host : { ...host, platform: context.platform };
}

/** By the id alone, in whatever folder it is (P3); of several the one that was written last. */
function transcriptPath(context: AdapterContext, sessionId: string): string | undefined {
  const files = context.files ?? systemFiles;
  return claudeHomes(context.env, context.home)
    .flatMap((home) => discoverTranscripts(files, home, (id) => id === sessionId).transcripts)
    .sort((a, b) => b.stat.mtimeMs - a.stat.mtimeMs)[0]?.path;
}

/** The Claude Code adapter. */
export const claudeCode: Adapter = createClaudeCode();
