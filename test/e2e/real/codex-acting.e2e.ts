import { expect } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Glob } from 'bun';
import { EXIT } from '../../../src/runtime/errors.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import { type Codex, prepareCodex } from '../lab/codex.ts';
import type { Answer } from '../lab/connector.ts';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, refuse, say, shell, text, tool } from '../lab/models/script.ts';
import { runs, send } from '../lab/processes.ts';
import { ask } from '../lab/terminal.ts';
import { until } from '../lab/until.ts';

inOwnWorld();

type Json = Record<string, unknown>;

const events = (answer: Answer): Json[] =>
  answer.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** A session that a message of ours has begun, and that nobody holds. */
async function begun(lab: Lab, folder: string, words = 'Say hello'): Promise<string> {
  const answer = await lab.connector.run(
    ...[
      'session-send',
      '--new',
      '--runtime',
      'codex',
      '--dir',
      folder,
      '--message',
      words,
      '--wait',
      '--json',
    ],
  );
  const accepted = events(answer).find((event) => event['type'] === 'accepted');
  expect([answer.code, typeof accepted?.['sessionId']]).toEqual([0, 'string']);
  return String(accepted?.['sessionId']);
}

/** The one request that waits, as `session-approve --json` lists it. */
async function waitingRequest(lab: Lab): Promise<Json> {
  return until('a request that waits', async () => {
    const { requests } = await lab.connector.json('session-approve');
    return Array.isArray(requests) && requests.length === 1 && (requests[0] as Json);
  });
}

function hostFiles(lab: Lab): readonly string[] {
  const folder = join(lab.home, '.shadowob', 'connector', 'control', 'hosts');
  return existsSync(folder) ? readdirSync(folder) : [];
}

function hostRecord(lab: Lab): { host: { pid: number }; child: { pid: number } } {
  const folder = join(lab.home, '.shadowob', 'connector', 'control', 'hosts');
  const name = hostFiles(lab).find((one) => one.endsWith('.json'));
  return JSON.parse(readFileSync(join(folder, name ?? ''), 'utf8'));
}

const nothingOfOurs = (lab: Lab) => until('nothing of ours to be left', () => hostFiles(lab).length === 0);

async function setUp(lab: Lab): Promise<{ folder: string; codex: Codex }> {
  const folder = await lab.folder('acme-app');
  return { folder, codex: await prepareCodex(lab, [folder]) };
}

/** Asked for, a command runs outside of Codex's sandbox, which needs more of a system than every machine has. */
const MAY_I = 'May I?';

scenario(
  'Codex, acting: M4, M6, M7: a new session is begun in its folder with its model, its end is seen, and the printed command goes on with it',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on('Say hello', say(text('Hello there.')));
    const answer = await lab.connector.run(
      ...['session-send', '--new', '--runtime', 'codex', '--dir', folder, '--model', 'gpt-5.4'],
      ...['--message', 'Say hello', '--wait'],
    );
    expect([answer.code, answer.stdout]).toEqual([0, 'Hello there.\n']);
    expect(codex.model.requests.at(-1)).toMatchObject({ prompt: 'Say hello', model: 'gpt-5.4' });
    await lab.connector.sees({ state: 'completed', life: 'dead', workDir: folder });
    await nothingOfOurs(lab);
    const resume = /^go on in a terminal: (.*)$/m.exec(answer.stderr)?.[1] ?? '';
    const terminal = await lab.terminal({ command: ['bash', '-c', resume], cwd: lab.home });
    await terminal.shows('Hello there.');
    await lab.connector.sees({ state: 'completed', life: 'alive' });
  },
);

