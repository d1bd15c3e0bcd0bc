import { describe, expect, test } from 'bun:test';
import { type BusEvent, mayMatter, readBusEvent, sessionOf } from '../../../src/adapters/opencode/bus.ts';
import { applyEvent, disposeInstance, seedSession } from '../../../src/adapters/opencode/events.ts';
import { timeOfId } from '../../../src/adapters/opencode/ids.ts';
import { type LiveSession, liveClaim, looksSame, stateOfLive } from '../../../src/adapters/opencode/live.ts';
import type { Claim } from '../../../src/runtime/session/evidence.ts';
import { fuse } from '../../../src/runtime/session/fuse.ts';

const ID = 'ses_a';
const AT = 1_796_069_000_000;
const about = (more: object = {}) => ({ sessionID: ID, ...more });
const event = (type: string, properties: object = about()): BusEvent => ({
  type,
  properties: { ...properties },
});
const created = event('session.created', {
  info: { id: ID, directory: '/work/app', title: 'T', time: { created: AT, updated: AT } },
});
const status = (type: string, more: object = {}) =>
  event('session.status', about({ status: { type, ...more } }));
const user = (id: string, at: number) =>
  event('message.updated', { info: { id, role: 'user', sessionID: ID, time: { created: at } } });
const answer = (id: string, more: object = {}) =>
  event('message.updated', {
    info: { id, role: 'assistant', sessionID: ID, time: { created: AT }, ...more },
  });
const part = (more: object) =>
  event('message.part.updated', { part: { sessionID: ID, messageID: 'msg_2', id: 'prt_1', ...more } });
const delta = event(
  'message.part.delta',
  about({ messageID: 'msg_2', partID: 'prt_1', field: 'text', delta: 'x' }),
);

function after(...events: readonly BusEvent[]): LiveSession {
  const session = events.reduce<LiveSession | undefined>(
    (state, one, index) => applyEvent(state, one, AT + index),
    undefined,
  );
  if (!session) throw new Error('no event named the session');
  return session;
}
const kind = (session: LiveSession) => stateOfLive(session)?.kind;
const working = [created, user('msg_1', AT), status('busy'), answer('msg_2')] as const;

