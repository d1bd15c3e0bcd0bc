import { expect } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../../../src/runtime/errors.ts';
import { compiledBinary } from '../../helpers/binary.ts';
import { type Claude, prepareClaude } from '../lab/claude.ts';
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
const typesOf = (list: readonly Json[]) => list.map((event) => event['type']);

/** A session that a message of ours has begun, and that nobody holds. */
async function begun(lab: Lab, folder: string, words = 'Say hello'): Promise<string> {
  const answer = await lab.connector.run(
    ...['session-send', '--new', '--runtime', 'claude-code', '--dir', folder],
    ...['--message', words, '--wait', '--keep', '0', '--json'],
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

/** Says yes to the one request that waits. */
async function approve(lab: Lab): Promise<void> {
  const { requestId } = await waitingRequest(lab);
  expect((await lab.connector.run('session-approve', String(requestId), '--allow')).code).toBe(0);
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

async function setUp(lab: Lab): Promise<{ folder: string; claude: Claude }> {
  const folder = await lab.folder('acme-app');
  return { folder, claude: await prepareClaude(lab, [folder]) };
}

scenario(
  'Claude Code, acting: M4, M6, M7: a new session is begun, its end is seen, and the printed command goes on with it',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    claude.model.on('Say hello', say(text('Hello there.')));
    const answer = await lab.connector.run(
      ...['session-send', '--new', '--runtime', 'claude-code', '--dir', folder],
      ...['--message', 'Say hello', '--wait', '--keep', '0'],
    );
    expect([answer.code, answer.stdout]).toEqual([0, 'Hello there.\n']);
    expect(answer.stderr).toContain('turn completed');
    await lab.connector.sees({ state: 'completed', life: 'dead', workDir: folder, title: 'Say hello' });
    await until('nothing of ours to be left', () => hostFiles(lab).length === 0);

    const resume = /^go on in a terminal: (.*)$/m.exec(answer.stderr)?.[1] ?? '';
    const terminal = await lab.terminal({ command: ['bash', '-c', resume], cwd: lab.home });
    await terminal.shows('Hello there.');
    await lab.connector.sees({ state: 'completed', life: 'alive' });
  },
);

scenario(
  'Claude Code, acting: A1, A2: a permission is answered by its id from another process, and only once',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    const slow = await lab.barrier('slow');
    claude.model.on('Build', say(shell(`mkdir built && ${slow.command}`)), say(text('Built.')));
    const id = await begun(lab, folder);

    const accepted = await lab.connector.json('session-send', id, '--message', 'Build it');
    expect(accepted).toMatchObject({ accepted: true, mode: 'process', approvals: 'ask', sessionId: id });
    const request = await waitingRequest(lab);
    expect(request).toMatchObject({ sessionId: id, kind: 'permission', subject: 'Bash' });
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
    await claude.model.asked('And then?');
    await lab.connector.sees({ state: 'completed', life: 'dead' });
    expect(existsSync(join(folder, 'built'))).toBe(true);
  },
);

scenario('Claude Code, acting: A denial tells the model why, and the turn goes on', async (lab) => {
  const { folder, claude } = await setUp(lab);
  claude.model.on('Build', say(shell('mkdir built')), say(text('Then not.')));
  const id = await begun(lab, folder);
  const program = lab.start(
    [await compiledBinary(), 'session-send', id, '--message', 'Build it', '--wait', '--json'],
    folder,
  );
  const { requestId } = await waitingRequest(lab);
  const denied = await lab.connector.run(
    'session-approve',
    String(requestId),
    '--deny',
    '--note',
    'Not today',
  );
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

scenario('Claude Code, acting: A question is answered by its label', async (lab) => {
  const { folder, claude } = await setUp(lab);
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
  const id = await begun(lab, folder);
  await lab.connector.json('session-send', id, '--message', 'Set up the app');
  const request = await waitingRequest(lab);
  expect(request).toMatchObject({ kind: 'question', allows: ['answer', 'deny'] });
  await lab.connector.sees({ state: 'blocked', needsYou: true, waitingOn: 'question' });
  const wrong = await lab.connector.run('session-approve', String(request['requestId']), '--allow');
  expect(wrong.code).toBe(EXIT.refused);
  const said = await lab.connector.run(
    'session-approve',
    String(request['requestId']),
    '--answer',
    'Postgres',
  );
  expect(said.code).toBe(0);
  await lab.connector.sees({ state: 'completed' });
  expect((await lab.connector.run('session-show', id)).stdout).toContain('Noted.');
});

scenario(
  'Claude Code, acting: Without a host nobody is asked: what would prompt is refused, and the end says so',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    claude.model.on('Build', say(shell('mkdir built')), say(text('I was not allowed.')));
    const id = await begun(lab, folder);
    const answer = await lab.connector.run(
      ...['session-send', id, '--message', 'Build it', '--wait', '--approvals', 'deny', '--json'],
    );
    expect(events(answer).at(-1)).toMatchObject({
      type: 'done',
      outcome: 'completed',
      notes: ['1 tool call was refused: Bash'],
    });
    expect(existsSync(join(folder, 'built'))).toBe(false);
  },
);

scenario('Claude Code, acting: An error of the API is a failed turn with its own exit code', async (lab) => {
  const { folder, claude } = await setUp(lab);
  const id = await begun(lab, folder);
  claude.model.on('Fail', refuse(400, 'invalid_request_error', 'no such thing'));
  const answer = await lab.connector.run('session-send', id, '--message', 'Fail please', '--wait', '--json');
  expect(answer.code).toBe(EXIT.turnFailed);
  expect(events(answer).at(-1)).toMatchObject({ type: 'done', outcome: 'failed', exitCode: 1 });
  expect(answer.stderr).toContain('no such thing');
});

scenario(
  'Claude Code, acting: K1: abort stops the turn of a tool that runs, and the session can go on',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    const slow = await lab.barrier('slow');
    claude.model.on('Wait', say(shell(slow.command)), say(text('Waited.')));
    const id = await begun(lab, folder);
    const program = lab.start(
      [await compiledBinary(), 'session-send', id, '--message', 'Wait for it', '--wait', '--json'],
      folder,
    );
    await approve(lab);
    await slow.reached();
    const aborted = await lab.connector.json('session-abort', id);
    expect(aborted).toMatchObject({ sessionId: id, stopped: true, survivors: [] });
    expect(await program.exited).toBe(EXIT.turnStopped);
    await lab.connector.sees({ state: 'stopped' });
    const twice = await lab.connector.run('session-abort', id);
    expect(twice.code).toBe(EXIT.refused);
    const next = await lab.connector.run('session-send', id, '--message', 'Say hello', '--wait');
    expect(next.code).toBe(0);
  },
);

scenario(
  'Claude Code, acting: K1, K2, K3: --kill ends the process and the command that it runs',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    const slow = await lab.barrier('slow');
    claude.model.on('Wait', say(shell(`echo $$ > shell.pid; ${slow.command}`)), say(text('Waited.')));
    const id = await begun(lab, folder);
    await lab.connector.json('session-send', id, '--message', 'Wait for it', '--approvals', 'allow-edits');
    await approve(lab);
    await slow.reached();
    const { child, host } = hostRecord(lab);
    const shellPid = Number(readFileSync(join(folder, 'shell.pid'), 'utf8'));
    expect([runs(child.pid), runs(shellPid)]).toEqual([true, true]);
    const killed = await lab.connector.json('session-abort', id, '--kill');
    expect(killed).toMatchObject({ stopped: true, survivors: [] });
    expect([runs(child.pid), runs(shellPid)]).toEqual([false, false]);
    await until('the host to leave', () => !runs(host.pid) && hostFiles(lab).length === 0);
    await lab.connector.sees({ state: 'stopped', life: 'dead' });
  },
);