scenario(
  'Codex, acting: A1, A2: a permission is answered by its id from another process, and only once',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    const slow = await lab.barrier('slow');
    codex.model.on('Build', say(shell(`mkdir built && ${slow.command}`, MAY_I)), say(text('Built.')));
    const id = await begun(lab, folder);
    const accepted = await lab.connector.json('session-send', id, '--message', 'Build it');
    expect(accepted).toMatchObject({ accepted: true, mode: 'process', approvals: 'ask', sessionId: id });
    const request = await waitingRequest(lab);
    expect(request).toMatchObject({ sessionId: id, kind: 'permission', subject: 'command' });
    expect(request['detail']).toContain(`mkdir built && ${slow.command}`);

    const pushed = await lab.connector.json('session-send', id, '--message', 'And then?');
    expect(pushed).toMatchObject({ accepted: false, queued: true, mode: 'queue' });
    expect(JSON.stringify(pushed['events'])).toContain(`"behind":{"requestId":"${request['requestId']}"`);

    const requestId = String(request['requestId']);
    const wrong = await lab.connector.run('session-approve', requestId, '--answer', 'Yes');
    expect(wrong.code).toBe(EXIT.usage);
    expect(existsSync(join(folder, 'built'))).toBe(false);
    const allowed = await lab.connector.run('session-approve', requestId, '--allow', '--json');
    expect([allowed.code, JSON.parse(allowed.stdout)['result']]).toEqual([0, 'applied']);
    await slow.reached();
    const again = await lab.connector.run('session-approve', requestId, '--deny');
    expect([again.code, again.stdout]).toEqual([EXIT.notFound, '']);
    await slow.release();
    await codex.model.asked('And then?');
    await lab.connector.sees({ state: 'completed', life: 'dead' });
    await nothingOfOurs(lab);
  },
);

scenario('Codex, acting: A denial lets the turn go on, without what was denied', async (lab) => {
  const { folder, codex } = await setUp(lab);
  codex.model.on('Build', say(shell('mkdir built', MAY_I)), say(text('Then not.')));
  const id = await begun(lab, folder);
  const program = lab.start(
    [await compiledBinary(), 'session-send', id, '--message', 'Build it', '--wait', '--json'],
    folder,
  );
  const { requestId } = await waitingRequest(lab);
  const denied = await lab.connector.run('session-approve', String(requestId), '--deny');
  expect([denied.code, denied.stdout]).toEqual([0, 'deny: applied\n']);
  expect(await program.exited).toBe(0);
  const list = program
    .output()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json);
  expect(list.find((event) => event['type'] === 'resolved')).toMatchObject({ decision: 'deny' });
  expect(list.at(-1)).toMatchObject({ type: 'done', outcome: 'completed', text: 'Then not.', exitCode: 0 });
  expect(existsSync(join(folder, 'built'))).toBe(false);
});

scenario(
  'Codex, acting: --approvals deny refuses what would be asked, and the end says so; the session’s own policy stays',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on('Build', say(shell('mkdir built', MAY_I)), say(text('I was not allowed.')));
    const id = await begun(lab, folder);
    const answer = await lab.connector.run(
      ...['session-send', id, '--message', 'Build it', '--wait', '--approvals', 'deny', '--json'],
    );
    expect(events(answer).at(-1)).toMatchObject({
      type: 'done',
      outcome: 'completed',
      notes: ['1 request was refused: command'],
    });
    expect(existsSync(join(folder, 'built'))).toBe(false);
    const next = lab.connector.run('session-send', id, '--message', 'Build it', '--wait');
    const { requestId } = await waitingRequest(lab);
    await lab.connector.run('session-approve', String(requestId), '--deny');
    expect((await next).code).toBe(0);
  },
);

scenario(
  'Codex, acting: R-35: a session of codex exec asks again, although exec has left “never” with it',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on('Build', say(shell('mkdir built', MAY_I)), say(text('Built.')));
    expect(await codex.exec(folder, 'Say hello').exited).toBe(0);
    const { sessionId } = await lab.connector.sees({ state: 'completed', life: 'dead' });
    const sent = lab.connector.run('session-send', sessionId, '--message', 'Build it', '--wait', '--json');
    const { requestId } = await waitingRequest(lab);
    await lab.connector.run('session-approve', String(requestId), '--deny');
    const answer = await sent;
    expect(events(answer)[0]).toMatchObject({ type: 'note' });
    expect(answer.stdout).toContain('its approval policy was “never”');
  },
);

