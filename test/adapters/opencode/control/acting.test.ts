import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { listServers, serversFolder } from '../../../../src/adapters/opencode/control/own-servers.ts';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import {
  document,
  type Json,
  last,
  lines,
  messages,
  nothingLeft,
  openStage,
  request,
  starts,
  until,
} from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

const types = (events: readonly Json[]): unknown[] => events.map(({ type }) => type);

describe.skipIf(process.platform === 'win32')(
  'nobody runs the session: a server of ours for the one turn',
  () => {
    test('accepted by the server, done by the turn’s end, and nothing is left', async () => {
      await using stage = openStage();
      const id = stage.session();
      const ran = await stage.run(['session-send', id, '--message', 'hello', '--wait', '--json']);
      expect(ran.code).toBe(EXIT.ok);
      expect(lines(ran)[0]).toMatchObject({ type: 'accepted', mode: 'process', sessionId: id });
      expect(String(lines(ran)[0]?.['resume'])).toEndWith(`opencode --session ${id}`);
      expect(last(ran)).toMatchObject({ type: 'done', outcome: 'completed', text: 'got 5 bytes' });
      await nothingLeft(stage);
      expect(starts(stage)).toHaveLength(1);
    });

    test('O2: text of any form goes over the connection, never on a command line, and without an id of ours', async () => {
      await using stage = openStage();
      const id = stage.session();
      const text = `--session other ${'é☃🎉'.repeat(110_000)}`;
      const ran = await stage.run(['session-send', id, '--message', '-', '--wait', '--json'], {
        stdin: text,
      });
      expect(last(ran)).toMatchObject({ outcome: 'completed', text: `got ${Buffer.byteLength(text)} bytes` });
      expect(messages(stage)[0] === text).toBe(true);
      expect(stage.log().find((entry) => 'message' in entry)).toMatchObject({ keys: ['parts'] });
      expect(starts(stage)[0]?.['start']).toEqual([
        'serve',
        '--hostname',
        '127.0.0.1',
        '--port',
        expect.stringMatching(/^[1-9]\d+$/),
      ]);
    });

    const ENDS: readonly [text: string, outcome: string, code: number][] = [
      ['fail', 'failed', EXIT.turnFailed],
      ['long', 'limited', EXIT.turnFailed],
      ['die', 'failed', EXIT.turnFailed],
    ];
    for (const [text, outcome, code] of ENDS) {
      test(`M6: a turn that ends as ${text} is ${outcome}, and exits ${code}`, async () => {
        await using stage = openStage();
        const ran = await stage.run(['session-send', stage.session(), '--message', text, '--wait', '--json']);
        expect([ran.code, last(ran)['outcome']]).toEqual([code, outcome]);
        await nothingLeft(stage);
      });
    }

    test('--new begins a session in its folder with its model, and the same server runs its turn', async () => {
      await using stage = openStage();
      const order = [
        'session-send',
        '--new',
        '--runtime',
        'opencode',
        '--dir',
        stage.folder,
        '--model',
        'mock/mock-1',
      ];
      const ran = await stage.run([...order, '--message', 'hello', '--wait', '--json']);
      expect([ran.code, last(ran)['outcome']]).toEqual([EXIT.ok, 'completed']);
      expect(starts(stage)).toHaveLength(1);
      expect(stage.log().at(-1)).toMatchObject({ model: { providerID: 'mock', modelID: 'mock-1' } });
      await nothingLeft(stage);
    });

    test('a model that OpenCode does not have is refused before anything is sent', async () => {
      await using stage = openStage();
      const id = stage.session();
      for (const model of ['mock/none', 'none']) {
        const ran = await stage.run(['session-send', id, '--message', 'hello', '--model', model, '--json']);
        expect(ran.code).toBe(EXIT.refused);
      }
      expect(messages(stage)).toEqual([]);
      await nothingLeft(stage);
    });

    test('session-create makes a session without a message, and leaves no process', async () => {
      await using stage = openStage();
      const ran = await stage.run([
        'session-create',
        '--runtime',
        'opencode',
        '--dir',
        stage.folder,
        '--title',
        'Mine',
        '--json',
      ]);
      expect(ran.code).toBe(EXIT.ok);
      const row = stage.inStore(({ database }) =>
        database.query('SELECT title, directory FROM session').get(),
      );
      expect(row).toEqual({ title: 'Mine', directory: stage.folder });
      expect(listServers(stage.connectorHome)).toEqual([]);
    });

    test('runtime-default: the program’s own one-shot form, with the text on stdin and its exit code', async () => {
      await using stage = openStage();
      const id = stage.session();
      const send = (text: string) =>
        stage.run([
          'session-send',
          id,
          '--message',
          text,
          '--approvals',
          'runtime-default',
          '--wait',
          '--json',
        ]);
      const ran = await send('--hello');
      expect(last(ran)).toMatchObject({ outcome: 'completed', text: 'got 7 bytes', exitCode: 0 });
      expect(starts(stage)[0]?.['start']).toEqual(['run', '--session', id, '--format', 'json']);
      const refused = await send('ask');
      expect([refused.code, last(refused)['outcome']]).toEqual([EXIT.turnStopped, 'stopped']);
      const failed = await send('fail');
      expect([failed.code, last(failed)['error']]).toEqual([EXIT.turnFailed, 'Incorrect API key provided']);
    });

    test('the program is missing: said with how to install it', async () => {
      await using stage = openStage({ PATH: '/usr/bin:/bin' });
      const ran = await stage.run(['session-send', stage.session(), '--message', 'hello']);
      expect(ran.code).toBe(EXIT.runtimeMissing);
      expect(ran.stderr).toContain('opencode');
    });
  },
);

