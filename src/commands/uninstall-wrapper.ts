import { uninstallWrapper } from '../install/wrapper/wrapper.ts';
import { type Answer, defineCommand } from './command.ts';
import { WRAPPER_ARGS, wrapperAnswer, wrapperContext } from './wrapper-change.ts';

/** `uninstall-wrapper` (S-844). */
export const uninstallWrapperCommand = defineCommand({
  name: 'uninstall-wrapper',
  summary: 'take the wrapper out of VS Code again',
  details:
    'Clears the setting claudeCode.claudeProcessWrapper where it names our shim, and removes the shim unless a profile or another editor still names it. The settings get back the text that they had, unless they were changed since. Another wrapper is left alone.',
  args: WRAPPER_ARGS,
  examples: [
    { command: 'uninstall-wrapper --dry-run', says: 'Show what would go, and change nothing' },
    { command: 'uninstall-wrapper', says: 'From every editor of the family that is there' },
  ],
  async run(args, world): Promise<Answer> {
    const context = wrapperContext(world, args);
    return wrapperAnswer(uninstallWrapper(context), context.dryRun, 'Reload the editor’s windows.');
  },
});
