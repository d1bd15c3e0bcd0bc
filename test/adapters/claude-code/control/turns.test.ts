import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { document, lines, messages, noHosts, openStage, request, starts, until } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

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

  test('Ctrl-C before the message was taken: --abort-on-interrupt stops the turn as soon as there is one', async () => {
    await using stage = openStage();
    const id = stage.session();
    const gate = join(stage.home, 'gate');
    const send = ['session-send', id, '--message', 'hang', '--wait', '--json', '--abort-on-interrupt'];
    const sender = stage.start(send, { FAKE_CLAUDE_GATE: gate });
    await until(() => stage.log().some((entry) => 'message' in entry));
    sender.kill('SIGINT');
    writeFileSync(gate, '');
    expect(await sender.exited).toBe(EXIT.turnStopped);
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
