import { expect } from 'bun:test';
import { inOwnWorld, scenario } from '../lab/lab.ts';
import { gate, refuse, say, sayUntilLimit, shell, text, tool } from '../lab/models/script.ts';
import { prepareOpenCode } from '../lab/opencode.ts';
import { send } from '../lab/processes.ts';
import { ask } from '../lab/terminal.ts';

inOwnWorld();

const PASSWORD = 'lab-password';
/** What the user of a server with a password gives the product. */
const KNOWN = { OPENCODE_SERVER_PASSWORD: PASSWORD };

scenario('OpenCode: a prompt to a server runs and is done', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  const held = gate();
  opencode.model.on('Say hello', say(text('Hello '), held, text('there.')));
  const server = await opencode.serve(folder, PASSWORD);
  lab.set(KNOWN);
  const sessionId = await server.createSession();
  await lab.connector.sees({ runtimeId: 'opencode', state: 'idle', life: 'alive' }, { sessionId });
  const watch = await lab.connector.watch();

  await server.prompt(sessionId, 'Say hello');
  await held.reached();
  const running = await lab.connector.sees({ state: 'running', life: 'alive' }, { sessionId });
  expect(running.evidence?.confidence).toBe('exact');
  await watch.says(sessionId, 'streaming');
  held.release();
  await lab.connector.sees({ state: 'completed', life: 'alive' }, { sessionId });
  await watch.went(sessionId, 'idle', 'running', 'streaming', 'completed');
});

scenario('OpenCode: a command waits for permission, is allowed, runs, and the turn is done', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  const [slow, thinking, held] = [await lab.barrier('slow'), gate(), gate()];
  opencode.model.on(
    'Test',
    say(thinking, text('I will test.'), shell(slow.command)),
    say(held, text('All pass.')),
  );
  const server = await opencode.serve(folder, PASSWORD);
  lab.set(KNOWN);
  const watch = await lab.connector.watch();
  const sessionId = await server.createSession();
  await watch.says(sessionId, 'idle');
  await server.prompt(sessionId, 'Test it');
  await thinking.reached();
  await watch.says(sessionId, 'running');
  thinking.release();
  const permission = await server.permission(sessionId);
  const waiting = await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true });
  expect(waiting.evidence?.confidence).toBe('exact');
  await watch.says(sessionId, 'waiting_for_approval');
  await server.reply(permission, 'once');
  await slow.reached();
  await lab.connector.sees({ state: 'tool_call', needsYou: undefined });
  await watch.says(sessionId, 'tool_call');
  await slow.release();
  await held.reached();
  await lab.connector.sees({ state: 'running' });
  await watch.says(sessionId, 'running');
  held.release();
  await lab.connector.sees({ state: 'completed', life: 'alive' });
  await watch.went(
    sessionId,
    'idle',
    'running',
    'streaming?',
    'tool_call?',
    'waiting_for_approval',
    'tool_call',
    'running',
    'completed',
  );
});

scenario('OpenCode: a refused permission stops the turn', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  opencode.model.on('Test', say(shell('echo tested')));
  const server = await opencode.serve(folder, PASSWORD);
  lab.set(KNOWN);
  const sessionId = await server.createSession();
  await server.prompt(sessionId, 'Test it');
  const permission = await server.permission(sessionId);
  await lab.connector.sees({ state: 'waiting_for_approval' });
  await server.reply(permission, 'reject');
  await lab.connector.sees({ state: 'stopped', needsYou: undefined });
});

scenario('OpenCode: a question blocks the session until it is answered', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  const question = {
    question: 'Which database should I use?',
    header: 'Database',
    options: [
      { label: 'SQLite', description: 'A file' },
      { label: 'Postgres', description: 'A server' },
    ],
  };
  opencode.model.on('Set up', say(tool('question', { questions: [question] })), say(text('Noted.')));
  const server = await opencode.serve(folder, PASSWORD);
  lab.set(KNOWN);
  const sessionId = await server.createSession();
  await server.prompt(sessionId, 'Set up the app');
  const asked = await server.question(sessionId);
  await lab.connector.sees({ state: 'blocked', needsYou: true, waitingOn: 'question' });
  await server.answer(asked, [['SQLite']]);
  await lab.connector.sees({ state: 'completed', needsYou: undefined });
});

