import { expect } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { EXIT } from '../../../src/runtime/errors.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import type { Answer } from '../lab/connector.ts';
import { inOwnWorld, type Lab, type Started, scenario } from '../lab/lab.ts';
import { gate, refuse, say, shell, text, tool } from '../lab/models/script.ts';
import { type OpenCode, prepareOpenCode } from '../lab/opencode.ts';
import { runs, send } from '../lab/processes.ts';
import { ask } from '../lab/terminal.ts';
import { until } from '../lab/until.ts';

inOwnWorld();

type Json = Record<string, unknown>;

const PASSWORD = 'lab-password';

/** Events, one a line; what a program says on its standard error is none. */
const linesOf = (text: string): Json[] =>
  text
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
const events = (answer: Answer): Json[] => linesOf(answer.stdout);
const typesOf = (list: readonly Json[]) => list.map((event) => event['type']);

async function setUp(lab: Lab): Promise<{ folder: string; opencode: OpenCode }> {
  return { folder: await lab.folder('acme-app'), opencode: await prepareOpenCode(lab) };
}

/** A session that a message of ours has begun, and that nobody works on. */
async function begun(lab: Lab, folder: string, words = 'Say hello'): Promise<string> {
  const answer = await lab.connector.run(
    ...['session-send', '--new', '--runtime', 'opencode', '--dir', folder, '--message', words],
    ...['--wait', '--json'],
  );
  const accepted = events(answer).find((event) => event['type'] === 'accepted');
  expect([answer.code, typeof accepted?.['sessionId']]).toEqual([0, 'string']);
  await nothingLeft(lab);
  return String(accepted?.['sessionId']);
}

/** A program of ours that follows a turn. */
async function following(lab: Lab, folder: string, ...args: string[]): Promise<Started> {
  return lab.start([await compiledBinary(), 'session-send', ...args, '--wait'], folder);
}

/** The one request that waits, as `session-approve --json` lists it. */
async function waitingRequest(lab: Lab): Promise<Json> {
  return until('a request that waits', async () => {
    const { requests } = await lab.connector.json('session-approve');
    return Array.isArray(requests) && requests.length === 1 && (requests[0] as Json);
  });
}

/** Says yes to the one request that waits. */
async function approve(lab: Lab): Promise<void> {
  const { requestId } = await waitingRequest(lab);
  expect((await lab.connector.run('session-approve', String(requestId), '--allow')).code).toBe(0);
}

function control(lab: Lab, name: string): string {
  return join(lab.home, '.shadowob', 'connector', 'control', name);
}

function filesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

async function nothingLeft(lab: Lab): Promise<void> {
  const ours = () => [...filesIn(control(lab, 'hosts')), ...filesIn(control(lab, 'opencode'))];
  await until('nothing of ours to be left', () => ours().length === 0, { explain: () => ours().join(' ') });
}

function recordIn(lab: Lab, folder: 'hosts' | 'opencode'): Json {
  const name = filesIn(control(lab, folder)).find((one) => one.endsWith('.json'));
  return JSON.parse(readFileSync(join(control(lab, folder), name ?? ''), 'utf8'));
}

function hostPid(lab: Lab): number {
  const { host } = recordIn(lab, 'hosts') as { host: { pid: number } };
  return host.pid;
}

/** The server that we have started, as its private record has it. */
function ownServer(lab: Lab): { url: string; process: { pid: number }; credentials: { password: string } } {
  return recordIn(lab, 'opencode') as ReturnType<typeof ownServer>;
}

/** Whether anybody answers at this address and port. */
function answers(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => resolve(socket.destroy() !== undefined));
    socket.once('error', () => resolve(false));
  });
}

/** Every address that a port listens on, as the kernel writes them. */
function boundTo(port: number): readonly string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && fields[1]?.endsWith(`:${hex}`))
      .map((fields) => fields[1] ?? ''),
  );
}

