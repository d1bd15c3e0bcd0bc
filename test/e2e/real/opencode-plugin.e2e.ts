import { expect } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, say, shell, text } from '../lab/models/script.ts';
import { type OpenCode, prepareOpenCode, withPluginFolder } from '../lab/opencode.ts';
import { ask } from '../lab/terminal.ts';
import { until } from '../lab/until.ts';

inOwnWorld();

/** An OpenCode with our plugin, and the daemon that it reports to. Its terminal program listens nowhere. */
async function setUp(lab: Lab): Promise<{ folder: string; opencode: OpenCode }> {
  const opencode = await prepareOpenCode(lab);
  await withPluginFolder(lab);
  const installed = await lab.connector.run('install-hooks', '--runtime', 'opencode');
  expect([installed.code, installed.stderr]).toEqual([0, '']);
  await startDaemon(lab);
  return { folder: await lab.folder('acme-app'), opencode };
}

async function startDaemon(lab: Lab): Promise<void> {
  lab.set({ SHADOWOB_CONNECTOR_DAEMON_DISABLE_SYSTEMD: '1' });
  const started = await lab.connector.run('daemon', 'start');
  expect([started.code, started.code === 0 ? '' : started.stderr]).toEqual([0, '']);
  lab.onEnd(async () => void (await lab.connector.run('daemon', 'stop')));
}

const row = { runtimeId: 'opencode' } as const;

async function waiting(lab: Lab): Promise<Record<string, unknown>> {
  return until('a request that waits', async () => {
    const { requests } = await lab.connector.json('session-approve');
    return Array.isArray(requests) && requests.length === 1 && requests[0];
  });
}

scenario(
  'OpenCode, plugin: R-32: the state of a terminal without a port is exact at each step',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const held = gate();
    opencode.model.on('Say hello', say(text('Hello '), held, text('there.')));
    const terminal = await opencode.open(folder);
    await ask(terminal, 'Say hello');
    await held.reached();
    const seen = await lab.connector.sees({ state: 'streaming' }, row);
    expect(seen.evidence).toMatchObject({ confidence: 'exact', source: 'opencode.plugin' });
    expect(seen.endpoint).toBeUndefined();
    held.release();
    await lab.connector.sees({ state: 'completed' }, row);
  },
);

scenario(
  'OpenCode, plugin: R-47: a message goes into the open terminal, and its end is seen',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Say hello', say(text('Hello there.')));
    opencode.model.on('From outside', say(text('Heard you.')));
    const terminal = await opencode.open(folder);
    await ask(terminal, 'Say hello');
    const { sessionId } = await lab.connector.sees({ state: 'completed' }, row);
    const answer = await lab.connector.run('session-send', sessionId, '--message', 'From outside', '--wait');
    expect([answer.code, answer.stdout.trim()]).toEqual([0, 'Heard you.']);
    await terminal.shows('Heard you.');
  },
);

scenario(
  'OpenCode, plugin: A1, A2: a permission is answered from outside, by its id and once',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Run it', say(shell('echo it-ran')), say(text('It ran.')));
    const terminal = await opencode.open(folder);
    await ask(terminal, 'Run it');
    await lab.connector.sees({ state: 'waiting_for_approval' }, row);
    const request = await waiting(lab);
    expect(request).toMatchObject({ kind: 'permission', subject: 'bash', detail: 'echo it-ran' });
    const id = String(request['requestId']);
    const answered = await lab.connector.json('session-approve', id, '--allow');
    expect(answered).toMatchObject({ result: 'applied' });
    await terminal.shows('It ran.');
    await lab.connector.sees({ state: 'completed' }, row);
    expect((await lab.connector.run('session-approve', id, '--allow')).code).not.toBe(0);
  },
);

scenario('OpenCode, plugin: session-abort stops the turn of the open terminal', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  const held = gate();
  opencode.model.on('Tell a story', say(text('Once upon a time '), held, text('the end.')));
  const terminal = await opencode.open(folder);
  await ask(terminal, 'Tell a story');
  await held.reached();
  const { sessionId } = await lab.connector.sees({ state: 'streaming' }, row);
  expect(await lab.connector.json('session-abort', sessionId)).toMatchObject({ stopped: true });
  await lab.connector.sees({ state: 'stopped' }, row);
  held.release();
});

scenario(
  'OpenCode, plugin: without a daemon the program works as before, and is heard again later',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const held = gate();
    opencode.model.on('Say hello', say(text('Hello there.')));
    opencode.model.on('A long one', say(text('It goes on '), held, text('and ends.')));
    const terminal = await opencode.open(folder);
    expect((await lab.connector.run('daemon', 'stop')).code).toBe(0);
    await ask(terminal, 'Say hello');
    await terminal.shows('Hello there.');
    await ask(terminal, 'A long one');
    await held.reached();
    await startDaemon(lab);
    await until('the plugin to say what runs', async () => {
      const [only] = await lab.connector.sessions();
      return only?.evidence?.source === 'opencode.plugin';
    });
    held.release();
    await lab.connector.sees({ state: 'completed' }, row);
  },
);

scenario('OpenCode, plugin: S-830: a file without our header is left alone', async (lab) => {
  await prepareOpenCode(lab);
  const file = join(lab.home, '.config', 'opencode', 'plugin', 'shadowob-connector.js');
  expect((await lab.connector.run('install-hooks', '--runtime', 'opencode')).code).toBe(0);
  expect((await lab.connector.run('uninstall-hooks', '--runtime', 'opencode')).code).toBe(0);
  expect(existsSync(file)).toBe(false);
  writeFileSync(file, '// mine\n');
  expect((await lab.connector.run('install-hooks', '--runtime', 'opencode')).code).not.toBe(0);
});
