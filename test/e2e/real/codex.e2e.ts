import { expect } from 'bun:test';
import { type Codex, prepareCodex } from '../lab/codex.ts';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, refuse, say, shell, text, tool } from '../lab/models/script.ts';
import { runs, send, strangers } from '../lab/processes.ts';
import { ask } from '../lab/terminal.ts';
import { until } from '../lab/until.ts';

inOwnWorld();

const APPROVAL = 'Would you like to run the following command?';

/** A folder, Codex in it, and a model that wants to run a command outside the sandbox. */
async function wantsToInstall(lab: Lab, command: string): Promise<{ codex: Codex; folder: string }> {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  codex.model.on('Install', say(shell(command, 'May I install it?')), say(text('Installed.')));
  return { codex, folder };
}

scenario('Codex: a prompt runs and is done, and the watching leaves no trace (R-22)', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const held = gate();
  codex.model.on('Say hello', say(text('Hello '), held, text('there.')));
  const watch = await lab.connector.watch();

  const terminal = await codex.open(folder);
  const opened = await lab.connector.sees({ runtimeId: 'codex', state: 'idle', life: 'alive' });
  await watch.says(opened.sessionId, 'idle');
  await ask(terminal, 'Say hello');
  await held.reached();
  const running = await lab.connector.sees({ state: 'running', life: 'alive' });
  expect(running.evidence).toMatchObject({ source: 'codex.app-server', confidence: 'exact' });
  await watch.says(running.sessionId, 'running');

  held.release();
  await lab.connector.sees({ state: 'completed', life: 'alive' });
  await watch.went(running.sessionId, 'idle', 'running', 'completed');
  expect((await codex.firstRecords()).map((meta) => meta['originator'])).toEqual(['codex-tui']);
});

scenario('Codex: a command waits for approval, is approved, runs, and the turn is done', async (lab) => {
  const slow = await lab.barrier('slow');
  const { codex, folder } = await wantsToInstall(lab, slow.command);
  const [thinking, held] = [gate(), gate()];
  codex.model.on('Install', say(thinking, shell(slow.command, 'May I?')), say(held, text('Installed.')));
  const watch = await lab.connector.watch();
  const terminal = await codex.open(folder);
  const { sessionId } = await lab.connector.sees({ state: 'idle' });
  await watch.says(sessionId, 'idle');
  await ask(terminal, 'Install left-pad');
  await thinking.reached();
  await watch.says(sessionId, 'running');
  thinking.release();
  await terminal.shows(APPROVAL);
  const waiting = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true });
  expect(waiting.evidence).toMatchObject({ source: 'codex.app-server', confidence: 'exact' });
  await watch.says(sessionId, 'waiting_for_approval');

  await terminal.answer('y', APPROVAL);
  await slow.reached();
  await lab.connector.sees({ state: 'tool_call', needsYou: undefined });
  await watch.says(sessionId, 'tool_call');

  await slow.release();
  await held.reached();
  await lab.connector.sees({ state: 'running' });
  await watch.says(sessionId, 'running');
  held.release();
  await lab.connector.sees({ state: 'completed' });
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

scenario('Codex: "No" to a command stops the turn', async (lab) => {
  const { codex, folder } = await wantsToInstall(lab, 'touch installed');
  const terminal = await codex.open(folder);
  await ask(terminal, 'Install left-pad');
  await terminal.shows(APPROVAL);
  await lab.connector.sees({ state: 'waiting_for_approval' });
  await terminal.answer('Escape', APPROVAL);
  await lab.connector.sees({ state: 'stopped', needsYou: undefined, life: 'alive' });
});

scenario('Codex: Esc in the middle of an answer stops the turn', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const held = gate();
  codex.model.on('Tell', say(text('Once upon a time\n'), held, text('the end.')));
  const terminal = await codex.open(folder);
  await ask(terminal, 'Tell a story');
  await held.reached();
  await lab.connector.sees({ state: 'running' });
  await terminal.press('Escape');
  await lab.connector.sees({ state: 'stopped', life: 'alive' });
});

scenario('Codex: a question blocks the session until it is answered', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const question = {
    id: 'db',
    header: 'Database',
    question: 'Which database should we use?',
    options: [
      { label: 'SQLite (Recommended)', description: 'A file.' },
      { label: 'Postgres', description: 'A server.' },
    ],
  };
  codex.model.on('Set up', say(tool('request_user_input', { questions: [question] })), say(text('Noted.')));
  const terminal = await codex.open(folder);
  await terminal.pressFor('BTab', 'Plan mode');
  await ask(terminal, 'Set up the app');
  await terminal.shows('Which database should we use?');
  await lab.connector.sees({ state: 'blocked', needsYou: true, waitingOn: 'question' });
  await terminal.answer('Enter', '2. Postgres');
  await lab.connector.sees({ state: 'completed', needsYou: undefined });
});

scenario('Codex: exec runs a command and is done', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const [slow, held] = [await lab.barrier('slow'), gate()];
  codex.model.on('Test', say(held, text('I will test.'), shell(slow.command)), say(text('All pass.')));
  // The world is the sandbox: Codex's own needs more of a system than every machine of tests has.
  const program = codex.exec(folder, 'Test it', '--sandbox', 'danger-full-access');
  await held.reached();
  await lab.connector.sees({ state: 'running', life: 'alive', headless: true });
  held.release();
  await slow.reached();
  await lab.connector.sees({ state: 'tool_call', life: 'alive' });
  await slow.release();
  expect(await program.exited).toBe(0);
  await lab.connector.sees({ state: 'completed', life: 'dead' });
});