scenario(
  'Codex, acting: A8: a request that nobody answers is denied in time, and the turn ends',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on('Build', say(shell('mkdir built', MAY_I)), say(text('Nobody said yes.')));
    const id = await begun(lab, folder);
    const answer = await lab.connector.run(
      ...['session-send', id, '--message', 'Build it', '--wait', '--approval-timeout', '1s', '--json'],
    );
    const list = events(answer);
    expect(list.find((event) => event['type'] === 'resolved')).toMatchObject({ decision: 'expired' });
    expect(list.at(-1)).toMatchObject({ type: 'done', outcome: 'completed', text: 'Nobody said yes.' });
  },
);

scenario('Codex, acting: An error of the model is a failed turn with its own exit code', async (lab) => {
  const { folder, codex } = await setUp(lab);
  const id = await begun(lab, folder);
  codex.model.on('Fail', refuse(400, 'invalid_request_error', 'no such thing'));
  const answer = await lab.connector.run('session-send', id, '--message', 'Fail please', '--wait', '--json');
  expect(answer.code).toBe(EXIT.turnFailed);
  expect(events(answer).at(-1)).toMatchObject({ type: 'done', outcome: 'failed' });
  expect(answer.stderr).toContain('no such thing');
});

scenario(
  'Codex, acting: K1: abort stops the turn of a command that runs, and the session can go on',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    const held = gate();
    codex.model.on('Write', say(text('Dear '), held));
    const id = await begun(lab, folder);
    const program = lab.start(
      [await compiledBinary(), 'session-send', id, '--message', 'Write a letter', '--wait'],
      folder,
    );
    await held.reached();
    const aborted = await lab.connector.json('session-abort', id);
    expect(aborted).toMatchObject({ sessionId: id, stopped: true, survivors: [] });
    expect(await program.exited).toBe(EXIT.turnStopped);
    await lab.connector.sees({ state: 'stopped' });
    await nothingOfOurs(lab);
    expect((await lab.connector.run('session-abort', id)).code).toBe(EXIT.refused);
    expect((await lab.connector.run('session-send', id, '--message', 'Say hello', '--wait')).code).toBe(0);
  },
);

scenario('Codex, acting: K1, K2, K3: --kill ends the process and the command that it runs', async (lab) => {
  const { folder, codex } = await setUp(lab);
  const slow = await lab.barrier('slow');
  codex.model.on('Wait', say(shell(`echo $$ > shell.pid; ${slow.command}`, MAY_I)), say(text('Waited.')));
  const id = await begun(lab, folder);
  await lab.connector.json('session-send', id, '--message', 'Wait for it');
  const { requestId } = await waitingRequest(lab);
  expect((await lab.connector.run('session-approve', String(requestId), '--allow')).code).toBe(0);
  await slow.reached();
  const { child, host } = hostRecord(lab);
  const shellPid = Number(readFileSync(join(folder, 'shell.pid'), 'utf8'));
  expect([runs(child.pid), runs(shellPid)]).toEqual([true, true]);
  const killed = await lab.connector.json('session-abort', id, '--kill');
  expect(killed).toMatchObject({ stopped: true, survivors: [] });
  expect([runs(child.pid), runs(shellPid)]).toEqual([false, false]);
  await until('the host to leave', () => !runs(host.pid) && hostFiles(lab).length === 0);
});

