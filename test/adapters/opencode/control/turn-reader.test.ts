import { describe, expect, test } from 'bun:test';
import type { BusEvent } from '../../../../src/adapters/opencode/bus.ts';
import {
  createTurnReader,
  type TurnReaderOptions,
  type TurnStep,
} from '../../../../src/adapters/opencode/control/turn-reader.ts';

const ID = 'ses_a';
const DIRECTORY = '/work/app';

const event = (type: string, properties: object): BusEvent => ({
  type,
  properties: { sessionID: ID, ...properties },
  directory: DIRECTORY,
});
const user = (id: string, more: object = {}) =>
  event('message.updated', { info: { id, sessionID: ID, role: 'user', time: { created: 1 }, ...more } });
const assistant = (id: string, more: object = {}) =>
  event('message.updated', { info: { id, sessionID: ID, role: 'assistant', time: { created: 2 }, ...more } });
const done = { finish: 'stop', time: { created: 2, completed: 3 } };
const textPart = (messageID: string, text: string, end?: number) =>
  event('message.part.updated', {
    part: {
      id: `prt_${messageID}`,
      sessionID: ID,
      messageID,
      type: 'text',
      text,
      ...(end ? { time: { start: 1, end } } : {}),
    },
  });
const status = (type: string) => event('session.status', { status: { type } });
const error = (name: string, message: string) =>
  event('session.error', { error: { name, data: { message } } });
const asked = (messageID: string | undefined, sessionID = ID) =>
  event('permission.asked', {
    id: 'per_1',
    sessionID,
    permission: 'bash',
    ...(messageID ? { tool: { messageID } } : {}),
  });

function readerOf(more: Partial<TurnReaderOptions> = {}) {
  const reader = createTurnReader({
    sessionId: ID,
    directory: DIRECTORY,
    text: 'hello',
    lastPromptId: 'msg_1',
    busy: false,
    ...more,
  });
  const read = (...events: BusEvent[]): TurnStep[] => events.flatMap((one) => reader.read(one));
  const kinds = (...events: BusEvent[]): string[] => read(...events).map(({ kind }) => kind);
  return { reader, read, kinds };
}

describe('acceptance (M7)', () => {
  test('the first new user message of a session that rests is ours', () => {
    const { reader, kinds } = readerOf();
    expect(kinds(user('msg_2'))).toEqual(['accepted']);
    expect(reader.promptId).toBe('msg_2');
  });

  test('tricky case 5: the trailing update of an older prompt is nothing', () => {
    const { reader, kinds } = readerOf();
    expect(kinds(user('msg_1'), status('busy'), status('idle'))).toEqual([]);
    expect(reader.accepted).toBe(false);
  });

  test('behind a running turn only the text tells which message is ours', () => {
    const { reader, kinds } = readerOf({ busy: true });
    expect(kinds(user('msg_2'), textPart('msg_2', 'of somebody else'))).toEqual([]);
    expect(kinds(user('msg_3'), textPart('msg_3', 'hello'))).toEqual(['accepted']);
    expect(reader.promptId).toBe('msg_3');
  });

  test('tricky case 10: an unknown agent is an error before any message: refused, with the server’s word', () => {
    const { read, kinds } = readerOf();
    expect(read(error('UnknownError', 'Agent not found: "nope"'))).toEqual([
      { kind: 'refused', reason: 'Agent not found: "nope"' },
    ]);
    expect(kinds(error('UnknownError', 'the same with a stack'))).toEqual([]);
  });

  test('an error of the turn that runs before ours is not ours', () => {
    expect(readerOf({ busy: true }).kinds(error('APIError', 'overloaded'))).toEqual([]);
  });
});

