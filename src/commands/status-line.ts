import { resolve } from 'node:path';
import { ConnectorError } from '../runtime/errors.ts';
import { type Answer, defineCommand } from './command.ts';
import { STATUS_FORMATS } from './output/status-formats.ts';
import { makeStatusLine } from './output/status-line.ts';

export const statusLineCommand = defineCommand({
  name: 'status-line',
  summary: 'one line for a prompt, a bar or a menu: who waits, who works',
  details:
    'Asks the daemon alone and answers in milliseconds; it never looks for itself. Without a daemon, or before it has looked at everything once, plain, tmux and starship print an empty line, waybar an empty module with class "off", and the menus an entry that starts the daemon; the exit code is 0. Shown are runtimes, folder names and states; --titles adds titles to what this line shows. In the menus a session that an editor window shows can be clicked.',
  args: {
    format: {
      type: 'string',
      description: `One of ${STATUS_FORMATS.join(', ')} (default plain)`,
      valueHint: 'format',
    },
    titles: { type: 'boolean', description: 'Titles, too (privacy.titles still holds)' },
    socket: {
      type: 'string',
      description: 'Another socket than the one in the connector home',
      valueHint: 'path',
    },
  },
  examples: [
    {
      command: 'status-line --format tmux',
      says: 'for tmux: set -g status-right "#(shadowob-connector status-line --format tmux)"',
    },
    {
      command: 'status-line --format waybar',
      says: 'for a custom module of waybar with "return-type": "json"',
    },
    { command: 'status-line --format swiftbar', says: 'a menu for SwiftBar; xbar and argos are beside it' },
  ],
  async run(args, world): Promise<Answer> {
    const format = STATUS_FORMATS.find((one) => one === (args.format ?? 'plain'));
    if (!format) {
      throw new ConnectorError(
        'badValue',
        `--format: "${args.format}" is none of ${STATUS_FORMATS.join(', ')}`,
        'Try --format plain.',
      );
    }
    const socket = args.socket === undefined ? undefined : resolve(world.cwd, args.socket);
    const line = await makeStatusLine({ format, titles: args.titles === true, socket }, world);
    return { kind: 'document', data: { format, line }, text: () => (line === '' ? '\n' : line) };
  },
});