describe.skipIf(process.platform === 'win32')('approvals', () => {
  test('A2, A6: two requests are answered by their ids from other commands, and only once', async () => {
    await using stage = openStage();
    const sends = [stage.session(), stage.session()].map((id) =>
      stage.run(['session-send', id, '--message', 'ask', '--wait', '--json']),
    );
    const [first = '', second = ''] = await request(stage, 2);
    const denied = await stage.run(['session-approve', first, '--deny', '--note', 'not here', '--json']);
    const allowed = await stage.run(['session-approve', second, '--allow', '--json']);
    expect([document(denied)['result'], document(allowed)['result']]).toEqual(['applied', 'applied']);
    expect((await stage.run(['session-approve', second, '--allow'])).code).toBe(EXIT.notFound);
    const ended = await Promise.all(sends);
    expect(ended.map((ran) => last(ran)['outcome'])).toEqual(['completed', 'completed']);
    const replies = stage.log().flatMap((entry) => ('reply' in entry ? [entry['reply']] : []));
    expect(replies).toEqual([{ reply: 'reject', message: 'not here' }, { reply: 'once' }]);
    await nothingLeft(stage);
  });

  test('A8: what nobody answers is denied, and the turn goes on to its end', async () => {
    await using stage = openStage();
    const order = [
      'session-send',
      stage.session(),
      '--message',
      'ask',
      '--approval-timeout',
      '1s',
      '--wait',
      '--json',
    ];
    const ran = await stage.run(order);
    expect(lines(ran)).toContainEqual(expect.objectContaining({ type: 'resolved', decision: 'expired' }));
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
  });

  test('a question takes its label', async () => {
    await using stage = openStage();
    const send = stage.run(['session-send', stage.session(), '--message', 'choose', '--wait', '--json']);
    const [id = ''] = await request(stage);
    const ran = await stage.run(['session-approve', id, '--answer', 'B', '--json']);
    expect(document(ran)['result']).toBe('applied');
    expect(last(await send)).toMatchObject({ outcome: 'completed', text: 'after {"answers":[["B"]]}' });
  });
});

