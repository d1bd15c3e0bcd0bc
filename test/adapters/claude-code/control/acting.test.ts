import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { placesOf } from '../../../../src/runtime/control/places.ts';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { CONTROL, TEXT } from '../../../../src/runtime/limits.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { openStage, type Ran, type Stage, until } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

type Json = Record<string, unknown>;
const lines = (ran: Ran): Json[] =>
  ran.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
const document = (ran: Ran): Json => JSON.parse(ran.stdout);
const messages = (stage: Stage) =>
  stage.log().flatMap((entry) => ('message' in entry ? [entry['message']] : []));
const starts = (stage: Stage) =>
  stage.log().flatMap((entry) => (Array.isArray(entry['start']) ? [entry['start'] as string[]] : []));

async function request(stage: Stage): Promise<string> {
  const found = await until(async () => {
    const { requests } = document(await stage.run(['session-approve', '--json']));
    return Array.isArray(requests) && requests.length > 0 && requests;
  });
  return String((found[0] as Json)['requestId']);
}

async function noHosts(stage: Stage): Promise<void> {
  await until(() => listRecords(stage.connectorHome).length === 0);
}

// The fake program is started by a shell script; Windows has its own forms, which `spawn` tests.
describe.skipIf(process.platform === 'win32')('session-send, with a program that speaks the protocol', () => {
  test('returns once the runtime has accepted; the document has the existing connector’s fields and ours', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run([
      'session-send',
      '--runtime',
      'claude-code',
      '--session',
      id,
      '--message',
      'hi',
      '--json',
    ]);
    expect(ran.code).toBe(0);
    expect(document(ran)).toEqual({
      runtimeId: 'claude-code',
      instanceId: 'transcripts',
      sessionId: id,
      accepted: true,
      queued: false,
      mode: 'process',
      detail: expect.stringContaining('session-approve'),
      resume: `cd ${stage.folder} && claude --resume ${id}`,
      approvals: 'ask',
      events: [expect.objectContaining({ type: 'accepted', sessionId: id, at: expect.stringMatching(/Z$/) })],
    });
    await noHosts(stage);
  });

  test('36: it runs in the session’s folder, with nothing of the text in its arguments', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run(['session-send', id, '--message', 'a secret plan', '--wait']);
    expect([ran.code, ran.stdout]).toEqual([0, '13 units\n']);
    expect(stage.log()[0]).toMatchObject({ cwd: stage.folder, configDir: null });
    expect(JSON.stringify(starts(stage))).not.toContain('secret');
    expect(starts(stage)[0]).toEqual(
      expect.arrayContaining(['--resume', id, '--permission-prompt-tool', 'stdio']),
    );
    await noHosts(stage);
  });

  test('36: text that begins with a dash, from stdin, a file, or the command line, arrives whole', async () => {
    await using stage = openStage();
    const id = stage.session();
    writeFileSync(join(stage.home, 'task.md'), '--resume x\n');
    const ways: [string[], string | undefined, string][] = [
      [['--message', '-'], '-p\n', '-p\n'],
      [[], '  --help', '  --help'],
      [['--message=-x'], undefined, '-x'],
      [['--message-file', 'task.md'], undefined, '--resume x\n'],
    ];
    for (const [args, stdin] of ways) {
      const ran = await stage.run(
        ['session-send', id, ...args, '--wait'],
        stdin === undefined ? {} : { stdin },
      );
      expect(ran.code).toBe(0);
    }
    expect(messages(stage)).toEqual(ways.map(([, , text]) => text));
    await noHosts(stage);
  });

  test('36: 1 MB, and the largest text there may be, arrive whole; one byte more is refused by name (R-40)', async () => {
    await using stage = openStage();
    const id = stage.session();
    const texts = ['x'.repeat(1024 * 1024), '\u0001'.repeat(TEXT.messageBytes)];
    for (const [i, text] of texts.entries()) {
      writeFileSync(join(stage.home, `${i}.txt`), text);
      const ran = await stage.run(['session-send', id, '--message-file', `${i}.txt`, '--wait']);
      expect([ran.code, ran.stdout]).toEqual([0, `${text.length} units\n`]);
    }
    expect(messages(stage)).toEqual(texts);
    writeFileSync(join(stage.home, 'more.txt'), 'x'.repeat(TEXT.messageBytes + 1));
    for (const args of [
      ['--message-file', 'more.txt'],
      ['--message', '-'],
    ]) {
      const stdin = 'x'.repeat(TEXT.messageBytes + 1);
      const ran = await stage.run(['session-send', id, ...args, '--json'], { stdin });
      expect(ran.code).toBe(EXIT.badValue);
      expect(document(ran)['error']).toMatchObject({
        message: expect.stringContaining(`${TEXT.messageBytes} is the limit`),
      });
    }
    await noHosts(stage);
  });

  test('bytes that are no UTF-8, and an empty text, are refused before anything is started', async () => {
    await using stage = openStage();
    const id = stage.session();
    writeFileSync(join(stage.home, 'latin1'), Buffer.from([0x67, 0xfc, 0x6e]));
    const wrong = await stage.run(['session-send', id, '--message-file', 'latin1']);
    const empty = await stage.run(['session-send', id, '--message', '-'], { stdin: ' \n' });
    expect([wrong.code, empty.code]).toEqual([EXIT.badValue, EXIT.badValue]);
    expect([wrong.stderr, empty.stderr].join()).toMatch(/not UTF-8.*is empty/s);
    expect(stage.log()).toEqual([]);
  });

  test('--wait --json is one event a line, from accepted to done', async () => {
    await using stage = openStage();
    const ran = await stage.run(['session-send', stage.session(), '--message', 'hi', '--wait', '--json']);
    expect(lines(ran).map((event) => event['type'])).toEqual(['accepted', 'progress', 'done']);
    expect(lines(ran).at(-1)).toMatchObject({ outcome: 'completed', text: '2 units', exitCode: 0 });
    await noHosts(stage);
  });

  test('M7: a session that the runtime does not know is refused in its own words, not accepted', async () => {
    await using stage = openStage();
    const env = { FAKE_CLAUDE_UNKNOWN: '1' };
    const ran = await stage.run(['session-send', stage.session(), '--message', 'hi', '--json'], { env });
    expect(ran.code).toBe(EXIT.notFound);
    expect(document(ran)).toMatchObject({ accepted: false, error: { kind: 'notFound' } });
    expect(ran.stderr).toContain('No conversation found');
    await noHosts(stage);
  });

  test('a program that is not installed is said so, with the command that installs it', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run(['session-send', id, '--message', 'hi'], { env: { PATH: '/usr/bin:/bin' } });
    expect(ran.code).toBe(EXIT.runtimeMissing);
    expect(ran.stderr).toMatch(/is not installed.*Install it: /s);
    await noHosts(stage);
  });

  test('X10: a huge session warns first', async () => {
    await using stage = openStage();
    const id = stage.session();
    const project = join(stage.home, '.claude', 'projects', stage.folder.replace(/[^A-Za-z0-9]/g, '-'));
    truncateSync(join(project, `${id}.jsonl`), CONTROL.hugeSessionBytes);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--json']);
    expect(document(ran)['events']).toMatchObject([
      { type: 'note', text: expect.stringContaining('a huge session: 64 MiB') },
      { type: 'accepted' },
    ]);
    await noHosts(stage);
  });

  test('files of ours are private, and only the lock stays', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.run(['session-send', id, '--message', 'hi', '--keep', '1m']);
    const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: id };
    const { record, socket, lock } = placesOf(stage.connectorHome, ref);
    for (const path of [record, socket, lock]) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(record, '..')).mode & 0o777).toBe(0o700);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
    expect([existsSync(record), existsSync(socket), existsSync(lock)]).toEqual([false, false, true]);
  });

  test('the session is named once, and a new one needs its runtime', async () => {
    await using stage = openStage();
    const wrong = [
      ['session-send', '--message', 'x'],
      ['session-send', 'a', '--session', 'b', '--message', 'x'],
      ['session-send', '--new', '--message', 'x'],
      ['session-send', 'a', '--new', '--runtime', 'claude-code', '--message', 'x'],
      ['session-send', 'a', '--dir', '/', '--message', 'x'],
    ];
    for (const args of wrong) expect((await stage.run(args)).code).toBe(EXIT.usage);
    const policy = await stage.run(['session-send', 'a', '--message', 'x', '--approvals', 'all']);
    const owned = await stage.run(['session-send', 'a', '--message', 'x', '--when-owned', 'frok']);
    expect([policy.code, owned.code]).toEqual([EXIT.badValue, EXIT.badValue]);
    expect(owned.stderr).toContain('did you mean "fork"?');
    const codex = await stage.run(['session-send', '--new', '--runtime', 'kimi', '--message', 'x']);
    expect(codex.code).toBe(EXIT.unsupported);
  });
});

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The test has ended it.
  }
}