scenario(
  'Claude Code, acting: M1, M3: a session that is open in a terminal is refused; fork and queue are the ways',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    claude.model.on('Pushed', say(text('Pushed reply.')));
    const terminal = await claude.open(folder);
    await ask(terminal, 'Say hello');
    const { sessionId } = await lab.connector.sees({ state: 'completed', life: 'alive' });

    const refused = await lab.connector.run('session-send', sessionId, '--message', 'Pushed one', '--json');
    expect(refused.code).toBe(EXIT.ownedElsewhere);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      accepted: false,
      queued: false,
      error: { kind: 'ownedElsewhere', exitCode: EXIT.ownedElsewhere },
    });
    expect(refused.stderr).toContain('open in a terminal');
    for (const choice of ['queue', 'fork', 'force']) expect(refused.stderr).toContain(choice);

    const fork = [
      'session-send',
      sessionId,
      '--message',
      'Pushed two',
      '--when-owned',
      'fork',
      '--wait',
      '--json',
    ];
    const forked = events(await lab.connector.run(...fork));
    const copy = forked.find((event) => event['type'] === 'accepted')?.['sessionId'];
    expect(copy).not.toBe(sessionId);
    expect(forked.at(-1)).toMatchObject({ type: 'done', text: 'Pushed reply.' });
    await lab.connector.sees({ life: 'alive' }, { sessionId });

    const queue = ['session-send', sessionId, '--message', 'Pushed three', '--when-owned', 'queue'];
    const queued = await lab.connector.json(...queue);
    expect(queued).toMatchObject({ accepted: false, queued: true, mode: 'queue' });
    const files = join(lab.home, '.shadowob', 'connector', 'control', 'queue');
    expect(
      readdirSync(files, { recursive: true }).filter((name) => String(name).endsWith('.json')),
    ).toHaveLength(1);
    await terminal.press('C-d');
    await terminal.press('C-d');
    await claude.model.asked('Pushed three');
    await lab.connector.sees({ state: 'completed', life: 'dead' }, { sessionId });
    await until('the queue to be empty', () => readdirSync(files).length === 0);
  },
);