describe.skipIf(process.platform === 'win32')('stopping', () => {
  test('session-abort stops the turn in order, and says so once its end was seen', async () => {
    await using stage = openStage();
    const id = stage.session();
    const send = stage.run(['session-send', id, '--message', 'hang', '--wait', '--json']);
    await until(() => messages(stage).length > 0);
    const ran = await stage.run(['session-abort', id, '--json']);
    expect([ran.code, document(ran)['stopped']]).toEqual([EXIT.ok, true]);
    const sent = await send;
    expect([sent.code, last(sent)['outcome']]).toEqual([EXIT.turnStopped, 'stopped']);
    await nothingLeft(stage);
    expect((await stage.run(['session-abort', id])).code).toBe(EXIT.refused);
  });

  test('K1: --kill ends our server, also one that ignores TERM', async () => {
    await using stage = openStage({ FAKE_OPENCODE_STUBBORN: '1' });
    const id = stage.session();
    const send = stage.run(['session-send', id, '--message', 'hang', '--wait', '--json']);
    await until(() => messages(stage).length > 0);
    const pid = Number(starts(stage)[0]?.['pid']);
    const ran = await stage.run(['session-abort', id, '--kill', '--json']);
    expect([ran.code, document(ran)['survivors']]).toEqual([EXIT.ok, []]);
    expect(isAlive(pid)).toBe(false);
    await send;
  });
});

