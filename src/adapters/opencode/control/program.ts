import type { Refusal } from '../../../runtime/control.ts';
import { scrubbedEnv } from '../../../runtime/process/scrubbed-env.ts';
import { createProgramSearch, type Executable } from '../../../runtime/process/search-path.ts';
import { openProbeCache } from '../../../runtime/store/probe-store.ts';
import type { ControlContext } from '../../adapter.ts';
import { entryOf, installCommandOf } from '../../catalog.ts';
import { RUNTIME_ID } from '../sightings.ts';

/** The program to start, and the environment in which it finds what it needs (R2). */
export interface OpencodeProgram {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Finds `opencode` as a login would; a refusal names how to install it. */
export async function findOpencode(context: ControlContext): Promise<OpencodeProgram | Refusal> {
  const search = createProgramSearch({
    platform: context.platform,
    env: context.env,
    home: context.home,
    connectorHome: context.connectorHome,
    run: context.run,
    cache: openProbeCache(context.connectorHome),
    now: () => context.now(),
  });
  const [program]: readonly Executable[] = await search.find('opencode');
  if (program) {
    return { path: program.path, env: environment(context.env, await search.pathFor(program)) };
  }
  const entry = entryOf(RUNTIME_ID);
  const how = entry ? installCommandOf(entry, context.platform) : null;
  return {
    reason: 'OpenCode is not installed, or not where a login shell would find it',
    kind: 'runtimeMissing',
    next: how ? `Install it: ${how}` : 'See: shadowob-connector runtime-scan',
  };
}

/** Marks of a session around us are gone, and so is the password of another server. */
function environment(env: ControlContext['env'], path: string): Readonly<Record<string, string>> {
  const kept = Object.entries(scrubbedEnv(env)).filter(
    ([name]) => name.toUpperCase() !== 'PATH' && !/^OPENCODE_SERVER_(?:PASSWORD|USERNAME)$/.test(name),
  );
  return { ...Object.fromEntries(kept), PATH: path };
}