scenario(
  'Claude Code, acting: A terminal’s turn is stopped by its keyboard alone; --kill ends the program',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    const held = gate();
    claude.model.on('Write', say(text('Dear '), held));
    const terminal = await claude.open(folder);
    await ask(terminal, 'Write a letter');
    await held.reached();
    const { sessionId } = await lab.connector.sees({ state: 'running' });
    const refused = await lab.connector.run('session-abort', sessionId);
    expect([refused.code, refused.stdout]).toEqual([EXIT.unsupported, '']);
    expect(refused.stderr).toContain('Press Esc there');
    const killed = await lab.connector.json('session-abort', sessionId, '--kill');
    expect(killed).toMatchObject({ stopped: true, survivors: [] });
    expect(runs(terminal.pid)).toBe(false);
    await lab.connector.sees({ state: 'stopped', life: 'dead' }, { sessionId });
  },
);

scenario(
  'Claude Code, acting: S8: a program that waits at a set-up screen with this session gets no message',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const claude = await prepareClaude(lab, []);
    const id = await begun(lab, folder);
    const terminal = await claude.launch(folder, '--resume', id);
    await terminal.shows(/trust/i);
    const refused = await lab.connector.run('session-send', id, '--message', 'Hello?');
    expect(refused.code).toBe(EXIT.refused);
    expect(refused.stderr).toContain('set-up screen');
  },
);

scenario('Claude Code, acting: A host that is killed leaves nothing that is not found again', async (lab) => {
  const { folder, claude } = await setUp(lab);
  const slow = await lab.barrier('slow');
  claude.model.on('Wait', say(shell(slow.command)), say(text('Waited.')));
  const id = await begun(lab, folder);
  await lab.connector.json('session-send', id, '--message', 'Wait for it');
  await approve(lab);
  await slow.reached();
  const { host, child } = hostRecord(lab);
  send(host.pid, 'SIGKILL');
  await until('the host to be gone', () => !runs(host.pid));
  const next = await lab.connector.run('session-send', id, '--message', 'Say hello', '--wait');
  expect(next.code).toBe(0);
  expect(runs(child.pid)).toBe(false);
  await until('nothing of ours to be left', () => hostFiles(lab).length === 0);
});

scenario(
  'Claude Code, acting: A child that is killed is a stopped turn, and the next message resumes the session',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    const held = gate();
    claude.model.on('Write', say(text('Dear '), held));
    const id = await begun(lab, folder);
    const program = lab.start(
      [await compiledBinary(), 'session-send', id, '--message', 'Write a letter', '--wait', '--keep', '5m'],
      folder,
    );
    await held.reached();
    const { host, child } = hostRecord(lab);
    send(child.pid, 'SIGKILL');
    expect(await program.exited).toBe(EXIT.turnStopped);
    expect(program.output()).toContain('by SIGKILL in the middle of the turn');
    const next = await lab.connector.json('session-send', id, '--message', 'Say hello', '--keep', '5m');
    expect(next).toMatchObject({ accepted: true, mode: 'owned' });
    expect(hostRecord(lab).host.pid).toBe(host.pid);
    await lab.connector.run('session-abort', id, '--kill');
  },
);

