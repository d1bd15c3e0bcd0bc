import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { opencodePlugin } from '../extensions/opencode.ts';
import { type ExtensionFile, fileStatus, planInstallFile, planRemoveFile } from './extension-file.ts';
import type { HooksContext, Integration } from './integration.ts';

const ID = 'opencode';
const OPTION = 'opencode-config-dir';

/** Our plugin in OpenCode's plugin folder. */
export const opencode: Integration = {
  id: ID,
  label: 'OpenCode',
  aliases: [],
  options: [
    {
      name: OPTION,
      description: 'OpenCode: another folder than its own in ~/.config',
      valueHint: 'path',
    },
  ],
  async planInstall(context) {
    if (!(await isPresent(context))) {
      return {
        kind: 'absent',
        message: 'OpenCode is not on this computer: no program, and no folder of its settings.',
      };
    }
    return planInstallFile(fileOf(context), context, [
      'An OpenCode that runs takes it up when it is started anew.',
      'Its sessions are reported, and can be reached, while the daemon runs: shadowob-connector daemon start',
      ...firstPlugin(context),
    ]);
  },
  planUninstall: async (context) =>
    planRemoveFile(fileOf(context), ['An OpenCode that runs goes on with it until it ends.']),
  status: async (context) => fileStatus(fileOf(context), context, await isPresent(context)),
};

/** OpenCode uses `~/.config` on every system (1.18.33); relative values are ignored, as the XDG specification asks. */
function folderOf({ options, env, home, cwd }: HooksContext): string {
  const named = options[OPTION];
  if (named !== undefined) return resolve(cwd, named);
  const own = env['OPENCODE_CONFIG_DIR'];
  if (own && isAbsolute(own)) return own;
  const base = env['XDG_CONFIG_HOME'];
  return join(base && isAbsolute(base) ? base : join(home, '.config'), 'opencode');
}

/** OpenCode 1.18.33 fetches `@opencode-ai/plugin` into this folder, and waits for it only where there are plugins. */
function firstPlugin(context: HooksContext): readonly string[] {
  if (existsSync(join(folderOf(context), 'node_modules'))) return [];
  return [
    'Before its first plugin OpenCode fetches a package of its own from npm: without a network that start waits for it.',
  ];
}

function fileOf(context: HooksContext): ExtensionFile {
  return { path: join(folderOf(context), 'plugin', opencodePlugin.fileName), extension: opencodePlugin };
}

async function isPresent(context: HooksContext): Promise<boolean> {
  if (context.options[OPTION] !== undefined || existsSync(folderOf(context))) return true;
  return (await context.programs(ID)).length > 0;
}