/** A process that has the session open, as a live file of its own says. */
async function openElsewhere(stage: Stage, id: string, more: object = {}) {
  const child = Bun.spawn(['sleep', '1000'], { stdio: ['ignore', 'ignore', 'ignore'] });
  const folder = join(stage.home, '.claude', 'sessions');
  mkdirSync(folder, { recursive: true });
  const stat = await Bun.file(`/proc/${child.pid}/stat`).text();
  const procStart = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  const live = { pid: child.pid, sessionId: id, procStart, cwd: stage.folder, version: '2.1.332' };
  const rest = { kind: 'interactive', entrypoint: 'cli', status: 'idle', ...more };
  writeFileSync(join(folder, `${child.pid}.json`), JSON.stringify({ ...live, ...rest }));
  return { child, [Symbol.dispose]: () => child.kill('SIGKILL') };
}

describe.skipIf(process.platform !== 'linux')('owners', () => {
  test('M1: refused by default, each choice explained, nothing started', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--json']);
    expect(ran.code).toBe(EXIT.ownedElsewhere);
    expect(document(ran)).toMatchObject({
      accepted: false,
      queued: false,
      mode: null,
      error: { kind: 'ownedElsewhere', message: expect.stringContaining(`process ${owner.child.pid}`) },
    });
    for (const choice of ['queue', 'fork', 'force']) expect(ran.stderr).toContain(choice);
    expect(stage.log()).toEqual([]);
    await noHosts(stage);
  });

  test('A4: an owner that waits for an approval is said to', async () => {
    await using stage = openStage();
    const id = stage.session();
    using _owner = await openElsewhere(stage, id, { status: 'waiting', waitingFor: 'permission prompt' });
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--when-owned', 'queue', '--json']);
    expect(document(ran)).toMatchObject({
      queued: true,
      events: [{ type: 'queued', reason: expect.stringContaining('which waits for an answer there') }],
    });
    await stage.run(['session-abort', id]);
    await noHosts(stage);
  });

  test('queue: delivered when the owner leaves; its one file is gone then', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    const ran = await stage.run([
      'session-send',
      id,
      '--message',
      'later',
      '--when-owned',
      'queue',
      '--json',
    ]);
    expect([ran.code, document(ran)['mode']]).toEqual([0, 'queue']);
    const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: id };
    const { queue } = placesOf(stage.connectorHome, ref);
    expect(readdirSync(queue).length).toBe(1);
    expect(messages(stage)).toEqual([]);
    owner.child.kill('SIGKILL');
    await until(() => messages(stage).includes('later'));
    await noHosts(stage);
    expect(existsSync(queue)).toBe(false);
  });

  test('queue: a host that is killed while it waits loses nothing: the next message takes it along', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    await stage.run(['session-send', id, '--message', 'first', '--when-owned', 'queue']);
    const [record] = listRecords(stage.connectorHome);
    process.kill(record?.host.pid ?? 0, 'SIGKILL');
    owner.child.kill('SIGKILL');
    await owner.child.exited;
    const ran = await stage.run(['session-send', id, '--message', 'second', '--wait']);
    expect(ran.code).toBe(0);
    expect(messages(stage)).toEqual(['first', 'second']);
    await noHosts(stage);
  });

  test('fork: goes on in a copy under an id of its own; the original is not touched', async () => {
    await using stage = openStage();
    const id = stage.session();
    using _owner = await openElsewhere(stage, id);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--when-owned', 'fork', '--json']);
    const copy = String(document(ran)['sessionId']);
    expect([ran.code, copy === id]).toEqual([0, false]);
    expect(starts(stage)[0]).toEqual(
      expect.arrayContaining(['--resume', id, '--fork-session', '--session-id', copy]),
    );
    await noHosts(stage);
  });

  test('force: sent over the owner’s head, and said so', async () => {
    await using stage = openStage();
    const id = stage.session();
    using _owner = await openElsewhere(stage, id);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--when-owned', 'force', '--json']);
    expect(document(ran)['events']).toMatchObject([
      { type: 'note', text: expect.stringContaining('sent although the session is open in a terminal') },
      { type: 'accepted' },
    ]);
    await noHosts(stage);
  });

  test('M3: a session that Claude’s own daemon runs names Claude’s own way in', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id, { kind: 'bg', jobId: '14a017a9' });
    const send = await stage.run(['session-send', id, '--message', 'hi']);
    expect([send.code, send.stderr.includes('claude attach 14a017a9')]).toEqual([EXIT.ownedElsewhere, true]);
    const abort = await stage.run(['session-abort', id, '--kill']);
    expect([abort.code, abort.stderr.includes('claude stop 14a017a9')]).toEqual([EXIT.unsupported, true]);
    expect(isAlive(owner.child.pid)).toBe(true);
  });

  test('K1: a turn in another’s terminal is not stopped from here; --kill ends that program, and only then', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id, { status: 'busy' });
    const refused = await stage.run(['session-abort', id]);
    expect([refused.code, isAlive(owner.child.pid)]).toEqual([EXIT.unsupported, true]);
    const killed = await stage.run(['session-abort', id, '--kill', '--json']);
    expect(document(killed)).toMatchObject({ stopped: true, survivors: [] });
    await owner.child.exited;
    expect(isAlive(owner.child.pid)).toBe(false);
  });
});