describe('the end (M6)', () => {
  test('idle before the turn has begun ends nothing', () => {
    const { kinds } = readerOf();
    expect(kinds(user('msg_2'), status('idle'), event('session.idle', {}))).toEqual(['accepted']);
    expect(kinds(status('busy'), status('idle'), event('session.idle', {}))).toEqual(['progress', 'rest']);
  });

  test('an unknown model is taken and fails at once; the first error says it best', () => {
    const { reader, kinds } = readerOf();
    const first = error('UnknownError', 'Model not found: nope/nope');
    const second = error('UnknownError', 'ProviderModelNotFoundError: Model not found');
    expect(kinds(user('msg_2'), status('busy'), first, status('idle'), second)).toEqual([
      'accepted',
      'progress',
      'rest',
    ]);
    expect(reader.end()).toEqual({ outcome: 'failed', error: 'Model not found: nope/nope' });
  });

  test('tricky case 4: at the first idle of an abort the message still looks open, then it is closed', () => {
    const { reader, kinds } = readerOf();
    kinds(user('msg_2'), status('busy'), assistant('msg_3'));
    expect(kinds(error('MessageAbortedError', 'Aborted'), status('idle'))).toEqual(['rest']);
    expect(reader.end()).toBeUndefined();
    kinds(
      assistant('msg_3', {
        error: { name: 'MessageAbortedError', data: { message: 'Aborted' } },
        time: { created: 2, completed: 3 },
      }),
    );
    expect(reader.end()).toEqual({ outcome: 'stopped', error: 'the turn was stopped' });
  });

  test('tricky case 9: a message in one busy span ends with that span, by the last answer', () => {
    const { reader, kinds } = readerOf({ busy: true });
    kinds(assistant('msg_2', done), user('msg_3'), textPart('msg_3', 'hello'));
    expect(
      kinds(assistant('msg_4'), textPart('msg_4', 'Hi.', 9), assistant('msg_4', done), status('idle')),
    ).toEqual(['progress', 'rest']);
    expect(reader.end()).toEqual({ outcome: 'completed', text: 'Hi.' });
  });

  test('an abort of the turn before it leaves a queued message without an answer', () => {
    const { reader, kinds } = readerOf({ busy: true });
    kinds(assistant('msg_2'), user('msg_3'), textPart('msg_3', 'hello'));
    expect(kinds(error('MessageAbortedError', 'Aborted'), status('idle'))).toEqual(['rest']);
    kinds(assistant('msg_2', { error: { name: 'MessageAbortedError', data: {} }, time: { completed: 3 } }));
    expect(reader.end()).toBeUndefined();
  });

  test('an error on the way is nothing when the turn goes on and ends well', () => {
    const { reader, kinds } = readerOf();
    kinds(user('msg_2'), status('busy'), error('ContextOverflowError', 'too long'), assistant('msg_3', done));
    kinds(status('idle'));
    expect(reader.end()).toEqual({ outcome: 'completed' });
  });

  test('what comes after the end belongs to the next turn', () => {
    const { reader, kinds } = readerOf();
    kinds(
      user('msg_2'),
      status('busy'),
      assistant('msg_3', done),
      textPart('msg_3', 'Ours.', 9),
      status('idle'),
    );
    expect(
      kinds(user('msg_4'), status('busy'), assistant('msg_5', { finish: 'length', time: { completed: 9 } })),
    ).toEqual([]);
    kinds(user('msg_2'), assistant('msg_5', done));
    expect(reader.end()).toEqual({ outcome: 'completed', text: 'Ours.' });
  });

  test('seen under load: a text that has begun may be told whole after idle', () => {
    const { reader, kinds } = readerOf();
    kinds(user('msg_2'), status('busy'), assistant('msg_3'), textPart('msg_3', ''));
    kinds(assistant('msg_3', done), status('idle'));
    expect(reader.whole).toBe(false);
    kinds(textPart('msg_3', 'Late.', 9));
    expect([reader.whole, reader.end()]).toEqual([true, { outcome: 'completed', text: 'Late.' }]);
  });

  test('only the texts of the last message are the final text', () => {
    const { reader, kinds } = readerOf();
    kinds(user('msg_2'), status('busy'), assistant('msg_3'), textPart('msg_3', 'I will look.', 5));
    kinds(assistant('msg_3', { finish: 'tool-calls', time: { completed: 6 } }), assistant('msg_4'));
    kinds(textPart('msg_4', 'Found.', 7), assistant('msg_4', done), status('idle'));
    expect(reader.end()).toEqual({ outcome: 'completed', text: 'Found.' });
  });

  test('an answer whose first event was missed is known by its parts, and a prompt’s part is none', () => {
    const { reader, kinds } = readerOf();
    kinds(user('msg_2'), textPart('msg_2', 'hello'), status('busy'), textPart('msg_3', 'Hi.', 5));
    kinds(user('msg_4'), textPart('msg_4', 'a message behind ours'), assistant('msg_3', done));
    expect(reader.end()).toEqual({ outcome: 'completed', text: 'Hi.' });
  });

  test('a deleted session ends it', () => {
    expect(readerOf().kinds(user('msg_2'), event('session.deleted', { info: { id: ID } }))).toEqual([
      'accepted',
      'removed',
    ]);
  });

  test('another folder’s closed instance is not ours', () => {
    const { kinds } = readerOf();
    kinds(user('msg_2'), status('busy'));
    const disposed = (directory: string): BusEvent => ({
      type: 'server.instance.disposed',
      properties: { directory },
    });
    expect(kinds(disposed('/work/other'))).toEqual([]);
    expect(kinds(disposed(DIRECTORY))).toEqual(['rest']);
  });
});

describe('requests', () => {
  test('A2: what the turn before ours asks for is not ours to answer', () => {
    const { reader, read } = readerOf({ busy: true });
    const [before] = read(asked('msg_2'));
    read(user('msg_3'), textPart('msg_3', 'hello'));
    const [ours] = read(asked('msg_4'));
    const owns = [before, ours].map((step) => step?.kind === 'asked' && reader.owns(step.request));
    expect(owns).toEqual([false, true]);
  });

  test('a sub-agent’s sub-agent is family; a stranger is not', () => {
    const { kinds } = readerOf();
    const child = (id: string, parentID: string): BusEvent => ({
      type: 'session.created',
      properties: { sessionID: id, info: { id, parentID } },
    });
    kinds(child('ses_b', ID), child('ses_c', 'ses_b'));
    expect(kinds(asked('msg_9', 'ses_c'))).toEqual(['asked']);
    expect(kinds(asked('msg_9', 'ses_z'))).toEqual([]);
  });

  test('a request without a folder gets the event’s: a reply without it is 404', () => {
    const [step] = readerOf().read(asked('msg_9'));
    expect(step).toMatchObject({ kind: 'asked', request: { directory: DIRECTORY } });
  });

  test('strange events are nothing', () => {
    const strange = [
      event('permission.asked', {}),
      event('permission.replied', {}),
      event('message.updated', { info: 7 }),
      event('message.part.updated', { part: { messageID: 'msg_9', type: 'tool', state: null } }),
      event('session.status', {}),
      event('session.error', {}),
      { type: 'session.idle', properties: {} },
    ];
    expect(readerOf().kinds(...strange)).toEqual([]);
  });
});
