import { afterEach, describe, expect, test } from 'bun:test';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { systemScheduler } from '../../../src/runtime/daemon/clock.ts';
import { NOTIFY } from '../../../src/runtime/limits.ts';
import { bannerOf, eventOf, folderName, type Notice } from '../../../src/runtime/notify/notice.ts';
import { commandSink } from '../../../src/runtime/notify/sinks/command.ts';
import { desktopCalls, desktopSink, escapeMarkup } from '../../../src/runtime/notify/sinks/desktop.ts';
import { terminalSignal } from '../../../src/runtime/notify/sinks/terminal.ts';
import { webhookSink } from '../../../src/runtime/notify/sinks/webhook.ts';
import { isAlive } from '../../../src/runtime/process/identity.ts';
import { run } from '../../../src/runtime/process/spawn.ts';
import type { RunOptions, RunResult } from '../../../src/runtime/process/types.ts';
import { createCleanup, createFakeTime, tempFolder, until } from '../daemon/harness.ts';
import { T } from './sessions.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
const never = new AbortController().signal;

const notice = (more: Partial<Notice> = {}): Notice => ({
  id: 'id',
  kind: 'approval',
  event: 'connector.session.waitingForApproval',
  at: T,
  runtimes: [{ id: 'claude-code', label: 'Claude Code' }],
  session: { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: 's1' },
  folder: 'shop',
  from: 'running',
  to: 'waiting_for_approval',
  subject: 'tool',
  details: { title: 'a secret title', workDir: '/home/me/secret', error: 'a secret error' },
  ...more,
});

describe('what is said', () => {
  test('R-44: concrete names, and what the owner can do with it', () => {
    const said = (more: Partial<Notice>) => bannerOf(notice(more), false);
    expect(said({})).toEqual({ title: 'Claude Code · shop', text: 'Waiting for your approval.' });
    expect(said({ subject: 'plan' }).text).toBe('Waiting for your yes to a plan.');
    expect(said({ kind: 'input', subject: 'question' }).text).toBe('Waiting for your answer.');
    expect(said({ kind: 'input', subject: 'output-limit' }).text).toContain('output limit');
    expect(said({ kind: 'done' }).text).toBe('Done.');
    expect(said({ kind: 'done', backgroundWork: 1 }).text).toBe('Done. One background command still runs.');
    expect(said({ kind: 'failed', backgroundWork: 2 }).text).toBe('Failed. 2 background commands still run.');
  });

  test('R-37: neither banner nor event holds title, path or error unless this sink’s owner asked for them', () => {
    expect(JSON.stringify([bannerOf(notice(), false), eventOf(notice(), false)])).not.toContain('secret');
    expect(bannerOf(notice(), true).text).toContain('a secret title');
    expect(eventOf(notice(), true)['details']).toEqual(notice().details);
  });

  test('the event has the reference’s name, from and to states, and an id', () => {
    expect(eventOf(notice(), false)).toEqual({
      version: 1,
      id: 'id',
      event: 'connector.session.waitingForApproval',
      at: new Date(T).toISOString(),
      from: 'running',
      to: 'waiting_for_approval',
      runtimeId: 'claude-code',
      runtime: 'Claude Code',
      sessionId: 's1',
      folder: 'shop',
      waitingOn: 'tool',
      text: 'Claude Code · shop: Waiting for your approval.',
    });
  });

  test('a folder is its base name on either kind of system, on one line', () => {
    const cases: [string | undefined, string | undefined][] = [
      ['/home/me/shop', 'shop'],
      ['/home/me/shop/', 'shop'],
      ['C:\\work\\shop', 'shop'],
      ['\\\\host\\share\\shop', 'shop'],
      ['/', undefined],
      [undefined, undefined],
      ['/a/x\u001b[31m\ny', 'x y'],
    ];
    for (const [path, name] of cases) expect([path, folderName(path)]).toEqual([path, name]);
  });
});