describe.skipIf(process.platform !== 'linux')('turns and their processes', () => {
  test('two sends at once: two turns, in one process after another, none lost', async () => {
    await using stage = openStage();
    const id = stage.session();
    const texts = ['one', 'two', 'three', 'four'];
    const ran = await Promise.all(
      texts.map((text) => stage.run(['session-send', id, '--message', text, '--wait', '--json'])),
    );
    expect(ran.map((each) => each.code)).toEqual([0, 0, 0, 0]);
    expect(ran.map((each) => lines(each).at(-1)?.['outcome'])).toEqual(texts.map(() => 'completed'));
    expect([...messages(stage)].sort()).toEqual([...texts].sort());
    await noHosts(stage);
  });

  test('A1, A2: an answer goes by id from another process; a second one is refused', async () => {
    await using stage = openStage();
    const id = stage.session();
    const waiting = stage.run(['session-send', id, '--message', 'ask', '--wait', '--json']);
    const requestId = await request(stage);
    const wrong = await stage.run([
      'session-approve',
      requestId.replace(/^./, (first) => (first === '0' ? '1' : '0')),
      '--allow',
    ]);
    expect(wrong.code).toBe(EXIT.notFound);
    const denied = await stage.run(['session-approve', requestId, '--deny', '--note', 'not now', '--json']);
    expect([denied.code, document(denied)]).toMatchObject([0, { result: 'applied', decision: 'deny' }]);
    const again = await stage.run(['session-approve', requestId, '--allow', '--json']);
    expect([again.code, document(again)['error']]).toMatchObject([EXIT.notFound, { kind: 'notFound' }]);
    const events = lines(await waiting);
    expect(events.map((event) => event['type'])).toEqual([
      'accepted',
      'progress',
      'request',
      'resolved',
      'done',
    ]);
    expect(events.at(-1)).toMatchObject({ text: 'deny: not now' });
    expect(stage.log().filter((entry) => 'answer' in entry).length).toBe(1);
    await noHosts(stage);
  });

  test('A8: a request outlives its sender, is listed again, and is denied when nobody answers', async () => {
    await using stage = openStage();
    const id = stage.session();
    const sender = stage.start([
      'session-send',
      id,
      '--message',
      'ask',
      '--wait',
      '--approval-timeout',
      '2s',
    ]);
    await request(stage);
    sender.kill('SIGKILL');
    await sender.exited;
    await request(stage);
    await until(() => stage.log().some((entry) => 'answer' in entry));
    expect(stage.log().find((entry) => 'answer' in entry)).toMatchObject({ answer: { behavior: 'deny' } });
    await noHosts(stage);
  });

  test('nothing is approved by sending a message', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.run(['session-send', id, '--message', 'ask']);
    const requestId = await request(stage);
    const sent = await stage.run(['session-send', id, '--message', 'yes, allow it', '--json']);
    expect(document(sent)).toMatchObject({ accepted: false, queued: true });
    expect(stage.log().some((entry) => 'answer' in entry)).toBe(false);
    expect(await request(stage)).toBe(requestId);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
  });

  test('K1: abort ends the turn, and the process goes on', async () => {
    await using stage = openStage();
    const id = stage.session();
    const waiting = stage.run(['session-send', id, '--message', 'hang', '--wait', '--keep', '1m', '--json']);
    await until(() => stage.log().some((entry) => 'grandchild' in entry));
    const aborted = await stage.run(['session-abort', id, '--json']);
    expect(document(aborted)).toMatchObject({ stopped: true, detail: 'the turn was stopped' });
    const ran = await waiting;
    expect([ran.code, lines(ran).at(-1)?.['outcome']]).toEqual([EXIT.turnStopped, 'stopped']);
    const next = await stage.run(['session-send', id, '--message', 'hi', '--wait', '--keep', '1m']);
    expect([next.code, starts(stage).length]).toEqual([0, 1]);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
  });

  test('K1, K2, K3: --kill ends a program that ignores TERM, and the group that its tool made', async () => {
    await using stage = openStage();
    const id = stage.session();
    const env = { FAKE_CLAUDE_STUBBORN: '1' };
    await stage.run(['session-send', id, '--message', 'hang'], { env });
    const entry = await until(() => stage.log().find((one) => 'grandchild' in one));
    const [record] = listRecords(stage.connectorHome);
    const child = record?.child?.pid ?? 0;
    const killed = await stage.run(['session-abort', id, '--kill', '--json']);
    expect([killed.code, document(killed)]).toMatchObject([0, { stopped: true, survivors: [] }]);
    expect([isAlive(child), isAlive(Number(entry['grandchild']))]).toEqual([false, false]);
    expect(stage.log().some((one) => one['ignored'] === 'SIGTERM')).toBe(true);
    await noHosts(stage);
  });

  test('K3: a program that exits and leaves a process in its group takes it along', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run(['session-send', id, '--message', 'orphan', '--wait']);
    expect(ran.code).toBe(EXIT.turnFailed);
    const entry = stage.log().find((one) => 'orphan' in one);
    await until(() => !isAlive(Number(entry?.['orphan'])));
    await noHosts(stage);
  });

  test('a lost child is a failed turn with its exit code, and the next message resumes the session', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run(['session-send', id, '--message', 'die', '--wait', '--keep', '1m', '--json']);
    expect([ran.code, lines(ran).at(-1)]).toMatchObject([
      EXIT.turnFailed,
      { outcome: 'failed', exitCode: 7 },
    ]);
    const [record] = listRecords(stage.connectorHome);
    expect(record?.child).toBeUndefined();
    const next = await stage.run(['session-send', id, '--message', 'hi', '--wait', '--keep', '1m']);
    expect(next.code).toBe(0);
    expect(starts(stage).map((args) => args.includes('--resume'))).toEqual([true, true]);
    expect(listRecords(stage.connectorHome)[0]?.host).toEqual(record?.host);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
  });

  test('a session of ours is begun under its id once, and resumed from then on', async () => {
    await using stage = openStage();
    const created = await stage.run([
      'session-create',
      '--runtime',
      'claude-code',
      '--dir',
      stage.folder,
      '--json',
    ]);
    const id = String(document(created)['sessionId']);
    expect([created.code, document(created)['created']]).toEqual([0, true]);
    const [record] = listRecords(stage.connectorHome);
    process.kill(record?.child?.pid ?? 0, 'SIGKILL');
    await until(() => listRecords(stage.connectorHome)[0]?.child === undefined);
    stage.session(id);
    await stage.run(['session-send', id, '--message', 'die', '--wait']);
    await stage.run(['session-send', id, '--message', 'hi', '--wait']);
    const how = starts(stage).map((args) => (args.includes('--resume') ? 'resume' : 'new'));
    expect(how).toEqual(['new', 'new', 'resume']);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
  });

  test('other wishes are another process: a policy is never that of the message before', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.run(['session-send', id, '--message', 'hi', '--wait', '--keep', '1m']);
    await stage.run([
      'session-send',
      id,
      '--message',
      'hi',
      '--wait',
      '--approvals',
      'deny',
      '--model',
      'opus',
    ]);
    expect(starts(stage).map((args) => [args.includes('stdio'), args.includes('opus')])).toEqual([
      [true, false],
      [false, true],
    ]);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
  });

  test('a sender that is killed leaves the turn running to its end, and nothing behind', async () => {
    await using stage = openStage();
    const id = stage.session();
    const sender = stage.start(['session-send', id, '--message', 'ask', '--wait']);
    const requestId = await request(stage);
    sender.kill('SIGKILL');
    await sender.exited;
    expect((await stage.run(['session-approve', requestId, '--allow'])).code).toBe(0);
    await noHosts(stage);
    expect(stage.log().at(-1)).toMatchObject({ answer: { behavior: 'allow' } });
  });

  test('a host that is killed: the program that it ran is found again by what acts next', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.run(['session-send', id, '--message', 'hang'], { env: { FAKE_CLAUDE_STUBBORN: '1' } });
    await until(() => stage.log().some((entry) => 'grandchild' in entry));
    const [record] = listRecords(stage.connectorHome);
    process.kill(record?.host.pid ?? 0, 'SIGKILL');
    await until(() => !isAlive(record?.host.pid ?? 0));
    const listed = await stage.run(['session-approve', '--json']);
    expect(listed.stderr).toContain(`ended process ${record?.child?.pid}`);
    expect(isAlive(record?.child?.pid ?? 0)).toBe(false);
    expect(listRecords(stage.connectorHome)).toEqual([]);
  });

  test('Ctrl-C leaves the turn running; with --abort-on-interrupt it ends it', async () => {
    await using stage = openStage();
    const id = stage.session();
    const hang = ['session-send', id, '--message', 'hang', '--wait', '--keep', '1m', '--json'];
    const first = stage.start(hang);
    await until(() => stage.log().some((entry) => 'grandchild' in entry));
    first.kill('SIGINT');
    expect(await first.exited).toBe(EXIT.stillRunning);
    const said = (await new Response(first.stdout).text()).trim().split('\n');
    expect(JSON.parse(said.at(-1) ?? '')).toMatchObject({ type: 'left', reason: 'caller left' });
    await stage.run(['session-abort', id]);
    const second = stage.start([...hang, '--abort-on-interrupt']);
    await until(() => stage.log().filter((entry) => 'grandchild' in entry).length === 2);
    second.kill('SIGINT');
    expect(await second.exited).toBe(EXIT.turnStopped);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
  });

  test('--timeout stops following, not the turn', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run([
      'session-send',
      id,
      '--message',
      'hang',
      '--wait',
      '--timeout',
      '1s',
      '--json',
    ]);
    expect([ran.code, lines(ran).at(-1)?.['reason']]).toEqual([EXIT.stillRunning, 'followed long enough']);
    expect((await stage.run(['session-abort', id])).code).toBe(0);
    await noHosts(stage);
  });
});