scenario(
  'OpenCode, acting: M4, M6, M7: a new session begins in its folder with its model, and the printed command goes on with it',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Say hello', say(text('Hello there.')));
    const command = ['session-send', '--new', '--runtime', 'opencode', '--dir', folder];
    const unknown = await lab.connector.run(...command, '--message', 'Hi', '--model', 'lab/nothing');
    expect([unknown.code, unknown.stdout]).toEqual([EXIT.refused, '']);
    expect(unknown.stderr).toContain('lab/nothing');
    expect(opencode.model.requests).toEqual([]);

    const answer = await lab.connector.run(
      ...[...command, '--message', 'Say hello', '--wait', '--model', 'lab/lab-model'],
    );
    expect([answer.code, answer.stdout]).toEqual([0, 'Hello there.\n']);
    expect(answer.stderr).toContain('turn completed');
    await nothingLeft(lab);
    await lab.connector.sees({ state: 'completed', workDir: folder, model: 'lab/lab-model' });

    const resume = /^go on in a terminal: (.*)$/m.exec(answer.stderr)?.[1] ?? '';
    const terminal = await lab.terminal({ command: ['bash', '-c', resume], cwd: lab.home });
    await terminal.shows('Hello there.');
  },
);

scenario(
  'OpenCode, acting: A1, A2, A4: a permission is answered by its id from another process, and only once',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const slow = await lab.barrier('slow');
    opencode.model.on('Build', say(shell(`mkdir built && ${slow.command}`)), say(text('Built.')));
    const id = await begun(lab, folder);

    const accepted = await lab.connector.json('session-send', id, '--message', 'Build it');
    expect(accepted).toMatchObject({ accepted: true, mode: 'process', approvals: 'ask', sessionId: id });
    const request = await waitingRequest(lab);
    expect(request).toMatchObject({ sessionId: id, kind: 'permission', subject: 'bash' });
    expect(request['detail']).toBe(`mkdir built && ${slow.command}`);
    await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true });

    const pushed = await lab.connector.json('session-send', id, '--message', 'And then?');
    expect(pushed).toMatchObject({ accepted: false, queued: true, mode: 'queue' });
    expect(JSON.stringify(pushed['events'])).toContain(`"behind":{"requestId":"${request['requestId']}"`);
    expect(existsSync(join(folder, 'built'))).toBe(false);

    const requestId = String(request['requestId']);
    const allowed = await lab.connector.run('session-approve', requestId, '--allow', '--json');
    expect([allowed.code, JSON.parse(allowed.stdout)['result']]).toEqual([0, 'applied']);
    await slow.reached();
    const again = await lab.connector.run('session-approve', requestId, '--deny');
    expect([again.code, again.stdout]).toEqual([EXIT.notFound, '']);
    await slow.release();
    await opencode.model.asked('And then?');
    await nothingLeft(lab);
    await lab.connector.sees({ state: 'completed' });
    expect(existsSync(join(folder, 'built'))).toBe(true);
  },
);

scenario(
  'OpenCode, acting: A yes for the session says what it covers, and the next such call asks no more',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Count', say(shell('echo one')), say(shell('echo two')), say(text('Counted.')));
    const id = await begun(lab, folder);
    const program = await following(lab, folder, id, '--message', 'Count', '--json');
    const request = await waitingRequest(lab);
    expect(request['allows']).toEqual(['allow-once', 'allow-session', 'deny']);
    expect(request['sessionScope']).toContain('echo *');
    const said = await lab.connector.run('session-approve', String(request['requestId']), '--allow-session');
    expect([said.code, said.stdout]).toEqual([0, 'allow-session: applied\n']);
    expect(await program.exited).toBe(0);
    const list = linesOf(program.output());
    expect(list.filter((event) => event['type'] === 'request')).toHaveLength(1);
    expect(list.at(-1)).toMatchObject({ type: 'done', outcome: 'completed', text: 'Counted.' });
  },
);

scenario('OpenCode, acting: A denial tells the model why, and the turn goes on', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  opencode.model.on('Build', say(shell('mkdir built')), say(text('Then not.')));
  const id = await begun(lab, folder);
  const program = await following(lab, folder, id, '--message', 'Build it', '--json');
  const { requestId } = await waitingRequest(lab);
  const denied = await lab.connector.run(
    ...['session-approve', String(requestId), '--deny', '--note', 'Not today'],
  );
  expect([denied.code, denied.stdout]).toEqual([0, 'deny: applied\n']);
  expect(await program.exited).toBe(0);
  const list = linesOf(program.output());
  expect(list.find((event) => event['type'] === 'resolved')).toMatchObject({ decision: 'deny' });
  expect(list.at(-1)).toMatchObject({ type: 'done', outcome: 'completed', text: 'Then not.' });
  expect(existsSync(join(folder, 'built'))).toBe(false);
  expect(opencode.model.requests.at(-1)?.results?.join('\n')).toContain('Not today');
});

