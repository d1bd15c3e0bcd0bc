import { afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { isAlive } from '../../src/runtime/process/identity.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { bareEnvironment, cli } from '../helpers/cli.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';
import { startWrapped, untilTrue, wrapHome } from './wrap-bench.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

const ID = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
const INIT = JSON.stringify({
  type: 'system',
  subtype: 'init',
  session_id: ID,
  cwd: '/w',
  model: 'claude-opus-5',
});

/** A service that keeps what it is told, and answers as told; `undefined` for one that never answers. */
async function fakeService(path: string, answer: string | undefined): Promise<{ readonly lines: string[] }> {
  const lines: string[] = [];
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      lines.push(...chunk.toString().trim().split('\n'));
      if (answer !== undefined) socket.write(`${answer}\n`);
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(path, resolve);
  await promise;
  cleanup.add(() => {
    server.close();
  });
  return { lines };
}

const statesIn = (lines: readonly string[]): readonly unknown[] =>
  lines.map((line) => {
    const { op, payload } = JSON.parse(line);
    return op === 'end' ? 'end' : payload.event.stream_state;
  });

/** A pid that a wrapped shell printed. */
const pidIn = (text: string): number => Number(/pid (\d+)/.exec(text)?.[1] ?? 0);

describe('claude-wrap: the process', () => {
  test('C-250: bytes and exit code are the program’s own', async () => {
    const home = wrapHome(cleanup);
    const script = "printf 'abc\\n{broken\\nno newline'; exit 9";
    const result = await cli(['claude-wrap', '--', 'sh', '-c', script], { home });
    expect(result).toEqual({ code: 9, stdout: 'abc\n{broken\nno newline', stderr: '' });
  });

  test('S-701: without a program it is a usage error, and nothing is started', async () => {
    const home = wrapHome(cleanup);
    for (const args of [[], ['--'], ['--frob', '--', 'true'], ['true']]) {
      const result = await cli(['claude-wrap', ...args], { home });
      expect([
        result.code,
        result.stdout,
        result.stderr.includes('Use: shadowob-connector claude-wrap'),
      ]).toEqual([20, '', true]);
    }
  });

  test('S-703: a program that is not there gives the code of a shell, and a sentence', async () => {
    const home = wrapHome(cleanup);
    const result = await cli(['claude-wrap', '--', '/nowhere/claude'], { home });
    expect([result.code, result.stdout]).toEqual([127, '']);
    expect(result.stderr).toStartWith('shadowob-connector: /nowhere/claude can’t be started');
  });

  test('S-702: stderr, environment, folder and arguments reach the program as they are', async () => {
    const home = wrapHome(cleanup);
    const script = 'echo "$LAB|$PWD|$#|$2" >&2';
    const args = ['claude-wrap', '--', 'sh', '-c', script, 'sh', '--help', 'two  words'];
    const result = await cli(args, { home, env: { LAB: 'x y' } });
    expect([result.code, result.stderr]).toEqual([0, `x y|${home}|2|two  words\n`]);
  });

  test('S-702: the program is in the process group of the wrapper', async () => {
    const home = wrapHome(cleanup);
    const wrapped = await startWrapped(cleanup, ['sh', '-c', 'ps -o pgid= -p $$; ps -o pgid= -p $PPID'], {
      home,
    });
    const [program, wrapper] = (await wrapped.output).toString().trim().split(/\s+/);
    expect([program, Number(program) > 1]).toEqual([wrapper, true]);
  });

  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const) {
    test(`S-703: ${signal} is passed on, and the program’s end by it is exit code ${code}`, async () => {
      const home = wrapHome(cleanup);
      const wrapped = await startWrapped(cleanup, ['sh', '-c', 'echo "pid $$"; exec cat'], { home });
      await untilTrue(() => wrapped.soFar().includes('\n'));
      wrapped.kill(signal);
      expect(await wrapped.exited).toBe(code);
      expect(isAlive(pidIn(wrapped.soFar()))).toBe(false);
    });
  }

  test('S-703: a program that handles the signal ends as it wants to', async () => {
    const home = wrapHome(cleanup);
    const script = 'trap "echo bye; exit 5" TERM; echo ready; while :; do read -r line || exit 6; done';
    const wrapped = await startWrapped(cleanup, ['sh', '-c', script], { home });
    await untilTrue(() => wrapped.soFar().includes('ready'));
    wrapped.kill('SIGTERM');
    await wrapped.write('\n');
    expect([await wrapped.exited, wrapped.soFar()]).toEqual([5, 'ready\nbye\n']);
  });

  test('S-702: a wrapper that is killed leaves no orphan: the program meets the end of its input', async () => {
    const home = wrapHome(cleanup);
    const wrapped = await startWrapped(cleanup, ['sh', '-c', 'echo "pid $$"; exec cat'], { home });
    await untilTrue(() => wrapped.soFar().includes('\n'));
    wrapped.kill('SIGKILL');
    await wrapped.exited;
    await untilTrue(() => !isAlive(pidIn(wrapped.soFar())));
  });

  test('S-703: the end of the editor’s input is the end of the program’s', async () => {
    const home = wrapHome(cleanup);
    const wrapped = await startWrapped(cleanup, ['sh', '-c', 'cat; echo done'], { home });
    await wrapped.write('a line without an end');
    wrapped.closeInput();
    expect([await wrapped.exited, (await wrapped.output).toString()]).toEqual([
      0,
      'a line without an enddone\n',
    ]);
  });

  test('C-270: an editor that no longer reads ends the program as it would without us', async () => {
    const home = wrapHome(cleanup);
    const binary = await compiledBinary();
    const script = `"${binary}" claude-wrap -- sh -c 'echo $$ > pid; exec yes 2>/dev/null' | head -c 10; echo "\${PIPESTATUS[0]}"`;
    const child = Bun.spawn(['bash', '-c', script], {
      cwd: home,
      env: bareEnvironment(home),
      stdin: 'ignore',
      stdout: 'pipe',
    });
    // By SIGPIPE, or by the error of a write to a socket whose reader left data behind.
    expect(await new Response(child.stdout).text()).toMatch(/^(?:y\n){5}(?:141|1)\n$/);
    expect(isAlive(Number(readFileSync(join(home, 'pid'), 'utf8')))).toBe(false);
  });

  test('C-270: a program that no longer reads its input is not waited for', async () => {
    const home = wrapHome(cleanup);
    const wrapped = await startWrapped(cleanup, ['sh', '-c', 'exec 0<&-; echo hi; exit 7'], { home });
    await wrapped.write(new Uint8Array(4_000_000)).catch(() => {});
    expect([await wrapped.exited, wrapped.soFar()]).toEqual([7, 'hi\n']);
  });

  test.skipIf(Bun.which('script') === null)(
    'C-271 S-701: on a terminal the wrapper becomes the program: same pid, signals as they were',
    async () => {
      const home = wrapHome(cleanup);
      const inner = 'echo "$$ $WRAPPER"; tty -s && echo terminal; grep SigIgn /proc/self/status';
      const script = `WRAPPER=$$ exec "${await compiledBinary()}" claude-wrap -- sh -c '${inner}'`;
      const child = Bun.spawn(['script', '-qec', `sh -c '${script.replaceAll("'", "'\\''")}'`, '/dev/null'], {
        cwd: home,
        env: bareEnvironment(home),
        stdin: 'ignore',
        stdout: 'pipe',
      });
      const [pids = '', ...rest] = (await new Response(child.stdout).text()).trim().split(/\r?\n/);
      const [program, wrapper] = pids.split(' ');
      expect([program, rest[0]]).toEqual([wrapper, 'terminal']);
      if (process.platform === 'linux') expect(rest[1]).toMatch(/SigIgn:\s+0+$/);
    },
  );
});

