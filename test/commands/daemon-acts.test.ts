/**
 * Acting through the daemon's socket: a real daemon and real hosts over a fake Claude Code, asked by a client
 * that shares no code with either.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { placesOf } from '../../src/runtime/control/places.ts';
import { listRecords } from '../../src/runtime/control/record.ts';
import { TEXT } from '../../src/runtime/limits.ts';
import { isAlive } from '../../src/runtime/process/identity.ts';
import {
  document,
  messages,
  noHosts,
  openElsewhere,
  openStage,
  type Stage,
  starts,
  until,
} from '../adapters/claude-code/control/stage.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';
import { connectWire, type WireClient } from '../runtime/daemon/wire-client.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);
const cleanup = createCleanup();
afterEach(() => cleanup.run());

type Answer = Record<string, unknown> & { readonly events?: readonly Record<string, unknown>[] };

interface Bench {
  readonly stage: Stage;
  readonly socket: string;
  act(op: string, payload: object): Promise<Answer>;
  refusal(op: string, payload: object): Promise<string>;
  wire(): Promise<WireClient>;
}

/** A daemon of its own; started after the sessions were laid out. */
async function serve(stage: Stage): Promise<Bench> {
  const socket = join(stage.connectorHome, 'daemon.sock');
  const daemon = stage.start(['daemon', '--poll-interval-ms', '200']);
  cleanup.add(async () => {
    daemon.kill('SIGTERM');
    await daemon.exited;
  });
  // Its file is there a moment before anybody listens behind it (bind, then listen), and a connection is then refused.
  const answers = async (): Promise<boolean> => {
    try {
      (await connectWire(socket)).close();
      return true;
    } catch {
      // Nobody listens yet.
      return false;
    }
  };
  await until(answers);
  const wire = async (): Promise<WireClient> => {
    const client = await connectWire(socket);
    cleanup.add(() => client.close());
    return client;
  };
  const ask = async (op: string, payload: object) =>
    (await wire()).ask({ service: 'connector', op, payload: { version: 1, ...payload } });
  return {
    stage,
    socket,
    wire,
    async act(op, payload) {
      const reply = await ask(op, payload);
      expect([op, reply['ok'], reply['error']]).toEqual([op, true, undefined]);
      const answer = reply['payload'] as Answer;
      expect(answer['version']).toBe(1);
      return answer;
    },
    refusal: async (op, payload) => String((await ask(op, payload))['error']),
  };
}

