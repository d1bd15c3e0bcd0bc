import type { Refusal } from '../../../runtime/control.ts';
import { createProgramSearch, type Executable } from '../../../runtime/process/search-path.ts';
import { openProbeCache } from '../../../runtime/store/probe-store.ts';
import type { ControlContext } from '../../adapter.ts';
import { entryOf, installCommandOf } from '../../catalog.ts';
import { RUNTIME_ID } from '../session.ts';

/** The program to start, and the PATH with which it finds what it needs (R2). */
export interface ClaudeProgram {
  readonly path: string;
  readonly searchPath: string;
}

/** Finds `claude` as a login would; a refusal names how to install it. */
export async function findClaude(context: ControlContext): Promise<ClaudeProgram | Refusal> {
  const search = createProgramSearch({
    platform: context.platform,
    env: context.env,
    home: context.home,
    connectorHome: context.connectorHome,
    run: context.run,
    cache: openProbeCache(context.connectorHome),
    now: () => context.now(),
  });
  const [program]: readonly Executable[] = await search.find('claude');
  if (program) return { path: program.path, searchPath: await search.pathFor(program) };
  const entry = entryOf(RUNTIME_ID);
  const how = entry ? installCommandOf(entry, context.platform) : null;
  return {
    reason: 'Claude Code is not installed, or not where a login shell would find it',
    kind: 'runtimeMissing',
    next: how ? `Install it: ${how}` : 'See: shadowob-connector runtime-scan',
  };
}
