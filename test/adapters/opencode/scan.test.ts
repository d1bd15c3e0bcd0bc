import { afterEach, describe, expect, test } from 'bun:test';
import { createOpencode } from '../../../src/adapters/opencode/index.ts';
import type { ScanOptions } from '../../../src/runtime/feed.ts';
import type { ProcessHost } from '../../../src/runtime/process/types.ts';
import { sessionRow } from '../../../src/runtime/session/row.ts';
import { memoryIndex } from '../../../src/runtime/store/memory-index.ts';
import { type FakeServer, startServer } from './fake-server.ts';
import {
  contextFor,
  createStore,
  type FakeProcess,
  fakeMachine,
  inFolder,
  NOWHERE,
  refOf,
  registryOf,
  type Store,
} from './world.ts';

const NOW = 1_796_070_000_000;
const DIRECTORY = '/work/app';
const ID = 'ses_a';
const PROMPT = 'msg_22e1c0000001aaaaaaaaaaaaaa';
const ANSWER = 'msg_22e1c0000002aaaaaaaaaaaaaa';

const running: FakeServer[] = [];
const server = (): FakeServer => {
  const started = startServer();
  running.push(started);
  return started;
};
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop()));
});

interface World {
  readonly store: (store: Store) => void;
  readonly env?: Record<string, string>;
  readonly processes?: (database: string) => readonly FakeProcess[];
  readonly options?: ScanOptions;
}

async function look({ store: fill, env = {}, processes = () => [], options }: World) {
  return inFolder(async (folder) => {
    const store = createStore(`${folder}/data`);
    fill(store);
    store.close();
    const host = fakeMachine(folder, processes(store.path), NOW);
    const context = contextFor(`${folder}/data`, {
      now: () => NOW,
      env: { SHADOWOB_CONNECTOR_OPENCODE_URL: NOWHERE, ...env },
    });
    const scan = await createOpencode(host).scan(context, options);
    const registry = registryOf(scan, NOW);
    return { scan, registry, row: (id = ID, instance?: string) => rowOf(registry, id, instance) };
  });
}

function rowOf(registry: ReturnType<typeof registryOf>, id: string, instance?: string) {
  const session = registry.find(refOf(id, instance));
  if (!session) throw new Error(`no session ${id}`);
  return sessionRow(session);
}

const prompted = (store: Store, id = ID): void => {
  store.session({
    id,
    directory: DIRECTORY,
    title: 'A session',
    agent: 'build',
    slug: 'calm-harbor',
    model: { id: 'm', providerID: 'p' },
    time_created: NOW - 60_000,
    time_updated: NOW - 60_000,
  });
  store.message(id, {
    id: PROMPT,
    time_created: NOW - 50_000,
    time_updated: NOW - 50_000,
    data: { role: 'user', time: { created: NOW - 50_000 } },
  });
};
const answered =
  (more: Record<string, unknown>, parts: readonly unknown[] = [{ type: 'text', text: 'x' }]) =>
  (store: Store): void => {
    prompted(store);
    const time = { created: NOW - 49_000, ...(more['time'] as object | undefined) };
    store.message(ID, {
      id: ANSWER,
      time_created: NOW - 49_000,
      time_updated: NOW - 40_000,
      data: { role: 'assistant', parentID: PROMPT, ...more, time },
    });
    for (const [index, data] of parts.entries()) {
      store.part(ID, {
        id: `prt_${index}`,
        message_id: ANSWER,
        time_created: NOW - 45_000,
        time_updated: NOW - 44_000,
        data,
      });
    }
  };
const open = answered({});
const done = answered({ finish: 'stop', time: { completed: NOW - 40_000 }, tokens: { total: 130 } });
const never = (store: Store): void =>
  store.session({
    id: ID,
    directory: DIRECTORY,
    title: 'New session - 2026-11-30T20:07:27.013Z',
    time_created: NOW - 60_000,
    time_updated: NOW - 60_000,
  });