scenario('OpenCode: an aborted turn is stopped, a refused one has failed', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  const held = gate();
  opencode.model.on('Tell', say(text('Once upon a time '), held));
  opencode.model.on('Fail', refuse(401, 'authentication_error', 'The lab refuses this.'));
  const server = await opencode.serve(folder, PASSWORD);
  lab.set(KNOWN);
  const sessionId = await server.createSession();
  await server.prompt(sessionId, 'Tell a story');
  await held.reached();
  await lab.connector.sees({ state: 'running' });
  await server.abort(sessionId);
  await lab.connector.sees({ state: 'stopped' });
  await server.prompt(sessionId, 'Fail please');
  const failed = await lab.connector.sees({ state: 'failed' });
  expect(failed.error).toContain('The lab refuses this.');
});

scenario('OpenCode: without the password, what the files tell is shown, and what to do', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  const held = gate();
  opencode.model.on('Say', say(text('Hello '), held, text('there.')));
  const server = await opencode.serve(folder, PASSWORD);
  const sessionId = await server.createSession();
  await server.prompt(sessionId, 'Say hello');
  await held.reached();
  const told = async () => (await lab.connector.instance('opencode'))['error'];
  expect(await told()).toBe(
    `the server at ${server.url} asks for a password: set OPENCODE_SERVER_PASSWORD to the one it was started with`,
  );
  lab.set({ OPENCODE_SERVER_PASSWORD: 'wrong' });
  expect(await told()).toContain(
    `the server at ${server.url} refuses the password of OPENCODE_SERVER_PASSWORD`,
  );
  const running = await lab.connector.sees({ state: 'running' });
  expect(running.evidence?.confidence).toBe('inferred');
  lab.set(KNOWN);
  expect(await told()).toBeUndefined();
  const exact = await lab.connector.sees({ state: 'running' });
  expect(exact.evidence?.confidence).toBe('exact');
});

scenario('OpenCode: a turn in the terminal is inferred from its files', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  const held = gate();
  opencode.model.on('Say', say(text('Hello '), held, text('there.')));
  const terminal = await opencode.open(folder);
  await ask(terminal, 'Say hello');
  await held.reached();
  const running = await lab.connector.sees({ state: 'running', life: 'alive' });
  expect(running.evidence?.confidence).toBe('inferred');
  held.release();
  await lab.connector.sees({ state: 'completed' });
  const next = gate();
  opencode.model.on('Go on', say(text('More '), next));
  await ask(terminal, 'Go on');
  await next.reached();
  await lab.connector.sees({ state: 'running', life: 'alive' });
  send(terminal.pid, 'SIGKILL');
  await lab.connector.sees({ state: 'stopped', needsYou: undefined });
});

scenario('OpenCode: run runs and is done', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  const held = gate();
  opencode.model.on('Count', say(text('One '), held, text('two.')));
  const program = opencode.run(folder, 'Count to two');
  await held.reached();
  await lab.connector.sees({ state: 'running', life: 'alive' });
  held.release();
  expect(await program.exited).toBe(0);
  await lab.connector.sees({ state: 'completed' });
});

scenario('OpenCode: an answer that may not be longer blocks the session (R-17)', async (lab) => {
  const folder = await lab.folder('acme-app');
  const opencode = await prepareOpenCode(lab);
  opencode.model.on('List', sayUntilLimit(text('One, two, ')));
  const server = await opencode.serve(folder, PASSWORD);
  lab.set(KNOWN);
  const sessionId = await server.createSession();
  await server.prompt(sessionId, 'List all numbers');
  await lab.connector.sees({ state: 'blocked' });
});
