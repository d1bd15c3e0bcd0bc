import { afterEach, beforeAll, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { EXIT } from '../../src/runtime/errors.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { type CliResult, cli, temporaryHome } from '../helpers/cli.ts';
import { createCleanup, until } from '../runtime/daemon/harness.ts';
import { connectWire } from '../runtime/daemon/wire-client.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

const ID = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';

interface Told {
  readonly event: string;
  readonly from: string;
  readonly to: string;
  readonly id: string;
}

interface Bench {
  readonly home: string;
  readonly connector: string;
  readonly config: string;
  run(...args: string[]): Promise<CliResult>;
  hook(event: string, extra?: Record<string, unknown>): Promise<CliResult>;
  /** What the command sink was given so far. */
  told(): readonly Told[];
}

/** A home with notifications on, by a command that writes down what it gets. */
async function bench(): Promise<Bench> {
  const home = temporaryHome();
  cleanup.add(() => home[Symbol.dispose]());
  const path = realpathSync(home.path);
  const connector = join(path, '.shadowob', 'connector');
  // A proxy that is nobody: whatever would go through it fails.
  const env = { HTTP_PROXY: 'http://127.0.0.1:9', http_proxy: 'http://127.0.0.1:9' };
  const run = (...args: string[]) => cli(args, { home: path, env });
  cleanup.add(() => run('daemon', 'stop'));
  const shop = join(path, 'shop');
  mkdirSync(shop);
  const log = join(path, 'told.ndjson');
  const script = join(path, 'told.sh');
  writeFileSync(script, `#!/bin/sh\ncat >> '${log}'\n`);
  chmodSync(script, 0o700);
  await run('config', 'set', 'notifications.sinks.desktop.enabled', 'false');
  await run('config', 'set', 'notifications.sinks.command.argv', JSON.stringify([script]));
  await run('config', 'set', 'notifications.enabled', 'true');
  return {
    home: path,
    connector,
    config: join(connector, 'config.json'),
    run,
    hook: (event, extra = {}) =>
      cli(['hook', '--agent', 'claude'], {
        home: path,
        stdin: JSON.stringify({ session_id: ID, hook_event_name: event, cwd: shop, ...extra }),
      }),
    told: () =>
      existsSync(log)
        ? readFileSync(log, 'utf8')
            .split('\n')
            .filter((line) => line !== '')
            .map((line): Told => JSON.parse(line))
        : [],
  };
}

/** A hook gives up where the daemon is slow, and then the session is not known yet: it is told once more. */
async function begun(b: Bench): Promise<void> {
  await until('the session is known', async () => {
    await b.hook('UserPromptSubmit');
    return (await b.run('session-list')).stdout.includes('shop');
  });
}

/** A webhook on this computer. */
async function webhook() {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString());
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanup.add(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { bodies, url: `http://127.0.0.1:${port}/told` };
}

describe.skipIf(process.platform === 'win32')('notifications, with the real daemon', () => {
  test('R-44 R-08 N3: an approval and an end through the real sink, by command and webhook, once; also over a restart', async () => {
    const b = await bench();
    const hook = await webhook();
    await b.run('config', 'set', 'notifications.sinks.webhook.url', hook.url);
    await b.run('daemon', 'start');
    await b.hook('UserPromptSubmit', { prompt: 'a secret prompt' });
    await b.hook('PermissionRequest', { tool_name: 'Bash', tool_input: { command: 'a secret command' } });
    await until('the approval is told', () => b.told().length === 1 && hook.bodies.length === 1);
    expect(b.told()[0]).toMatchObject({
      event: 'connector.session.waitingForApproval',
      from: 'running',
      to: 'waiting_for_approval',
      runtime: 'Claude Code',
      folder: 'shop',
    });
    await b.hook('PostToolUse', { tool_name: 'Bash' });
    await b.hook('Stop');
    await until('the end is told', () => b.told().length === 2 && hook.bodies.length === 2);
    expect(b.told()[1]).toMatchObject({ event: 'connector.session.completed', to: 'completed' });
    expect(hook.bodies.map((body) => JSON.parse(body))).toEqual([...b.told()]);
    expect(JSON.stringify([b.told(), hook.bodies])).not.toContain('secret');
    const status = JSON.parse((await b.run('daemon', 'status', '--json')).stdout);
    expect(status.notifications).toMatchObject({ enabled: true, told: 2, delivered: 4, failed: 0 });

    // The journals bring the session back, and nothing of it is told again.
    await b.run('daemon', 'restart');
    await b.hook('UserPromptSubmit');
    await b.hook('Stop');
    await until('the next end is told', () => b.told().length === 3);
    expect(b.told().map(({ event }) => event.split('.')[2])).toEqual([
      'waitingForApproval',
      'completed',
      'completed',
    ]);
    expect(new Set(b.told().map(({ id }) => id)).size).toBe(3);
    const ledger = join(b.connector, 'notified.json');
    expect(statSync(ledger).mode & 0o777).toBe(0o600);
    expect(readFileSync(ledger, 'utf8')).not.toMatch(/shop|secret/);
  }, 60_000);

  test('N1 R-11: nothing is told while a background agent runs, nor of the idle reminder', async () => {
    const b = await bench();
    await b.run('daemon', 'start');
    await b.hook('UserPromptSubmit');
    await b.hook('Stop', { background_tasks: [{ type: 'subagent', status: 'running' }] });
    await b.hook('Stop', { background_tasks: [] });
    await until('the end is told', () => b.told().length === 1);
    await b.hook('Notification', { notification_type: 'idle_prompt', message: 'waiting' });
    // What is told next is the next turn: the reminder was not.
    await b.hook('UserPromptSubmit');
    await b.hook('StopFailure', { error: 'server_error' });
    await until('the failure is told', () => b.told().length === 2);
    expect(b.told().map(({ event }) => event)).toEqual([
      'connector.session.completed',
      'connector.session.failed',
    ]);
  }, 60_000);

  test('R-38: the daemon follows the file, names one that is no use, and keeps it', async () => {
    const b = await bench();
    await b.run('daemon', 'start');
    const statusOf = async () => JSON.parse((await b.run('daemon', 'status', '--json')).stdout);
    expect((await statusOf()).notifications.enabled).toBe(true);
    writeFileSync(b.config, '{"notifications": {"enabled": true, ');
    await until('the daemon has seen it', async () => (await statusOf()).notifications.enabled === false);
    expect((await statusOf()).config.problem).toContain(b.config);
    const text = await b.run('daemon', 'status');
    expect(text.stdout).toContain('the defaults hold');
    expect(text.stderr).toContain(b.config);
    expect((await b.run('session-list')).stderr).toContain(b.config);
    const refused = await b.run('config', 'set', 'notifications.enabled', 'true');
    expect(refused.code).toBe(EXIT.configRefused);
    expect(readFileSync(b.config, 'utf8')).toBe('{"notifications": {"enabled": true, ');
  }, 60_000);

  test('an edit keeps every byte that it does not mean, and the file is private', async () => {
    const b = await bench();
    const text = '{\n  // my own words\n  "privacy": { "titles":"short" }, /* and these */\n}\n';
    writeFileSync(b.config, text, { mode: 0o600 });
    expect((await b.run('config', 'set', 'privacy.titles', 'hidden')).stdout).toBe(
      'privacy.titles is hidden\n',
    );
    expect(readFileSync(b.config, 'utf8')).toBe(text.replace('"short"', '"hidden"'));
    expect((await b.run('config', 'get', 'privacy.titles')).stdout).toBe('hidden\n');
    expect((await b.run('config', 'unset', 'privacy.titles')).stdout).toBe('privacy.titles is full\n');
    expect(readFileSync(b.config, 'utf8')).toContain('// my own words');
    expect(statSync(b.config).mode & 0o777).toBe(0o600);
    expect((await b.run('config', 'path')).stdout.trim()).toBe(b.config);
    expect((await b.run('config', 'set', 'privacy.titles', 'loud')).code).toBe(EXIT.badValue);
    const slip = await b.run('config', 'set', 'privacy.title', 'short');
    expect([slip.code, slip.stderr]).toEqual([
      EXIT.badValue,
      expect.stringContaining('did you mean "privacy.titles"?'),
    ]);
    expect(JSON.parse((await b.run('config', 'list', '--json')).stdout).config.privacy).toEqual({
      titles: 'full',
    });
  }, 60_000);

  test('R-37: titles and paths are shown as their owner wants, whoever looked', async () => {
    const b = await bench();
    await b.run('daemon', 'start');
    await begun(b);
    const folder = async () => {
      const row = JSON.parse((await b.run('session-list', '--json')).stdout).sessions[0];
      return [row.workDir, (await b.run('session-list')).stdout.includes('shop')];
    };
    expect(await folder()).toEqual([join(b.home, 'shop'), true]);
    await b.run('config', 'set', 'privacy.titles', 'short');
    expect(await folder()).toEqual(['shop', true]);
    await b.run('config', 'set', 'privacy.titles', 'hidden');
    expect(await folder()).toEqual([null, false]);
  }, 60_000);

  test('`notify test` proves each way, and fails with the reason of the one that does not work', async () => {
    const b = await bench();
    const good = await b.run('notify', 'test');
    expect([good.code, good.stdout]).toEqual([0, 'command (told.sh): delivered\n']);
    expect(b.told()).toMatchObject([{ event: 'connector.test' }]);
    await b.run('config', 'set', 'notifications.sinks.command.argv', '["/bin/false"]');
    const bad = await b.run('notify', 'test', 'command');
    expect(bad.code).toBe(EXIT.unsupported);
    expect(bad.stderr).toContain('command (false): left with code 1');
    expect((await b.run('notify', 'test', 'webhook')).stderr).toContain('the settings name no webhook');
    expect((await b.run('notify', 'test', 'post')).code).toBe(EXIT.badValue);
  }, 60_000);
});

describe.skipIf(process.platform === 'win32')('status-line and focus, with the real daemon', () => {
  test('asks the daemon alone: the fallback without one, and its word with one', async () => {
    const b = await bench();
    const off = await b.run('status-line', '--format', 'tmux');
    expect([off.code, off.stdout, off.stderr]).toEqual([0, '\n', '']);
    expect(JSON.parse((await b.run('status-line', '--format=waybar')).stdout)).toMatchObject({
      text: '',
      class: 'off',
    });
    expect((await b.run('status-line', '--format', 'none')).code).toBe(EXIT.badValue);
    expect((await b.run('status-line', '--help')).stdout).toContain('Usage');
    await b.run('daemon', 'start');
    await b.hook('UserPromptSubmit');
    await until('it works', async () => (await b.run('status-line')).stdout === '1 working\n');
    await b.hook('PermissionRequest', { tool_name: 'Bash' });
    await until(
      'it waits',
      async () => (await b.run('status-line')).stdout === '1 waiting (Claude Code · shop)\n',
    );
    const json = JSON.parse((await b.run('status-line', '--json')).stdout);
    expect(json).toEqual({ format: 'plain', line: '1 waiting (Claude Code · shop)' });
    expect((await b.run('status-line', '--format', 'swiftbar')).stdout).not.toContain('param1="focus"');
  }, 60_000);

  test('S-208 S-854 S-855: a session that a window shows is clickable, and `focus` opens that window’s folder', async () => {
    const b = await bench();
    const opened = join(b.home, 'opened');
    const editor = join(b.home, 'code.sh');
    writeFileSync(editor, `#!/bin/sh\nprintf '%s' "$1" > '${opened}'\n`);
    chmodSync(editor, 0o700);
    const env = { SHADOWOB_CONNECTOR_VSCODE_BIN: editor };
    await cli(['daemon', 'start'], { home: b.home, env });
    await begun(b);
    const none = await b.run('focus', ID.slice(0, 8));
    expect([none.code, none.stderr]).toEqual([EXIT.notFound, expect.stringContaining(ID)]);
    const wire = await connectWire(join(b.connector, 'daemon.sock'));
    cleanup.add(() => wire.close());
    const window = { key: 'w', folders: [b.home], tabs: 1, terminals: 0 };
    expect(await wire.ask({ service: 'sessions', op: 'window', payload: window })).toMatchObject({
      ok: true,
    });
    const menu = (await b.run('status-line', '--format', 'swiftbar')).stdout;
    expect(menu).toContain(`param1="focus" param2="${ID}"`);
    const done = await b.run('focus', ID.slice(0, 8));
    expect([done.code, done.stdout]).toEqual([0, `opened ${b.home}\n`]);
    expect(readFileSync(opened, 'utf8')).toBe(b.home);
  }, 60_000);
});
