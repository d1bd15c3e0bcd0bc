import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { answers, calls, document, last, lines, noHosts, openStage, requests, until } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

describe.skipIf(process.platform !== 'linux')(
  'nobody has the thread: an app-server of ours for the one turn',
  () => {
    test('R-35, M6, M7: accepted by the server, done by the turn’s end, and nothing is left', async () => {
      await using stage = openStage();
      const id = stage.session();
      const ran = await stage.run(['session-send', id, '--message', 'What does add do?', '--wait', '--json']);
      expect(ran.code).toBe(EXIT.ok);
      expect(lines(ran)[0]).toMatchObject({ type: 'accepted', mode: 'process', sessionId: id });
      expect(String(lines(ran)[0]?.['resume'])).toEndWith(`codex resume ${id}`);
      expect(last(ran)).toMatchObject({
        type: 'done',
        outcome: 'completed',
        text: 'add(a, b) returns the sum of its two arguments.',
        exitCode: 0,
      });
      await noHosts(stage);
      expect(stage.log().filter((one) => 'start' in one)).toEqual([
        expect.objectContaining({ start: ['app-server'] }),
      ]);
      expect(calls(stage, 'thread/resume')).toEqual([{ threadId: id, excludeTurns: true }]);
    });

    test('O2: text of any form goes over the connection, whole, and never on a command line', async () => {
      await using stage = openStage();
      const text = `--last other ${'é☃🎉\u2028'.repeat(100_000)}`;
      const send = ['session-send', stage.session(), '--message', '-', '--wait', '--json'];
      const ran = await stage.run(send, { stdin: text });
      expect(last(ran)).toMatchObject({ outcome: 'completed' });
      const hash = new Bun.CryptoHasher('sha256').update(text).digest('hex');
      expect(calls(stage, 'turn/start')[0]).toMatchObject({ bytes: Buffer.byteLength(text), hash });
    });

    test('A failed turn is failed, with the server’s words; one whose server dies is failed too', async () => {
      await using stage = openStage();
      const id = stage.session();
      const failed = await stage.run(['session-send', id, '--message', 'Trigger 500', '--wait', '--json']);
      expect([failed.code, last(failed)['outcome']]).toEqual([EXIT.turnFailed, 'failed']);
      expect(String(last(failed)['error'])).toContain('high demand');
      await noHosts(stage);
      const died = await stage.run(['session-send', id, '--message', 'Die', '--wait', '--json']);
      expect([died.code, last(died)['outcome'], last(died)['exitCode']]).toEqual([
        EXIT.turnFailed,
        'failed',
        9,
      ]);
    });

    test('--new begins a thread in its folder with its model, and its turn runs in another process', async () => {
      await using stage = openStage();
      const order = [
        'session-send',
        '--new',
        '--runtime',
        'codex',
        '--dir',
        stage.folder,
        '--model',
        'gpt-x',
      ];
      const ran = await stage.run([...order, '--message', 'What does add do?', '--wait', '--json']);
      expect([ran.code, last(ran)['outcome']]).toEqual([EXIT.ok, 'completed']);
      expect(calls(stage, 'thread/start')).toEqual([{ cwd: stage.folder, model: 'gpt-x' }]);
      expect(calls(stage, 'turn/start')[0]).toMatchObject({ model: 'gpt-x' });
      const gone = await stage.run([...order.slice(0, 5), '/nowhere', '--message', 'x']);
      expect(gone.code).toBe(EXIT.refused);
    });

    test('session-create puts a named thread into Codex’s store, and leaves no process', async () => {
      await using stage = openStage();
      const order = [
        'session-create',
        '--runtime',
        'codex',
        '--dir',
        stage.folder,
        '--title',
        'Mine',
        '--json',
      ];
      const ran = await stage.run(order);
      const { sessionId } = document(ran);
      expect(ran.code).toBe(EXIT.ok);
      expect(calls(stage, 'thread/name/set')).toEqual([{ threadId: sessionId, name: 'Mine' }]);
      expect(listRecords(stage.connectorHome)).toEqual([]);
      const sent = await stage.run(['session-send', String(sessionId), '--message', 'Hi', '--wait']);
      expect(sent.code).toBe(EXIT.ok);
    });

    test('R-35: “never” that codex exec has left is set back when the owner wants to be asked, and only then', async () => {
      await using stage = openStage({ FAKE_POLICY: 'never' });
      const send = async (approvals: string) =>
        stage.run([
          'session-send',
          stage.session(),
          '--message',
          'Hi',
          '--approvals',
          approvals,
          '--wait',
          '--json',
        ]);
      const asked = await send('ask');
      expect(lines(asked)[0]).toMatchObject({ type: 'note', text: expect.stringContaining('“never”') });
      await send('deny');
      await send('runtime-default');
      expect(calls(stage, 'turn/start').map((call) => call['approvalPolicy'])).toEqual([
        'on-request',
        undefined,
        undefined,
      ]);
    });

    test('G9, archived, a missing folder, a thread that is nowhere: refused by name before anything is sent', async () => {
      await using stage = openStage();
      const parent = stage.session();
      const child = stage.session({ parent });
      const sub = await stage.run(['session-send', child, '--message', 'Hi']);
      expect(sub.code).toBe(EXIT.unsupported);
      expect(sub.stderr).toContain(parent);
      const archived = await stage.run([
        'session-send',
        stage.session({ archived: true }),
        '--message',
        'Hi',
      ]);
      expect([archived.code, archived.stderr.includes('codex unarchive')]).toEqual([EXIT.refused, true]);
      expect(stage.log()).toEqual([]);
    });

    test('G9: a sub-agent that only the server knows as one is refused there', async () => {
      await using stage = openStage({ FAKE_PARENT: crypto.randomUUID() });
      const ran = await stage.run(['session-send', stage.session(), '--message', 'Hi']);
      expect(ran.code).toBe(EXIT.unsupported);
      expect(calls(stage, 'turn/start')).toEqual([]);
      await noHosts(stage);
    });

    test('the program is missing: said with how to install it', async () => {
      await using stage = openStage({ PATH: '/usr/bin:/bin' });
      const ran = await stage.run(['session-send', stage.session(), '--message', 'Hi']);
      expect(ran.code).toBe(EXIT.runtimeMissing);
      expect(ran.stderr).toContain('codex');
    });

    test('R-35: without an app-server it is said what codex exec would do, and done only for who wants that', async () => {
      await using stage = openStage({ FAKE_OLD: '1' });
      const id = stage.session();
      const refused = await stage.run(['session-send', id, '--message', 'Hi']);
      expect(refused.code).toBe(EXIT.unsupported);
      for (const words of ['ask nothing', 'leave that setting', '--approvals deny'])
        expect(refused.stderr).toContain(words);
      const ran = await stage.run(
        ['session-send', id, '--message', '-', '--approvals', 'deny', '--wait', '--json'],
        { stdin: '--last' },
      );
      expect(lines(ran)[0]).toMatchObject({
        type: 'accepted',
        detail: expect.stringContaining('“never” stays'),
      });
      expect(last(ran)).toMatchObject({ outcome: 'completed', text: 'got 6 bytes', exitCode: 0 });
      expect(stage.log().at(-1)).toMatchObject({
        exec: ['exec', 'resume', '--json', '--skip-git-repo-check', id, '-'],
        message: '--last',
      });
    });

    test('K1: a host that is killed leaves a record, by which its server is found and ended', async () => {
      await using stage = openStage();
      const id = stage.session();
      await stage.run(['session-send', id, '--message', 'Write a long answer']);
      const [record] = listRecords(stage.connectorHome);
      if (!record?.child) throw new Error('no child on record');
      process.kill(record.host.pid, 'SIGKILL');
      await until(() => !isAlive(record.host.pid));
      const ran = await stage.run(['session-send', id, '--message', 'Hi', '--wait', '--json']);
      expect([ran.code, isAlive(record.child.pid)]).toEqual([EXIT.ok, false]);
      await noHosts(stage);
    });
  },
);

