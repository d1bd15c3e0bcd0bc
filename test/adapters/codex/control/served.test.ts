import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { answers, calls, document, last, lines, noHosts, openStage, requests, until } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

const send = ['--wait', '--json', '--message'];

describe.skipIf(process.platform !== 'linux')('a server has the thread', () => {
  test('it takes the message, and is neither ended nor asked for anything else', async () => {
    await using stage = openStage();
    const id = stage.session();
    const server = await stage.server([id]);
    const ran = await stage.run(['session-send', id, ...send, 'What does add do?']);
    expect(lines(ran)[0]).toMatchObject({ type: 'accepted', mode: 'server' });
    expect(last(ran)).toMatchObject({ outcome: 'completed', text: expect.stringContaining('add(a, b)') });
    await noHosts(stage);
    expect(isAlive(server.pid)).toBe(true);
    expect(stage.log().filter((one) => 'start' in one)).toHaveLength(1);
  });

  test('a message goes into a turn that runs, and done is that turn’s own end', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.server([id], 'Write a long answer');
    const ran = await stage.run(['session-send', id, ...send, 'And subtract?']);
    expect(lines(ran)[0]).toMatchObject({
      type: 'accepted',
      detail: expect.stringContaining('runs already'),
    });
    expect(last(ran)).toMatchObject({ outcome: 'completed', text: 'There is no subtract() yet.' });
    expect([calls(stage, 'turn/steer').length, calls(stage, 'turn/start').length]).toEqual([1, 0]);
  });

  test('A4, A6: a request that nobody of ours follows is sent again to us, listed, and answered by its id once', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.server([id], 'Install left-pad');
    const [request] = await requests(stage);
    expect(request).toMatchObject({ sessionId: id, subject: 'command' });
    const [again] = await requests(stage);
    expect(again?.['requestId']).toBe(request?.['requestId']);
    const behind = await stage.run(['session-send', id, '--message', 'Hi', '--json']);
    expect(behind.stdout).toContain('waits for an approval');
    const requestId = String(request?.['requestId']);
    const ran = await stage.run(['session-approve', requestId, '--allow', '--json']);
    expect(document(ran)['result']).toBe('applied');
    expect((await stage.run(['session-approve', requestId, '--allow'])).code).toBe(EXIT.notFound);
    expect(answers(stage)).toEqual([{ decision: 'accept' }]);
  });

  test('A change of files that waits there is shown whole, though the request does not say it', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.server([id], 'Patch outside');
    const [request] = await requests(stage);
    expect(String(request?.['detail'])).toStartWith('add /home/dev/outside-patch.txt\nhello');
  });

  test('R-22: a request of a turn that is not ours is left alone by whoever sends and aborts', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.server([id], 'Install left-pad');
    await stage.run(['session-send', id, '--message', 'Hi', '--approvals', 'deny']);
    expect(answers(stage)).toEqual([]);
    const ran = await stage.run(['session-abort', id, '--json']);
    expect(document(ran)).toMatchObject({ stopped: true });
    expect(answers(stage)).toEqual([]);
    expect((await stage.run(['session-abort', id])).code).toBe(EXIT.refused);
  });

  test('an answer at the terminal withdraws ours, and the turn is followed to its end', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.server([id]);
    const sent = stage.run(['session-send', id, ...send, 'Install left-pad']);
    const [request] = await requests(stage);
    // The terminal is another client of the same server.
    const socket = new WebSocket(`ws+unix://${stage.home}/s.sock`);
    const asked = Promise.withResolvers<number>();
    socket.onopen = () =>
      socket.send(JSON.stringify({ id: 1, method: 'thread/resume', params: { threadId: id } }));
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data));
      if (String(message.method).endsWith('requestApproval')) asked.resolve(message.id);
    };
    const rpcId = await asked.promise;
    socket.send(JSON.stringify({ id: rpcId, result: { decision: 'accept' } }));
    const ran = await sent;
    socket.close();
    expect(lines(ran)).toContainEqual(
      expect.objectContaining({ type: 'resolved', requestId: request?.['requestId'], decision: 'withdrawn' }),
    );
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
  });

  test('K1: --kill does not end a server that holds other threads, and says how many; a lone one is ended', async () => {
    await using stage = openStage();
    const [one, two] = [stage.session(), stage.session()];
    const server = await stage.server([one, two], 'Write a long answer');
    const ran = await stage.run(['session-abort', one, '--kill']);
    expect([ran.code, isAlive(server.pid)]).toEqual([EXIT.unsupported, true]);
    expect(ran.stderr).toContain('1 other session');

    await using lone = openStage();
    const only = lone.session();
    const own = await lone.server([only]);
    expect((await lone.run(['session-abort', only, '--kill'])).code).toBe(EXIT.ok);
    expect(isAlive(own.pid)).toBe(false);
  });

  test('a server that dies in the middle of the turn: its end was not seen, and that is said', async () => {
    await using stage = openStage();
    const id = stage.session();
    const server = await stage.server([id]);
    const sent = stage.run(['session-send', id, ...send, 'Write a long answer']);
    await until(() => calls(stage, 'turn/start').length === 1);
    server.kill('SIGKILL');
    const ran = await sent;
    expect([ran.code, last(ran)['outcome']]).toEqual([EXIT.turnFailed, 'failed']);
    expect(String(last(ran)['error'])).toContain('was not seen');
  });
});

