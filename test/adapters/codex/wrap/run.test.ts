import { afterEach, describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CodexWrapOptions, runCodexWrap } from '../../../../src/adapters/codex/wrap/run.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { createCleanup, tempFolder } from '../../../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

/** A stand-in for `codex`: its server as a test wants it, its terminal program leaves with 3. */
function setUp(server: string): { readonly folder: string; readonly options: CodexWrapOptions } {
  const folder = tempFolder(cleanup);
  const program = join(folder, 'codex');
  const script = `#!/bin/sh
echo "$*" >> "${folder}/calls"
if [ "$1" = app-server ]; then
  echo $$ > "${folder}/server"
  socket=\${3#unix://}
  ${server}
fi
exit 3
`;
  writeFileSync(program, script);
  chmodSync(program, 0o700);
  return {
    folder,
    options: {
      argv: [program, 'resume', '--last'],
      env: { ...process.env, CODEX_HOME: join(folder, 'codex-home'), LISTENER: listener(folder) },
      platform: process.platform,
      pid: 4_242,
      address: join(folder, 'no-service'),
      home: folder,
      connectorHome: join(folder, 'c'),
      isTerminal: true,
      onSignal: () => {},
    },
  };
}

/** A program that listens on a unix socket and does nothing else. */
function listener(folder: string): string {
  const path = join(folder, 'listener.ts');
  writeFileSync(path, "Bun.listen({ unix: process.argv[2] ?? '', socket: { data() {} } });\n");
  return path;
}

const LISTENS = `exec "${process.execPath}" "$LISTENER" "$socket"`;
const callsIn = (folder: string): readonly string[] =>
  readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
const serverOf = (folder: string): number => Number(readFileSync(join(folder, 'server'), 'utf8'));

describe.skipIf(process.platform === 'win32')('codex-wrap', () => {
  test('C-298 S-761 S-766: the terminal runs on a server of its own; its code is ours, and nothing is left', async () => {
    const { folder, options } = setUp(LISTENS);
    expect(await runCodexWrap(options)).toEqual({ kind: 'ended', exitCode: 3 });
    const socket = join(folder, 'c', 'codex-wrap-4242.sock');
    expect(callsIn(folder)).toEqual([
      `app-server --listen unix://${socket}`,
      `--remote unix://${socket} resume --last`,
    ]);
    expect([existsSync(socket), isAlive(serverOf(folder))]).toEqual([false, false]);
  });

  test('C-297: a server that exits at once: the plain command, and no socket', async () => {
    const { folder, options } = setUp('exit 1');
    expect(await runCodexWrap(options)).toMatchObject({ kind: 'passThrough' });
    expect([callsIn(folder).length, existsSync(join(folder, 'c', 'codex-wrap-4242.sock'))]).toEqual([
      1,
      false,
    ]);
  });

  test('C-297 K-19: a server that never listens: the plain command, and the server is gone', async () => {
    const { folder, options } = setUp('exec sleep 1000');
    expect(await runCodexWrap({ ...options, readyMs: 300 })).toMatchObject({ kind: 'passThrough' });
    expect(isAlive(serverOf(folder))).toBe(false);
  });

  test('S-760: nothing is started without a terminal, on Windows, for a long path, or without a home', async () => {
    const { folder, options } = setUp(LISTENS);
    const blocked = join(folder, 'file');
    writeFileSync(blocked, '');
    const each: readonly Partial<CodexWrapOptions>[] = [
      { isTerminal: false },
      { platform: 'win32' },
      { connectorHome: join(folder, 'x'.repeat(104)) },
      { connectorHome: join(blocked, 'c') },
    ];
    for (const one of each)
      expect(await runCodexWrap({ ...options, ...one })).toMatchObject({ kind: 'passThrough' });
    expect(existsSync(join(folder, 'calls'))).toBe(false);
  });
});
