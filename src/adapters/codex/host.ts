import { systemHost } from '../../runtime/process/spawn.ts';
import type { ProcessHost } from '../../runtime/process/types.ts';

/** What the adapter needs of the system besides files: injected, so that recordings can be replayed as a machine. */
export type CodexHost = Pick<ProcessHost, 'platform' | 'procRoot' | 'kill' | 'run' | 'now'>;

export const realHost: CodexHost = systemHost;