describe('one session of one process', () => {
  test('R-13: idle about a session that this process never ran says nothing', () => {
    const session = after(status('idle'), event('session.idle'));
    expect(stateOfLive(session)).toBeUndefined();
    expect(liveClaim(session, 'f', 'o')).toBeUndefined();
  });

  test('a 204 is no work: a stored prompt alone moves nothing (tricky case 10)', () => {
    expect(kind(after(created, user('msg_1', AT)))).toBe('idle');
  });

  test('the trailing update of the user message is no activity (tricky case 5)', () => {
    const rested = after(
      ...working,
      answer('msg_2', { finish: 'stop', time: { created: AT, completed: AT + 3 } }),
      status('idle'),
    );
    const later = applyEvent(rested, user('msg_1', AT), AT + 900_000);
    expect(later).toBe(rested);
  });

  test('requests go with their turn, and a late answer to one changes nothing (tricky case 2)', () => {
    const asked = after(...working, event('permission.asked', about({ id: 'per_1', permission: 'bash' })));
    expect(kind(asked)).toBe('waiting');
    const aborted = applyEvent(
      asked,
      event('session.error', about({ error: { name: 'MessageAbortedError' } })),
      AT + 10,
    );
    expect(aborted?.turn.end).toBe('stopped');
    expect(aborted?.waits.size).toBe(0);
    const replied = applyEvent(aborted, event('permission.replied', about({ requestID: 'per_1' })), AT + 20);
    expect(replied).toBe(aborted as LiveSession);
  });

  test('the oldest of several permissions is shown, and answering it shows the next', () => {
    const ask = (id: string, command: string) =>
      event('permission.asked', about({ id, permission: 'bash', metadata: { command } }));
    const two = after(...working, ask('per_1', 'first'), ask('per_2', 'second'));
    expect(stateOfLive(two)).toMatchObject({ for: 'approval', tool: { command: 'first' } });
    const one = applyEvent(two, event('permission.replied', about({ requestID: 'per_1' })), AT + 10);
    expect(one && stateOfLive(one)).toMatchObject({ for: 'approval', tool: { command: 'second' } });
  });

  test('a provider error waits for its idle, and is failed with its text (tricky case 4)', () => {
    const error = { name: 'APIError', data: { message: 'Incorrect API key provided' } };
    const failing = after(...working, event('session.error', about({ error })));
    expect(kind(failing)).toBe('working');
    const rested = after(...working, event('session.error', about({ error })), status('idle'));
    expect(rested.turn).toMatchObject({ end: 'failed', error: 'Incorrect API key provided' });
  });

  test('a prompt that fails before its turn begins (unknown agent or model) is failed', () => {
    const refused = event(
      'session.error',
      about({ error: { name: 'UnknownError', data: { message: 'Agent not found' } } }),
    );
    expect(after(created, refused).turn).toMatchObject({ end: 'failed', error: 'Agent not found' });
  });

  test('an abort that nothing follows (dispose) cuts the turns of that directory only (tricky case 13)', () => {
    const busy = after(...working);
    expect(disposeInstance(busy, '/work/other', AT + 9)).toBe(busy);
    expect(kind(disposeInstance(busy, '/work/app', AT + 9))).toBe('idle');
  });

  test('a retry is running and retrying; a delta or busy ends it (tricky case 16)', () => {
    const retrying = after(...working, delta, status('retry', { message: 'Connection reset' }));
    expect(stateOfLive(retrying)).toEqual({ kind: 'working', doing: 'running', retrying: true });
    const again = applyEvent(retrying, delta, AT + 20);
    expect(again && stateOfLive(again)).toEqual({ kind: 'working', doing: 'streaming' });
  });

  test('a tool that runs is named with its command; the end of its part ends it', () => {
    const tool = (state: object) => part({ type: 'tool', tool: 'bash', callID: 'c', state });
    const runs = after(...working, tool({ status: 'running', input: { command: 'pnpm test' } }));
    expect(stateOfLive(runs)).toMatchObject({ doing: 'tool', tool: { name: 'bash', command: 'pnpm test' } });
    const ended = applyEvent(runs, tool({ status: 'completed' }), AT + 20);
    expect(ended && stateOfLive(ended)).toEqual({ kind: 'working', doing: 'running' });
  });

  test('removed while busy: stopped, and what still comes of it is ignored (tricky case 12)', () => {
    const gone = after(...working, event('session.deleted', { info: { id: ID } }));
    expect(stateOfLive(gone)).toEqual({ kind: 'ended', outcome: 'stopped' });
    expect(applyEvent(gone, event('session.error', about({ error: { name: 'UnknownError' } })), AT + 9)).toBe(
      gone,
    );
    expect(applyEvent(gone, status('busy'), AT + 9)).toBe(gone);
  });

  test('prompts queued while busy stay one turn (tricky case 9)', () => {
    const queued = after(...working, user('msg_3', AT + 500));
    expect(queued.turn.openedAt).toBe(AT);
    expect(kind(queued)).toBe('working');
  });

  test('a hundred deltas look the same', () => {
    const first = after(...working, delta);
    const next = applyEvent(first, delta, AT + 50);
    expect(next && looksSame(first, next)).toBe(true);
    expect(next?.since).toBe(first.since);
  });

  test('what a poll said when listening began gives way to an event that came meanwhile', () => {
    const seeded = seedSession(
      undefined,
      ID,
      'busy',
      [{ id: 'per_1', wait: { kind: 'permission', at: AT } }],
      AT,
    );
    expect(kind(seeded)).toBe('waiting');
    const heard = after(created);
    expect(seedSession(heard, ID, 'busy', [], AT)).toBe(heard);
  });
});

