import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import {
  endLeftovers,
  forgetRecord,
  recordPath,
  writeRecord,
} from '../../../../src/adapters/codex/wrap/leftovers.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { start, systemHost } from '../../../../src/runtime/process/spawn.ts';
import { createCleanup, tempFolder } from '../../../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

function sleeper() {
  const child = start({ argv: ['sleep', '1000'] });
  if (child.kind !== 'started') throw new Error(child.message);
  cleanup.add(() => child.end(0));
  return child;
}

describe.skipIf(process.platform === 'win32')('what a killed codex-wrap has left', () => {
  test('K1: a server goes on while its terminal does, and is ended when nobody is left', async () => {
    const home = tempFolder(cleanup);
    const [server, terminal, wrapper] = [sleeper(), sleeper(), sleeper()];
    const path = recordPath(home, wrapper.identity.pid);
    const socket = path.replace('.json', '.sock');
    writeFileSync(socket, '');
    const users = [wrapper.identity.pid, terminal.identity.pid];
    await writeRecord(path, server.identity.pid, users, systemHost);
    await wrapper.end(0);
    await endLeftovers(home, systemHost);
    expect([isAlive(server.identity.pid), existsSync(path)]).toEqual([true, true]);
    await terminal.end(0);
    await endLeftovers(home, systemHost);
    expect([isAlive(server.identity.pid), existsSync(path), existsSync(socket)]).toEqual([
      false,
      false,
      false,
    ]);
  });

  test('D1: a pid that another process has now is not the server', async () => {
    const home = tempFolder(cleanup);
    const [other, gone] = [sleeper(), sleeper()];
    const path = recordPath(home, 77);
    await writeRecord(path, other.identity.pid, [gone.identity.pid], systemHost);
    await gone.end(0);
    const written = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...written, server: { ...written.server, startToken: '1' } }));
    await endLeftovers(home, systemHost);
    expect([isAlive(other.identity.pid), existsSync(path)]).toEqual([true, false]);
  });

  test('what is no record is removed, and other files are not looked at', async () => {
    const home = tempFolder(cleanup);
    const [path, other] = [recordPath(home, 78), `${home}/codex-wrap-x.json`];
    for (const each of [path, other])
      writeFileSync(each, '{"version":1,"server":{"pid":1,"startToken":"x"},"users":[]}');
    await endLeftovers(home, systemHost);
    expect([existsSync(path), existsSync(other)]).toEqual([false, true]);
    forgetRecord(path);
    await endLeftovers(`${home}/nowhere`, systemHost);
  });
});