describe.skipIf(process.platform !== 'linux')('M1: another process holds the thread', () => {
  test('codex exec: refused with the choices, never resumed beside it; forced is refused too', async () => {
    await using stage = openStage();
    const id = stage.session({ open: true });
    const owner = await stage.owner(['exec', '--hold', id]);
    for (const more of [[], ['--when-owned', 'force']]) {
      const ran = await stage.run(['session-send', id, '--message', 'Hi', ...more]);
      expect(ran.code).toBe(EXIT.ownedElsewhere);
      for (const word of [String(owner.pid), 'queue', 'fork']) expect(ran.stderr).toContain(word);
    }
    expect(calls(stage, 'thread/resume')).toEqual([]);
    expect(stage.log().filter((one) => 'start' in one)).toHaveLength(1);
  });

  test('codex exec: queue waits until it has ended; fork goes on in a copy', async () => {
    await using stage = openStage();
    const id = stage.session({ open: true });
    const owner = await stage.owner(['exec', '--hold', id]);
    const fork = await stage.run(['session-send', id, ...send, 'Hi', '--when-owned', 'fork']);
    const copy = lines(fork).find(({ type }) => type === 'accepted')?.['sessionId'];
    expect([last(fork)['outcome'], copy === id]).toEqual(['completed', false]);
    const queued = stage.run(['session-send', id, ...send, 'Hi', '--when-owned', 'queue']);
    const queue = join(stage.connectorHome, 'control', 'queue');
    await until(
      () =>
        existsSync(queue) &&
        readdirSync(queue, { recursive: true }).some((name) => `${name}`.endsWith('.json')),
    );
    owner.kill('SIGINT');
    const ran = await queued;
    expect(lines(ran).map(({ type }) => type)).toContain('queued');
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
  });

  test('a terminal at rest takes it from Codex’s own queue; done is the end on its own record', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.owner(['tui', '--hold', id]);
    const ran = await stage.run(['session-send', id, ...send, '--flag']);
    expect(lines(ran).find(({ type }) => type === 'accepted')).toMatchObject({
      detail: expect.stringContaining('own queue'),
    });
    expect(last(ran)).toMatchObject({ outcome: 'completed', text: 'From the queue.' });
    expect(stage.log().findLast((one) => 'took' in one)).toMatchObject({ took: [{ text: '--flag' }] });
    expect(calls(stage, 'thread/resume')).toEqual([]);
    await noHosts(stage);
  });

  test('abort takes a message back that the terminal has not taken yet; --kill then ends the terminal', async () => {
    await using stage = openStage();
    const id = stage.session();
    const terminal = await stage.owner(['tui', '--hold', id], { FAKE_DEAF: '1' });
    const sent = stage.run(['session-send', id, ...send, 'Hi']);
    await until(() => calls(stage, 'thread/queue/list').length > 0);
    const ran = await stage.run(['session-abort', id, '--json']);
    expect(document(ran)).toMatchObject({ stopped: true });
    expect((await sent).code).toBe(EXIT.refused);
    expect(await Bun.file(join(stage.home, '.codex', 'fake-queue.json')).json()).toEqual([]);
    await noHosts(stage);
    expect((await stage.run(['session-abort', id])).code).toBe(EXIT.unsupported);
    const killed = await stage.run(['session-abort', id, '--kill', '--json']);
    expect(document(killed)).toMatchObject({ stopped: true, survivors: [] });
    expect(isAlive(terminal.pid)).toBe(false);
  });
});
