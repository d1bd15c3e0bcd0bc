/**
 * A program with our plugin in it, as OpenCode loads it (1.18.33), and one session that works. Run by tests as
 * `fake-terminal.ts <socket> <session id> <folder for the plugin's file>`; ends when it is killed.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { opencodePlugin } from '../../../../src/install/extensions/opencode.ts';

interface Hooks {
  event(input: { event: { type: string; properties: object } }): Promise<void>;
}

interface Plugin {
  ShadowobConnector(input: unknown): Promise<Hooks>;
}

const [socket = '', id = '', folder = ''] = process.argv.slice(2);
const path = join(folder, opencodePlugin.fileName);
writeFileSync(path, opencodePlugin.text(socket, process.platform));
const plugin: Plugin = await import(path);
const nothing = async () => ({ data: {} });
/** It asks what runs once the daemon has let it in. */
const attached = Promise.withResolvers<void>();
const said = (type: string, properties: object = {}) =>
  hooks.event({ event: { type, properties: { sessionID: id, ...properties } } });

const hooks = await plugin.ShadowobConnector({
  client: {
    session: {
      async status() {
        attached.resolve();
        return { data: { [id]: { type: 'busy' } } };
      },
      messages: async () => ({ data: [] }),
      async promptAsync() {
        await said('message.updated', { info: { id: 'msg_sent', role: 'user', sessionID: id } });
        return { data: true };
      },
      async abort() {
        await said('session.idle');
        return { data: true };
      },
    },
    postSessionIdPermissionsPermissionId: nothing,
  },
});
await attached.promise;
await said('session.created', { info: { id, title: 'A session' } });
await said('session.status', { status: { type: 'busy' } });
setInterval(() => {}, 60_000);