describe('claude-wrap: bytes', () => {
  test('C-267: 60 MB both ways, with a service that never answers, arrive byte for byte in bounded memory', async () => {
    const home = wrapHome(cleanup);
    const socket = join(home, 's.sock');
    await fakeService(socket, undefined);
    const wrapped = await startWrapped(cleanup, ['cat'], { home, socket });
    const [sent, got] = [createHash('sha256'), createHash('sha256')];
    const lines = [
      Buffer.from(`${INIT}\n`),
      Buffer.from('{"type":"user"}\r\n日本'),
      Buffer.from('x\n'.repeat(500_000)),
    ];
    for (let round = 0; round < 60; round += 1) {
      const chunk =
        round < lines.length
          ? (lines[round] ?? Buffer.alloc(0))
          : crypto.getRandomValues(Buffer.alloc(65_536));
      for (let times = 0; times < 16; times += 1) {
        sent.update(chunk);
        await wrapped.write(chunk);
      }
    }
    const status = existsSync('/proc/self/status') ? readFileSync(`/proc/${wrapped.pid}/status`, 'utf8') : '';
    wrapped.closeInput();
    got.update(await wrapped.output);
    expect([await wrapped.exited, got.digest('hex')]).toEqual([0, sent.digest('hex')]);
    if (status !== '') expect(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1])).toBeLessThan(250_000);
  }, 60_000);

  test('S-704: one line of 20 MB passes whole, and the lines behind it are heard', async () => {
    const home = wrapHome(cleanup);
    const socket = join(home, 's.sock');
    const service = await fakeService(socket, '{"ok":true}');
    const big = join(home, 'big');
    await Bun.write(big, `{"type":"assistant","text":"${'x'.repeat(20_000_000)}"}\n${INIT}\n`);
    const wrapped = await startWrapped(cleanup, ['cat', big], { home, socket });
    const output = await wrapped.output;
    expect([await wrapped.exited, output.equals(readFileSync(big))]).toEqual([0, true]);
    expect(statesIn(service.lines)).toEqual(['idle', 'end']);
  });

  test('C-272 C-275 S-723: titles get the model in front, unless that is switched off', async () => {
    const home = wrapHome(cleanup);
    const file = join(home, 'out');
    const title = '\u001b]2;acme\u0007';
    await Bun.write(file, `${title}${INIT}\n`);
    const script = 'cat "$0"; read -r line; printf "last\\n"';
    const run = async (value: string): Promise<string> => {
      const env = { SHADOWOB_CONNECTOR_CLAUDE_WRAP_NO_TITLE_REWRITE: value };
      const wrapped = await startWrapped(cleanup, ['sh', '-c', script, file], { home, env });
      await untilTrue(() => wrapped.soFar().includes(value === '1' || value === 'true' ? 'init' : 'Opus'));
      await wrapped.write('\n');
      return (await wrapped.output).toString();
    };
    const plain = `${title}${INIT}\nlast\n`;
    const changed = `${title}${INIT}\n\u001b]2;🟡 Opus · acme\u0007last\n`;
    expect(await Promise.all(['1', 'true', 'no', ''].map(run))).toEqual([plain, plain, changed, changed]);
  });
});

