import type { Refusal } from '../../runtime/control.ts';
import { createProgramSearch } from '../../runtime/process/search-path.ts';
import { openProbeCache } from '../../runtime/store/probe-store.ts';
import type { ControlContext } from '../adapter.ts';
import { entryOf, installCommandOf } from '../catalog.ts';

/** A program to start. */
export interface Program {
  readonly path: string;
  /** PATH with which it finds what it needs (R2). */
  readonly searchPath: string;
}

/** Finds the program of a runtime by its name, as a login would; a refusal names how to install it. */
export async function findProgram(
  context: ControlContext,
  runtimeId: string,
  name: string,
): Promise<Program | Refusal> {
  const search = createProgramSearch({
    platform: context.platform,
    env: context.env,
    home: context.home,
    connectorHome: context.connectorHome,
    run: context.run,
    cache: openProbeCache(context.connectorHome),
    now: () => context.now(),
  });
  const [program] = await search.find(name);
  if (program) return { path: program.path, searchPath: await search.pathFor(program) };
  const entry = entryOf(runtimeId);
  const how = entry ? installCommandOf(entry, context.platform) : null;
  return {
    reason: `${entry?.label ?? name} is not installed, or not where a login shell would find it`,
    kind: 'runtimeMissing',
    next: how ? `Install it: ${how}` : 'See: shadowob-connector runtime-scan',
  };
}
