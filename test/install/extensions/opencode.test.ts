import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { opencodePlugin } from '../../../src/install/extensions/opencode.ts';
import type { ActingContext } from '../../../src/runtime/control/context.ts';
import { insideFirst } from '../../../src/runtime/control/inside.ts';
import { inFolder, load, startDaemonIn, until } from './host.ts';

const ID = 'ses_1';
const REF = { runtimeId: 'opencode', instanceId: 'local-data', sessionId: ID };

interface Hooks {
  event(input: { event: { type: string; properties: object } }): Promise<void>;
  dispose(): Promise<void>;
}

/** OpenCode's in-process client, as far as ours uses it (1.18.33). */
function fakeClient() {
  const calls: { name: string; input: unknown }[] = [];
  const answers: Record<string, unknown> = { status: { data: {} }, messages: { data: [] } };
  const call = (name: string) => async (input: unknown) => {
    calls.push({ name, input });
    return answers[name] ?? { data: true };
  };
  return {
    calls,
    answers,
    client: {
      session: {
        status: call('status'),
        messages: call('messages'),
        promptAsync: call('prompt'),
        abort: call('abort'),
      },
      postSessionIdPermissionsPermissionId: call('reply'),
    },
  };
}

async function plugIn(folder: string, address: string, client: unknown): Promise<Hooks> {
  const module = (await load(folder, opencodePlugin, address)) as {
    ShadowobConnector: (input: unknown) => Promise<Hooks>;
  };
  return module.ShadowobConnector({ client });
}

function contextOf(home: string): ActingContext {
  return {
    env: {},
    home,
    platform: process.platform,
    now: Date.now,
    connectorHome: home,
    self: [],
    version: 'test',
    run: async () => {
      throw new Error('no program is started here');
    },
    log: { debug: () => {}, warn: () => {} },
  };
}

async function withPlugin(
  run: (b: {
    fake: ReturnType<typeof fakeClient>;
    say: (type: string, properties?: object) => void;
    find: () => ReturnType<Awaited<ReturnType<typeof startDaemonIn>>['source']['find']>;
    control: ReturnType<typeof insideFirst>;
    context: ActingContext;
  }) => Promise<void>,
): Promise<void> {
  await inFolder(async (home) => {
    const resident = await startDaemonIn(home);
    const fake = fakeClient();
    const hooks = await plugIn(home, join(home, 'daemon.sock'), fake.client);
    try {
      await until('the plugin to ask what runs', () => fake.calls.some(({ name }) => name === 'status'));
      const say = (type: string, properties: object = {}) =>
        void hooks.event({ event: { type, properties: { sessionID: ID, ...properties } } });
      await run({
        fake,
        say,
        find: () => resident.source.find(REF),
        control: insideFirst('opencode', {}),
        context: contextOf(home),
      });
    } finally {
      await hooks.dispose();
      await resident.stop();
    }
  });
}

const busy = { status: { type: 'busy' } };
const asked = {
  id: 'per_1',
  permission: 'bash',
  patterns: ['ls'],
  always: ['ls *'],
  metadata: { command: 'ls -l' },
};

