import { type Answer, defineCommand } from './command.ts';
import { changeHooks } from './hooks-change.ts';
import { HOOKS_ARGS } from './hooks-world.ts';

export const installHooks = defineCommand({
  name: 'install-hooks',
  summary: 'have the runtimes report what their sessions do',
  details:
    'Adds our hooks to the settings of every runtime on this computer that has them, behind all others, and renews those of an earlier place of this program. Nothing else in the files is touched, not even spacing; each edit has a backup. A file that the runtime itself would not read is left as it is, with the lines to write by hand. Codex runs only hooks that it was told to trust: that is done on an explicit yes, and by Codex itself.',
  args: {
    ...HOOKS_ARGS,
    'dry-run': { type: 'boolean', description: 'Show what would be changed, and change nothing' },
    'trust-codex': { type: 'boolean', description: 'Say yes for Codex: it shall trust our hooks' },
  },
  examples: [
    { command: 'install-hooks --dry-run', says: 'what would be changed, as a diff' },
    { command: 'install-hooks', says: 'for every runtime on this computer' },
    { command: 'install-hooks --runtime codex --trust-codex', says: 'for Codex alone, with your yes' },
    { command: 'install-hooks --settings ./settings.json', says: 'another file than the usual one' },
  ],
  run: (args, world): Promise<Answer> => changeHooks(world, args, 'install'),
});