describe('a server that rests', () => {
  test('O1: a session nobody has prompted is idle, and so is its pet', async () => {
    const one = server();
    one.sessions = [{ id: ID }];
    const { row, scan } = await look({ store: never, env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url } });
    expect(row()).toMatchObject({
      state: 'idle',
      petReaction: 'idle',
      life: 'alive',
      source: 'server',
      endpoint: one.url,
      evidence: { confidence: 'exact' },
    });
    expect(scan.instances).toMatchObject([
      { instanceId: 'local-data', status: 'running', endpoint: one.url },
    ]);
    expect(scan.instances[0]?.capabilities).toContain('liveWatch');
  });

  test('without a server the same session is unknown, never idle (design rule 3)', async () => {
    const { row, scan } = await look({ store: never });
    expect(row()).toMatchObject({ state: 'unknown', source: 'database' });
    expect(Object.keys(row())).not.toContain('endpoint');
    expect(scan.instances).toMatchObject([{ instanceId: 'local-data', status: 'available' }]);
  });

  test('a finished turn keeps its outcome, with the facts of `cli-surface.md` §5', async () => {
    const one = server();
    one.sessions = [{ id: ID }];
    const { row } = await look({ store: done, env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url } });
    expect(row()).toMatchObject({
      state: 'completed',
      life: 'alive',
      model: 'p/m',
      title: 'A session',
      workDir: DIRECTORY,
      contextUsage: { usedTokens: 130 },
      native: { status: 'idle', slug: 'calm-harbor', agent: 'build', version: '1.18.33' },
    });
  });

  test('a prompt that is only stored is no turn yet: the session is as it was before (tricky case 10)', async () => {
    const one = server();
    one.sessions = [{ id: ID }];
    const prompt = (store: Store): void => {
      const data = { role: 'user', time: { created: NOW - 200 } };
      store.message(ID, { id: 'msg_22e1d', time_created: NOW - 200, time_updated: NOW - 200, data });
    };
    const at = (before: (store: Store) => void) =>
      look({
        store: (store) => {
          before(store);
          prompt(store);
        },
        env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url },
      }).then(({ row }) => row().state);
    expect(await at(never)).toBe('idle');
    expect(await at(done)).toBe('completed');
  });

  test('a permission that outlived its turn is no wait (tricky case 2)', async () => {
    const one = server();
    one.sessions = [{ id: ID }];
    one.permissions = [
      { id: 'per_22e1c0000003x', sessionID: ID, permission: 'bash', patterns: [], metadata: {}, always: [] },
    ];
    const { row } = await look({ store: done, env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url } });
    expect(row().state).toBe('completed');
  });
});

