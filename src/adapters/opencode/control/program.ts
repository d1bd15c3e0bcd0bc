import type { Refusal } from '../../../runtime/control.ts';
import { scrubbedEnv } from '../../../runtime/process/scrubbed-env.ts';
import type { ControlContext } from '../../adapter.ts';
import { findProgram } from '../../installation/program.ts';
import { RUNTIME_ID } from '../sightings.ts';

/** The program to start, and the environment in which it finds what it needs (R2). */
export interface OpencodeProgram {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Finds `opencode` as a login would; a refusal names how to install it. */
export async function findOpencode(context: ControlContext): Promise<OpencodeProgram | Refusal> {
  const program = await findProgram(context, RUNTIME_ID, 'opencode');
  if ('reason' in program) return program;
  return { path: program.path, env: environment(context.env, program.searchPath) };
}

/** Marks of a session around us are gone, and so is the password of another server. */
function environment(env: ControlContext['env'], path: string): Readonly<Record<string, string>> {
  const kept = Object.entries(scrubbedEnv(env)).filter(
    ([name]) => name.toUpperCase() !== 'PATH' && !/^OPENCODE_SERVER_(?:PASSWORD|USERNAME)$/.test(name),
  );
  return { ...Object.fromEntries(kept), PATH: path };
}
