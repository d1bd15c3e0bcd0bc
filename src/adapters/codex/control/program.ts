import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Refusal } from '../../../runtime/control.ts';
import { scrubbedEnv } from '../../../runtime/process/scrubbed-env.ts';
import { createProgramSearch, type Executable } from '../../../runtime/process/search-path.ts';
import { openProbeCache } from '../../../runtime/store/probe-store.ts';
import type { ControlContext } from '../../adapter.ts';
import { entryOf, installCommandOf } from '../../catalog.ts';
import { codexHome } from '../homes.ts';
import { RUNTIME_ID } from '../sightings.ts';

/** The program to start, and the environment in which it finds what it needs (R2). */
export interface CodexProgram {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Finds `codex` as a login would, or takes `CODEX_CLI_PATH`, as the existing connector does (`cli-surface.md` §2). A
 * refusal names how to install it.
 */
export async function findCodex(context: ControlContext): Promise<CodexProgram | Refusal> {
  const named = context.env['CODEX_CLI_PATH'];
  if (named) return isAbsolute(named) && existsSync(named) ? atPath(context, named) : notThere(named);
  const search = createProgramSearch({
    platform: context.platform,
    env: context.env,
    home: context.home,
    connectorHome: context.connectorHome,
    run: context.run,
    cache: openProbeCache(context.connectorHome),
    now: () => context.now(),
  });
  const [program]: readonly Executable[] = await search.find('codex');
  if (program) {
    return { path: program.path, env: environment(context, await search.pathFor(program)) };
  }
  const entry = entryOf(RUNTIME_ID);
  const how = entry ? installCommandOf(entry, context.platform) : null;
  return {
    reason: 'Codex is not installed, or not where a login shell would find it',
    kind: 'runtimeMissing',
    next: how ? `Install it: ${how}` : 'See: shadowob-connector runtime-scan',
  };
}

function atPath(context: ControlContext, path: string): CodexProgram {
  return { path, env: { ...scrubbedEnv(context.env), ...homeOf(context) } };
}

function notThere(path: string): Refusal {
  return {
    reason: `CODEX_CLI_PATH names no program: ${path}`,
    kind: 'runtimeMissing',
    next: 'Set it to the whole path of codex, or unset it.',
  };
}

/** Marks of a session around us are gone. */
function environment(context: ControlContext, path: string): Readonly<Record<string, string>> {
  const kept = Object.entries(scrubbedEnv(context.env)).filter(([name]) => name.toUpperCase() !== 'PATH');
  return { ...Object.fromEntries(kept), ...homeOf(context), PATH: path };
}

/** A relative home would be another folder in the child, which starts in the session's own. */
function homeOf(context: ControlContext): Readonly<Record<string, string>> {
  return context.env['CODEX_HOME'] ? { CODEX_HOME: codexHome(context).root } : {};
}
