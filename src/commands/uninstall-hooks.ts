import { type Answer, defineCommand } from './command.ts';
import { changeHooks } from './hooks-change.ts';
import { HOOKS_ARGS } from './hooks-world.ts';

export const uninstallHooks = defineCommand({
  name: 'uninstall-hooks',
  summary: 'take our hooks out of the runtimes’ settings again',
  details:
    'Removes every hook of ours, also those of an earlier place of this program, and what installing had made around them. Where the file is as we left it, it has its former bytes again. Hooks of ours that were changed by hand stay, and are counted. With --undo the last step is taken back instead, whichever it was.',
  args: {
    ...HOOKS_ARGS,
    'dry-run': { type: 'boolean', description: 'Show what would be changed, and change nothing' },
    undo: { type: 'boolean', description: 'Take back the last install or uninstall instead' },
  },
  examples: [
    { command: 'uninstall-hooks', says: 'from every runtime' },
    { command: 'uninstall-hooks --runtime claude-code --dry-run', says: 'what would go, as a diff' },
    { command: 'uninstall-hooks --undo', says: 'the files as they were before the last step' },
  ],
  run: (args, world): Promise<Answer> => changeHooks(world, args, args.undo === true ? 'undo' : 'uninstall'),
});