scenario('OpenCode, acting: A question is answered by its label', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  const question = {
    question: 'Which database should I use?',
    header: 'Database',
    options: [
      { label: 'SQLite', description: 'A file' },
      { label: 'Postgres', description: 'A server' },
    ],
  };
  opencode.model.on('Set up', say(tool('question', { questions: [question] })), say(text('Noted.')));
  const id = await begun(lab, folder);
  await lab.connector.json('session-send', id, '--message', 'Set up the app');
  const request = await waitingRequest(lab);
  expect(request).toMatchObject({ kind: 'question', allows: ['answer', 'deny'] });
  await lab.connector.sees({ state: 'blocked', needsYou: true, waitingOn: 'question' });
  const requestId = String(request['requestId']);
  expect((await lab.connector.run('session-approve', requestId, '--allow')).code).toBe(EXIT.refused);
  expect((await lab.connector.run('session-approve', requestId, '--answer', 'Postgres')).code).toBe(0);
  await lab.connector.sees({ state: 'completed' });
  expect((await lab.connector.run('session-show', id)).stdout).toContain('Noted.');
  expect(opencode.model.requests.at(-1)?.results?.join('\n')).toContain('Postgres');
});

scenario(
  'OpenCode, acting: A8: a request that nobody answers is denied in time, and the turn ends',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Build', say(shell('mkdir built')), say(text('Nobody said yes.')));
    const id = await begun(lab, folder);
    const answer = await lab.connector.run(
      ...['session-send', id, '--message', 'Build it', '--wait', '--approval-timeout', '1s', '--json'],
    );
    const list = events(answer);
    expect(typesOf(list)).toContain('request');
    expect(list.find((event) => event['type'] === 'resolved')).toMatchObject({ decision: 'expired' });
    expect(list.at(-1)).toMatchObject({ type: 'done', outcome: 'completed', text: 'Nobody said yes.' });
    expect(existsSync(join(folder, 'built'))).toBe(false);
  },
);

scenario(
  'OpenCode, acting: Policies: what would prompt is refused, by us or by the program’s own one-shot form',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Build', say(shell('mkdir built')), say(text('I was not allowed.')));
    const id = await begun(lab, folder);
    const order = ['session-send', id, '--message', 'Build it', '--wait', '--json', '--approvals'];
    const denied = await lab.connector.run(...order, 'deny');
    expect(events(denied).at(-1)).toMatchObject({
      type: 'done',
      outcome: 'completed',
      notes: ['1 request was refused: bash'],
    });
    const alone = await lab.connector.run(...order, 'runtime-default');
    expect(alone.code).toBe(EXIT.turnStopped);
    expect(events(alone).at(-1)).toMatchObject({ type: 'done', outcome: 'stopped' });
    await lab.connector.sees({ state: 'stopped' });
    expect(existsSync(join(folder, 'built'))).toBe(false);
    await nothingLeft(lab);
  },
);

scenario('OpenCode, acting: An error of the API is a failed turn with its own exit code', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  const id = await begun(lab, folder);
  opencode.model.on('Fail', refuse(400, 'invalid_request_error', 'no such thing'));
  const answer = await lab.connector.run('session-send', id, '--message', 'Fail please', '--wait', '--json');
  expect(answer.code).toBe(EXIT.turnFailed);
  expect(events(answer).at(-1)).toMatchObject({ type: 'done', outcome: 'failed' });
  expect(answer.stderr).toContain('no such thing');
  await lab.connector.sees({ state: 'failed' });
});

scenario(
  'OpenCode, acting: K1: abort stops the turn of a tool that runs, and the session can go on',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const slow = await lab.barrier('slow');
    opencode.model.on('Wait', say(shell(slow.command)), say(text('Waited.')));
    const id = await begun(lab, folder);
    const program = await following(lab, folder, id, '--message', 'Wait for it', '--json');
    await approve(lab);
    await slow.reached();
    const aborted = await lab.connector.json('session-abort', id);
    expect(aborted).toMatchObject({ sessionId: id, stopped: true, survivors: [] });
    expect(await program.exited).toBe(EXIT.turnStopped);
    await lab.connector.sees({ state: 'stopped' });
    await nothingLeft(lab);
    expect((await lab.connector.run('session-abort', id)).code).toBe(EXIT.refused);
    const next = await lab.connector.run('session-send', id, '--message', 'Say hello', '--wait');
    expect(next.code).toBe(0);
  },
);