scenario('Codex, acting: A host that is killed leaves nothing that is not found again', async (lab) => {
  const { folder, codex } = await setUp(lab);
  const slow = await lab.barrier('slow');
  codex.model.on('Wait', say(shell(slow.command, MAY_I)), say(text('Waited.')));
  const id = await begun(lab, folder);
  await lab.connector.json('session-send', id, '--message', 'Wait for it');
  const { requestId } = await waitingRequest(lab);
  await lab.connector.run('session-approve', String(requestId), '--allow');
  await slow.reached();
  const { host, child } = hostRecord(lab);
  send(host.pid, 'SIGKILL');
  await until('the host to be gone', () => !runs(host.pid));
  const next = await lab.connector.run('session-send', id, '--message', 'Say hello', '--wait');
  expect(next.code).toBe(0);
  expect(runs(child.pid)).toBe(false);
  await nothingOfOurs(lab);
});

scenario(
  'Codex, acting: A message goes into a session that is open in a terminal, which shows it',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on('Pushed', say(text('Pushed reply.')));
    const terminal = await codex.open(folder);
    await ask(terminal, 'Say hello');
    const { sessionId, pids } = await lab.connector.sees({ state: 'completed', life: 'alive' });
    const pushed = await lab.connector.run(
      'session-send',
      sessionId,
      '--message',
      'Pushed one',
      '--wait',
      '--json',
    );
    expect(pushed.code).toBe(0);
    expect(events(pushed).find((event) => event['type'] === 'accepted')).toMatchObject({ mode: 'server' });
    expect(events(pushed).at(-1)).toMatchObject({ outcome: 'completed', text: 'Pushed reply.' });
    await terminal.shows('Pushed reply.');
    expect((await codex.firstRecords()).map((meta) => meta['originator'])).toEqual(['codex-tui']);
    await nothingOfOurs(lab);
    expect((pids ?? []).every(runs)).toBe(true);
  },
);

scenario(
  'Codex, acting: A message goes into the turn that a terminal’s session is in the middle of (turn/steer)',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    const held = gate();
    codex.model.on('Count', say(text('One '), held, text('two.')));
    codex.model.on('Stop at one', say(text('Stopped at one.')));
    const terminal = await codex.open(folder);
    await ask(terminal, 'Count to two');
    await held.reached();
    const { sessionId } = await lab.connector.sees({ state: 'running' });
    const steered = await lab.connector.json('session-send', sessionId, '--message', 'Stop at one');
    expect(steered).toMatchObject({ accepted: true, mode: 'server' });
    expect(JSON.stringify(steered)).toContain('a turn that runs already');
    held.release();
    await terminal.shows('Stopped at one.');
    await lab.connector.sees({ state: 'completed' });
  },
);

scenario(
  'Codex, acting: R-22, R-35: a terminal’s request is answered by id from outside; its turn is stopped; the shared server lives on',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on('Install', say(shell('touch installed', MAY_I)), say(text('Installed.')));
    const held = gate();
    codex.model.on('Write', say(text('Dear '), held));
    const terminal = await codex.open(folder);
    await ask(terminal, 'Install left-pad');
    await terminal.shows('Would you like to run the following command?');
    const request = await waitingRequest(lab);
    expect(request).toMatchObject({ kind: 'permission', subject: 'command' });
    const ran = await lab.connector.run('session-approve', String(request['requestId']), '--allow', '--json');
    expect([ran.code, JSON.parse(ran.stdout)['result']]).toEqual([0, 'applied']);
    await terminal.shows('Installed.');
    expect(existsSync(join(folder, 'installed'))).toBe(true);

    await ask(terminal, 'Write a letter');
    await held.reached();
    const { sessionId, pids } = await lab.connector.sees({ state: 'running' });
    const aborted = await lab.connector.json('session-abort', sessionId);
    expect(aborted).toMatchObject({ stopped: true });
    await lab.connector.sees({ state: 'stopped', life: 'alive' });
    expect((pids ?? []).every(runs)).toBe(true);
    expect((await lab.connector.run('session-abort', sessionId)).code).toBe(EXIT.refused);
  },
);

