import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { compiledBinary } from '../helpers/binary.ts';
import { type CliResult, cli, temporaryHome } from '../helpers/cli.ts';

// Compiling takes its time, and so does a machine with other work.
setDefaultTimeout(120_000);
beforeAll(compiledBinary);

const FILE = '.claude/settings.json';

/** A computer with a Claude Code of a version, and nothing else. */
function computer(version = '2.1.332 (Claude Code)') {
  const home = temporaryHome();
  const at = (path: string) => join(home.path, path);
  mkdirSync(at('bin'));
  writeFileSync(at('bin/claude'), `#!/bin/sh\necho "${version}"\n`);
  chmodSync(at('bin/claude'), 0o755);
  mkdirSync(at('.claude'));
  const env = { PATH: `${at('bin')}:/usr/bin:/bin` };
  return {
    at,
    run: (...args: string[]): Promise<CliResult> => cli(args, { home: home.path, env }),
    [Symbol.dispose]: () => home[Symbol.dispose](),
  };
}

describe.skipIf(process.platform === 'win32')('install-hooks, uninstall-hooks, hooks-status', () => {
  test('--dry-run shows a diff and writes nothing at all', async () => {
    using one = computer();
    const { code, stdout } = await one.run('install-hooks', '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toContain('+++ ');
    expect(stdout).toContain('"PostToolBatch"');
    expect(existsSync(one.at(FILE))).toBe(false);
    expect(existsSync(one.at('.shadowob/connector/edits'))).toBe(false);
  });

  test('installs for what is here, skips what is not, and takes it out to the byte', async () => {
    using one = computer();
    writeFileSync(one.at(FILE), '{"model":"opus"}');
    const first = await one.run('install-hooks', '--json');
    expect(first.code).toBe(0);
    const { runtimes } = JSON.parse(first.stdout);
    expect(runtimes.slice(0, 2)).toMatchObject([
      { runtimeId: 'claude-code', result: 'changed', files: [{ path: one.at(FILE) }] },
      { runtimeId: 'codex', result: 'absent' },
    ]);
    expect(existsSync(one.at('.codex'))).toBe(false);
    const command = JSON.parse(readFileSync(one.at(FILE), 'utf8')).hooks.Stop[0].hooks[0].command;
    expect(command).toBe(`${await compiledBinary()} hook --agent claude`);
    expect((await one.run('install-hooks')).stdout).toContain('nothing to do');
    expect((await one.run('uninstall-hooks')).code).toBe(0);
    expect(readFileSync(one.at(FILE), 'utf8')).toBe('{"model":"opus"}');
    expect((await one.run('uninstall-hooks', '--undo')).code).toBe(0);
    expect(readFileSync(one.at(FILE), 'utf8')).toContain('hook --agent claude');
  });

  test('C-326 a runtime that was named and is not here is an error with its own code', async () => {
    using one = computer();
    const { code, stderr } = await one.run('install-hooks', '--runtime', 'codex');
    expect(code).toBe(41);
    expect(stderr).toContain('Codex is not on this computer');
    expect((await one.run('uninstall-hooks', '--runtime', 'codex')).code).toBe(0);
    const unknown = await one.run('install-hooks', '--agent', 'claud');
    expect(unknown.code).toBe(22);
    expect(unknown.stderr).toContain('did you mean "claude"');
  });

  test('H1 a file that Claude Code ignores is refused with 50, and the lines to paste', async () => {
    using one = computer();
    writeFileSync(one.at(FILE), '{ // x\n}');
    const { code, stderr } = await one.run('install-hooks', '--runtime', 'claude');
    expect(code).toBe(50);
    expect(stderr).toContain('ignores the whole file');
    expect(stderr).toContain('"SessionStart": [');
    expect(readFileSync(one.at(FILE), 'utf8')).toBe('{ // x\n}');
    const both = await one.run('install-hooks', '--json');
    expect(both.code).toBe(50);
    expect(JSON.parse(both.stdout).runtimes[0]).toMatchObject({ result: 'refused' });
  });

  test('R-48 status: missing, then installed and not delivered, then in the journal once a daemon has run', async () => {
    using one = computer();
    const look = async () => {
      const { code, stdout } = await one.run('hooks-status', '--json');
      return { code, ...JSON.parse(stdout).runtimes[0] };
    };
    expect(await look()).toMatchObject({ code: 51, installed: 'no', loaded: 'no', arrives: [] });
    await one.run('install-hooks');
    expect(await look()).toMatchObject({ code: 51, installed: 'yes', arrives: [{ kind: 'nobody' }] });
    mkdirSync(one.at('.shadowob/connector/run'), { mode: 0o700 });
    expect(await look()).toMatchObject({
      code: 0,
      installed: 'yes',
      trusted: 'unneeded',
      loaded: 'unknown',
      arrives: [{ kind: 'journal' }],
    });
    expect(readdirSync(one.at('.shadowob/connector/run/sessions/claude'))).toEqual([]);
  });

  test('R-48 loaded: an event of the program itself in the journal, since it was installed', async () => {
    using one = computer();
    await one.run('install-hooks');
    mkdirSync(one.at('.shadowob/connector/run'), { mode: 0o700 });
    const id = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
    const stdin = JSON.stringify({ session_id: id, hook_event_name: 'UserPromptSubmit' });
    await cli(['hook', '--agent', 'claude'], { home: one.at('.'), stdin });
    const { stdout } = await one.run('hooks-status', '--json', '--no-fire');
    expect(JSON.parse(stdout).runtimes[0]).toMatchObject({ loaded: 'yes', arrives: [] });
  });

  test('H15 a program that is gone is seen: the event does not arrive', async () => {
    using one = computer();
    const command = '/gone/shadowob-connector hook --agent claude';
    writeFileSync(
      one.at(FILE),
      JSON.stringify({ hooks: { Stop: [{ hooks: [{ type: 'command', command }] }] } }),
    );
    const { code, stdout } = await one.run('hooks-status', '--json');
    expect(code).toBe(51);
    expect(JSON.parse(stdout).runtimes[0]).toMatchObject({
      installed: 'partly',
      arrives: [{ command, kind: 'broken', message: expect.stringContaining('it left with 127') }],
    });
  });

  test('C-358 what is written is private', async () => {
    using one = computer();
    await one.run('install-hooks');
    expect(statSync(one.at(FILE)).mode & 0o777).toBe(0o600);
    const edits = one.at('.shadowob/connector/edits');
    expect(statSync(edits).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(edits, { recursive: true, withFileTypes: true }))
      expect(statSync(join(name.parentPath, name.name)).mode & 0o077).toBe(0);
  });

  test('R-21 of several programs of that name the oldest decides', async () => {
    using one = computer();
    mkdirSync(one.at('.local/bin'), { recursive: true });
    writeFileSync(one.at('.local/bin/claude'), '#!/bin/sh\necho "2.0.5 (Claude Code)"\n');
    chmodSync(one.at('.local/bin/claude'), 0o755);
    await one.run('install-hooks', '--runtime', 'claude-code');
    expect(Object.keys(JSON.parse(readFileSync(one.at(FILE), 'utf8')).hooks)).toHaveLength(8);
  });

  test('C-363 S-326 S-327 a daemon of another build is told of, since hooks are silent about its refusals', async () => {
    using one = computer();
    mkdirSync(one.at('.shadowob/connector'), { recursive: true, mode: 0o700 });
    const holder = { pid: process.pid, version: '0.0.1', since: new Date(0).toISOString() };
    writeFileSync(one.at('.shadowob/connector/daemon.lock'), JSON.stringify(holder));
    const reply = { ok: true, payload: { pid: process.pid, version: '0.0.1', commit: 'older' } };
    using _daemon = Bun.listen({
      unix: one.at('.shadowob/connector/daemon.sock'),
      socket: { data: (socket) => void socket.write(`${JSON.stringify(reply)}\n`) },
    });
    for (const name of ['install-hooks', 'hooks-status', 'uninstall-hooks']) {
      const { stderr } = await one.run(name, '--runtime', 'claude-code');
      expect(stderr).toContain('The daemon is another build, 0.0.1 (older)');
    }
  });

  test('R-48 loaded: an extension that is connected to the daemon is, and one that only lies there is not known to be', async () => {
    using one = computer();
    mkdirSync(one.at('.pi/agent'), { recursive: true });
    await one.run('install-hooks');
    const holder = { pid: process.pid, version: '0.0.1', since: new Date(0).toISOString() };
    writeFileSync(one.at('.shadowob/connector/daemon.lock'), JSON.stringify(holder));
    const state: { attached: object[] } = { attached: [] };
    using _daemon = Bun.listen({
      unix: one.at('.shadowob/connector/daemon.sock'),
      socket: {
        data: (socket) => void socket.write(`${JSON.stringify({ ok: true, payload: { ...state } })}\n`),
      },
    });
    const look = async () =>
      JSON.parse((await one.run('hooks-status', '--runtime', 'pi', '--json')).stdout).runtimes[0];
    expect(await look()).toMatchObject({ installed: 'yes', loaded: 'unknown' });
    state.attached = [{ runtimeId: 'opencode' }, { runtimeId: 'pi' }];
    expect(await look()).toMatchObject({ installed: 'yes', loaded: 'yes', arrives: [] });
    expect((await one.run('hooks-status', '--runtime', 'pi')).stdout).toContain('one of it is connected');
  });

  test('--undo takes back a step, and removes nothing that has no former text', async () => {
    using one = computer();
    mkdirSync(one.at('.pi/agent'), { recursive: true });
    writeFileSync(one.at(FILE), '{}');
    await one.run('install-hooks');
    const extensions = readdirSync(one.at('.pi/agent/extensions'));
    expect((await one.run('uninstall-hooks', '--undo')).code).toBe(0);
    expect(readFileSync(one.at(FILE), 'utf8')).toBe('{}');
    expect(readdirSync(one.at('.pi/agent/extensions'))).toEqual(extensions);
  });

  test('each has help with examples', async () => {
    using one = computer();
    for (const name of ['install-hooks', 'uninstall-hooks', 'hooks-status']) {
      const { code, stdout } = await one.run(name, '--help');
      expect(code).toBe(0);
      expect(stdout).toContain('--settings <path>');
      expect(stdout).toContain('--codex-home <path>');
      expect(stdout).toContain(`shadowob-connector ${name}`);
    }
  });
});
