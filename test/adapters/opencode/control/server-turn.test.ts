import { afterEach, describe, expect, test } from 'bun:test';
import { post } from '../../../../src/adapters/opencode/control/post.ts';
import { ServerTurn } from '../../../../src/adapters/opencode/control/server-turn.ts';
import { TURN_TIMES, type TurnTimes } from '../../../../src/adapters/opencode/control/turn-times.ts';
import { createServerApi } from '../../../../src/adapters/opencode/server-api.ts';
import type { ApprovalPolicy } from '../../../../src/runtime/control.ts';
import { refOf } from '../world.ts';
import { type ReplayOptions, type ReplayServer, replayServer } from './replay-server.ts';
import { type KeptSink, keptSink } from './sink.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Stage {
  readonly server: ReplayServer;
  readonly sink: KeptSink;
  readonly turn: ServerTurn;
}

interface StageOptions extends ReplayOptions {
  readonly approvals?: ApprovalPolicy;
  readonly times?: Partial<TurnTimes>;
  readonly text?: string;
  readonly room?: number;
}

/** One message of ours on a server that gives a recording again. */
function stage(scenario: string, options: StageOptions = {}): Stage {
  const server = replayServer(scenario, options);
  closing.push(() => server.stop());
  const sink = keptSink(options.room);
  const endpoint = { url: server.url, named: true };
  const turn = new ServerTurn({
    server: { endpoint, version: '1.18.33', api: createServerApi(endpoint, () => Date.now()) },
    session: refOf(server.sessionId),
    directory: server.directory,
    message: {
      id: crypto.randomUUID(),
      text: options.text ?? server.text,
      whenOwned: 'refuse',
      approvals: options.approvals ?? 'ask',
    },
    model: undefined,
    lastPromptId: undefined,
    busy: false,
    sink,
    accepted: () => sink.accepted('it', 'server'),
    now: () => Date.now(),
    times: { ...TURN_TIMES, settleMs: 300, lostMs: 400, ...options.times },
  });
  return { server, sink, turn };
}

const answer = (
  requestId: string,
  decision: 'allow-once' | 'allow-session' | 'deny' | 'answer',
  more = {},
) => ({
  session: refOf('any'),
  requestId,
  decision,
  ...more,
});

describe('a turn on a server, from its recorded events (OpenCode 1.18.33)', () => {
  const ENDS: readonly [scenario: string, end: Record<string, unknown>][] = [
    ['turn-plain', { outcome: 'completed', text: 'Hello from the mock model. All good.' }],
    ['reasoning', { outcome: 'completed', text: 'Here is the answer.' }],
    ['todo', { outcome: 'completed', text: 'Plan recorded.' }],
    ['length-finish', { outcome: 'limited', text: 'This answer is cut' }],
    ['error-auth', { outcome: 'failed', error: 'Incorrect API key provided' }],
    ['retry-overload', { outcome: 'completed', text: 'Recovered after retries.' }],
    ['drop', { outcome: 'completed' }],
  ];
  for (const [scenario, end] of ENDS) {
    test(`M6, M7 ${scenario}: accepted by the message’s own event, ended by the turn’s own: ${end['outcome']}`, async () => {
      const { turn, sink, server } = stage(scenario);
      expect(await turn.run()).toMatchObject({ kind: 'done', ...end });
      expect(sink.told[0]).toBe('accepted server: it');
      expect(sink.told.filter((line) => line.startsWith('accepted'))).toHaveLength(1);
      expect(server.posted.map(({ path }) => path)).toEqual([`/session/${server.sessionId}/prompt_async`]);
    });
  }

  test('O2: no message id of ours is sent, and nothing but the text', async () => {
    const { turn, server } = stage('turn-plain');
    await turn.run();
    expect(server.posted[0]?.body).toEqual({ parts: [{ type: 'text', text: server.text }] });
  });

  test('progress names the tool, the retry and each text once', async () => {
    const { turn, sink } = stage('retry-overload');
    await turn.run();
    expect(sink.told.some((line) => line.startsWith('progress retrying Provider is overloaded'))).toBe(true);
    expect(sink.told.filter((line) => line === 'progress running Recovered after retries.')).toHaveLength(1);
  });

  test('tricky case 13: an instance that is closed ends the turn, although no idle follows', async () => {
    const { turn, sink, server } = stage('dispose-mid-turn');
    const run = turn.run();
    await until(() => sink.told.some((line) => line.startsWith('progress streaming')));
    await post({ url: server.url }, { path: '/instance/dispose', timeoutMs: 1_000 });
    expect(await run).toMatchObject({ kind: 'done', outcome: 'stopped' });
  });
});