describe.skipIf(process.platform !== 'linux')('requests of a turn of ours', () => {
  const send = ['--wait', '--json', '--message'];

  test('A2: two are answered by their ids from other commands, each once; a denial lets the turn go on', async () => {
    await using stage = openStage();
    const sends = [stage.session(), stage.session()].map((id) =>
      stage.run(['session-send', id, ...send, 'Install left-pad']),
    );
    const [first, second] = await requests(stage, 2);
    expect(first).toMatchObject({
      kind: 'permission',
      subject: 'command',
      detail: expect.stringContaining("/bin/bash -lc 'touch /home/dev/outside.txt'"),
      allows: ['allow-once', 'allow-session', 'deny'],
    });
    const ids = [first, second].map((one) => String(one?.['requestId']));
    const denied = await stage.run(['session-approve', ids[0] ?? '', '--deny', '--json']);
    const allowed = await stage.run(['session-approve', ids[1] ?? '', '--allow', '--json']);
    expect([document(denied)['result'], document(allowed)['result']]).toEqual(['applied', 'applied']);
    expect((await stage.run(['session-approve', ids[1] ?? '', '--allow'])).code).toBe(EXIT.notFound);
    expect((await Promise.all(sends)).map((ran) => last(ran)['outcome'])).toEqual(['completed', 'completed']);
    expect(answers(stage)).toEqual([{ decision: 'decline' }, { decision: 'accept' }]);
  });

  test('A change of files is shown whole; --approvals allow-edits does not allow one outside of the folder', async () => {
    await using stage = openStage();
    const sent = stage.run([
      'session-send',
      stage.session(),
      ...send,
      'Patch outside',
      '--approvals',
      'allow-edits',
    ]);
    const [request] = await requests(stage);
    expect(request).toMatchObject({ subject: 'file change' });
    expect(String(request?.['detail'])).toStartWith('add /home/dev/outside-patch.txt\nhello');
    await stage.run(['session-approve', String(request?.['requestId']), '--allow-session']);
    expect(last(await sent)).toMatchObject({ outcome: 'completed', text: 'Patched outside.' });
    expect(answers(stage)).toEqual([{ decision: 'acceptForSession' }]);
  });

  test('--approvals deny declines at once, and the end says what', async () => {
    await using stage = openStage();
    const ran = await stage.run([
      'session-send',
      stage.session(),
      ...send,
      'Install left-pad',
      '--approvals',
      'deny',
    ]);
    expect(last(ran)).toMatchObject({ outcome: 'completed', notes: ['1 request was refused: command'] });
    expect(answers(stage)).toEqual([{ decision: 'decline' }]);
  });

  test('A8: what nobody answers is declined in time', async () => {
    await using stage = openStage();
    const order = ['session-send', stage.session(), '--approval-timeout', '1s', ...send, 'Install left-pad'];
    const ran = await stage.run(order);
    expect(lines(ran)).toContainEqual(expect.objectContaining({ type: 'resolved', decision: 'expired' }));
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
  });

  test('request_user_input takes an answer for each question, under the questions’ own ids', async () => {
    await using stage = openStage();
    const sent = stage.run(['session-send', stage.session(), ...send, 'Ask me']);
    const [request] = await requests(stage);
    const id = String(request?.['requestId']);
    expect(request).toMatchObject({ kind: 'question', allows: ['answer', 'deny'] });
    expect((await stage.run(['session-approve', id, '--answer', 'Postgres'])).code).not.toBe(EXIT.ok);
    const both = ['--answers', '{"1":["Postgres"],"2":["It is there."]}'];
    expect((await stage.run(['session-approve', id, ...both])).code).toBe(EXIT.ok);
    expect(last(await sent)).toMatchObject({ outcome: 'completed' });
    expect(answers(stage)).toEqual([
      { answers: { db: { answers: ['Postgres'] }, why: { answers: ['It is there.'] } } },
    ]);
  });

  test('an MCP form is filled in by its fields’ own types; an answer that is left empty leaves its field out', async () => {
    await using stage = openStage();
    const sent = stage.run(['session-send', stage.session(), ...send, 'Fill in']);
    const [request] = await requests(stage);
    expect(request).toMatchObject({ kind: 'form', subject: 'tickets', allows: ['answer', 'deny'] });
    const given = ['--answers', '{"1":["T-1"],"2":["3"],"3":[""],"4":["A task"]}'];
    const ran = await stage.run(['session-approve', String(request?.['requestId']), ...given]);
    expect([ran.code, ran.stderr]).toEqual([EXIT.ok, '']);
    expect(last(await sent)).toMatchObject({ outcome: 'completed' });
    expect(answers(stage)).toEqual([
      { action: 'accept', content: { key: 'T-1', count: 3, kind: 'task' }, _meta: null },
    ]);
  });

  test('A2: whether a tool of a tool server may run is asked with all that it is given', async () => {
    await using stage = openStage();
    const sent = stage.run(['session-send', stage.session(), ...send, 'Run it']);
    const [request] = await requests(stage);
    expect(request).toMatchObject({
      kind: 'permission',
      subject: 'tickets.close',
      detail: expect.stringContaining('close {"key":"T-1"}'),
      allows: ['allow-once', 'allow-session', 'deny'],
    });
    await stage.run(['session-approve', String(request?.['requestId']), '--allow-session']);
    expect(last(await sent)).toMatchObject({ outcome: 'completed' });
    expect(answers(stage)).toEqual([{ action: 'accept', content: {}, _meta: { persist: 'session' } }]);
  });

  test('a proof of identity can only be declined; a tool call of another client’s is declined by name', async () => {
    await using stage = openStage();
    const sent = stage.run(['session-send', stage.session(), ...send, 'Prove it']);
    const [request] = await requests(stage);
    const id = String(request?.['requestId']);
    expect(request).toMatchObject({ subject: 'bank', allows: ['deny'] });
    expect((await stage.run(['session-approve', id, '--allow'])).code).toBe(EXIT.refused);
    await stage.run(['session-approve', id, '--deny']);
    await sent;
    const ran = await stage.run(['session-send', stage.session(), ...send, 'Use a tool']);
    expect(lines(ran)).toContainEqual(
      expect.objectContaining({ type: 'note', text: expect.stringContaining('item/tool/call') }),
    );
    expect(stage.log().findLast((one) => 'answered' in one)).toMatchObject({ error: { code: -32601 } });
  });

  test('abort stops the turn, and --kill ends the server and says so', async () => {
    await using stage = openStage();
    const id = stage.session();
    const sent = stage.run(['session-send', id, ...send, 'Write a long answer']);
    await until(() => calls(stage, 'turn/start').length === 1);
    expect(document(await stage.run(['session-abort', id, '--json']))).toMatchObject({ stopped: true });
    expect((await sent).code).toBe(EXIT.turnStopped);
    await noHosts(stage);
    await stage.run(['session-send', id, '--message', 'Write a long answer']);
    const [record] = listRecords(stage.connectorHome);
    const killed = document(await stage.run(['session-abort', id, '--kill', '--json']));
    expect(killed).toMatchObject({ stopped: true, survivors: [] });
    expect(isAlive(record?.child?.pid ?? 0)).toBe(false);
  });
});