describe('a server that works', () => {
  const busy = (status: unknown): FakeServer => {
    const one = server();
    one.sessions = [{ id: ID }];
    one.statuses[DIRECTORY] = { [ID]: status };
    return one;
  };
  const at = (one: FakeServer, store = open) =>
    look({ store, env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url } });
  const request = (more: object) => ({
    id: 'per_22e1c0000003x',
    sessionID: ID,
    permission: 'bash',
    patterns: ['pnpm test'],
    metadata: { command: 'pnpm test' },
    always: [],
    ...more,
  });

  test('busy is exact, and the rows say which tool', async () => {
    const tool = {
      type: 'tool',
      tool: 'bash',
      callID: 'c',
      state: { status: 'running', metadata: { output: '' }, input: { command: 'pnpm test' } },
    };
    const { row } = await at(busy({ type: 'busy' }), answered({}, [tool]));
    expect(row()).toMatchObject({
      state: 'tool_call',
      petReaction: 'testing',
      evidence: { source: 'opencode.server', confidence: 'exact' },
    });
  });

  test.each(['Overloaded', 'too many tool requests', 'waiting for approval, please answer the question'])(
    'O4, O7: a retry is running and known to be retrying, whatever its text says (%s)',
    async (message) => {
      const { row } = await at(busy({ type: 'retry', attempt: 1, message, next: 1 }));
      expect(row()).toMatchObject({ state: 'running', retrying: true });
    },
  );

  test('a permission of a busy session waits for approval, with its tool and command', async () => {
    const one = busy({ type: 'busy' });
    one.permissions = [request({ tool: { messageID: ANSWER, callID: 'c' } })];
    const { row, registry } = await at(one);
    expect(row()).toMatchObject({ state: 'waiting_for_approval', waitingOn: 'tool', needsYou: true });
    const { state } = registry.find(refOf(ID))?.shown ?? {};
    expect(state).toMatchObject({ tool: { name: 'bash', command: 'pnpm test' } });
  });

  test('a request that an aborted turn of the same session left behind is not this turn’s', async () => {
    const one = busy({ type: 'busy' });
    one.permissions = [request({ tool: { messageID: 'msg_22e1b0000000old', callID: 'c' } })];
    expect((await at(one)).row().state).toBe('running');
  });

  test('a question is blocked; with a permission beside it the permission is shown', async () => {
    const one = busy({ type: 'busy' });
    one.questions = [{ id: 'que_22e1c0000003x', sessionID: ID, questions: [] }];
    expect((await at(one)).row()).toMatchObject({ state: 'blocked', waitingOn: 'question' });
    one.permissions = [request({})];
    expect((await at(one)).row().state).toBe('waiting_for_approval');
  });

  test('leaving plan mode asks through a question and is an approval (R-06)', async () => {
    const one = busy({ type: 'busy' });
    one.questions = [
      { id: 'que_22e1c0000003x', sessionID: ID, questions: [], tool: { messageID: ANSWER, callID: 'c' } },
    ];
    const tool = { type: 'tool', tool: 'plan_exit', callID: 'c', state: { status: 'running', input: {} } };
    expect((await at(one, answered({}, [tool]))).row()).toMatchObject({
      state: 'waiting_for_approval',
      waitingOn: 'plan',
    });
  });

  test('a child’s permission shows on its parent, and the child is folded (R-14)', async () => {
    const one = server();
    one.sessions = [{ id: ID }];
    one.statuses[DIRECTORY] = { [ID]: { type: 'busy' }, ses_child: { type: 'busy' } };
    one.permissions = [request({ sessionID: 'ses_child' })];
    const { registry, row } = await look({
      store: (store) => {
        open(store);
        store.session({
          id: 'ses_child',
          parent_id: ID,
          directory: DIRECTORY,
          title: 'Scan',
          time_created: NOW,
          time_updated: NOW,
        });
      },
      env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url },
    });
    expect(registry.sessions()).toHaveLength(1);
    expect(row()).toMatchObject({
      state: 'waiting_for_approval',
      shownFrom: 'ses_child',
      subAgents: ['ses_child'],
    });
  });

  test('each directory with an open turn is asked for itself, no other one', async () => {
    const one = server();
    one.sessions = [{ id: ID }];
    await look({
      store: (store) => {
        open(store);
        store.session({
          id: 'ses_old',
          directory: '/work/old',
          title: 'Old',
          time_created: 1,
          time_updated: 1,
        });
      },
      env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url },
    });
    const statuses = one.asked.filter((path) => path.startsWith('/session/status'));
    expect(statuses.sort()).toEqual(['/session/status', '/session/status?directory=%2Fwork%2Fapp']);
  });
});

describe('servers that can’t be used', () => {
  test('401: the list is there, and one line names OPENCODE_SERVER_PASSWORD', async () => {
    const one = server();
    one.password = 'secret';
    const { row, scan } = await look({ store: done, env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url } });
    expect(row().state).toBe('completed');
    expect(scan.instances[0]).toMatchObject({ status: 'available', endpoint: one.url });
    expect(scan.instances[0]?.error).toContain('OPENCODE_SERVER_PASSWORD');
    expect(scan.problems.map(({ subject }) => subject)).toEqual([one.url]);
  });

  test('a wrong password is told from none, and not printed', async () => {
    const one = server();
    one.password = 'secret';
    const env = { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url, OPENCODE_SERVER_PASSWORD: 'hunter22' };
    const { scan } = await look({ store: done, env });
    expect(scan.instances[0]?.error).toContain('refuses the password');
    expect(JSON.stringify(scan)).not.toContain('hunter22');
  });

  test('the right one lets in', async () => {
    const one = server();
    one.password = 'secret';
    one.sessions = [{ id: ID }];
    const env = { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url, OPENCODE_SERVER_PASSWORD: 'secret' };
    expect((await look({ store: done, env })).scan.instances[0]?.status).toBe('running');
  });

  test('a named server that is down, and an address that is none, are said', async () => {
    expect((await look({ store: done })).scan.instances[0]?.error).toContain('nothing listens there');
    const { scan } = await look({ store: done, options: { endpoint: 'ftp://x' } });
    expect(scan.instances[0]?.error).toContain('not an address');
    expect(scan.problems).toHaveLength(1);
  });

  test('a server that accepts and never answers does not take the list with it', async () => {
    const one = server();
    one.mute = true;
    const { row, scan } = await look({ store: done, env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url } });
    expect(row().state).toBe('completed');
    expect(scan.problems[0]?.reason).toContain('no answer within');
  });

  test('another program on that port is not OpenCode', async () => {
    const other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('hello') });
    try {
      const env = { SHADOWOB_CONNECTOR_OPENCODE_URL: `http://127.0.0.1:${other.port}` };
      const { scan } = await look({ store: done, env });
      expect(scan.instances[0]).toMatchObject({ status: 'available' });
      expect(scan.problems[0]?.reason).toContain("can't be used");
    } finally {
      await other.stop(true);
    }
  });
});