scenario('Codex, acting: K1: the shared server is not ended while it holds other sessions', async (lab) => {
  const [one, two] = [await lab.folder('acme-app'), await lab.folder('billing')];
  const codex = await prepareCodex(lab, [one, two]);
  const [first, second] = [await codex.open(one), await codex.open(two)];
  await ask(first, 'Say hello');
  const { sessionId, pids } = await lab.connector.sees({ state: 'completed' }, { workDir: one });
  await ask(second, 'Say hello');
  await lab.connector.sees({ state: 'completed' }, { workDir: two });
  const killed = await lab.connector.run('session-abort', sessionId, '--kill');
  expect(killed.code).toBe(EXIT.unsupported);
  expect(killed.stderr).toContain('other session');
  expect((pids ?? []).every(runs)).toBe(true);
});

scenario('Codex, acting: A question of a terminal’s session is answered by its label', async (lab) => {
  const { folder, codex } = await setUp(lab);
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
  const request = await waitingRequest(lab);
  expect(request).toMatchObject({ kind: 'question', allows: ['answer', 'deny'] });
  const id = String(request['requestId']);
  expect((await lab.connector.run('session-approve', id, '--allow')).code).toBe(EXIT.refused);
  expect((await lab.connector.run('session-approve', id, '--answer', 'Postgres')).code).toBe(0);
  await terminal.shows('Noted.');
  const [file = ''] = await Array.fromAsync(
    new Glob('sessions/**/rollout-*.jsonl').scan({ cwd: codex.home, absolute: true }),
  );
  const output = (await Bun.file(file).text())
    .split('\n')
    .find((line) => line.includes('function_call_output'));
  expect(output).toContain('Postgres');
  expect(output).not.toContain('SQLite');
});

scenario(
  'Codex, acting: M1: a session that codex exec holds is refused; fork, queue and stop are the ways',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    const held = gate();
    codex.model.on('Count', say(text('One '), held, text('two.')));
    codex.model.on('Pushed', say(text('Pushed reply.')));
    const program = codex.exec(folder, 'Count to two');
    await held.reached();
    const { sessionId } = await lab.connector.sees({ state: 'running' });
    const send_ = ['session-send', sessionId, '--json', '--message'];
    const refused = await lab.connector.run(...send_, 'Pushed one');
    expect(refused.code).toBe(EXIT.ownedElsewhere);
    expect(refused.stderr).toContain('codex exec');
    for (const choice of ['queue', 'fork']) expect(refused.stderr).toContain(choice);
    const forced = await lab.connector.run(...send_, 'Pushed two', '--when-owned', 'force');
    expect(forced.code).toBe(EXIT.ownedElsewhere);
    const forked = events(
      await lab.connector.run(...send_, 'Pushed three', '--when-owned', 'fork', '--wait'),
    );
    expect(forked.find((event) => event['type'] === 'accepted')?.['sessionId']).not.toBe(sessionId);
    expect(forked.at(-1)).toMatchObject({ type: 'done', text: 'Pushed reply.' });
    const queued = await lab.connector.json(
      ...send_.slice(0, 2),
      '--message',
      'Pushed four',
      '--when-owned',
      'queue',
    );
    expect(queued).toMatchObject({ accepted: false, queued: true, mode: 'queue' });
    held.release();
    expect(await program.exited).toBe(0);
    await codex.model.asked('Pushed four');
    await lab.connector.sees({ state: 'completed', life: 'dead' }, { sessionId });
    await nothingOfOurs(lab);
  },
);

scenario('Codex, acting: the turn of codex exec is stopped by its own signal', async (lab) => {
  const { folder, codex } = await setUp(lab);
  const held = gate();
  codex.model.on('Count', say(text('One '), held));
  const program = codex.exec(folder, 'Count to two');
  await held.reached();
  const { sessionId } = await lab.connector.sees({ state: 'running' });
  expect(await lab.connector.json('session-abort', sessionId)).toMatchObject({ stopped: true });
  expect(await program.exited).toBe(1);
  await lab.connector.sees({ state: 'stopped', life: 'dead' });
});