describe.skipIf(process.platform !== 'linux')('R-47: the push matrix of docs/acting.md', () => {
  /** Puts a session into the hands of one owner, and says what ends that. */
  const OWNERS: Record<string, (stage: Stage) => Promise<{ id: string; [Symbol.dispose](): void }>> = {
    nobody: async (stage) => ({ id: stage.session(), [Symbol.dispose]: () => {} }),
    ours: async (stage) => {
      const id = stage.session();
      await stage.run(['session-send', id, '--message', 'hang', '--keep', '1m']);
      return { id, [Symbol.dispose]: () => {} };
    },
    'a terminal': (stage) => elsewhere(stage, { status: 'busy' }),
    'another program': (stage) => elsewhere(stage, { entrypoint: 'sdk-cli', status: 'busy' }),
    "Claude's daemon": (stage) => elsewhere(stage, { kind: 'bg', jobId: '14a017a9' }),
    'a container': (stage) => elsewhere(stage, { pidDomain: 'linux:0:pid:[1]' }),
    'an old version': (stage) => renamed(stage, stage.session(undefined, '2.1.100'), 'sleep', ['1000']),
    'a set-up screen': (stage) => {
      const id = stage.session();
      return renamed(stage, id, 'sh', ['-c', 'sleep 1000; true', '--resume', id]);
    },
  };

  async function elsewhere(stage: Stage, more: object) {
    const id = stage.session();
    const owner = await openElsewhere(stage, id, more);
    return { id, [Symbol.dispose]: () => owner[Symbol.dispose]() };
  }

  /** A program that is called `claude`, in the session's folder, without a live file. */
  async function renamed(stage: Stage, id: string, program: string, args: readonly string[]) {
    const path = join(stage.home, 'claude');
    copyFileSync(Bun.which(program) ?? '', path);
    chmodSync(path, 0o755);
    const child = Bun.spawn([path, ...args], {
      cwd: stage.folder,
      env: { HOME: stage.home, PATH: '/usr/bin:/bin' },
      stdio: ['ignore', 'ignore', 'ignore'],
      detached: true,
    });
    return { id, child, [Symbol.dispose]: () => void endGroup(child.pid) };
  }

  test('K1: a process that only seems to have the session is not killed for it', async () => {
    await using stage = openStage();
    using held = await renamed(stage, stage.session(undefined, '2.1.100'), 'sleep', ['1000']);
    const ran = await stage.run(['session-abort', held.id, '--kill']);
    expect([ran.code, isAlive(held.child.pid)]).toEqual([EXIT.unsupported, true]);
    expect(ran.stderr).toContain(`kill ${held.child.pid}`);
  });

  const table = readFileSync(join(import.meta.dir, '..', '..', '..', '..', 'docs', 'acting.md'), 'utf8');
  const rows = table
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells[1] === 'claude-code');

  test('has a row for every owner, and only those', () => {
    expect(rows.map((cells) => cells[2] ?? '').sort()).toEqual(Object.keys(OWNERS).sort());
  });

  for (const [, , owner = '', send, , , , , abort] of rows) {
    test(`${owner}: send ${send}, abort ${abort}`, async () => {
      await using stage = openStage();
      using held = await (OWNERS[owner] ?? Promise.reject)(stage);
      const sent = await stage.run(['session-send', held.id, '--message', 'hi', '--keep', '0', '--json']);
      const aborted = await stage.run(['session-abort', held.id, '--json']);
      expect([sent.code, aborted.code]).toEqual([Number(send), Number(abort)]);
      await stage.run(['session-abort', held.id, '--kill']);
      await noHosts(stage);
    });
  }
});