scenario('OpenCode, acting: K1, K2, K3: --kill ends our server and the command that it runs', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  const slow = await lab.barrier('slow');
  opencode.model.on('Wait', say(shell(`echo $$ > shell.pid; ${slow.command}`)), say(text('Waited.')));
  const id = await begun(lab, folder);
  await lab.connector.json('session-send', id, '--message', 'Wait for it');
  await approve(lab);
  await slow.reached();
  const server = ownServer(lab).process.pid;
  const host = hostPid(lab);
  const shellPid = Number(readFileSync(join(folder, 'shell.pid'), 'utf8'));
  expect([runs(server), runs(shellPid)]).toEqual([true, true]);
  const killed = await lab.connector.json('session-abort', id, '--kill');
  expect(killed).toMatchObject({ stopped: true, survivors: [] });
  expect([runs(server), runs(shellPid)]).toEqual([false, false]);
  await until('the host to leave', () => !runs(host));
  await nothingLeft(lab);
  await lab.connector.sees({ state: 'stopped' });
});

scenario(
  'OpenCode, acting: M1: a turn in a terminal is refused a message; fork, force and queue are the ways',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const held = gate();
    opencode.model.on('Write', say(text('Dear '), held, text('Ada.')));
    opencode.model.on('Pushed', say(text('Pushed reply.')));
    const terminal = await opencode.open(folder);
    await ask(terminal, 'Write a letter');
    await held.reached();
    const { sessionId } = await lab.connector.sees({ state: 'running', life: 'alive' });

    const refused = await lab.connector.run('session-send', sessionId, '--message', 'Pushed one', '--json');
    expect(refused.code).toBe(EXIT.ownedElsewhere);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      accepted: false,
      queued: false,
      error: { kind: 'ownedElsewhere', exitCode: EXIT.ownedElsewhere },
    });
    expect(refused.stderr).toContain('a terminal');
    for (const choice of ['queue', 'fork', 'force']) expect(refused.stderr).toContain(choice);

    const order = ['session-send', sessionId, '--json', '--when-owned'];
    const forked = events(await lab.connector.run(...order, 'fork', '--message', 'Pushed two', '--wait'));
    const copy = forked.find((event) => event['type'] === 'accepted')?.['sessionId'];
    expect([typeof copy, copy === sessionId]).toEqual(['string', false]);
    expect(forked.at(-1)).toMatchObject({ type: 'done', outcome: 'completed', text: 'Pushed reply.' });
    await lab.connector.sees({ state: 'running', life: 'alive' }, { sessionId });

    const queued = await lab.connector.json(
      ...order.slice(0, 2),
      '--when-owned',
      'queue',
      '--message',
      'Pushed 3',
    );
    expect(queued).toMatchObject({ accepted: false, queued: true, mode: 'queue' });
    expect(opencode.model.requests.some((one) => one.prompt.includes('Pushed 3'))).toBe(false);
    held.release();
    await terminal.shows('Ada.');
    await opencode.model.asked('Pushed 3');
    await lab.connector.sees({ state: 'completed' }, { sessionId });
    await nothingLeft(lab);
    expect(filesIn(control(lab, 'queue'))).toEqual([]);

    const again = gate();
    opencode.model.on('Go on', say(text('More '), again, text('of it.')));
    await ask(terminal, 'Go on');
    await again.reached();
    await lab.connector.sees({ state: 'running' }, { sessionId });
    const forced = events(await lab.connector.run(...order, 'force', '--message', 'Pushed four', '--wait'));
    expect(forced.at(-1)).toMatchObject({ type: 'done', outcome: 'completed', text: 'Pushed reply.' });
    expect(JSON.stringify(forced)).toContain('beside');
    again.release();
    await terminal.shows('of it.');
  },
);