scenario(
  'Codex, acting: A terminal without the shared server takes a message from Codex’s own queue when it rests',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    const held = gate();
    codex.model.on('Count', say(text('One '), held, text('two.')));
    codex.model.on('Pushed', say(text('Pushed reply.')));
    const terminal = await codex.open(folder, '--no-daemon');
    await ask(terminal, 'Count to two');
    await held.reached();
    const { sessionId } = await lab.connector.sees({ state: 'running' });
    const busy = await lab.connector.run('session-send', sessionId, '--message', 'Pushed one');
    expect(busy.code).toBe(EXIT.ownedElsewhere);
    expect((await lab.connector.run('session-abort', sessionId)).code).toBe(EXIT.unsupported);
    held.release();
    await lab.connector.sees({ state: 'completed' });
    const pushed = await lab.connector.run(
      'session-send',
      sessionId,
      '--message',
      'Pushed two',
      '--wait',
      '--json',
    );
    expect(pushed.code).toBe(0);
    expect(events(pushed).at(-1)).toMatchObject({ outcome: 'completed', text: 'Pushed reply.' });
    await terminal.shows('Pushed reply.');
    await nothingOfOurs(lab);
    expect(await lab.connector.json('session-abort', sessionId, '--kill')).toMatchObject({ stopped: true });
    // What the terminal had started is a launcher, which leaves after its program.
    await until('the terminal’s program to be gone', () => !runs(terminal.pid));
  },
);

scenario('Codex, acting: G9: a sub-agent’s thread takes no message; its parent is named', async (lab) => {
  const { folder, codex } = await setUp(lab);
  const delegate = [
    say(tool('collaboration/spawn_agent', { task_name: 'helper', message: 'CHILD: count the files' })),
    say(tool('collaboration/wait_agent', {})),
    say(text('The helper is done.')),
  ];
  codex.model.on('Delegate', ...delegate);
  codex.model.on('CHILD', say(text('Two files.')));
  expect(await codex.exec(folder, 'Delegate the count', '--model', 'gpt-5.6-sol').exited).toBe(0);
  const parent = await lab.connector.sees({ state: 'completed', life: 'dead' });
  const child = parent.subAgents?.[0] ?? '';
  const asked = codex.model.requests.length;
  const refused = await lab.connector.run('session-send', child, '--message', 'Hello?');
  expect(refused.code).toBe(EXIT.unsupported);
  expect(refused.stderr).toContain(parent.sessionId);
  expect(codex.model.requests).toHaveLength(asked);
});

scenario('Codex, acting: Text arrives whole: flags, 1 MB, and anything of Unicode', async (lab) => {
  const { folder, codex } = await setUp(lab);
  const id = await begun(lab, folder);
  const texts = [
    '--resume nothing -p',
    'e\u0301 \u202e 日本 👩‍👩‍👧‍👦 \ufeff a\r\nb\u2028c \\ " \' $(date)',
    '!echo ran > ran.txt',
    '/compact',
    ' \0 # @ran.txt \r\n',
    `begin ${'x'.repeat(1024 * 1024 - 16)} end`,
  ];
  for (const [index, words] of texts.entries()) {
    const file = join(lab.home, `message-${index}`);
    await Bun.write(file, words);
    const answer = await lab.connector.run('session-send', id, '--message-file', file, '--wait');
    expect(answer.code).toBe(0);
    expect(codex.model.requests.at(-1)?.prompt).toBe(words);
  }
  const flag = await lab.connector.run('session-send', '--session', id, '--message=-p', '--wait');
  expect([flag.code, codex.model.requests.at(-1)?.prompt]).toEqual([0, '-p']);
});