describe('the desktop', () => {
  const hostile = fc.string({ unit: 'binary', maxLength: 60 });

  test('what is told is an argument or a variable: every script is the same whatever is told', () => {
    fc.assert(
      fc.property(hostile, hostile, (title, text) => {
        const mac = desktopCalls(notice(), { title, text }, 'darwin')[0];
        expect(mac?.argv.slice(0, 8)).toEqual([
          '/usr/bin/osascript',
          '-e',
          'on run argv',
          '-e',
          'display notification (item 2 of argv) with title (item 1 of argv)',
          '-e',
          'end run',
          '--',
        ]);
        expect(mac?.argv).toHaveLength(10);
        const windows = desktopCalls(notice(), { title, text }, 'win32')[0];
        const plain = desktopCalls(notice(), { title: 'a', text: 'b' }, 'win32')[0];
        expect(windows?.argv).toEqual(plain?.argv ?? []);
        const linux = desktopCalls(notice(), { title, text }, 'linux')[0];
        expect(linux?.argv.slice(0, 4)).toEqual([
          'notify-send',
          '--app-name=shadowob-connector',
          '--urgency=critical',
          '--',
        ]);
        expect(linux?.argv).toHaveLength(6);
        expect(linux?.argv[5]).not.toMatch(/<|&(?!amp;|lt;|gt;)/);
        const all = [mac, windows, linux].flatMap((call) => [
          ...(call?.argv ?? []),
          ...Object.values(call?.env ?? {}),
        ]);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is what is tested.
        for (const word of all) expect(word).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f\u202e]/);
      }),
    );
  });

  test('R-46: the exact calls', () => {
    const banner = { title: 'Claude Code · it’s', text: "Done. <b>'x'\\" };
    const [send, gdbus] = desktopCalls(notice({ kind: 'done' }), banner, 'linux');
    expect(send?.argv).toEqual([
      'notify-send',
      '--app-name=shadowob-connector',
      '--urgency=normal',
      '--',
      'Claude Code · it’s',
      "Done. &lt;b&gt;'x'\\",
    ]);
    expect(gdbus?.argv.slice(-8)).toEqual([
      "'shadowob-connector'",
      '0',
      "''",
      "'Claude Code · it’s'",
      "'Done. &lt;b&gt;\\'x\\'\\\\'",
      '[]',
      "{'urgency': <byte 1>}",
      '-1',
    ]);
    const [windows] = desktopCalls(notice(), banner, 'win32');
    expect(windows?.env).toEqual({
      SHADOWOB_NOTICE_TITLE: 'Claude Code · it’s',
      SHADOWOB_NOTICE_TEXT: "Done. <b>'x'\\",
    });
    expect(windows?.argv.slice(0, 6)).toEqual([
      'powershell.exe',
      '-NoProfile',
      '-NonInteractive',
      '-WindowStyle',
      'Hidden',
      '-Command',
    ]);
    expect(windows?.argv[6]).toContain('CreateTextNode($env:SHADOWOB_NOTICE_TEXT)');
    expect(escapeMarkup('<b>&')).toBe('&lt;b&gt;&amp;');
  });

  const answer = (code: number): RunResult => ({
    kind: 'exited',
    code,
    signal: null,
    stdout: '',
    stderr: code === 0 ? '' : 'no bus',
    stdoutBytes: new Uint8Array(),
    bytesSeen: 0,
    timedOut: false,
    truncated: false,
    survivors: [],
  });

  test('the next way is tried where one fails, and the reasons are told where all do', async () => {
    const calls: RunOptions[] = [];
    const missing: RunResult = { kind: 'failedToStart', reason: 'notFound', message: '' };
    const sink = (codes: readonly RunResult[]) =>
      desktopSink({
        platform: 'linux',
        env: { XDG_RUNTIME_DIR: '/run/user/7', SHADOWOB_API_TOKEN: 'secret', CLAUDECODE: '1', HOME: '/h' },
        details: false,
        exists: (path) => path === '/run/user/7/bus',
        run: async (options) => {
          calls.push(options);
          return codes[calls.length - 1] ?? missing;
        },
      });
    expect(await sink([missing, answer(0)]).send(notice(), never)).toEqual({ kind: 'delivered' });
    expect(calls.map(({ argv }) => argv[0])).toEqual(['notify-send', 'gdbus']);
    // A daemon that no desktop has started finds the session's bus, and gives no secrets of ours away.
    expect(calls[0]?.env).toEqual({
      XDG_RUNTIME_DIR: '/run/user/7',
      HOME: '/h',
      DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/user/7/bus',
    });
    calls.length = 0;
    expect(await sink([missing, answer(1)]).send(notice(), never)).toEqual({
      kind: 'failed',
      reason: 'notify-send: is not installed; gdbus: no bus',
    });
  });
});

