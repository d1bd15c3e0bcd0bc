import { installWrapper } from '../install/wrapper/wrapper.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { type Answer, defineCommand } from './command.ts';
import { socketForShim, WRAPPER_ARGS, wrapperAnswer, wrapperContext } from './wrapper-change.ts';

/** `install-wrapper` (S-840). */
export const installWrapperCommand = defineCommand({
  name: 'install-wrapper',
  summary: 'let VS Code start Claude Code so that its exact state is known',
  details:
    'Writes a small shim and names it in the setting claudeCode.claudeProcessWrapper of VS Code, VS Code Insiders, Cursor and VSCodium, as far as they are there. Comments and everything else in the settings stay as they are. Claude Code also starts when the connector is gone: the shim then runs it alone. uninstall-wrapper takes all of it back.',
  args: {
    ...WRAPPER_ARGS,
    replace: { type: 'boolean', description: 'Take the place of another wrapper that the setting names' },
  },
  examples: [
    { command: 'install-wrapper --dry-run', says: 'Show the change to the settings, and change nothing' },
    { command: 'install-wrapper', says: 'In every editor of the family that is there' },
    {
      command: 'install-wrapper --settings ~/.vscode-server/data/Machine/settings.json',
      says: 'On a computer that VS Code reaches over SSH',
    },
  ],
  async run(args, world): Promise<Answer> {
    if (world.platform === 'win32') {
      throw new ConnectorError(
        'unsupported',
        'on Windows VS Code starts no script in the place of Claude Code',
        'Try: shadowob-connector install-hooks',
      );
    }
    const context = wrapperContext(world, args);
    const socket = socketForShim(world);
    const done = installWrapper(context, {
      self: world.self,
      replace: args.replace === true,
      ...(socket === undefined ? {} : { socket }),
    });
    return wrapperAnswer(
      done,
      context.dryRun,
      'Reload the editor’s windows: sessions that are open keep running without it.',
    );
  },
});