describe('the plugin in OpenCode, with a real daemon', () => {
  test('R-32: its events are exact states of the one registry, and hold nothing of the conversation', async () => {
    await withPlugin(async ({ say, find }) => {
      say('session.status', busy);
      say('message.part.delta', { messageID: 'm', partID: 'p', field: 'text', delta: 'secret words' });
      const streaming = await until('streaming', () => {
        const session = find();
        const state = session?.shown.state;
        return state?.kind === 'working' && state.doing === 'streaming' && session;
      });
      expect(streaming.shown.evidence).toMatchObject({ source: 'opencode.plugin', confidence: 'exact' });
      expect(streaming.facts.pids).toEqual([process.pid]);
      expect(JSON.stringify(streaming)).not.toContain('secret words');
      say('permission.asked', asked);
      await until('a wait', () => find()?.shown.state.kind === 'waiting');
      say('permission.replied', { requestID: 'per_1' });
      say('session.status', { status: { type: 'idle' } });
      await until('rest', () => find()?.shown.state.kind === 'rested');
    });
  });

  test('A1, A2: a permission is applied once OpenCode says so, and a stale id is refused', async () => {
    await withPlugin(async ({ say, fake, control, context, find }) => {
      say('session.status', busy);
      say('permission.asked', asked);
      const [request] = await until('the request', async () => {
        const list = await control.pending?.(context);
        return list && list.length > 0 && list;
      });
      expect(request).toMatchObject({
        requestId: 'per_1',
        detail: 'ls -l',
        sessionScope: 'ls *',
        session: REF,
      });
      const answer = { session: REF, requestId: 'per_1', decision: 'allow-session' } as const;
      expect(await control.approve?.(context, { ...answer, decision: 'deny', note: 'no' })).toMatchObject({
        kind: 'refused',
      });
      const applied = control.approve?.(context, answer);
      await until('the reply', () => fake.calls.find(({ name }) => name === 'reply'));
      expect(fake.calls.at(-1)?.input).toEqual({
        path: { id: ID, permissionID: 'per_1' },
        body: { response: 'always' },
      });
      say('permission.replied', { requestID: 'per_1' });
      expect(await applied).toMatchObject({ kind: 'applied' });
      await until('work again', () => find()?.shown.state.kind === 'working');
      expect(await control.approve?.(context, answer)).toMatchObject({ kind: 'refused' });
      expect(fake.calls.filter(({ name }) => name === 'reply')).toHaveLength(1);
    });
  });

  test('R-47: a message is accepted by its own message and done with its answer; a stop is seen', async () => {
    await withPlugin(async ({ say, fake, control, context, find }) => {
      say('session.created', { info: { id: ID, title: 'A task' } });
      await until('the session to be held', () => find()?.own.life === 'alive');
      const request = {
        target: { kind: 'session', session: { ref: REF } as never },
        text: 'Go on',
        whenOwned: 'refuse',
        approvals: 'ask',
        approvalMs: 1_000,
        followMs: 20_000,
      } as const;
      fake.answers['messages'] = {
        data: [
          {
            info: { role: 'assistant', parentID: 'msg_2', finish: 'stop' },
            parts: [{ type: 'text', text: 'Done.' }],
          },
        ],
      };
      const types: string[] = [];
      const all = control.send?.(context, request, new AbortController().signal);
      const sending = (async () => {
        for await (const event of all ?? []) types.push(JSON.stringify(event));
      })();
      await until('the prompt', () => fake.calls.some(({ name }) => name === 'prompt'));
      say('message.updated', { info: { id: 'msg_2', role: 'user', sessionID: ID } });
      say('session.status', busy);
      await until('accepted', () => types.some((one) => one.includes('"accepted"')));
      say('session.idle');
      await sending;
      expect(types.at(-1)).toContain('"outcome":"completed"');
      expect(types.at(-1)).toContain('Done.');
      say('session.status', busy);
      const stopped = control.abort?.(context, { session: REF, kill: false });
      await until('the abort', () => fake.calls.some(({ name }) => name === 'abort'));
      say('session.idle');
      expect(await stopped).toMatchObject({ kind: 'stopped' });
      expect(await control.abort?.(context, { session: REF, kill: false })).toMatchObject({
        kind: 'refused',
      });
    });
  });
});

describe('the plugin never harms OpenCode', () => {
  test('no daemon, no client, and events of any shape: nothing is thrown', async () => {
    await inFolder(async (folder) => {
      for (const client of [
        undefined,
        {},
        {
          session: {
            status: () => {
              throw new Error('no');
            },
          },
        },
      ]) {
        const hooks = await plugIn(folder, join(folder, 'nobody.sock'), client);
        for (const event of [
          undefined,
          null,
          {},
          { type: 5 },
          { type: 'session.status' },
          { type: 'message.updated', properties: { info: null } },
        ]) {
          expect(await hooks.event({ event } as never)).toBeUndefined();
        }
        await hooks.event({} as never);
        await hooks.dispose();
      }
    });
  });
});