scenario(
  'OpenCode, acting: M1: a server that shares the database and does not run the turn is no way round',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const held = gate();
    opencode.model.on('Write', say(text('Dear '), held, text('Ada.')));
    await opencode.serve(folder);
    const terminal = await opencode.open(folder);
    await ask(terminal, 'Write a letter');
    await held.reached();
    const { sessionId } = await lab.connector.sees({ state: 'running', life: 'alive' });
    const refused = await lab.connector.run('session-send', sessionId, '--message', 'Hello?');
    expect(refused.code).toBe(EXIT.ownedElsewhere);
    expect(refused.stderr).toContain(String(terminal.pid));
    held.release();
    await lab.connector.sees({ state: 'completed' }, { sessionId });
    const answer = await lab.connector.run(
      'session-send',
      sessionId,
      '--message',
      'Hello?',
      '--wait',
      '--json',
    );
    expect(answer.code).toBe(0);
    expect(events(answer).find((event) => event['type'] === 'accepted')).toMatchObject({ mode: 'server' });
  },
);

scenario(
  'OpenCode, acting: A terminal’s turn is stopped by its keyboard alone; --kill ends the program',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const held = gate();
    opencode.model.on('Write', say(text('Dear '), held));
    const terminal = await opencode.open(folder);
    await ask(terminal, 'Write a letter');
    await held.reached();
    const { sessionId } = await lab.connector.sees({ state: 'running' });
    const refused = await lab.connector.run('session-abort', sessionId);
    expect([refused.code, refused.stdout]).toEqual([EXIT.unsupported, '']);
    expect(refused.stderr).toContain('Press Esc twice there');
    const killed = await lab.connector.json('session-abort', sessionId, '--kill');
    expect(killed).toMatchObject({ stopped: true, survivors: [] });
    expect(runs(terminal.pid)).toBe(false);
    await lab.connector.sees({ state: 'stopped' }, { sessionId });
  },
);

scenario(
  'OpenCode, acting: A server of the user’s takes the message, is asked for permissions, and is left running',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Build', say(shell('mkdir built')), say(text('Built.')));
    const server = await opencode.serve(folder, PASSWORD);
    const sessionId = await server.createSession();
    lab.set({ SHADOWOB_CONNECTOR_OPENCODE_URL: server.url });
    await until('the session to be listed', async () => (await lab.connector.sessions()).length === 1);
    const locked = await lab.connector.run('session-send', sessionId, '--message', 'Build it');
    expect(locked.code).toBe(EXIT.refused);
    expect(locked.stderr).toContain('OPENCODE_SERVER_PASSWORD');

    lab.set({ OPENCODE_SERVER_PASSWORD: PASSWORD });
    const accepted = await lab.connector.json('session-send', sessionId, '--message', 'Build it');
    expect(accepted).toMatchObject({ accepted: true, mode: 'server', sessionId });
    await approve(lab);
    await lab.connector.sees({ state: 'completed', life: 'alive' });
    expect(existsSync(join(folder, 'built'))).toBe(true);

    const held = gate();
    opencode.model.on('Tell', say(text('Once '), held));
    await server.prompt(sessionId, 'Tell a story');
    await held.reached();
    await lab.connector.sees({ state: 'running' });
    const aborted = await lab.connector.json('session-abort', sessionId);
    expect(aborted).toMatchObject({ stopped: true });
    await lab.connector.sees({ state: 'stopped' });
    await nothingLeft(lab);
    expect(runs(server.pid)).toBe(true);
  },
);

scenario(
  'OpenCode, acting: A6: a request of a server without a password is answered though nobody of ours follows it',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Build', say(shell('mkdir built')), say(text('Built.')));
    const server = await opencode.serve(folder);
    const sessionId = await server.createSession();
    await server.prompt(sessionId, 'Build it');
    const named = ['--opencode-url', server.url];
    const request = await until('a request that waits', async () => {
      const { requests } = await lab.connector.json('session-approve', ...named);
      return Array.isArray(requests) && requests.length === 1 && (requests[0] as Json);
    });
    const id = String(request['requestId']);
    const allowed = await lab.connector.run('session-approve', id, '--allow', ...named);
    expect([allowed.code, allowed.stdout]).toEqual([0, 'allow-once: applied\n']);
    await lab.connector.sees({ state: 'completed', life: 'alive' });
    expect(existsSync(join(folder, 'built'))).toBe(true);
    const next = await lab.connector.json('session-send', sessionId, '--message', 'Go on');
    expect(next).toMatchObject({ accepted: true, mode: 'server' });
    await lab.connector.sees({ state: 'completed' });
  },
);