describe('what a turn asks for', () => {
  test('A1, A2: a permission is shown with its exact command, and applied once the server’s event says so', async () => {
    const { turn, sink, server } = stage('permission-once');
    const run = turn.run();
    const request = await sink.firstRequest;
    expect(request).toMatchObject({
      requestId: 'per_22e11d535001XeaQuvqfqkvpah',
      kind: 'permission',
      subject: 'bash',
      detail: 'echo tests-pass',
      allows: ['allow-once', 'allow-session', 'deny'],
    });
    expect(await turn.answer(answer(request.requestId, 'allow-once'))).toMatchObject({ kind: 'applied' });
    expect(server.posted[1]).toEqual({
      path: '/permission/per_22e11d535001XeaQuvqfqkvpah/reply',
      body: { reply: 'once' },
    });
    expect(await run).toMatchObject({ kind: 'done', outcome: 'completed', text: 'The tests pass.' });
    expect(sink.told.some((line) => line.startsWith('withdrawn'))).toBe(false);
    expect(await turn.answer(answer(request.requestId, 'allow-once'))).toMatchObject({ kind: 'refused' });
  });

  test('tricky case 6: a refusal that ends the turn is stopped, not completed', async () => {
    const { turn, sink } = stage('permission-reject');
    const run = turn.run();
    const request = await sink.firstRequest;
    expect(request.subject).toBe('edit');
    expect(request.detail).toContain('return Number(a) + Number(b)');
    expect(await turn.answer(answer(request.requestId, 'deny', { note: 'not now' }))).toMatchObject({
      kind: 'applied',
    });
    expect(await run).toMatchObject({
      kind: 'done',
      outcome: 'stopped',
      error: 'the turn ended at a refused tool call',
    });
  });

  test('a denial always has a word, since without one OpenCode ends the turn', async () => {
    const { turn, sink, server } = stage('permission-reject');
    const run = turn.run();
    const { requestId } = await sink.firstRequest;
    await turn.answer(answer(requestId, 'deny'));
    await run;
    expect(server.posted[1]?.body).toMatchObject({
      reply: 'reject',
      message: expect.stringContaining('user'),
    });
  });

  test('a question is answered by lists of labels', async () => {
    const { turn, sink, server } = stage('question-reply');
    const run = turn.run();
    const request = await sink.firstRequest;
    expect(request).toMatchObject({
      kind: 'question',
      allows: ['answer', 'deny'],
      questions: [{ id: '1', text: 'Which database should I use?', multiple: false }],
    });
    expect(
      await turn.answer(answer(request.requestId, 'answer', { answers: { 1: ['SQLite'] } })),
    ).toMatchObject({
      kind: 'applied',
    });
    expect(server.posted[1]?.body).toEqual({ answers: [['SQLite']] });
    expect(await run).toMatchObject({ kind: 'done', outcome: 'completed' });
  });

  test('a dismissed question ends the turn, and the word beside it is said to be lost', async () => {
    const { turn, sink, server } = stage('question-reject');
    const run = turn.run();
    const { requestId } = await sink.firstRequest;
    const result = await turn.answer(answer(requestId, 'deny', { note: 'why?' }));
    expect(result).toMatchObject({ kind: 'applied', detail: expect.stringContaining('could not be given') });
    expect(server.posted[1]?.path).toBe(`/question/${requestId}/reject`);
    expect(await run).toMatchObject({ kind: 'done', outcome: 'stopped' });
  });

  test('tricky case 8: a sub-agent’s permission is shown under the session it works for', async () => {
    const { turn, sink, server } = stage('subagent-permission');
    const run = turn.run();
    const request = await sink.firstRequest;
    expect(request.session.sessionId).toBe(server.sessionId);
    expect(request.subject).toBe('bash (a sub-agent)');
    expect(await turn.answer(answer(request.requestId, 'allow-session'))).toMatchObject({ kind: 'applied' });
    expect(server.posted[1]?.body).toEqual({ reply: 'always' });
    expect(await run).toMatchObject({ kind: 'done', outcome: 'completed' });
  });

  test('A1: a connection that breaks in the middle of the answer leaves it sent, not applied', async () => {
    const { turn, sink } = stage('permission-once', { reply: 'cut', times: { ackMs: 300 } });
    void turn.run();
    const { requestId } = await sink.firstRequest;
    expect(await turn.answer(answer(requestId, 'allow-once'))).toMatchObject({ kind: 'sent' });
  });

  test('A1: an answer that the server takes and never confirms by an event is sent, not applied', async () => {
    const { turn, sink } = stage('permission-once', { reply: 'unheard', times: { ackMs: 300 } });
    void turn.run();
    const { requestId } = await sink.firstRequest;
    expect(await turn.answer(answer(requestId, 'allow-once'))).toMatchObject({ kind: 'sent' });
  });

  test('an answer that somebody else gave withdraws the request', async () => {
    const { turn, sink, server } = stage('permission-once');
    const run = turn.run();
    const { requestId } = await sink.firstRequest;
    const path = `/permission/${requestId}/reply`;
    await post({ url: server.url }, { path, body: { reply: 'once' }, timeoutMs: 1_000 });
    await run;
    expect(sink.told).toContain(`withdrawn ${requestId}`);
  });

  test('A6: a request that was raised while the stream was lost is asked for again', async () => {
    const { turn, sink } = stage('permission-once', {
      misses: (payload) => payload['type'] === 'permission.asked',
      times: { pollMs: 50 },
    });
    const run = turn.run();
    const { requestId } = await sink.firstRequest;
    expect(await turn.answer(answer(requestId, 'allow-once'))).toMatchObject({ kind: 'applied' });
    expect(await run).toMatchObject({ kind: 'done', outcome: 'completed' });
  });

  const POLICIES: readonly [ApprovalPolicy, string, Record<string, unknown>][] = [
    ['deny', 'permission-once', { reply: 'reject' }],
    ['runtime-default', 'permission-once', { reply: 'reject' }],
    ['allow-edits', 'edit-approved', { reply: 'once' }],
  ];
  for (const [approvals, scenario, body] of POLICIES) {
    test(`${approvals}: ${scenario} is answered by the user’s policy for this turn, and nobody is asked`, async () => {
      const { turn, sink, server } = stage(scenario, { approvals });
      const result = await turn.run();
      expect(sink.requests).toEqual([]);
      expect(server.posted[1]?.body).toMatchObject(body);
      expect(result).toMatchObject({ kind: 'done' });
      if (approvals !== 'allow-edits') {
        expect(result).toMatchObject({ notes: ['1 request was refused: bash'] });
      }
    });
  }

  test('allow-edits asks for all that is no edit', async () => {
    const { turn, sink } = stage('permission-once', { approvals: 'allow-edits' });
    void turn.run();
    expect((await sink.firstRequest).subject).toBe('bash');
  });

  test('R-40: with too many requests waiting the next one is denied at once', async () => {
    const { turn, server } = stage('permission-once', { room: 0 });
    await turn.run();
    expect(server.posted[1]?.body).toMatchObject({ reply: 'reject' });
  });
});