describe('the terminal', () => {
  const done = notice({ kind: 'done', folder: 'a;b' });

  test('bell, OSC 9 and OSC 777, and through tmux', () => {
    expect(terminalSignal(done, 'bell', false, true)).toBe('\u0007');
    expect(terminalSignal(done, 'osc9', false, false)).toBe('\u001b]9;Claude Code · a;b: Done.\u0007');
    expect(terminalSignal(done, 'osc777', false, false)).toBe(
      '\u001b]777;notify;Claude Code · a,b;Done.\u0007',
    );
    expect(terminalSignal(done, 'osc9', false, true)).toBe(
      '\u001bPtmux;\u001b\u001b]9;Claude Code · a;b: Done.\u0007\u001b\\\u0007',
    );
  });

  test('no title can end the sequence or begin another', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 80 }),
        fc.constantFrom('osc9', 'osc777'),
        (title, style) => {
          const sequence = terminalSignal(notice({ folder: title, details: { title } }), style, true, false);
          // biome-ignore lint/suspicious/noControlCharactersInRegex: the sequence is made of them.
          expect(sequence).toMatch(/^\u001b\][^\u0000-\u001f\u007f-\u009f]*\u0007$/);
        },
      ),
    );
  });
});

describe.skipIf(process.platform === 'win32')('a command of the owner’s', () => {
  function script(text: string): { readonly path: string; readonly folder: string } {
    const folder = tempFolder(cleanup);
    const path = join(folder, 'told.sh');
    writeFileSync(path, `#!/bin/sh\ncd "${folder}"\n${text}\n`);
    chmodSync(path, 0o700);
    return { path, folder };
  }
  const sink = (path: string, timeoutMs = 10_000, env: Record<string, string> = { PATH: '/usr/bin:/bin' }) =>
    commandSink({ argv: [path, '$HOME; `id`'], timeoutMs, details: false, env, run });

  test('gets the event on stdin, its arguments as they are, and no marks or secrets of ours', async () => {
    const { path, folder } = script('cat > event.json; printf %s "$1" > argument; env > environment');
    const env = { PATH: '/usr/bin:/bin', CLAUDECODE: '1', SHADOWOB_API_TOKEN: 'secret', LANG: 'C' };
    expect(await sink(path, 10_000, env).send(notice(), never)).toEqual({ kind: 'delivered' });
    expect(JSON.parse(readFileSync(join(folder, 'event.json'), 'utf8'))).toEqual(eventOf(notice(), false));
    expect(readFileSync(join(folder, 'argument'), 'utf8')).toBe('$HOME; `id`');
    const environment = readFileSync(join(folder, 'environment'), 'utf8');
    expect(environment).toContain('LANG=C');
    expect(environment).not.toMatch(/CLAUDECODE|secret/);
  });

  test('K1: what takes too long is ended with all that it started', async () => {
    const { path, folder } = script('sleep 300 & echo $! > child; wait');
    const result = await sink(path, 300).send(notice(), never);
    expect(result).toEqual({ kind: 'failed', reason: 'ended after 300 ms' });
    const child = Number(readFileSync(join(folder, 'child'), 'utf8'));
    expect(isAlive(child)).toBe(false);
  });

  test('a failure is told with its code and never with what it said', async () => {
    const { path } = script('echo secret; exit 3');
    expect(await sink(path).send(notice(), never)).toEqual({ kind: 'failed', reason: 'left with code 3' });
    expect(await sink('/nowhere/told').send(notice(), never)).toEqual({
      kind: 'failed',
      reason: 'could not be started: notFound',
    });
    expect(existsSync('/nowhere')).toBe(false);
  });
});