describe('R-13: an idle word beside another process’s newer turn', () => {
  const rested = liveClaim(
    after(
      ...working,
      answer('msg_2', { finish: 'stop', time: { created: AT, completed: AT + 3 } }),
      status('idle'),
    ),
    'opencode.stream',
    'u',
  );
  const rows = (more: Partial<Claim>): Claim => ({
    feed: 'opencode.database',
    confidence: 'inferred',
    at: AT + 60_000,
    says: { kind: 'working', doing: 'running' },
    turn: { openedAt: AT + 50_000 },
    detail: '',
    ...more,
  });
  const owner: Claim = {
    feed: 'opencode.process',
    owner: '7',
    confidence: 'inferred',
    at: AT + 60_000,
    says: { kind: 'silent' },
    life: 'alive',
    detail: '',
  };

  test('the other one’s open turn is shown while its process lives', () => {
    if (!rested) throw new Error('no claim');
    expect(fuse([rested, rows({}), owner], undefined, AT + 70_000).state).toEqual({
      kind: 'working',
      doing: 'running',
    });
  });

  test('and its outcome once it has ended', () => {
    if (!rested) throw new Error('no claim');
    const ended = rows({
      says: { kind: 'rested', outcome: 'failed' },
      turn: { openedAt: AT + 50_000, endedAt: AT + 60_000, end: 'failed' },
    });
    expect(fuse([rested, ended], undefined, AT + 70_000).state).toEqual({
      kind: 'rested',
      outcome: 'failed',
    });
  });
});

describe('bus lines', () => {
  test('both shapes are read, the sync twin is not', () => {
    expect(
      readBusEvent({ directory: '/d', payload: { type: 'session.idle', properties: { sessionID: ID } } }),
    ).toEqual({
      type: 'session.idle',
      properties: { sessionID: ID },
      directory: '/d',
    });
    expect(readBusEvent({ type: 'session.idle', properties: { sessionID: ID } })?.type).toBe('session.idle');
    expect(readBusEvent({ payload: { type: 'sync', syncEvent: {} } })).toBeUndefined();
    for (const junk of [null, 7, 'x', [], { payload: 3 }, { type: 5 }])
      expect(readBusEvent(junk)).toBeUndefined();
  });

  test('what can’t matter is dropped unparsed, whatever a directory is called (tricky case 18)', () => {
    const line = (type: string, directory = '/d') =>
      JSON.stringify({ directory, project: 'p', payload: { id: 'evt', type, properties: {} } });
    expect(
      ['plugin.added', 'sync', 'server.heartbeat', 'lsp.updated'].map((type) => mayMatter(line(type))),
    ).toEqual([false, false, false, false]);
    expect(
      [
        'session.idle',
        'message.part.delta',
        'permission.asked',
        'question.asked',
        'server.instance.disposed',
      ].every((type) => mayMatter(line(type))),
    ).toBe(true);
    expect(mayMatter(line('session.idle', '/d","type":"plugin.added'))).toBe(true);
  });

  test('the session is found wherever an event names it; other ids are none', () => {
    expect(sessionOf(event('x', { info: { id: ID } }))).toBe(ID);
    expect(sessionOf(event('x', { part: { sessionID: ID } }))).toBe(ID);
    expect(sessionOf(event('x', { sessionID: 'bogus' }))).toBeUndefined();
  });
});

describe('the time inside an id', () => {
  test('is the program’s own, near to now; `ses_` ids hold none (tricky case 17)', () => {
    expect(timeOfId('evt_22e11c825002zpAZtBr0J2DtIV', AT)).toBe(1_796_069_247_013);
    expect(timeOfId('per_22e11c825002x', AT + 300 * 86_400_000)).toBe(1_796_069_247_013);
    expect(timeOfId('ses_dd1ee37daffeXlaDHXM7hLlEPl', AT)).toBeUndefined();
    expect(timeOfId('per_xyz', AT)).toBeUndefined();
  });
});
