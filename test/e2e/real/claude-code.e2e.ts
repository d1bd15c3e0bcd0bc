import { expect } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { prepareClaude } from '../lab/claude.ts';
import { inOwnWorld, scenario } from '../lab/lab.ts';
import { gate, refuse, say, sayUntilLimit, shell, text, tool } from '../lab/models/script.ts';
import { send } from '../lab/processes.ts';
import { ask } from '../lab/terminal.ts';
import { until } from '../lab/until.ts';

inOwnWorld();

const PERMISSION = 'Do you want to proceed?';

scenario('Claude Code: a prompt is idle, running, and done', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const held = gate();
  claude.model.on('Say hello', say(text('Hello '), held, text('there.')));

  const terminal = await claude.open(folder);
  const opened = await lab.connector.sees({ runtimeId: 'claude-code', state: 'idle', life: 'alive' });
  expect(opened.workDir).toBe(folder);
  expect(opened.needsYou).toBeUndefined();
  const own = { sessionId: opened.sessionId };

  await ask(terminal, 'Say hello');
  await held.reached();
  await lab.connector.sees({ state: 'running', needsYou: undefined }, own);

  held.release();
  await lab.connector.sees({ state: 'completed', life: 'alive' }, own);

  await terminal.press('C-d');
  await terminal.press('C-d');
  await lab.connector.sees({ state: 'completed', life: 'dead' }, own);
});

scenario('Claude Code: a tool waits for approval, is approved, runs, and the turn is done', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const slow = await lab.barrier('slow');
  const [thinking, held] = [gate(), gate()];
  claude.model.on(
    'Build it',
    say(thinking, text('I will build it.'), shell(slow.command)),
    say(held, text('Built.')),
  );
  const watch = await lab.connector.watch();

  const terminal = await claude.open(folder);
  const { sessionId } = await lab.connector.sees({ state: 'idle' });
  await watch.says(sessionId, 'idle');
  await ask(terminal, 'Build it');
  await thinking.reached();
  await watch.says(sessionId, 'running');
  thinking.release();
  await terminal.shows(PERMISSION);
  const waiting = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true }, { sessionId });
  expect(waiting.waitingOn).toBe('tool');
  await watch.says(sessionId, 'waiting_for_approval');

  await terminal.answer('1', PERMISSION);
  await slow.reached();
  await lab.connector.sees({ state: 'tool_call', needsYou: undefined }, { sessionId });
  await watch.says(sessionId, 'tool_call');

  await slow.release();
  await held.reached();
  await watch.says(sessionId, 'running');
  held.release();
  await lab.connector.sees({ state: 'completed' }, { sessionId });
  await watch.went(
    sessionId,
    'idle',
    'running',
    'tool_call?',
    'waiting_for_approval',
    'tool_call',
    'running',
    'completed',
  );
});

scenario('Claude Code: a denied tool leaves the session stopped', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  claude.model.on('Build it', say(shell('mkdir build')));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Build it');
  await terminal.shows(PERMISSION);
  await lab.connector.sees({ state: 'waiting_for_approval' });
  await terminal.answer('Escape', PERMISSION);
  await lab.connector.sees({ state: 'stopped', needsYou: undefined, life: 'alive' });
  expect(existsSync(join(folder, 'build'))).toBe(false);
});

scenario('Claude Code: Esc in the middle of an answer leaves the session stopped', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const held = gate();
  claude.model.on('Tell a story', say(text('Once upon a time\nthere was '), held, text('the end.')));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Tell a story');
  await held.reached();
  await terminal.shows('Once upon a time');
  await lab.connector.sees({ state: 'running' });
  await terminal.press('Escape');
  await terminal.shows(/Interrupted/);
  await lab.connector.sees({ state: 'stopped', life: 'alive' });
});

scenario('Claude Code: a question blocks the session until it is answered', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const question = {
    question: 'Which database should I use?',
    header: 'Database',
    multiSelect: false,
    options: [
      { label: 'SQLite', description: 'A file' },
      { label: 'Postgres', description: 'A server' },
    ],
  };
  claude.model.on('Set up', say(tool('AskUserQuestion', { questions: [question] })), say(text('Noted.')));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Set up the app');
  await terminal.shows('Which database should I use?');
  await lab.connector.sees({ state: 'blocked', needsYou: true, waitingOn: 'question' });
  await terminal.answer('Enter', 'Enter to select');
  await lab.connector.sees({ state: 'completed', needsYou: undefined });
});

scenario('Claude Code: an error of the API is a failed turn, with its text', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  claude.model.on('Fail', refuse(401, 'authentication_error', 'invalid x-api-key'));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Fail please');
  const failed = await lab.connector.sees({ state: 'failed' });
  expect(failed.error).toContain('Invalid API key');
  claude.model.on('Again', say(text('Better.')));
  await ask(terminal, 'Again please');
  await lab.connector.sees({ state: 'completed', error: undefined }, { sessionId: failed.sessionId });
});

scenario('Claude Code: an overloaded API is retried: the session goes on running', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  claude.model.on('Try', refuse(529, 'overloaded_error', 'Overloaded'));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Try it');
  await claude.model.asked('Try it');
  await lab.connector.sees({ state: 'running' });
  claude.model.on('Try', say(text('It worked.')));
  await lab.connector.sees({ state: 'completed' });
});

scenario('Claude Code: killed while it waits for approval, it is stopped and needs nobody', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  claude.model.on('Build it', say(shell('mkdir build')));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Build it');
  await terminal.shows(PERMISSION);
  const { sessionId } = await lab.connector.sees({ state: 'waiting_for_approval' });
  send(terminal.pid, 'SIGKILL');
  await lab.connector.sees({ state: 'stopped', needsYou: undefined, life: 'dead' }, { sessionId });
});