scenario(
  'Claude Code, acting: x-push-two-at-once: two messages at once are two turns, none lost',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    const id = await begun(lab, folder);
    const words = ['Alpha', 'Beta', 'Gamma'];
    for (const word of words) claude.model.on(word, say(text(`${word} it is.`)));
    const answers = await Promise.all(
      words.map((word) => lab.connector.run('session-send', id, '--message', word, '--wait')),
    );
    expect(answers.map((answer) => answer.stdout)).toEqual(words.map((word) => `${word} it is.\n`));
    const shown = await lab.connector.run('session-show', id, '--limit', '50');
    for (const word of words) expect(shown.stdout).toContain(`${word} it is.`);
    await until('nothing of ours to be left', () => hostFiles(lab).length === 0);
  },
);

scenario('Claude Code, acting: Text arrives whole: flags, 1 MB, and anything of Unicode', async (lab) => {
  const { folder, claude } = await setUp(lab);
  const id = await begun(lab, folder);
  const texts = [
    '--resume nothing -p',
    'e\u0301 \u202e 日本 👩‍👩‍👧‍👦 \ufeff a\r\nb\u2028c \\ " \' $(date)',
    '!echo ran > ran.txt',
    ' /cost',
    ' \0 # @ran.txt \r\n',
    `begin ${'x'.repeat(1024 * 1024)} end`,
  ];
  for (const [index, words] of texts.entries()) {
    const file = join(lab.home, `message-${index}`);
    await Bun.write(file, words);
    const answer = await lab.connector.run('session-send', id, '--message-file', file, '--wait');
    expect(answer.code).toBe(0);
    expect(claude.model.requests.at(-1)?.prompt).toBe(words);
  }
  const flag = await lab.connector.run('session-send', '--session', id, '--message=-p', '--wait');
  expect([flag.code, claude.model.requests.at(-1)?.prompt]).toEqual([0, '-p']);
});

scenario(
  'Claude Code, acting: A session goes on in the folder it began in, from wherever it is sent',
  async (lab) => {
    const { folder } = await setUp(lab);
    const id = await begun(lab, folder);
    const binary = await compiledBinary();
    const program = lab.start([binary, 'session-send', id, '--message', 'Hello again', '--wait'], lab.home);
    expect(await program.exited).toBe(0);
    await lab.connector.sees({ state: 'completed', workDir: folder });
    await Bun.$`mv ${folder} ${folder}-moved`.quiet();
    const refused = await lab.connector.run('session-send', id, '--message', 'Hello?');
    expect(refused.code).toBe(EXIT.refused);
    expect(refused.stderr).toContain(`is not there: ${folder}`);
  },
);

scenario(
  'Claude Code, acting: Ctrl-C leaves the turn running and says so; asked to, it stops the turn',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    const [one, two] = [gate(), gate()];
    claude.model.on('First', say(text('One '), one, text('more.')));
    claude.model.on('Second', say(text('Two '), two));
    const id = await begun(lab, folder);
    const command = [await compiledBinary(), 'session-send', id, '--wait', '--message'];
    const first = lab.start([...command, 'First thing'], folder);
    await one.reached();
    first.kill('SIGINT');
    expect(await first.exited).toBe(EXIT.stillRunning);
    expect(first.output()).toContain('left: the turn goes on');
    await lab.connector.sees({ state: 'running', life: 'alive' });
    one.release();
    await lab.connector.sees({ state: 'completed', life: 'dead' });

    const second = lab.start([...command, 'Second thing', '--abort-on-interrupt'], folder);
    await two.reached();
    second.kill('SIGINT');
    expect(await second.exited).toBe(EXIT.turnStopped);
    await lab.connector.sees({ state: 'stopped' });
  },
);

scenario(
  'Claude Code, acting: session-create: a session that waits for its first message, and takes it',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    claude.model.on('Begin', say(text('Begun.')));
    const created = await lab.connector.json('session-create', '--runtime', 'claude-code', '--dir', folder);
    const sessionId = String(created['sessionId']);
    expect(created).toMatchObject({ created: true, runtimeId: 'claude-code' });
    await lab.connector.sees({ state: 'idle', life: 'alive', workDir: folder }, { sessionId });
    const answer = await lab.connector.run('session-send', sessionId, '--message', 'Begin now', '--wait');
    expect([answer.code, answer.stdout]).toEqual([0, 'Begun.\n']);
    const killed = await lab.connector.json('session-abort', sessionId, '--kill');
    expect(killed).toMatchObject({ stopped: true });
    await lab.connector.sees({ state: 'completed', life: 'dead' }, { sessionId });
  },
);

scenario(
  'Claude Code, acting: A8: a request that nobody answers is denied in time, and the turn ends',
  async (lab) => {
    const { folder, claude } = await setUp(lab);
    claude.model.on('Build', say(shell('mkdir built')), say(text('Nobody said yes.')));
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
