import { describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { piExtension } from '../../../src/install/extensions/pi.ts';
import type { ActingContext } from '../../../src/runtime/control/context.ts';
import { insideFirst } from '../../../src/runtime/control/inside.ts';
import type { ControlEvent, SendRequest } from '../../../src/runtime/control.ts';
import { fakePi, inFolder, loadInto, startDaemonIn, until } from './host.ts';

const ID = '01a22e2b-3d51-747a-a971-8b66b96458e7';
const REF = { runtimeId: 'pi', instanceId: 'transcripts', sessionId: ID };

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

function requestFor(session: NonNullable<unknown>, text: string, follow: boolean): SendRequest {
  return {
    target: { kind: 'session', session: session as never },
    text,
    whenOwned: 'refuse',
    approvals: 'ask',
    approvalMs: 1_000,
    ...(follow ? { followMs: 20_000 } : {}),
  };
}

async function withPi(
  run: (b: {
    home: string;
    pi: ReturnType<typeof fakePi>;
    resident: Awaited<ReturnType<typeof startDaemonIn>>;
    state: () => string | undefined;
    send: (text: string, follow?: boolean, into?: ControlEvent[]) => Promise<readonly ControlEvent[]>;
    abort: () => Promise<unknown>;
  }) => Promise<void>,
): Promise<void> {
  await inFolder(async (home) => {
    const resident = await startDaemonIn(home);
    const pi = fakePi(ID);
    try {
      await loadInto(home, piExtension, join(home, 'daemon.sock'), pi);
      pi.fire('session_start', { reason: 'startup' });
      const find = () => resident.source.find(REF);
      await until('the extension to be attached', () => find()?.own.life === 'alive');
      const control = insideFirst('pi', {});
      await run({
        home,
        pi,
        resident,
        state: () => find()?.shown.state.kind,
        async send(text, follow = false, events = []) {
          const request = requestFor({ ref: REF }, text, follow);
          const all = control.send?.(contextOf(home), request, new AbortController().signal);
          if (all) for await (const event of all) events.push(event);
          return events;
        },
        abort: async () => control.abort?.(contextOf(home), { session: REF, kill: false }),
      });
    } finally {
      await pi.fire('session_shutdown', { reason: 'quit' });
      await resident.stop();
    }
  });
}

const user = (text: string) => ({ message: { role: 'user', content: [{ type: 'text', text }] } });
const answer = (text: string, stopReason = 'stop') => ({
  message: { role: 'assistant', content: [{ type: 'text', text }], stopReason, model: 'model-1' },
});

describe('the extension in pi, with a real daemon', () => {
  test('S-751, C-281: each event has its state, and a closed dialog in a run is work', async () => {
    await withPi(async ({ pi, state, resident }) => {
      await until('idle', () => state() === 'idle');
      pi.fire('before_agent_start');
      await until('working', () => state() === 'working');
      pi.fire('ui_prompt_start');
      await until('a wait', () => state() === 'waiting');
      pi.fire('tool_execution_start');
      pi.fire('ui_prompt_end');
      await until('working again', () => state() === 'working');
      pi.fire('agent_settled', { aborted: false });
      await until('rest', () => state() !== 'working');
      expect(resident.engine.entry(ID)).toMatchObject({ agent: 'pi', cwd: '/work/app', model: 'model-1' });
    });
  });

  test('R-47: a message is accepted once pi gives it back, and done when it has settled', async () => {
    await withPi(async ({ pi, send }) => {
      const text = `Grüße 👋\n${'x'.repeat(400_000)}`;
      const events = send(text, true);
      const sent = await until('pi to have the message', () => pi.sent[0]);
      expect(sent).toEqual({ text, options: undefined });
      pi.fire('before_agent_start');
      pi.fire('message_start', user(text));
      pi.fire('message_end', answer('Done.'));
      pi.fire('agent_settled', { aborted: false });
      const all = await events;
      expect(all.map(({ type }) => type)).toEqual(['accepted', 'done']);
      expect(all[0]).toMatchObject({ mode: 'inside' });
      expect(all[1]).toMatchObject({ outcome: 'completed', text: 'Done.' });
    });
  });

  test('a message for a busy pi is queued by pi; a stop leaves it unrun, and that is said', async () => {
    await withPi(async ({ pi, send, abort }) => {
      pi.fire('agent_start');
      Object.assign(pi.state, { idle: false, pending: true });
      const seen: ControlEvent[] = [];
      const events = send('Later', true, seen);
      expect(await until('the message', () => pi.sent[0])).toMatchObject({
        options: { deliverAs: 'followUp' },
      });
      await until('the message to be accepted', () => seen.some(({ type }) => type === 'accepted'));
      const stopped = abort();
      await until('the stop', () => pi.state.aborts === 1);
      pi.fire('message_end', answer('Half', 'aborted'));
      pi.fire('agent_settled', { aborted: true });
      expect(await stopped).toMatchObject({ kind: 'stopped' });
      const all = await events;
      expect(all.at(-1)).toMatchObject({ type: 'done', outcome: 'stopped' });
      expect(JSON.stringify(all.at(-1))).toContain('input box');
    });
  });

  test('tricky case 6: no stop while a dialog waits, and none where nothing runs', async () => {
    await withPi(async ({ pi, abort }) => {
      expect(await abort()).toMatchObject({ kind: 'refused', refusal: { kind: 'refused' } });
      pi.fire('agent_start');
      pi.fire('ui_prompt_start');
      expect(await abort()).toMatchObject({ refusal: { reason: expect.stringContaining('dialog') } });
      expect(pi.state.aborts).toBe(0);
    });
  });
});

describe('S-752: the extension in pi never harms it', () => {
  const drive = async (folder: string, address: string): Promise<unknown> => {
    const pi = fakePi(ID);
    await loadInto(folder, piExtension, address, pi);
    pi.fire('session_start');
    for (let change = 0; change < 40; change += 1) {
      expect(pi.fire(change % 2 === 0 ? 'agent_start' : 'agent_settled')).toBeUndefined();
    }
    return pi.fire('session_shutdown', { reason: 'quit' });
  };

  test('C-282: nobody listens: no handler throws or waits', async () => {
    await inFolder(async (folder) => {
      await drive(folder, join(folder, 'nobody.sock'));
    });
  });

  for (const [name, said] of [
    ['C-283: it listens and never answers', undefined],
    ['it answers with garbage', 'garbage\n{"ok":1}\n'],
    ['it answers with a refusal', '{"ok":false,"error":"unknown connector op: inside-attach"}\n'],
    ['it answers without an end', 'x'.repeat(1_200_000)],
  ] as const) {
    test(`${name}: nothing is thrown, and the shutdown comes to its end`, async () => {
      await inFolder(async (folder) => {
        const address = join(folder, 'x.sock');
        const sockets = new Set<{ destroy(): void }>();
        const server = createServer((socket) => {
          sockets.add(socket);
          socket.on('error', () => {});
          socket.on('data', () => said !== undefined && socket.write(said));
        });
        await new Promise<void>((resolve) => server.listen(address, resolve));
        await drive(folder, address);
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => server.close(resolve));
      });
    });
  }

  test('C-284: what it says is said again every 30 s, whatever the state', async () => {
    await inFolder(async (folder) => {
      const address = join(folder, 'x.sock');
      const heard: string[] = [];
      const server = createServer((socket) => {
        socket.on('error', () => {});
        socket.on('data', (bytes) => {
          heard.push(String(bytes));
          socket.end('{"ok":true}\n');
        });
      });
      await new Promise<void>((resolve) => server.listen(address, resolve));
      const due: (() => void)[] = [];
      const original = globalThis.setTimeout;
      const patched = (run: () => void, ms?: number) => {
        if (ms === 30_000) due.push(run);
        return original(run, ms);
      };
      globalThis.setTimeout = Object.assign(patched, original) as typeof setTimeout;
      try {
        const pi = fakePi(ID);
        await loadInto(folder, piExtension, address, pi);
        pi.fire('session_start');
        const idle = () => heard.filter((line) => line.includes('"stream_state":"idle"')).length;
        await until('the first report', () => idle() === 1);
        due.at(-1)?.();
        await until('the second report', () => idle() === 2);
        expect(due.length).toBe(2);
        await pi.fire('session_shutdown', { reason: 'quit' });
      } finally {
        globalThis.setTimeout = original;
        await new Promise((resolve) => server.close(resolve));
      }
    });
  });

  test('C-284: nothing of it keeps the program alive', async () => {
    await inFolder(async (folder) => {
      const module = join(folder, piExtension.fileName);
      writeFileSync(module, piExtension.text(join(folder, 'nobody.sock'), process.platform));
      const main = join(folder, 'main.ts');
      const lines = [
        `import load from ${JSON.stringify(module)};`,
        'const handlers = new Map();',
        'load({ on: (name, run) => handlers.set(name, run) });',
        "const sessionManager = { getSessionId: () => 'a', getSessionFile: () => 'b' };",
        "handlers.get('session_start')({}, { sessionManager });",
      ];
      writeFileSync(main, lines.join('\n'));
      const child = Bun.spawn([process.execPath, main], { stdout: 'pipe', stderr: 'pipe' });
      const [code, out, err] = await Promise.all([
        child.exited,
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect([code, out, err]).toEqual([0, '', '']);
    });
  });

  test('an interface that is not pi’s is survived', async () => {
    await inFolder(async (folder) => {
      for (const api of [
        {},
        {
          on: () => {
            throw new Error('no');
          },
        },
        null,
      ]) {
        const pi = { ...fakePi(ID), api } as never;
        await loadInto(folder, piExtension, join(folder, 'nobody.sock'), pi);
      }
    });
  });
});