describe('a server whose store is not here (R-32)', () => {
  const remoteMessages = [
    {
      info: { id: PROMPT, role: 'user', time: { created: NOW - 50_000 } },
      parts: [{ type: 'text', text: 'hi' }],
    },
    {
      info: {
        id: ANSWER,
        role: 'assistant',
        parentID: PROMPT,
        finish: 'length',
        time: { created: NOW - 49_000, completed: NOW - 45_000 },
      },
      parts: [{ type: 'text', text: 'x', time: { start: 1, end: 2 } }],
    },
  ];

  test('its address is its instance, and the local store keeps its own row', async () => {
    const one = server();
    one.sessions = [
      {
        id: 'ses_far',
        title: 'Far away',
        directory: '/srv/app',
        time: { created: NOW - 60_000, updated: NOW - 40_000 },
      },
      {
        id: 'ses_busy',
        title: 'At work',
        directory: '/srv/app',
        time: { created: NOW - 60_000, updated: NOW - 40_000 },
      },
      {
        id: 'ses_new',
        title: 'New',
        directory: '/srv/app',
        time: { created: NOW - 60_000, updated: NOW - 60_000 },
      },
    ];
    one.statuses['/srv/app'] = { ses_busy: { type: 'busy' } };
    one.messages = { ses_far: remoteMessages, ses_busy: remoteMessages.slice(0, 1) };
    const { scan, row, registry } = await look({
      store: done,
      env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url },
    });
    expect(scan.instances.map(({ instanceId, status }) => [instanceId, status])).toEqual([
      ['local-data', 'available'],
      [one.url, 'running'],
    ]);
    expect(registry.sessions()).toHaveLength(4);
    // Cut at the length limit.
    expect(row('ses_far', one.url)).toMatchObject({
      state: 'blocked',
      waitingOn: 'output-limit',
      endpoint: one.url,
    });
    expect(row('ses_busy', one.url)).toMatchObject({ state: 'running', evidence: { confidence: 'exact' } });
    expect(row('ses_new', one.url)).toMatchObject({ state: 'idle' });
    expect(row().state).toBe('completed');
  });

  test('an open turn there that its server does not run can’t be judged: unknown', async () => {
    const one = server();
    one.sessions = [{ id: 'ses_far', title: 'Far', directory: '/srv/app', time: { created: 1, updated: 2 } }];
    const unfinished = {
      info: { id: ANSWER, role: 'assistant', parentID: PROMPT, time: { created: NOW - 49_000 } },
      parts: [],
    };
    one.messages = { ses_far: [...remoteMessages.slice(0, 1), unfinished] };
    const { row } = await look({ store: done, env: { SHADOWOB_CONNECTOR_OPENCODE_URL: one.url } });
    expect(row('ses_far', one.url).state).toBe('unknown');
  });
});

