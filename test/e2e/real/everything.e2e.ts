/**
 * A day with everything installed: hooks, the daemon, and notifications. The list is right at each step, each wait and
 * each end of a turn is told once, and no program shows a warning or misses the daemon when it has gone.
 */
import { expect } from 'bun:test';
import { prepareClaude } from '../lab/claude.ts';
import { prepareCodex } from '../lab/codex.ts';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, say, shell, text, tool } from '../lab/models/script.ts';
import { prepareOpenCode, withPluginFolder } from '../lab/opencode.ts';
import { preparePi } from '../lab/pi.ts';
import { ask } from '../lab/terminal.ts';
import { listen, type Told } from '../lab/told.ts';

inOwnWorld();

const WARNING = /warning|\berror\b|hook|invalid/i;

async function done(lab: Lab, ...args: string[]): Promise<void> {
  const answer = await lab.connector.run(...args);
  if (answer.code !== 0)
    throw new Error(`${args.join(' ')}: ${answer.code} ${answer.stdout}${answer.stderr}`);
}

/** What was told of a session, by the last word of its event. */
function told(all: readonly Told[], sessionId: string): readonly string[] {
  return all.filter((one) => one.sessionId === sessionId).map((one) => one.event.split('.')[2] ?? '');
}

scenario('everything installed: a day of Claude Code', async (lab) => {
  const [folder, other] = [await lab.folder('acme-app'), await lab.folder('billing')];
  const claude = await prepareClaude(lab, [folder, other]);
  const PERMISSION = 'Do you want to proceed?';
  const ear = await listen(lab);
  await done(lab, 'install-hooks');
  await done(lab, 'daemon', 'start');

  const terminal = await claude.open(folder);
  expect(await terminal.screen()).not.toMatch(WARNING);
  // A tool, left waiting, then allowed.
  claude.model.on('Build it', say(shell('mkdir build')), say(text('Built.')));
  await ask(terminal, 'Build it');
  await terminal.shows(PERMISSION);
  const { sessionId } = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true });
  await ear.hears('connector.session.waitingForApproval', sessionId);
  await terminal.answer('1', PERMISSION);
  await lab.connector.sees({ state: 'completed', needsYou: undefined });
  await ear.hears('connector.session.completed', sessionId);

  // A sub-agent: one turn, one word about its end.
  const held = gate();
  const call = tool('Agent', {
    description: 'Count files',
    prompt: 'CHILD: count the files',
    subagent_type: 'general-purpose',
    run_in_background: false,
  });
  claude.model.on('Delegate', say(call), say(text('It counted.')));
  claude.model.on('CHILD', say(held, text('Two files.')));
  await ask(terminal, 'Delegate the count');
  await held.reached();
  expect(['running', 'tool_call', 'streaming']).toContain((await lab.connector.sees({})).state);
  held.release();
  await lab.connector.sees({ state: 'completed', life: 'alive' });
  await ear.hears('connector.session.completed', sessionId, 2);

  // Refused, then interrupted in the middle of an answer: both are the owner's own doing.
  claude.model.on('Remove it', say(shell('rmdir build')), say(text('Removed.')));
  await ask(terminal, 'Remove it');
  await terminal.shows(PERMISSION);
  await lab.connector.sees({ state: 'waiting_for_approval' });
  // Once: a second one opens the list of what was said before.
  await terminal.press('Escape');
  await lab.connector.sees({ state: 'stopped', needsYou: undefined, life: 'alive' });
  const [cut, killed] = [gate(), gate()];
  claude.model.on('Write', say(text('Dear '), cut));
  await ask(terminal, 'Write a letter');
  await cut.reached();
  await terminal.press('Escape');
  await lab.connector.sees({ state: 'stopped', life: 'alive' });

  // Two at once: the one that is killed has stopped, the other goes on.
  const second = await claude.open(other);
  claude.model.on('Plan it', say(text('First '), killed));
  const [slow, theirs] = [gate(), { workDir: other }];
  claude.model.on('Sum it up', say(text('So '), slow, text('it is.')));
  await ask(terminal, 'Plan it');
  await killed.reached();
  await ask(second, 'Sum it up');
  await slow.reached();
  await lab.connector.sees({ state: 'running', life: 'alive' }, { sessionId });
  await lab.connector.sees({ state: 'running', life: 'alive' }, theirs);
  process.kill(terminal.pid, 'SIGKILL');
  await lab.connector.sees({ state: 'stopped', life: 'dead' }, { sessionId });
  slow.release();
  const { sessionId: secondId } = await lab.connector.sees({ state: 'completed', life: 'alive' }, theirs);
  await ear.hears('connector.session.completed', secondId);

  // Resumed: the same row, and its turn is told of once more.
  const again = await claude.open(folder, '--resume', sessionId);
  await ask(again, 'Are you there?');
  await lab.connector.sees({ state: 'completed', life: 'alive' }, { sessionId });
  await ear.hears('connector.session.completed', sessionId, 3);

  // Without its daemon everything goes on.
  await done(lab, 'daemon', 'stop');
  await ask(again, 'And now?');
  const screen = await again.shows(/And now\?[\s\S]*Done\./);
  await lab.connector.sees({ state: 'completed', life: 'alive' }, { sessionId });
  expect(screen).not.toMatch(/hook (?:error|failed)|warning|connector/i);

  const all = await ear.told();
  expect(new Set(all.map((one) => one.id)).size).toBe(all.length);
  expect(told(all, sessionId).filter((word) => word === 'completed')).toHaveLength(3);
  expect(told(all, sessionId).filter((word) => word === 'failed')).toEqual([]);
  expect(told(all, secondId)).toEqual(['completed']);
});

