import { type Answer, defineCommand } from './command.ts';
import { parseWrapArguments } from './wrap.ts';

/** The declaration, for the help; `main.ts` runs the wrapper itself (`wrap.ts`). */
export const codexWrap = defineCommand({
  name: 'codex-wrap',
  summary: 'start Codex in this terminal and hear its exact state',
  details:
    'Starts an app-server for this one terminal, and Codex on it, and tells the daemon once a second what its threads do. It only looks: it never starts, changes or answers anything. Commands that open no terminal session (exec, login, …), --remote, --no-daemon and output that is no terminal run as if they had been typed alone. Codex’s own shared daemon is watched without a wrapper; this is for sessions that shall end with their terminal.',
  args: {
    socket: { type: 'string', description: 'The daemon’s socket', valueHint: 'path' },
  },
  examples: [
    { command: 'codex-wrap -- codex', says: 'Codex, with its state known exactly' },
    { command: 'codex-wrap -- codex resume --last', says: 'The same for the latest session' },
  ],
  run: (): Promise<Answer> => {
    parseWrapArguments('codex-wrap', []);
    throw new Error('codex-wrap is run by the entry');
  },
});