describe('claude-wrap: reports', () => {
  test('C-266: without a service the program’s output and end are what they were', async () => {
    const home = wrapHome(cleanup);
    const result = await cli(['claude-wrap', '--', 'sh', '-c', `echo '${INIT}'; exit 4`], { home });
    expect([result.code, result.stdout, existsSync(join(home, '.shadowob'))]).toEqual([
      4,
      `${INIT}\n`,
      false,
    ]);
  });

  test('C-266: a service that never answers holds up nothing but the very end', async () => {
    const home = wrapHome(cleanup);
    const socket = join(home, 's.sock');
    const service = await fakeService(socket, undefined);
    const script = `echo '${INIT}'; read -r line; echo "heard $line"; exit 4`;
    const wrapped = await startWrapped(cleanup, ['sh', '-c', script], { home, socket });
    await untilTrue(() => service.lines.length === 1);
    await wrapped.write('you\n');
    await untilTrue(() => wrapped.soFar().endsWith('heard you\n'));
    expect(await wrapped.exited).toBe(4);
  });

  test('C-276 S-742: with diagnostics on, no word of the conversation or of the service is written', async () => {
    const home = wrapHome(cleanup);
    const socket = join(home, 's.sock');
    const service = await fakeService(socket, '{"ok":false,"error":"MARKER of the service"}');
    const log = join(home, 'wrap.log');
    const conversation = [
      { type: 'assistant', session_id: ID, message: { content: 'MARKER text' } },
      {
        type: 'user',
        session_id: ID,
        message: { content: [{ type: 'tool_result', content: 'MARKER output' }] },
      },
      {
        type: 'control_request',
        request_id: 'MARKER',
        request: { subtype: 'can_use_tool', input: 'MARKER input' },
      },
    ].map((line) => JSON.stringify(line));
    const file = join(home, 'out');
    await Bun.write(file, `${[INIT, ...conversation].join('\n')}\nMARKER {raw\n`);
    const env = { SHADOWOB_CONNECTOR_CLAUDE_WRAP_LOG: log };
    const wrapped = await startWrapped(cleanup, ['cat', file], { home, socket, env });
    expect(await wrapped.exited).toBe(0);
    const text = readFileSync(log, 'utf8');
    expect([text.includes('MARKER'), service.lines.join().includes('MARKER')]).toEqual([false, false]);
    expect(statSync(log).mode & 0o777).toBe(0o600);
    const records = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(records.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['start', 'identity', 'state', 'report', 'final_summary', 'exit']),
    );
    expect(records.find(({ event }) => event === 'report')).toMatchObject({
      outcome: 'daemon_rejected',
      session_id: ID,
    });
    expect(records.find(({ event }) => event === 'final_summary')).toMatchObject({ parse_failures: 1 });
    expect(records.at(-1)).toMatchObject({ event: 'exit', exit_code: 0, wrapper_pid: wrapped.pid });
  });
});
