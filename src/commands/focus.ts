import { resolve } from 'node:path';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { type Answer, defineCommand } from './command.ts';
import { clientOf } from './daemon-reach.ts';
import type { World } from './world.ts';

/** The editor's command may take its time to answer; longer than this and it is said so. */
const FOCUS_MS = 20_000;

export const focus = defineCommand({
  name: 'focus',
  summary: 'bring the editor window of a session to the front',
  details:
    'Asks the daemon, to which VS Code windows report the sessions that they show, and opens the first folder of that window. SHADOWOB_CONNECTOR_VSCODE_BIN names another editor command. A session in a terminal has no window that could be found, and nothing is done.',
  args: {
    session: { type: 'positional', required: true, description: 'its id, or a beginning that only it has' },
    socket: {
      type: 'string',
      description: 'Another socket than the one in the connector home',
      valueHint: 'path',
    },
  },
  examples: [{ command: 'focus 5c67492c', says: 'the window that shows this session' }],
  async run(args, world): Promise<Answer> {
    const home = connectorHome(world.env, world.home);
    const socketPath = args.socket === undefined ? socketPathIn(home) : resolve(world.cwd, args.socket);
    const folder = await ask(world, socketPath, args.session);
    return {
      kind: 'document',
      data: { session: args.session, folder },
      text: () => `opened ${folder}`,
    };
  },
});

async function ask(world: World, socketPath: string, session: string): Promise<string> {
  const reply = await clientOf(world, socketPath).request(
    'connector',
    'focus',
    { session },
    { timeoutMs: FOCUS_MS },
  );
  if (reply.kind === 'rejected') throw new ConnectorError('notFound', reply.error);
  if (reply.kind === 'unreachable') {
    throw new ConnectorError(
      'daemon',
      'no daemon answers, and it alone knows the windows',
      'shadowob-connector daemon start',
    );
  }
  const folder: unknown =
    typeof reply.payload === 'object' && reply.payload ? Reflect.get(reply.payload, 'folder') : '';
  return typeof folder === 'string' ? folder : '';
}