describe.skipIf(process.platform !== 'linux')('acting over the socket', () => {
  test('R-43: send answers when it is accepted, or with followMs when the turn is over', async () => {
    await using stage = openStage();
    const id = stage.session();
    const b = await serve(stage);
    const accepted = await b.act('send', { session: id, text: 'hello' });
    expect(accepted).toMatchObject({ sessionId: id, accepted: true, queued: false, mode: 'process' });
    await noHosts(stage);
    const done = await b.act('send', { session: id.slice(0, 8), text: 'wörld', followMs: 60_000 });
    expect(done['events']?.map((event) => event['type'])).toEqual(['accepted', 'done']);
    expect(done['events']?.at(-1)).toMatchObject({ outcome: 'completed', text: '5 units' });
    expect(messages(stage)).toEqual(['hello', 'wörld']);
  });

  test('R-40: a long text comes in parts, also when a character is cut between two of them', async () => {
    await using stage = openStage();
    const id = stage.session();
    const b = await serve(stage);
    const text = '€'.repeat(100_000);
    const bytes = Buffer.from(text);
    expect(await b.refusal('send', { session: id, text })).toContain('send it in parts');
    const upload = crypto.randomUUID();
    const size = TEXT.partBytes;
    const count = Math.ceil(bytes.length / size);
    for (let index = 0; index < count; index += 1) {
      const part = bytes.subarray(index * size, (index + 1) * size);
      await b.act('upload', { id: upload, index, bytes: part.toString('base64') });
    }
    const parts = { id: upload, count };
    const done = await b.act('send', { session: id, parts, followMs: 60_000 });
    expect(done['events']?.at(-1)).toMatchObject({ outcome: 'completed', text: '100000 units' });
    expect(messages(stage)).toEqual([text]);
    // Taken once: the same parts are not there for a second message.
    expect(await b.refusal('send', { session: id, parts })).toContain('a part of the message is missing');
    // Half a surrogate pair has no UTF-8, and would arrive as another character.
    expect(await b.refusal('send', { session: id, text: 'a\ud800b' })).toContain('surrogate');
    expect(await b.refusal('upload', { id: upload, index: 1, bytes: 'AA==' })).toContain('in order');
  });

  test('A2 R-35: what waits is listed with what it would do, and answered by its own id alone', async () => {
    await using stage = openStage();
    const id = stage.session();
    const b = await serve(stage);
    expect(await b.act('approve', {})).toMatchObject({ requests: [] });
    await b.act('send', { session: id, text: 'ask' });
    const [waiting] = await until(async () => {
      const { requests } = (await b.act('approve', { session: id })) as unknown as {
        requests: Record<string, unknown>[];
      };
      return requests.length > 0 && requests;
    });
    expect(waiting).toMatchObject({ sessionId: id, subject: 'Bash', kind: 'permission' });
    expect(waiting?.['detail']).toContain('rm -rf src');
    expect(await b.act('approve', { request: 'no-such-id', decision: 'allow-once' })).toMatchObject({
      error: { kind: 'notFound' },
    });
    const request = String(waiting?.['requestId']);
    const answered = await b.act('approve', { request, decision: 'deny', note: 'not that' });
    expect(answered).toMatchObject({ requestId: request, decision: 'deny', result: 'applied' });
    expect(stage.log()).toContainEqual({ answer: { behavior: 'deny', message: 'not that' } });
    expect(await b.refusal('approve', { decision: 'deny' })).toContain('needs its request');
  });

  test('abort stops the turn, and says so only when its end was seen', async () => {
    await using stage = openStage();
    const id = stage.session();
    const b = await serve(stage);
    await b.act('send', { session: id, text: 'hang' });
    const stopped = await b.act('abort', { session: id });
    expect(stopped).toMatchObject({ sessionId: id, stopped: true, survivors: [] });
    expect(await b.act('abort', { session: id })).toMatchObject({ stopped: false });
  });

  test('create begins a session that a message then goes to', async () => {
    await using stage = openStage();
    const b = await serve(stage);
    const made = await b.act('create', { runtime: 'claude-code', dir: stage.folder });
    expect(made).toMatchObject({ runtimeId: 'claude-code', created: true, approvals: 'ask' });
    const sent = await b.act('send', { new: { runtime: 'claude-code', dir: stage.folder }, text: 'first' });
    expect(sent).toMatchObject({ accepted: true, runtimeId: 'claude-code' });
    expect(await b.refusal('create', { runtime: 'claude-code', dir: 'app' })).toContain('must be absolute');
    for (const session of [made['sessionId'], sent['sessionId']])
      expect(await b.act('abort', { session, kill: true })).toMatchObject({ stopped: true });
  });

  test('M1: what is refused is an answer with its kind and exit code; what is not understood names its field', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    const b = await serve(stage);
    expect(await b.act('send', { session: id, text: 'hi' })).toMatchObject({
      accepted: false,
      error: { kind: 'ownedElsewhere', message: expect.stringContaining(`process ${owner.child.pid}`) },
    });
    expect(await b.act('send', { session: 'nobody', text: 'hi' })).toMatchObject({
      error: { kind: 'notFound' },
    });
    expect(await b.act('send', { new: { runtime: 'cursor', dir: '/' }, text: 'hi' })).toMatchObject({
      error: { kind: 'unsupported' },
    });
    const bad: [string, object, string][] = [
      ['send', { session: id }, 'text or parts'],
      ['send', { text: 'hi' }, 'session or new'],
      ['send', { session: id, text: ' ' }, 'is empty'],
      ['send', { session: id, text: 'hi', whenOwned: 'always' }, 'whenOwned'],
      ['send', { session: id, text: 'hi', version: 2 }, 'version'],
      ['abort', {}, 'session'],
      ['approve', { request: 'x', decision: 'yes' }, 'decision'],
      ['create', { dir: '/' }, 'runtime'],
    ];
    for (const [op, payload, field] of bad) {
      const said = await b.refusal(op, payload);
      expect(said).toContain(`invalid \`${op}\` payload`);
      expect(said).toContain(field);
    }
    expect(stage.log()).toEqual([]);
  });
});

describe.skipIf(process.platform !== 'linux')('a message that waits', () => {
  test('R-38: its command and its host are gone; the daemon has it delivered when the owner leaves', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id, { status: 'busy' });
    const ran = await stage.run([
      'session-send',
      id,
      '--message',
      'later',
      '--when-owned',
      'queue',
      '--json',
    ]);
    expect(document(ran)['queued']).toBe(true);
    const [host] = listRecords(stage.connectorHome);
    if (!host) throw new Error('no host');
    process.kill(host.host.pid, 'SIGKILL');
    await until(() => !isAlive(host.host.pid));
    const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: id };
    const { queue } = placesOf(stage.connectorHome, ref);
    expect(readdirSync(queue)).toHaveLength(1);
    const b = await serve(stage);
    // The owner is in a turn: once the daemon has seen everything, it still begins nothing.
    await b.act('list', {});
    expect(starts(stage)).toEqual([]);
    // Whoever acts is told who will send it. The daemon looks there, too, and what it looks at is not counted twice.
    await until(async () =>
      (await stage.run(['session-approve'])).stderr.includes(
        'the daemon sends what waits once its owner rests',
      ),
    );
    owner.child.kill('SIGKILL');
    await owner.child.exited;
    await until(() => messages(stage).length > 0);
    expect(messages(stage)).toEqual(['later']);
    await until(() => !existsSync(queue));
    await noHosts(stage);
    const { payload } = await (await b.wire()).ask({ op: 'status' });
    expect(JSON.stringify(payload)).toContain('"message_delivery.started":1');
  });
});