scenario('everything installed: a day of Codex', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const APPROVAL = 'Would you like to run the following command?';
  const ear = await listen(lab);
  await done(lab, 'install-hooks', '--trust-codex');
  await done(lab, 'daemon', 'start');

  const terminal = await codex.open(folder);
  expect(await terminal.screen()).not.toMatch(/hook/i);
  codex.model.on('Build it', say(shell('mkdir /build-it', 'May I?')), say(text('Built.')));
  await ask(terminal, 'Build it');
  await terminal.shows(APPROVAL);
  const { sessionId } = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true });
  await ear.hears('connector.session.waitingForApproval', sessionId);
  await terminal.answer('y', APPROVAL);
  await lab.connector.sees({ state: 'completed', needsYou: undefined });
  await ear.hears('connector.session.completed', sessionId);

  // Interrupted in the middle of an answer.
  const cut = gate();
  codex.model.on('Write', say(text('Dear '), cut));
  await ask(terminal, 'Write a letter');
  await cut.reached();
  await terminal.press('Escape');
  await lab.connector.sees({ state: 'stopped' });

  // Headless, to its end.
  codex.model.on('Count', say(text('Two.')));
  const program = codex.exec(folder, 'Count it', '--sandbox', 'danger-full-access');
  expect(await program.exited).toBe(0);
  const headless = await lab.connector.sees({ state: 'completed', life: 'dead' }, { headless: true });
  await ear.hears('connector.session.completed', headless.sessionId);

  // Without its daemon everything goes on.
  await done(lab, 'daemon', 'stop');
  await ask(terminal, 'And now?');
  await terminal.shows('Done.');
  await lab.connector.sees({ state: 'completed', life: 'alive' }, { sessionId });
  expect(await terminal.screen()).not.toMatch(/hook/i);

  const all = await ear.told();
  expect(new Set(all.map((one) => one.id)).size).toBe(all.length);
  expect(told(all, sessionId)).toEqual(['waitingForApproval', 'completed']);
  expect(told(all, headless.sessionId)).toEqual(['completed']);
});

scenario('everything installed: a day of pi', async (lab) => {
  const [folder, other] = [await lab.folder('acme-app'), await lab.folder('billing')];
  const pi = await preparePi(lab);
  const ear = await listen(lab);
  await done(lab, 'install-hooks');
  await done(lab, 'daemon', 'start');

  const terminal = await pi.open(folder);
  // It warns of tools that it could not download here.
  expect(await terminal.screen()).not.toMatch(/failed|\berror\b/i);
  const slow = await lab.barrier('slow');
  pi.model.on('Build it', say(shell(slow.command)), say(text('Built.')));
  await ask(terminal, 'Build it');
  await slow.reached();
  const { sessionId } = await lab.connector.sees({ state: 'tool_call' });
  await slow.release();
  await lab.connector.sees({ state: 'completed' });
  await ear.hears('connector.session.completed', sessionId);

  // Interrupted, while a second one works; killed, and resumed.
  const [cut, held] = [gate(), gate()];
  pi.model.on('Write', say(text('Dear '), cut));
  pi.model.on('Sum it up', say(text('So '), held, text('it is.')));
  const second = await pi.open(other);
  await ask(second, 'Sum it up');
  await held.reached();
  await ask(terminal, 'Write a letter');
  await cut.reached();
  await terminal.press('Escape');
  await lab.connector.sees({ state: 'stopped' }, { sessionId });
  const theirs = await lab.connector.sees({ state: 'running' }, { workDir: other });
  process.kill(second.pid, 'SIGKILL');
  await lab.connector.sees({ state: 'stopped' }, { sessionId: theirs.sessionId });
  const again = await pi.open(other, '--session', theirs.sessionId);
  await ask(again, 'Are you there?');
  await lab.connector.sees({ state: 'completed' }, { sessionId: theirs.sessionId });
  await ear.hears('connector.session.completed', theirs.sessionId);

  await done(lab, 'daemon', 'stop');
  await ask(terminal, 'And now?');
  expect(await terminal.shows(/And now\?[\s\S]*Done\./)).not.toMatch(/failed|\berror\b/i);

  const all = await ear.told();
  expect(new Set(all.map((one) => one.id)).size).toBe(all.length);
  expect(told(all, sessionId)).toEqual(['completed']);
  expect(told(all, theirs.sessionId)).toEqual(['completed']);
});

scenario('everything installed: a day of OpenCode', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  await withPluginFolder(lab);
  const ear = await listen(lab);
  await done(lab, 'install-hooks');
  await done(lab, 'daemon', 'start');

  const terminal = await opencode.open(folder);
  opencode.model.on('Build it', say(shell('mkdir build')), say(text('Built.')));
  await ask(terminal, 'Build it');
  const { sessionId } = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true });
  await ear.hears('connector.session.waitingForApproval', sessionId);
  await terminal.shows('Allow once');
  await terminal.answer('Enter', 'Allow once');
  await lab.connector.sees({ state: 'completed', needsYou: undefined });
  await ear.hears('connector.session.completed', sessionId);

  const cut = gate();
  opencode.model.on('Write', say(text('Dear '), cut));
  await ask(terminal, 'Write a letter');
  await cut.reached();
  await lab.connector.sees({ state: 'streaming' });
  await done(lab, 'session-abort', sessionId);
  await lab.connector.sees({ state: 'stopped' });

  await done(lab, 'daemon', 'stop');
  await ask(terminal, 'And now?');
  await terminal.shows(/And now\?[\s\S]*Done\./);
  await lab.connector.sees({ state: 'completed' });

  const all = await ear.told();
  expect(new Set(all.map((one) => one.id)).size).toBe(all.length);
  expect(told(all, sessionId)).toEqual(['waitingForApproval', 'completed']);
});