describe('stopping', () => {
  test('an abort is answered `true` whatever happens, so stopped is said when the end was seen', async () => {
    const { turn, sink } = stage('slow-tool-abort');
    const run = turn.run();
    await until(() => sink.told.includes('progress tool bash'));
    expect(await turn.stop()).toBe(true);
    expect(await run).toMatchObject({ kind: 'done', outcome: 'stopped', error: 'the turn was stopped' });
  });

  test('tricky case 7: aborted while it waited for a retry is stopped, although nothing tells', async () => {
    const { turn, sink } = stage('retry-overload', { prompt: 1 });
    const run = turn.run();
    await until(() => sink.told.some((line) => line.startsWith('progress retrying')));
    expect(await turn.stop()).toBe(true);
    expect(await run).toMatchObject({ kind: 'done', outcome: 'stopped' });
  });

  test('what still waited is withdrawn with the turn', async () => {
    const { turn, sink } = stage('stale-permission-after-abort');
    const run = turn.run();
    const { requestId } = await sink.firstRequest;
    expect(await turn.stop()).toBe(true);
    await run;
    expect(sink.told).toContain(`withdrawn ${requestId}`);
  });
});

describe('what is missed or lost', () => {
  const of = (type: string, role?: string) => (payload: Record<string, unknown>) => {
    const properties = (payload['properties'] ?? {}) as { info?: { role?: string } };
    const info = properties.info ?? {};
    return payload['type'] === type && (role === undefined || info.role === role);
  };

  test('the text is asked for when its event was missed', async () => {
    const { turn } = stage('turn-plain', {
      misses: (payload) => payload['type'] === 'message.part.updated',
    });
    expect(await turn.run()).toMatchObject({
      outcome: 'completed',
      text: 'Hello from the mock model. All good.',
    });
  });

  test('M7: a message whose event was missed is found in the session', async () => {
    const { turn, sink } = stage('turn-plain', {
      misses: of('message.updated', 'user'),
      times: { pollMs: 50 },
    });
    expect(await turn.run()).toMatchObject({ kind: 'done', outcome: 'completed' });
    expect(sink.told).toContain('accepted server: it');
  });

  test('a lost `idle` does not let a turn run for ever', async () => {
    const { turn } = stage('turn-plain', {
      misses: (payload) =>
        payload['type'] === 'session.idle' ||
        (payload['type'] === 'session.status' &&
          JSON.stringify(payload['properties']).includes('"type":"idle"')),
      times: { pollMs: 50 },
    });
    expect(await turn.run()).toMatchObject({ kind: 'done', outcome: 'completed' });
  });

  test('A6: a stream that is cut in the middle is taken up again', async () => {
    const { turn, sink } = stage('permission-once', { cutBefore: of('permission.asked') });
    const run = turn.run();
    const { requestId } = await sink.firstRequest;
    expect(await turn.answer(answer(requestId, 'allow-once'))).toMatchObject({ kind: 'applied' });
    expect(await run).toMatchObject({ kind: 'done', outcome: 'completed' });
  });

  test('a server that leaves in the middle of the turn fails it, and one that we end stops it', async () => {
    for (const ours of [false, true]) {
      const { turn, sink, server } = stage('permission-once', { times: { lostMs: 300 } });
      const run = turn.run();
      await sink.firstRequest;
      if (ours) turn.expectEnd();
      await server.stop();
      expect(await run).toMatchObject({ kind: 'done', outcome: ours ? 'stopped' : 'failed' });
    }
  });

  test('M7: a 204 is no acceptance: a message that never shows is refused as unconfirmed', async () => {
    const { turn, sink } = stage('turn-plain', {
      misses: () => true,
      text: 'a text that the session does not have',
      times: { acceptMs: 200, pollMs: 50 },
    });
    expect(await turn.run()).toMatchObject({ kind: 'refused', refusal: { kind: 'timedOut' } });
    expect(sink.told).toEqual([]);
  });

  test('nobody there is a network refusal, before anything was sent', async () => {
    const { turn, server, sink } = stage('turn-plain');
    await server.stop();
    expect(await turn.run()).toMatchObject({ kind: 'refused', refusal: { kind: 'network' } });
    expect(sink.told).toEqual([]);
  });
});

/** Waits for a condition; a test that waits in vain is ended by the runner. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5);
}