scenario('Claude Code: -p runs and is done', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const held = gate();
  claude.model.on('Count', say(text('One '), held, text('two.')));
  const program = lab.start(['claude', '-p', 'Count to two'], folder);
  await held.reached();
  await lab.connector.sees({ state: 'running', life: 'alive' });
  held.release();
  expect(await program.exited).toBe(0);
  expect(program.output()).toContain('One two.');
  await lab.connector.sees({ state: 'completed', life: 'dead' });
});

scenario('Claude Code: of two sessions, the one that waits for its user stands first', async (lab) => {
  const [one, two] = [await lab.folder('acme-app'), await lab.folder('billing')];
  const claude = await prepareClaude(lab, [one, two]);
  const held = gate();
  claude.model.on('Build it', say(shell('mkdir build')), say(text('Built.')));
  claude.model.on('Write', say(text('Dear '), held));
  const second = await claude.open(two);
  const first = await claude.open(one);
  await ask(first, 'Build it');
  await first.shows(PERMISSION);
  await ask(second, 'Write a letter');
  await held.reached();
  const needy = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true }, { workDir: one });
  const busy = await lab.connector.sees({ state: 'running' }, { workDir: two });
  const order = await lab.connector.sessions();
  expect(order.map((row) => row.sessionId)).toEqual([needy.sessionId, busy.sessionId]);
});

scenario('Claude Code: /clear ends the old session and begins a new one in the same process', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const terminal = await claude.open(folder);
  await ask(terminal, 'Say hello');
  const old = await lab.connector.sees({ state: 'completed', life: 'alive' });
  await ask(terminal, '/clear');
  await lab.connector.sees({ state: 'completed', life: 'dead' }, { sessionId: old.sessionId });
  const fresh = await lab.connector.sees({ state: 'idle', life: 'alive' }, { state: 'idle' });
  expect(fresh.pids).toEqual(old.pids);
});

scenario('Claude Code: a resumed session is the same row with a new owner', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const first = await claude.open(folder);
  await ask(first, 'Say hello');
  const before = await lab.connector.sees({ state: 'completed', life: 'alive' });
  await first.press('C-d');
  await first.press('C-d');
  await lab.connector.sees({ state: 'completed', life: 'dead' });
  const held = gate();
  claude.model.on('Go on', say(text('More '), held));
  const second = await claude.open(folder, '--resume', before.sessionId);
  await lab.connector.sees({ state: 'completed', life: 'alive' });
  await ask(second, 'Go on');
  await held.reached();
  const again = await lab.connector.sees({ state: 'running' });
  expect(again.sessionId).toBe(before.sessionId);
  expect(again.pids).not.toEqual(before.pids);
  held.release();
  await lab.connector.sees({ state: 'completed' });
});

scenario('Claude Code: a folder with spaces and letters beyond ASCII is shown as it is', async (lab) => {
  const folder = await lab.folder('Übung 1 – 日本 (neu)');
  const claude = await prepareClaude(lab, [folder]);
  const held = gate();
  claude.model.on('Say', say(held, text('Hallo.')));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Say grüß Gott');
  await held.reached();
  await lab.connector.sees({ state: 'running', workDir: folder });
  held.release();
  await lab.connector.sees({ state: 'completed', workDir: folder, title: 'Say grüß Gott' });
});

scenario('Claude Code: a background command outlives its turn and is counted', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const server = await lab.barrier('server');
  const call = tool('Bash', { command: server.command, description: 'Serve', run_in_background: true });
  claude.model.on('Serve', say(call), say(text('It runs.')));
  const terminal = await claude.open(folder, '--allowedTools', 'Bash');
  await ask(terminal, 'Serve the app');
  await server.reached();
  await lab.connector.sees({ state: 'completed', backgroundWork: 1 });
  const woken = gate();
  claude.model.on('task-notification', say(woken, text('It ended.')));
  await server.release();
  await woken.reached();
  await lab.connector.sees({ state: 'running', backgroundWork: undefined });
  woken.release();
  await lab.connector.sees({ state: 'completed', backgroundWork: undefined });
});

scenario('Claude Code: a sub-agent is folded into its session', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const held = gate();
  const call = tool('Agent', {
    description: 'Count files',
    prompt: 'CHILD: count the files',
    subagent_type: 'general-purpose',
    run_in_background: false,
  });
  claude.model.on('Delegate', say(call), say(text('It counted.')));
  claude.model.on('CHILD', say(held, text('Two files.')));
  const terminal = await claude.open(folder);
  await ask(terminal, 'Delegate the count');
  await held.reached();
  const parent = await lab.connector.sees({ life: 'alive', needsYou: undefined });
  expect(['running', 'tool_call']).toContain(parent.state);
  held.release();
  await lab.connector.sees({ state: 'completed' });
});

scenario('Claude Code: before a folder is trusted there is no session, but a word about it', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, []);
  const terminal = await claude.launch(folder);
  await terminal.shows(/trust/i);
  const list = await until('a word about the dialog', async () => {
    const look = await lab.connector.json('session-list', '--all');
    return look['problems'] !== undefined && look;
  });
  expect(list['sessions']).toEqual([]);
  expect(list['problems']).toMatchObject([{ reason: expect.stringContaining('waits at a start-up dialog') }]);
});

scenario('Claude Code: an answer that may not be longer blocks the session (R-17)', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  claude.model.on('List', sayUntilLimit(text('One, two, ')));
  const terminal = await claude.open(folder);
  await ask(terminal, 'List all numbers');
  await lab.connector.sees({ state: 'blocked', life: 'alive' });
});
