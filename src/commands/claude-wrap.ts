import { type Answer, defineCommand } from './command.ts';
import { parseWrapArguments } from './wrap.ts';

/** The declaration, for the help; `main.ts` runs the wrapper itself (`wrap.ts`). */
export const claudeWrap = defineCommand({
  name: 'claude-wrap',
  summary: 'start Claude Code for an editor and hear its exact state',
  details:
    'Starts the program after -- and passes its input, output, signals and exit code on as they are, while the daemon, if one runs, hears what the session does. What changes on the way are terminal titles: they get the family of the model in front, unless SHADOWOB_CONNECTOR_CLAUDE_WRAP_NO_TITLE_REWRITE=1. On a terminal nothing is heard. install-wrapper makes VS Code use it. SHADOWOB_CONNECTOR_CLAUDE_WRAP_LOG=/path writes a file of diagnostics without any content.',
  args: {
    socket: { type: 'string', description: 'The daemon’s socket', valueHint: 'path' },
  },
  examples: [
    { command: 'install-wrapper', says: 'Let VS Code start its Claude Code sessions this way' },
    {
      command: 'claude-wrap -- claude -p --output-format stream-json --verbose "Say hello" | jq .type',
      says: 'The same by hand',
    },
  ],
  run: (): Promise<Answer> => {
    parseWrapArguments('claude-wrap', []);
    throw new Error('claude-wrap is run by the entry');
  },
});