scenario(
  'OpenCode, acting: The managed server is started on request, found again, reached from nowhere else, and ended',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const id = await begun(lab, folder);
    const order = ['session-send', id, '--managed-server', '--wait', '--json', '--message'];
    const first = events(await lab.connector.run(...order, 'First'));
    expect(first.find((event) => event['type'] === 'accepted')).toMatchObject({ mode: 'owned' });
    const { url, process: own, credentials } = ownServer(lab);
    const port = Number(new URL(url).port);
    expect(boundTo(port)).toEqual([`0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`]);
    // A server that is bound to all addresses would answer at any of this computer's.
    expect([await answers('127.0.0.1', port), await answers('127.0.0.2', port)]).toEqual([true, false]);
    expect((await fetch(`${url}/global/health`)).status).toBe(401);
    expect(credentials.password.length).toBeGreaterThan(40);
    expect(statSync(join(control(lab, 'opencode'), 'managed.json')).mode & 0o777).toBe(0o600);
    expect(readFileSync(`/proc/${own.pid}/cmdline`, 'utf8')).not.toContain(credentials.password);

    const host = hostPid(lab);
    send(host, 'SIGKILL');
    await until('the host to be gone', () => !runs(host));
    const second = await lab.connector.run(...order, 'Second');
    expect(second.code).toBe(0);
    const other = await lab.folder('other-app');
    const third = await lab.connector.run(
      ...['session-send', '--new', '--runtime', 'opencode', '--dir', other, '--message', 'Third'],
      ...['--managed-server', '--wait', '--json'],
    );
    const elsewhere = String(events(third).find((event) => event['type'] === 'accepted')?.['sessionId']);
    expect(ownServer(lab).process.pid).toBe(own.pid);
    await lab.connector.sees({ state: 'completed', life: 'alive' }, { sessionId: id });

    expect(await lab.connector.json('session-abort', id, '--kill')).toMatchObject({ stopped: true });
    expect(runs(own.pid)).toBe(true);
    const last = await lab.connector.json('session-abort', elsewhere, '--kill');
    expect(last).toMatchObject({ stopped: true, survivors: [] });
    expect(runs(own.pid)).toBe(false);
    await nothingLeft(lab);
    expect(opencode.model.requests.filter((one) => one.tools.length > 0).map((one) => one.prompt)).toEqual([
      'Say hello',
      'First',
      'Second',
      'Third',
    ]);
  },
);

scenario('OpenCode, acting: A host that is killed leaves nothing that is not found again', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  const slow = await lab.barrier('slow');
  opencode.model.on('Wait', say(shell(slow.command)), say(text('Waited.')));
  const id = await begun(lab, folder);
  await lab.connector.json('session-send', id, '--message', 'Wait for it');
  await approve(lab);
  await slow.reached();
  const server = ownServer(lab).process.pid;
  const host = hostPid(lab);
  send(host, 'SIGKILL');
  await until('the host to be gone', () => !runs(host));
  expect(runs(server)).toBe(true);
  const next = await lab.connector.run('session-send', id, '--message', 'Say hello', '--wait');
  expect(next.code).toBe(0);
  expect(runs(server)).toBe(false);
  await nothingLeft(lab);
});

scenario(
  'OpenCode, acting: A server of ours that is killed ends the turn as failed, and the next message has a new one',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const held = gate();
    opencode.model.on('Write', say(text('Dear '), held));
    const id = await begun(lab, folder);
    const program = await following(lab, folder, id, '--message', 'Write a letter', '--json');
    await held.reached();
    await lab.connector.sees({ state: 'running' });
    send(ownServer(lab).process.pid, 'SIGKILL');
    expect(await program.exited).toBe(EXIT.turnFailed);
    expect(linesOf(program.output()).at(-1)).toMatchObject({ type: 'done', outcome: 'failed' });
    await nothingLeft(lab);
    await lab.connector.sees({ state: 'stopped' });
    const next = await lab.connector.run('session-send', id, '--message', 'Say hello', '--wait');
    expect(next.code).toBe(0);
  },
);

