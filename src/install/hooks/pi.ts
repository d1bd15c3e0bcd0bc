import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { piHome } from '../../adapters/pi/homes.ts';
import { piExtension } from '../extensions/pi.ts';
import { type ExtensionFile, fileStatus, planInstallFile, planRemoveFile } from './extension-file.ts';
import type { HooksContext, Integration } from './integration.ts';

const ID = 'pi';
const OPTION = 'pi-agent-dir';

/** Our extension in pi's extensions folder (S-750, S-830). */
export const pi: Integration = {
  id: ID,
  label: 'pi',
  aliases: [],
  options: [
    {
      name: OPTION,
      description: 'pi: another folder than $PI_CODING_AGENT_DIR or ~/.pi/agent',
      valueHint: 'path',
    },
  ],
  async planInstall(context) {
    if (!(await isPresent(context))) {
      return { kind: 'absent', message: 'pi is not on this computer: no program, and no ~/.pi/agent.' };
    }
    return planInstallFile(fileOf(context), context, [
      'A pi that runs takes it up with /reload, or when it is started anew.',
      'Its sessions are reported, and can be reached, while the daemon runs: shadowob-connector daemon start',
    ]);
  },
  planUninstall: async (context) =>
    planRemoveFile(fileOf(context), ['A pi that runs goes on with it until it ends.']),
  status: async (context) => fileStatus(fileOf(context), context, await isPresent(context)),
};

function rootOf({ options, env, home, cwd, platform }: HooksContext): string {
  const named = options[OPTION];
  return named === undefined ? piHome({ env, home, platform }).root : resolve(cwd, named);
}

function fileOf(context: HooksContext): ExtensionFile {
  return { path: join(rootOf(context), 'extensions', piExtension.fileName), extension: piExtension };
}

async function isPresent(context: HooksContext): Promise<boolean> {
  if (context.options[OPTION] !== undefined || existsSync(rootOf(context))) return true;
  return (await context.programs(ID)).length > 0;
}