describe('rows alone', () => {
  const alone = (store: (store: Store) => void, age = 0) =>
    look({
      store,
      processes: (database) => [
        {
          pid: 9,
          comm: 'opencode',
          argv: ['opencode'],
          startedAt: NOW - 90_000 - age,
          cwd: DIRECTORY,
          open: [database],
        },
      ],
    }).then(({ row }) => row());
  const completed = { completed: NOW - 40_000 };

  test.each([
    ['cut at the length limit', { finish: 'length', time: completed }, 'blocked'],
    [
      'aborted',
      { error: { name: 'MessageAbortedError', data: { message: 'Aborted' } }, time: completed },
      'stopped',
    ],
    [
      'an output error',
      { error: { name: 'MessageOutputLengthError', data: {} }, time: completed },
      'blocked',
    ],
    [
      'refused: its last step is tool calls and none followed',
      { finish: 'tool-calls', time: completed },
      'stopped',
    ],
  ])('%s', async (_name, data, state) => {
    expect((await alone(answered(data))).state).toBe(state as 'stopped');
  });

  test('aborted in a retry: completed without error, finish and parts (tricky case 7)', async () => {
    expect((await alone(answered({ time: completed }, []))).state).toBe('stopped');
  });

  test('a shell run has parts and no finish: completed', async () => {
    expect(
      (
        await alone(
          answered({ time: completed }, [{ type: 'tool', tool: 'bash', state: { status: 'completed' } }]),
        )
      ).state,
    ).toBe('completed');
  });

  test('any other error is failed, with its text in one masked line', async () => {
    const error = {
      name: 'APIError',
      data: { message: `Incorrect API key provided:\nsk-${'a1B2c3'.repeat(6)}`, statusCode: 401 },
    };
    const row = await alone(answered({ error, time: completed }));
    expect(row).toMatchObject({ state: 'failed', petReaction: 'error' });
    expect(row.error).toStartWith('Incorrect API key provided:');
    expect(row.error).not.toContain('a1B2c3');
  });

  test('between two steps the turn goes on while its owner lives', async () => {
    const justNow = answered({ finish: 'tool-calls', time: { completed: NOW - 5 } });
    expect((await alone(justNow)).state).toBe('running');
    expect((await look({ store: justNow })).row().state).toBe('stopped');
  });

  test('a refused step is the end at once', async () => {
    const refused = {
      type: 'tool',
      tool: 'bash',
      state: { status: 'error', error: 'The user rejected permission to use this specific tool call.' },
    };
    expect(
      (await alone(answered({ finish: 'tool-calls', time: { completed: NOW - 5 } }, [refused]))).state,
    ).toBe('stopped');
  });

  test('a prompt that nothing ever answers (noReply, an unknown model) is not running for ever', async () => {
    expect((await alone(prompted)).state).toBe('running');
    const old = (store: Store): void => {
      prompted(store);
      store.message(ID, {
        id: PROMPT,
        time_created: NOW - 400_000,
        time_updated: NOW - 400_000,
        data: { role: 'user' },
      });
    };
    expect((await alone(old, 400_000)).state).toBe('unknown');
  });

  test('R-19: an open turn that everybody has left is never looked into again, until it is written to', () =>
    inFolder(async (folder) => {
      const store = createStore(`${folder}/data`);
      open(store);
      store.sequence(ID, 1);
      const index = memoryIndex();
      const stateOn = async (host: ProcessHost): Promise<string> => {
        const context = contextFor(`${folder}/data`, { now: () => NOW, index });
        return rowOf(registryOf(await createOpencode(host).scan(context), NOW), ID).state;
      };
      const empty = fakeMachine(folder, [], NOW);
      const untold: ProcessHost = { ...empty, procRoot: `${folder}/no-proc` };
      expect(await stateOn(untold)).toBe('unknown');
      expect(await stateOn(empty)).toBe('stopped');
      expect(await stateOn(untold)).toBe('stopped');
      store.message(ID, {
        id: ANSWER,
        time_created: NOW - 49_000,
        time_updated: NOW - 1_000,
        data: { role: 'assistant', parentID: PROMPT, time: { created: NOW - 49_000 } },
      });
      store.sequence(ID, 2);
      expect(await stateOn(untold)).toBe('unknown');
      store.close();
    }));

  test('an archived session stays listed (tricky case 15)', async () => {
    const { row } = await look({
      store: (store) => {
        done(store);
        store.database.run(`UPDATE session SET time_archived = ${NOW}`);
      },
    });
    expect(row()).toMatchObject({ archived: true, state: 'completed' });
  });
});
