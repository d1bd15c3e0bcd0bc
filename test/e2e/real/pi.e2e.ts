import { expect } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, say, shell, text } from '../lab/models/script.ts';
import { type Pi, preparePi } from '../lab/pi.ts';
import { ask } from '../lab/terminal.ts';
import { until } from '../lab/until.ts';

inOwnWorld();

/** A pi with our extension, and the daemon that it reports to. */
async function setUp(lab: Lab): Promise<{ folder: string; pi: Pi }> {
  const pi = await preparePi(lab);
  const installed = await lab.connector.run('install-hooks', '--runtime', 'pi');
  expect([installed.code, installed.stderr]).toEqual([0, '']);
  await startDaemon(lab);
  return { folder: await lab.folder('acme-app'), pi };
}

async function startDaemon(lab: Lab): Promise<void> {
  lab.set({ SHADOWOB_CONNECTOR_DAEMON_DISABLE_SYSTEMD: '1' });
  const started = await lab.connector.run('daemon', 'start');
  expect([started.code, started.code === 0 ? '' : started.stderr]).toEqual([0, '']);
  lab.onEnd(async () => void (await lab.connector.run('daemon', 'stop')));
}

/** The one pi session that the daemon knows. */
const piRow = { runtimeId: 'pi' } as const;

scenario('pi: S-751, S-105: its state is exact at each step, from the extension in it', async (lab) => {
  const { folder, pi } = await setUp(lab);
  const held = gate();
  const barrier = await lab.barrier('tool');
  pi.model.on('Say hello', say(text('Hello '), held, text('there.')));
  pi.model.on('Run it', say(shell(barrier.command)), say(text('It ran.')));
  const terminal = await pi.open(folder);
  await lab.connector.sees({ state: 'idle' }, piRow);
  await ask(terminal, 'Say hello');
  await held.reached();
  const row = await lab.connector.sees({ state: 'running' }, piRow);
  expect(row.evidence).toMatchObject({ confidence: 'exact', source: 'pi.stream' });
  held.release();
  await lab.connector.sees({ state: 'completed' }, piRow);
  await ask(terminal, 'Run it');
  await barrier.reached();
  await lab.connector.sees({ state: 'tool_call' }, piRow);
  await barrier.release();
  await lab.connector.sees({ state: 'completed' }, piRow);
  await terminal.press('C-d');
  expect(await terminal.ended()).toBe(0);
  await lab.connector.sees({ state: 'completed' }, piRow);
});

scenario(
  'pi: R-47: a message goes into the open terminal, one behind another, and its end is seen',
  async (lab) => {
    const { folder, pi } = await setUp(lab);
    const held = gate();
    pi.model.on('First word', say(text('One '), held, text('done.')));
    pi.model.on('Second word', say(text('Two done.')));
    const terminal = await pi.open(folder);
    const { sessionId } = await lab.connector.sees({ state: 'idle' }, piRow);
    const first = await lab.connector.json('session-send', sessionId, '--message', 'First word');
    expect(first).toMatchObject({ accepted: true, mode: 'inside' });
    await terminal.shows('First word');
    await held.reached();
    const second = lab.connector.run('session-send', sessionId, '--message', 'Second word', '--wait');
    await terminal.shows('Second word');
    held.release();
    const answer = await second;
    expect([answer.code, answer.stdout.trim()]).toEqual([0, 'Two done.']);
    await terminal.shows('Two done.');
  },
);

scenario(
  'pi: session-abort stops the turn in the open terminal, and says so once it has stopped',
  async (lab) => {
    const { folder, pi } = await setUp(lab);
    const held = gate();
    pi.model.on('Tell a story', say(text('Once upon a time '), held, text('the end.')));
    const terminal = await pi.open(folder);
    const { sessionId } = await lab.connector.sees({ state: 'idle' }, piRow);
    const idle = await lab.connector.json('session-abort', sessionId);
    expect(idle).toMatchObject({ stopped: false, error: { kind: 'refused' } });
    await ask(terminal, 'Tell a story');
    await held.reached();
    await lab.connector.sees({ state: 'running' }, piRow);
    expect(await lab.connector.json('session-abort', sessionId)).toMatchObject({ stopped: true });
    await lab.connector.sees({ state: 'stopped' }, piRow);
    held.release();
  },
);

scenario(
  'pi: S-752: without a daemon the program works as before, and is heard again when one comes',
  async (lab) => {
    const { folder, pi } = await setUp(lab);
    pi.model.on('Say hello', say(text('Hello there.')));
    pi.model.on('Once more', say(text('And again.')));
    const terminal = await pi.open(folder);
    await lab.connector.sees({ state: 'idle' }, piRow);
    expect((await lab.connector.run('daemon', 'stop')).code).toBe(0);
    await ask(terminal, 'Say hello');
    const screen = await terminal.shows('Hello there.');
    expect(screen).not.toMatch(/error/i);
    await startDaemon(lab);
    await lab.connector.sees({ state: 'completed' }, piRow);
    const { sessionId } = await lab.connector.sees({}, piRow);
    await until('the extension to be attached again', async () => {
      const sent = await lab.connector.json('session-send', sessionId, '--message', 'Once more');
      return sent['accepted'] === true;
    });
    await terminal.shows('And again.');
    await terminal.press('C-d');
    expect(await terminal.ended()).toBe(0);
  },
);

scenario(
  'pi: a program that is killed in a turn is not at work any more, without a word of its own',
  async (lab) => {
    const { folder, pi } = await setUp(lab);
    const held = gate();
    pi.model.on('Tell a story', say(text('Once upon a time '), held, text('the end.')));
    const terminal = await pi.open(folder);
    await ask(terminal, 'Tell a story');
    await held.reached();
    const { pids } = await lab.connector.sees({ state: 'running', life: 'alive' }, piRow);
    expect(pids).toHaveLength(1);
    process.kill(pids?.[0] ?? 0, 'SIGKILL');
    await lab.connector.sees({ state: 'stopped' }, piRow);
    held.release();
  },
);

scenario('pi: S-830: a file without our header is left alone, and ours is taken out again', async (lab) => {
  await preparePi(lab);
  const file = join(lab.home, '.pi', 'agent', 'extensions', 'shadowob-connector-sessions.ts');
  expect((await lab.connector.run('install-hooks', '--runtime', 'pi')).code).toBe(0);
  const ours = readFileSync(file, 'utf8');
  expect((await lab.connector.json('hooks-status', '--runtime', 'pi'))['well']).toBe(true);
  writeFileSync(file, 'export default () => {};\n');
  expect((await lab.connector.run('install-hooks', '--runtime', 'pi')).code).not.toBe(0);
  expect((await lab.connector.run('uninstall-hooks', '--runtime', 'pi')).code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe('export default () => {};\n');
  writeFileSync(file, ours);
  expect((await lab.connector.run('uninstall-hooks', '--runtime', 'pi')).code).toBe(0);
  expect(existsSync(file)).toBe(false);
});