scenario('Codex: a turn that the model refuses has failed, in exec and in the terminal', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  codex.model.on('Fail', refuse(400, 'invalid_request_error', 'The lab refuses this.'));
  const program = codex.exec(folder, 'Fail please');
  expect(await program.exited).toBe(1);
  const failed = await lab.connector.sees({ state: 'failed', life: 'dead' });
  expect(failed.error).toContain('The lab refuses this.');
  const terminal = await codex.open(folder);
  await ask(terminal, 'Fail again');
  await lab.connector.sees({ state: 'failed' }, { life: 'alive' });
  await ask(terminal, 'Better now');
  await lab.connector.sees({ state: 'completed', error: undefined }, { life: 'alive' });
});

scenario('Codex: exec that is killed is stopped', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const held = gate();
  codex.model.on('Count', say(text('One '), held));
  codex.exec(folder, 'Count to two');
  await held.reached();
  const running = await lab.connector.sees({ state: 'running', life: 'alive' });
  for (const pid of running.pids ?? []) send(pid, 'SIGKILL');
  await lab.connector.sees({ state: 'stopped', life: 'dead' });
});

scenario('Codex: a turn goes on when its terminal is killed, since the shared server has it', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const held = gate();
  codex.model.on('Count', say(text('One '), held, text('two.')));
  const terminal = await codex.open(folder);
  await ask(terminal, 'Count to two');
  await held.reached();
  const running = await lab.connector.sees({ state: 'running', life: 'alive' });
  await terminal.close();
  await until('the end of the terminal program', () => !runs(terminal.pid));
  await lab.connector.sees({ state: 'running', life: 'alive' });
  held.release();
  await lab.connector.sees({ state: 'completed', life: 'alive' });
  for (const pid of running.pids ?? []) send(pid, 'SIGKILL');
  await lab.connector.sees({ state: 'completed', life: 'dead' });
});

scenario('Codex: --no-daemon runs in its own process, and is stopped when that is killed', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const held = gate();
  codex.model.on('Count', say(text('One '), held, text('two.')));
  const terminal = await codex.open(folder, '--no-daemon');
  await ask(terminal, 'Count to two');
  await held.reached();
  const running = await lab.connector.sees({ state: 'running', life: 'alive' });
  expect(strangers().some((one) => one.command.includes('app-server'))).toBe(false);
  for (const pid of running.pids ?? []) send(pid, 'SIGKILL');
  await lab.connector.sees({ state: 'stopped', life: 'dead' });
});

scenario(
  'Codex: of two sessions of one server, the one that waits for its user stands first',
  async (lab) => {
    const [one, two] = [await lab.folder('acme-app'), await lab.folder('billing')];
    const codex = await prepareCodex(lab, [one, two]);
    const held = gate();
    codex.model.on('Install', say(shell('touch installed', 'May I install it?')));
    codex.model.on('Write', say(text('Dear '), held));
    const first = await codex.open(one);
    await ask(first, 'Install left-pad');
    await first.shows(APPROVAL);
    const second = await codex.open(two);
    await ask(second, 'Write a letter');
    await held.reached();
    const needy = await lab.connector.sees(
      { state: 'waiting_for_approval', needsYou: true },
      { workDir: one },
    );
    const busy = await lab.connector.sees({ state: 'running' }, { workDir: two });
    expect(busy.pids).toEqual(needy.pids);
    const order = await lab.connector.sessions();
    expect(order.map((row) => row.sessionId)).toEqual([needy.sessionId, busy.sessionId]);
  },
);

/** The parent's calls: start a sub-agent with this task, and wait for it. */
const delegate = (task: string) => [
  say(tool('collaboration/spawn_agent', { task_name: 'helper', message: task })),
  say(tool('collaboration/wait_agent', {})),
  say(text('The helper is done.')),
];

scenario('Codex: a sub-agent is folded into its session, which goes on while it works', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const held = gate();
  codex.model.on('Delegate', ...delegate('CHILD: count the files'));
  codex.model.on('CHILD', say(held, text('Two files.')));
  const program = codex.exec(folder, 'Delegate the count', '--model', 'gpt-5.6-sol');
  await held.reached();
  const parent = await lab.connector.sees({ state: 'tool_call', life: 'alive', needsYou: undefined });
  expect(parent.subAgents).toHaveLength(1);
  held.release();
  expect(await program.exited).toBe(0);
  await lab.connector.sees({ state: 'completed', life: 'dead' });
});

scenario('Codex: a sub-agent that waits for approval makes its session wait (R-14)', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  codex.model.on('Delegate', ...delegate('CHILD: install it'));
  codex.model.on('CHILD', say(shell('touch installed', 'May I install it?')), say(text('Installed.')));
  const terminal = await codex.open(folder, '--model', 'gpt-5.6-sol');
  await ask(terminal, 'Delegate the installation');
  await terminal.shows(APPROVAL);
  const waiting = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true });
  expect(waiting.subAgents).toEqual([waiting.shownFrom ?? '']);
  await terminal.answer('y', APPROVAL);
  await lab.connector.sees({ state: 'completed', needsYou: undefined, shownFrom: undefined });
});