describe.skipIf(process.platform === 'win32')('the managed server', () => {
  test('is started on loopback with a generated password, kept, and found again after our process was killed', async () => {
    await using stage = openStage();
    const id = stage.session();
    const send = (...more: string[]) =>
      stage.run(['session-send', id, '--message', 'hello', '--wait', '--json', ...more]);
    const first = await send('--managed-server');
    expect(lines(first)[0]).toMatchObject({ type: 'accepted', mode: 'owned' });

    const [record] = listServers(stage.connectorHome);
    const file = join(serversFolder(stage.connectorHome), 'managed.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(serversFolder(stage.connectorHome)).mode & 0o777).toBe(0o700);
    expect(record?.credentials.password).toMatch(/^[\w-]{43}$/);
    expect(JSON.stringify(starts(stage)[0]?.['start'])).not.toContain(record?.credentials.password);
    expect(starts(stage)[0]).toMatchObject({ secret: true });
    expect((await fetch(`${record?.url}/global/health`)).status).toBe(401);

    const [host] = listRecords(stage.connectorHome);
    process.kill(host?.host.pid ?? 0, 'SIGKILL');
    await until(() => !isAlive(host?.host.pid ?? 0));
    const again = await send('--managed-server');
    expect(last(again)).toMatchObject({ outcome: 'completed' });
    expect(starts(stage)).toHaveLength(1);
    expect(listServers(stage.connectorHome)[0]?.process).toEqual(record?.process);

    const killed = await stage.run(['session-abort', id, '--kill', '--json']);
    expect(killed.code).toBe(EXIT.ok);
    expect(isAlive(record?.process.pid ?? 0)).toBe(false);
    await nothingLeft(stage);
  });

  test('R-39: it makes no `run/`, which would say that a service has run', async () => {
    await using stage = openStage();
    await stage.run([
      'session-send',
      stage.session(),
      '--message',
      'hello',
      '--wait',
      '--managed-server',
      '--keep',
      '0',
    ]);
    await nothingLeft(stage);
    expect(readdirSync(stage.connectorHome)).not.toContain('run');
  });

  test('is started once by two sends at one time', async () => {
    await using stage = openStage();
    const ids = [stage.session(), stage.session()];
    const ran = await Promise.all(
      ids.map((id) =>
        stage.run(['session-send', id, '--message', 'hello', '--wait', '--json', '--managed-server']),
      ),
    );
    expect(ran.map((one) => last(one)['outcome'])).toEqual(['completed', 'completed']);
    expect(starts(stage)).toHaveLength(1);
  });

  test('K1: a server for one turn whose process of ours was killed is ended by the next command', async () => {
    await using stage = openStage();
    const id = stage.session();
    const send = stage.start(['session-send', id, '--message', 'hang', '--wait']);
    await until(() => messages(stage).length > 0);
    const [host] = listRecords(stage.connectorHome);
    const [record] = listServers(stage.connectorHome);
    process.kill(host?.host.pid ?? 0, 'SIGKILL');
    await send.exited;
    await stage.run(['session-approve']);
    await until(() => !isAlive(record?.process.pid ?? 0));
    await nothingLeft(stage);
  });

  test('K1: one that does not listen yet when our process is killed is found again, and ended', async () => {
    await using stage = openStage({ FAKE_OPENCODE_MUTE: '1' });
    const send = stage.start(['session-send', stage.session(), '--message', 'hello', '--wait']);
    const record = await until(() => listServers(stage.connectorHome)[0]);
    const host = await until(() => listRecords(stage.connectorHome)[0]);
    process.kill(host.host.pid, 'SIGKILL');
    process.kill(send.pid, 'SIGKILL');
    await send.exited;
    await until(() => !isAlive(host.host.pid));
    expect(isAlive(record.process.pid)).toBe(true);
    await stage.run(['session-approve']);
    expect(isAlive(record.process.pid)).toBe(false);
    await nothingLeft(stage);
  });

  test('a pid that belongs to another process by now is never signalled', async () => {
    await using stage = openStage();
    await using stranger = Bun.spawn(['sleep', '1000'], { stdio: ['ignore', 'ignore', 'ignore'] });
    await stage.run(['session-send', stage.session(), '--message', 'hello', '--wait', '--managed-server']);
    const file = join(serversFolder(stage.connectorHome), 'managed.json');
    const record = JSON.parse(readFileSync(file, 'utf8'));
    const real = record.process.pid;
    await Bun.write(file, JSON.stringify({ ...record, process: { pid: stranger.pid, startToken: '1' } }));
    await stage.run(['session-abort', stage.session(), '--kill']);
    expect(isAlive(stranger.pid)).toBe(true);
    stranger.kill('SIGKILL');
    process.kill(real, 'SIGKILL');
  });
});

describe.skipIf(process.platform === 'win32')('a server of the user’s', () => {
  test('takes the message; it is neither ended nor asked for anything else', async () => {
    await using stage = openStage();
    const id = stage.session();
    const server = await stage.server();
    const ran = await stage.run(['session-send', id, '--message', 'hello', '--wait', '--json']);
    expect(lines(ran)[0]).toMatchObject({ type: 'accepted', mode: 'server' });
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
    expect([isAlive(server.pid), starts(stage).length]).toEqual([true, 1]);
  });

  test('401: names OPENCODE_SERVER_PASSWORD, and with it the message goes', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.server({ OPENCODE_SERVER_PASSWORD: 'secret' });
    const send = (env: Record<string, string>) =>
      stage.run(['session-send', id, '--message', 'hello', '--wait', '--json'], { env });
    for (const env of [{}, { OPENCODE_SERVER_PASSWORD: 'wrong' }]) {
      const ran = await send(env);
      expect(ran.code).toBe(EXIT.refused);
      expect(JSON.stringify(last(ran))).toContain('OPENCODE_SERVER_PASSWORD');
    }
    expect(last(await send({ OPENCODE_SERVER_PASSWORD: 'secret' }))).toMatchObject({ outcome: 'completed' });
  });

  test('A4, A6: a request that nobody of ours follows is listed, answered by its id, and stale ones are not', async () => {
    await using stage = openStage();
    const id = stage.session();
    const { url } = await stage.server();
    const prompt = (text: string) =>
      fetch(`${url}/session/${id}/prompt_async?directory=${encodeURIComponent(stage.folder)}`, {
        method: 'POST',
        body: JSON.stringify({ parts: [{ type: 'text', text }] }),
      });
    await prompt('ask');
    const [first = ''] = await request(stage);

    const behind = stage.run(['session-send', id, '--message', 'hello', '--wait', '--json']);
    await until(() => messages(stage).includes('hello'));
    expect(document(await stage.run(['session-approve', first, '--allow', '--json']))['result']).toBe(
      'applied',
    );
    const ran = await behind;
    expect(lines(ran)[0]).toMatchObject({ type: 'note', text: expect.stringContaining(first) });
    expect(types(lines(ran)).slice(0, 2)).toEqual(['note', 'accepted']);
    expect(last(ran)).toMatchObject({ outcome: 'completed', text: 'got 5 bytes' });

    await prompt('ask');
    const [second = ''] = await request(stage);
    expect((await stage.run(['session-abort', id])).code).toBe(EXIT.ok);
    const listed = await fetch(`${url}/permission?directory=${encodeURIComponent(stage.folder)}`);
    expect(await listed.text()).toContain(second);
    expect(document(await stage.run(['session-approve', '--json']))['requests']).toEqual([]);
    expect((await stage.run(['session-approve', second, '--allow'])).code).toBe(EXIT.notFound);
  });

  test('--opencode-url names it to every command that acts, and to the host that follows the turn', async () => {
    await using stage = openStage();
    const id = stage.session();
    const { url } = await stage.server({ OPENCODE_SERVER_PASSWORD: 'secret' });
    const address = new URL(url);
    Object.assign(address, { username: 'opencode', password: 'secret' });
    // Another one that the environment names is not the one that is meant.
    const env = { SHADOWOB_CONNECTOR_OPENCODE_URL: 'http://127.0.0.1:9' };
    const run = (...args: string[]) =>
      stage.run([...args, '--json', '--opencode-url', address.href], { env });
    const sent = await run('session-send', id, '--message', 'ask');
    expect(document(sent)).toMatchObject({ accepted: true, mode: 'server' });
    const waiting = await until(async () => {
      const { requests } = document(await run('session-approve'));
      return (requests as Json[])[0];
    });
    const allowed = await run('session-approve', String(waiting['requestId']), '--allow');
    expect(document(allowed)).toMatchObject({ result: 'applied' });
    await until(() => listRecords(stage.connectorHome).length === 0);
    await fetch(`${url}/session/${id}/prompt_async?directory=${encodeURIComponent(stage.folder)}`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('opencode:secret')}` },
      body: JSON.stringify({ parts: [{ type: 'text', text: 'hang' }] }),
    });
    await until(() => messages(stage).includes('hang'));
    expect(document(await run('session-abort', id))).toMatchObject({ stopped: true });
    const made = await run('session-create', '--runtime', 'opencode', '--dir', stage.folder);
    expect([document(made)['created'], starts(stage).length]).toEqual([true, 1]);
  });

  test.skipIf(process.platform !== 'linux')(
    '--kill ends the server that runs it, whoever’s it is',
    async () => {
      await using stage = openStage();
      const id = stage.session();
      const server = await stage.server();
      const send = stage.run(['session-send', id, '--message', 'hang', '--wait', '--json']);
      await until(() => messages(stage).length > 0);
      const ran = await stage.run(['session-abort', id, '--kill', '--json']);
      expect([ran.code, isAlive(server.pid)]).toEqual([EXIT.ok, false]);
      expect(last(await send)).toMatchObject({ outcome: 'stopped' });
    },
  );
});

describe.skipIf(process.platform !== 'linux')('M1, R-13: another process works on it', () => {
  async function held() {
    const stage = openStage();
    const id = stage.session();
    const terminal = await stage.terminal();
    stage.openTurn(id);
    return { stage, id, terminal };
  }

  test('refused, naming the process and the choices; nothing is sent', async () => {
    const { stage, id, terminal } = await held();
    await using _ = stage;
    const ran = await stage.run(['session-send', id, '--message', 'hello']);
    expect(ran.code).toBe(EXIT.ownedElsewhere);
    for (const word of [String(terminal.pid), 'queue', 'fork', 'force']) expect(ran.stderr).toContain(word);
    expect(messages(stage)).toEqual([]);
    expect(starts(stage)).toEqual([]);
  });

  test('also where a server says that it rests: it does not run that turn', async () => {
    const { stage, id } = await held();
    await using _ = stage;
    await stage.server();
    expect((await stage.run(['session-send', id, '--message', 'hello'])).code).toBe(EXIT.ownedElsewhere);
  });

  test('queue: sent when the turn has ended', async () => {
    const { stage, id, terminal } = await held();
    await using _ = stage;
    const send = stage.run([
      'session-send',
      id,
      '--message',
      'hello',
      '--when-owned',
      'queue',
      '--wait',
      '--json',
    ]);
    const queue = join(stage.connectorHome, 'control', 'queue');
    await until(
      () =>
        existsSync(queue) &&
        readdirSync(queue, { recursive: true }).some((name) => `${name}`.endsWith('.json')),
    );
    terminal.kill('SIGKILL');
    const ran = await send;
    expect(types(lines(ran)).slice(0, 2)).toEqual(['queued', 'accepted']);
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
  });

  test('fork: the turn runs in a copy; the original keeps its rows', async () => {
    const { stage, id } = await held();
    await using _ = stage;
    const rows = () =>
      stage.inStore(({ database }) =>
        database.query('SELECT count(*) AS n FROM message WHERE session_id = ?').get(id),
      );
    const before = rows();
    const ran = await stage.run([
      'session-send',
      id,
      '--message',
      'hello',
      '--when-owned',
      'fork',
      '--wait',
      '--json',
    ]);
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
    const accepted = lines(ran).find(({ type }) => type === 'accepted');
    expect(accepted?.['sessionId']).not.toBe(id);
    expect(rows()).toEqual(before);
    await nothingLeft(stage);
  });

  test('force: sent, and said to be beside the other turn', async () => {
    const { stage, id } = await held();
    await using _ = stage;
    const ran = await stage.run([
      'session-send',
      id,
      '--message',
      'hello',
      '--when-owned',
      'force',
      '--wait',
      '--json',
    ]);
    expect(lines(ran)[0]).toMatchObject({ type: 'note', text: expect.stringContaining('second turn') });
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
  });

  test('R-36: its turn is stopped by its own keyboard only; --kill ends the program', async () => {
    const { stage, id, terminal } = await held();
    await using _ = stage;
    const ran = await stage.run(['session-abort', id]);
    expect([ran.code, isAlive(terminal.pid)]).toEqual([EXIT.unsupported, true]);
    expect((await stage.run(['session-abort', id, '--kill'])).code).toBe(EXIT.ok);
    expect(isAlive(terminal.pid)).toBe(false);
  });

  test('one of two terminals in the folder is not killed on a guess', async () => {
    const { stage, id, terminal } = await held();
    await using _ = stage;
    const other = await stage.terminal();
    stage.openTurn(id);
    const ran = await stage.run(['session-abort', id, '--kill']);
    expect(ran.code).toBe(EXIT.unsupported);
    expect([isAlive(terminal.pid), isAlive(other.pid)]).toEqual([true, true]);
  });

  test('tricky case 3: an open turn that a killed process left is in nobody’s way', async () => {
    const { stage, id, terminal } = await held();
    await using _ = stage;
    terminal.kill('SIGKILL');
    await terminal.exited;
    const ran = await stage.run(['session-send', id, '--message', 'hello', '--wait', '--json']);
    expect(last(ran)).toMatchObject({ outcome: 'completed' });
  });
});