scenario('OpenCode, acting: Two messages at once are two turns, none lost', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  const id = await begun(lab, folder);
  const words = ['Alpha', 'Beta', 'Gamma'];
  for (const word of words) opencode.model.on(word, say(text(`${word} it is.`)));
  const answers = await Promise.all(
    words.map((word) => lab.connector.run('session-send', id, '--message', word, '--wait')),
  );
  expect(answers.map((answer) => answer.stdout)).toEqual(words.map((word) => `${word} it is.\n`));
  const shown = await lab.connector.run('session-show', id, '--limit', '50');
  for (const word of words) expect(shown.stdout).toContain(`${word} it is.`);
  await nothingLeft(lab);
});

scenario('OpenCode, acting: Text arrives whole: flags, 1 MB, and anything of Unicode', async (lab) => {
  const { folder, opencode } = await setUp(lab);
  const id = await begun(lab, folder);
  const texts = [
    '--session nothing -p',
    'e\u0301 \u202e 日本 👩‍👩‍👧‍👦 \ufeff a\r\nb\u2028c \\ " \' $(date)',
    '/compact',
    '!echo \0 > ran.txt \r\n',
    `begin ${'x'.repeat(1024 * 1024)} end`,
  ];
  for (const [index, words] of texts.entries()) {
    const file = join(lab.home, `message-${index}`);
    await Bun.write(file, words);
    // A server that stays takes them one after the other; the one-shot form is told apart by its own arguments and stdin.
    const ways = [['--managed-server'], ...(index % 4 === 0 ? [['--approvals', 'runtime-default']] : [])];
    for (const way of ways) {
      const answer = await lab.connector.run(
        ...['session-send', id, '--message-file', file, '--wait', ...way],
      );
      expect([way, answer.code, answer.stderr.slice(0, 500)]).toEqual([way, 0, expect.any(String)]);
      expect(opencode.model.requests.at(-1)?.prompt === words).toBe(true);
    }
  }
  const flag = await lab.connector.run('session-send', '--session', id, '--message=-p', '--wait');
  expect([flag.code, opencode.model.requests.at(-1)?.prompt]).toEqual([0, '-p']);
});

scenario(
  'OpenCode, acting: A session goes on in the folder it began in, from wherever it is sent',
  async (lab) => {
    const { folder } = await setUp(lab);
    const id = await begun(lab, folder);
    const program = await following(lab, lab.home, id, '--message', 'Hello again');
    expect(await program.exited).toBe(0);
    await lab.connector.sees({ state: 'completed', workDir: folder });
    await Bun.$`mv ${folder} ${folder}-moved`.quiet();
    const refused = await lab.connector.run('session-send', id, '--message', 'Hello?');
    expect(refused.code).toBe(EXIT.refused);
    expect(refused.stderr).toContain(`is not there: ${folder}`);
  },
);

scenario(
  'OpenCode, acting: Ctrl-C leaves the turn running and says so; asked to, it stops the turn',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    const [one, two] = [gate(), gate()];
    opencode.model.on('First', say(text('One '), one, text('more.')));
    opencode.model.on('Second', say(text('Two '), two));
    const id = await begun(lab, folder);
    const first = await following(lab, folder, id, '--message', 'First thing');
    await one.reached();
    first.kill('SIGINT');
    expect(await first.exited).toBe(EXIT.stillRunning);
    expect(first.output()).toContain('left: the turn goes on');
    await lab.connector.sees({ state: 'running', life: 'alive' });
    one.release();
    await lab.connector.sees({ state: 'completed' });

    const second = await following(lab, folder, id, '--message', 'Second thing', '--abort-on-interrupt');
    await two.reached();
    second.kill('SIGINT');
    expect(await second.exited).toBe(EXIT.turnStopped);
    await lab.connector.sees({ state: 'stopped' });
    await nothingLeft(lab);
  },
);

scenario(
  'OpenCode, acting: session-create: a session that waits for its first message, and takes it',
  async (lab) => {
    const { folder, opencode } = await setUp(lab);
    opencode.model.on('Begin', say(text('Begun.')));
    const created = await lab.connector.json('session-create', '--runtime', 'opencode', '--dir', folder);
    const sessionId = String(created['sessionId']);
    expect(created).toMatchObject({ created: true, runtimeId: 'opencode' });
    await nothingLeft(lab);
    await lab.connector.sees({ workDir: folder }, { sessionId });
    const answer = await lab.connector.run('session-send', sessionId, '--message', 'Begin now', '--wait');
    expect([answer.code, answer.stdout]).toEqual([0, 'Begun.\n']);
    await lab.connector.sees({ state: 'completed' }, { sessionId });
  },
);