scenario(
  'Codex, acting: session-create: a session that waits for its first message without a process, and takes it',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on('Begin', say(text('Begun.')));
    const created = await lab.connector.json(
      ...['session-create', '--runtime', 'codex', '--dir', folder, '--title', 'Mine'],
    );
    const sessionId = String(created['sessionId']);
    expect(created).toMatchObject({ created: true, runtimeId: 'codex' });
    expect(hostFiles(lab)).toEqual([]);
    await lab.connector.sees({ title: 'Mine', workDir: folder }, { sessionId });
    const answer = await lab.connector.run('session-send', sessionId, '--message', 'Begin now', '--wait');
    expect([answer.code, answer.stdout]).toEqual([0, 'Begun.\n']);
    await lab.connector.sees({ state: 'completed', life: 'dead' }, { sessionId });
  },
);

scenario(
  'Codex, acting: R-14: what a sub-agent in a terminal’s session asks for is listed with its session, and answered by id',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    codex.model.on(
      'Delegate',
      say(tool('collaboration/spawn_agent', { task_name: 'helper', message: 'CHILD: install it' })),
      say(tool('collaboration/wait_agent', {})),
      say(text('The helper is done.')),
    );
    codex.model.on('CHILD', say(shell('touch installed', MAY_I)), say(text('Installed.')));
    const terminal = await codex.open(folder, '--model', 'gpt-5.6-sol');
    await ask(terminal, 'Delegate the installation');
    await terminal.shows('Would you like to run the following command?');
    const parent = await lab.connector.sees({ state: 'waiting_for_approval' });
    const request = await waitingRequest(lab);
    expect(request).toMatchObject({ sessionId: parent.sessionId, subject: 'command' });
    const ran = await lab.connector.run('session-approve', String(request['requestId']), '--allow', '--json');
    expect([ran.code, JSON.parse(ran.stdout)['result']]).toEqual([0, 'applied']);
    await lab.connector.sees({ state: 'completed', needsYou: undefined });
    expect(existsSync(join(folder, 'installed'))).toBe(true);
  },
);

scenario(
  'Codex, acting: a tool server’s call is allowed, and its form filled in, each by its id',
  async (lab) => {
    const { folder, codex } = await setUp(lab);
    const config = join(codex.home, 'config.toml');
    const server = join(import.meta.dir, '..', 'lab', 'mcp-forms.ts');
    const command = `command = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(server)}]\n`;
    await Bun.write(config, `${await Bun.file(config).text()}\n[mcp_servers.tickets]\n${command}`);
    codex.model.on('Close', say(tool('mcp__tickets/ask', {})), say(text('Closed.')));
    const id = await begun(lab, folder);
    await lab.connector.json('session-send', id, '--message', 'Close the ticket');
    const leave = await waitingRequest(lab);
    expect(leave).toMatchObject({ sessionId: id, kind: 'permission', subject: 'tickets.ask' });
    expect((await lab.connector.run('session-approve', String(leave['requestId']), '--allow')).code).toBe(0);
    const form = await until('the form', async () => {
      const request = await waitingRequest(lab);
      return request['kind'] === 'form' && request;
    });
    expect(form).toMatchObject({ subject: 'tickets', allows: ['answer', 'deny'] });
    const questions = form['questions'] as { id: string; text: string }[];
    const answers = Object.fromEntries(
      questions.map((one) => [one.id, [one.text === 'Count' ? '3' : 'T-1']]),
    );
    const given = ['--answers', JSON.stringify(answers)];
    expect((await lab.connector.run('session-approve', String(form['requestId']), ...given)).code).toBe(0);
    await lab.connector.sees({ state: 'completed', life: 'dead' });
    const glob = new Glob('sessions/**/rollout-*.jsonl');
    const [file = ''] = await Array.fromAsync(glob.scan({ cwd: codex.home, absolute: true }));
    const rollout = (await Bun.file(file).text()).replaceAll('\\', '');
    expect(rollout).toContain('"action":"accept"');
    expect(rollout).toMatch(/"key":"T-1"[^}]*"count":3|"count":3[^}]*"key":"T-1"/);
  },
);