describe('a webhook', () => {
  interface Seen {
    readonly url: string | undefined;
    readonly headers: Readonly<Record<string, unknown>>;
    readonly body: string;
  }
  async function server(answers: readonly (number | 'hang')[], location?: string) {
    const seen: Seen[] = [];
    const made = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => void chunks.push(chunk));
      request.on('end', () => {
        seen.push({ url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() });
        const answer = answers[Math.min(seen.length, answers.length) - 1] ?? 200;
        if (answer === 'hang') return;
        response.writeHead(answer, location ? { location } : {});
        response.end('an answer that nobody reads');
      });
    });
    await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
    cleanup.add(() => {
      made.closeAllConnections();
      made.close();
    });
    const address = made.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return { seen, url: `http://127.0.0.1:${port}/hook?x=1`, port };
  }
  const sink = (url: string, scheduler = systemScheduler, timeoutMs = 5_000) =>
    webhookSink({ url, timeoutMs, details: false, scheduler, agent: 'shadowob-connector/test' });

  test('posts the event as JSON', async () => {
    const { seen, url, port } = await server([204]);
    expect(sink(url).words).toBe(`127.0.0.1:${port}`);
    expect(await sink(url).send(notice(), never)).toEqual({ kind: 'delivered' });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.url).toBe('/hook?x=1');
    expect(seen[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'shadowob-connector/test',
    });
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(eventOf(notice(), false));
  });

  test('a proxy of the environment never sees what stays on this computer', async () => {
    const proxy = await server([200]);
    const { seen, url } = await server([200]);
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'];
    const before = names.map((name) => process.env[name]);
    cleanup.add(() => {
      for (const [i, name] of names.entries()) {
        const value = before[i];
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    });
    for (const name of names) process.env[name] = `http://127.0.0.1:${proxy.port}`;
    expect(await sink(url).send(notice(), never)).toEqual({ kind: 'delivered' });
    expect([seen.length, proxy.seen.length]).toEqual([1, 0]);
  });

  test('a server that is busy or broken is tried three times, with pauses; one that refuses is not', async () => {
    for (const [answers, tries, result] of [
      [[503, 429, 200], 3, { kind: 'delivered' }],
      [[500], 3, { kind: 'failed', reason: 'answered 500' }],
      [[404], 1, { kind: 'failed', reason: 'answered 404' }],
    ] as const) {
      const time = createFakeTime();
      const { seen, url } = await server(answers);
      const sent = sink(url, time).send(notice(), never);
      for (const [i, pause] of NOTIFY.webhookPausesMs.entries()) {
        if (tries === 1) break;
        await until('an attempt', () => seen.length === i + 1);
        await until('its pause', async () => {
          await time.advance(pause);
          return seen.length > i + 1;
        });
      }
      expect([answers, await sent]).toEqual([answers, result]);
      expect(seen).toHaveLength(tries);
    }
  });

  test('a redirect is not followed', async () => {
    const other = await server([200]);
    const { url } = await server([302], other.url);
    expect(await sink(url).send(notice(), never)).toEqual({ kind: 'failed', reason: 'answered 302' });
    expect(other.seen).toEqual([]);
  });

  test('a server that never answers costs its time and no more; a stop ends it at once', async () => {
    const { url } = await server(['hang']);
    const time = createFakeTime();
    const stop = new AbortController();
    const late = sink(url, time, 50).send(notice(), stop.signal);
    setTimeout(() => stop.abort(), 200);
    expect((await late).kind).toBe('failed');
    const stopped = new AbortController();
    const sent = sink(url).send(notice(), stopped.signal);
    stopped.abort();
    expect(await sent).toEqual({ kind: 'failed', reason: 'stopped' });
  });

  test('an address that is none of ours is never asked', async () => {
    expect(await sink('http://example.test/').send(notice(), never)).toEqual({
      kind: 'failed',
      reason: 'must be https, or http to this computer',
    });
  });
});
