import { afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compiledBinary } from '../helpers/binary.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';
import { hookBench, ID, standIn } from './hook-bench.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

const payload = (hook_event_name: string, extra = {}) => ({
  session_id: ID,
  hook_event_name,
  cwd: '/home/me/web',
  ...extra,
});
const SILENT = { code: 0, stdout: '', stderr: '' };

describe('the sink as a process', () => {
  test('S-401 S-503 C-153 C-160 R-39: one journal line and one report with the same stamp, the journal first', async () => {
    const bench = hookBench(cleanup);
    const { received, lines } = await standIn(cleanup, bench.socketPath);
    const ran = await bench.hook(
      payload('PreToolUse', { model: 'm', transcript_path: '/t', tool_name: 'Bash' }),
      undefined,
      { CLAUDE_PID: '4242' },
    );
    expect(ran).toMatchObject(SILENT);
    const [record] = bench.journal();
    const [line] = lines();
    expect(record).toEqual({
      v: 1,
      ts: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/),
      seq: expect.stringMatching(new RegExp(`^${ran.pid}-\\d{19}$`)),
      agent: 'claude',
      session_id: ID,
      op: 'observe',
      event: 'pre_tool_use',
      pid: 4242,
      cwd: '/home/me/web',
      transcript_path: '/t',
      model: 'm',
    });
    expect(line).toEqual({
      service: 'sessions',
      op: 'observe',
      payload: {
        session_id: ID,
        event: 'pre_tool_use',
        pid: 4242,
        cwd: '/home/me/web',
        transcript_path: '/t',
        model: 'm',
        stamp: { ts: record?.['ts'], seq: record?.['seq'] },
      },
    });
    const file = join(bench.home, 'run', 'sessions', 'claude', `${ID}.jsonl`);
    expect(statSync(file).mtimeMs).toBeLessThanOrEqual((received[0]?.at ?? 0) + 1);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('C-142 R-14 S-313: Codex is tagged, its sub-agent forwarded, an end is an end', async () => {
    const bench = hookBench(cleanup);
    const { lines } = await standIn(cleanup, bench.socketPath);
    const codex = ['--agent', 'codex'];
    await bench.hook(payload('PostToolUse', { agent_id: 'child', transcript_path: '/r' }), codex);
    await bench.hook(payload('Stop', { agent_id: ID }), ['--agent=codex']);
    await bench.hook(payload('SessionEnd', { reason: 'other' }), codex, { CLAUDE_PID: '4242' });
    const [first, second, third] = lines();
    expect(first?.payload).toMatchObject({ agent: 'codex', agent_id: 'child', event: 'post_tool_use' });
    expect(second?.payload).not.toHaveProperty('agent_id');
    expect(third).toMatchObject({ op: 'end', payload: { session_id: ID, reason: 'other' } });
    expect(third?.payload['pid']).not.toBe(4242);
    expect(bench.journal(ID, 'codex').map(({ op }) => op)).toEqual(['observe', 'observe', 'end']);
  });

  test('S-402 C-146: an answer that looks like a decision is not passed on', async () => {
    const bench = hookBench(cleanup);
    const { lines } = await standIn(
      cleanup,
      bench.socketPath,
      () => '{"behavior":"allow","hookSpecificOutput":{"decision":{"behavior":"allow"}}}\n',
    );
    expect(await bench.hook(payload('PermissionRequest', { tool_name: 'Bash' }))).toMatchObject(SILENT);
    expect(lines()[0]?.payload['event']).toEqual({ notification: 'permission_prompt' });
  });

  test('C-147 R-24: no service, a wedged one, one that rejects: exit 0, nothing said, soon', async () => {
    const nobody = hookBench(cleanup);
    expect(await nobody.hook(payload('Stop'))).toMatchObject(SILENT);
    expect(nobody.journal()).toHaveLength(1);
    const wedged = hookBench(cleanup);
    const silent = await standIn(cleanup, wedged.socketPath, () => undefined);
    expect(await wedged.hook(payload('Stop'))).toMatchObject(SILENT);
    expect(silent.received).toHaveLength(1);
    const rejecting = hookBench(cleanup);
    await standIn(cleanup, rejecting.socketPath, () => '{"ok":false,"error":"no"}\n');
    expect(await rejecting.hook(payload('Stop'))).toMatchObject(SILENT);
    // A stale socket file without a listener.
    const stale = hookBench(cleanup);
    Bun.spawnSync([
      process.execPath,
      '-e',
      `require('node:net').createServer().listen(${JSON.stringify(stale.socketPath)}, () => process.kill(process.pid, 'SIGKILL'))`,
    ]);
    expect(await stale.hook(payload('Stop'))).toMatchObject(SILENT);
  });

  test('C-161 R-24 C-147: where no service ever ran nothing is written, and the report is still tried', async () => {
    const bench = hookBench(cleanup, { run: false });
    mkdirSync(bench.home, { mode: 0o700 });
    const { lines } = await standIn(cleanup, bench.socketPath, () => undefined);
    const ran = await bench.hook(payload('Stop'));
    expect(ran).toMatchObject(SILENT);
    // Without a journal the reply is waited for: longer than with one, and never for ever.
    expect(ran.ms).toBeGreaterThan(1_500);
    expect(lines()).toHaveLength(1);
    expect(bench.files()).toEqual([]);
    const nowhere = hookBench(cleanup, { run: false });
    expect(await nowhere.hook(payload('Stop'))).toMatchObject(SILENT);
    expect(existsSync(nowhere.home)).toBe(false);
  });

  test.each([
    ['empty', ''],
    ['not json', 'not json'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a number', '7'],
    ['no id', JSON.stringify({ hook_event_name: 'Stop' })],
    ['a blank id', JSON.stringify({ session_id: '  ', hook_event_name: 'Stop' })],
    ['no event', JSON.stringify({ session_id: ID })],
    ['an unknown event', JSON.stringify(payload('Frobnicate'))],
    ['torn', JSON.stringify(payload('Stop')).slice(0, -1)],
    ['NUL bytes', '\0\0\0\0'],
    [
      '2 MiB without our keys',
      `{"tool_input":"${'x'.repeat(2 * 1024 * 1024)}","session_id":"${ID}","hook_event_name":"Stop"}`,
    ],
  ])('C-148 S-405 R-24: stdin %s: nothing sent, nothing written', async (_what, stdin) => {
    const bench = hookBench(cleanup);
    const { received } = await standIn(cleanup, bench.socketPath);
    expect(await bench.hook(stdin)).toMatchObject(SILENT);
    expect(received).toEqual([]);
    expect(bench.files()).toEqual([]);
  });

  test('R-24 C-148: of 3 MiB the keys in the beginning are enough, and stdin is read to its end', async () => {
    const bench = hookBench(cleanup);
    const { lines } = await standIn(cleanup, bench.socketPath);
    const big = JSON.stringify(
      payload('PreToolUse', { tool_name: 'Write', tool_input: { content: 'x"\\'.repeat(1024 * 1024) } }),
    );
    expect(Buffer.byteLength(big)).toBeGreaterThan(3 * 1024 * 1024);
    expect(await bench.hook(big)).toMatchObject(SILENT);
    expect(lines()[0]?.payload).toMatchObject({ event: 'pre_tool_use', cwd: '/home/me/web' });
  });

  test('R-24: a BOM and blanks around are JSON all the same', async () => {
    const bench = hookBench(cleanup);
    await bench.hook(`\ufeff\n ${JSON.stringify(payload('Stop'))}\n\n`);
    expect(bench.journal()).toHaveLength(1);
  });

  test('C-149 S-402: usage errors are silent and do nothing', async () => {
    const bench = hookBench(cleanup);
    const { received } = await standIn(cleanup, bench.socketPath);
    for (const args of [
      ['--frob'],
      ['--agent'],
      ['--agent', 'grok'],
      ['--agent', 'pi'],
      ['--socket'],
      ['x'],
      ['--agent', 'claude', '--', 'x'],
      ['--help'],
    ]) {
      expect([args, await bench.hook(payload('Stop'), args)]).toEqual([
        args,
        expect.objectContaining(SILENT),
      ]);
    }
    expect(received).toEqual([]);
    expect(bench.files()).toEqual([]);
  });

  test('S-330: `--socket` moves the socket and the journals beside it', async () => {
    const bench = hookBench(cleanup);
    const elsewhere = join(bench.user, 'x');
    mkdirSync(join(elsewhere, 'run'), { recursive: true, mode: 0o700 });
    const { lines } = await standIn(cleanup, join(elsewhere, 'y.sock'));
    await bench.hook(payload('Stop'), ['--agent', 'claude', '--socket', join(elsewhere, 'y.sock')]);
    expect(lines()).toHaveLength(1);
    expect(existsSync(join(elsewhere, 'run', 'sessions', 'claude', `${ID}.jsonl`))).toBe(true);
    expect(bench.files().filter((path) => path.startsWith(bench.home))).toEqual([]);
  });

  test('C-151 S-404 S-903 C-402: content is in neither line, journal nor diagnostics; each gate is named on stderr', async () => {
    const bench = hookBench(cleanup);
    const { received } = await standIn(cleanup, bench.socketPath);
    const marker = 'M4RKER';
    const content = {
      prompt: marker,
      tool_input: { command: marker },
      tool_response: marker,
      last_assistant_message: marker,
      custom_instructions: marker,
      background_tasks: [{ type: 'shell', status: 'running', description: marker }],
      message: `${marker} needs your permission`,
    };
    const debug = { SHADOWOB_CONNECTOR_LOG: 'debug' };
    const said: string[] = [];
    for (const event of [
      'UserPromptSubmit',
      'PreToolUse',
      'PostToolUse',
      'Stop',
      'Notification',
      'PreCompact',
    ]) {
      const ran = await bench.hook(payload(event, content), undefined, debug);
      expect([ran.code, ran.stdout]).toEqual([0, '']);
      said.push(ran.stderr);
    }
    expect(received).toHaveLength(6);
    for (const bad of ['junk', '{}', JSON.stringify(payload('Frobnicate', content))])
      said.push((await bench.hook(bad, undefined, debug)).stderr);
    said.push((await bench.hook(payload('Stop', content), ['--frob'], debug)).stderr);
    const everything = [
      ...said,
      ...received.map(({ text }) => text),
      ...bench.files().map((path) => readFileSync(path, 'utf8')),
    ].join('\n');
    expect(everything).not.toContain(marker);
    for (const gate of ['json', 'identity', 'event', 'usage'])
      expect(everything).toContain(`session_hook_skipped gate=${gate}`);
    expect(everything).toContain('session_hook_journal outcome=journaled');
    expect(everything).toContain('session_hook_report outcome=delivered');
  });

  test('C-399 S-906: hostile ids and paths open nothing outside, and the report is still sent', async () => {
    const bench = hookBench(cleanup);
    const { lines } = await standIn(cleanup, bench.socketPath);
    const hostile = ['../../etc/passwd', `${ID}/../../x`, '..', '/etc/passwd', 'a\nb', 'x'.repeat(4_096)];
    for (const session_id of hostile) {
      expect(await bench.hook({ session_id, hook_event_name: 'Stop', cwd: '../..\0' })).toMatchObject(SILENT);
    }
    expect(lines().map(({ payload }) => payload['session_id'])).toEqual(hostile);
    expect(bench.files()).toEqual([]);
    await bench.hook(payload('Stop', { cwd: `/${'p'.repeat(5_000)}`, model: 'm'.repeat(600) }));
    expect(lines().at(-1)?.payload).not.toHaveProperty('cwd');
    expect(lines().at(-1)?.payload).not.toHaveProperty('model');
  });

  test('C-163 S-507: a journal that nobody tends is left, and the report is still sent', async () => {
    const bench = hookBench(cleanup);
    const { lines } = await standIn(cleanup, bench.socketPath);
    const folder = join(bench.home, 'run', 'sessions', 'claude');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${ID}.jsonl`), 'x'.repeat(524_288));
    await bench.hook(payload('Stop'));
    expect(statSync(join(folder, `${ID}.jsonl`)).size).toBe(524_288);
    expect(lines()).toHaveLength(1);
  });

  test('C-154 S-506: twenty sinks at once: twenty lines, twenty reports, twenty numbers', async () => {
    const bench = hookBench(cleanup);
    const { lines } = await standIn(cleanup, bench.socketPath);
    const runs = await Promise.all(Array.from({ length: 20 }, () => bench.hook(payload('PostToolUse'))));
    for (const ran of runs) expect(ran).toMatchObject(SILENT);
    expect(bench.journal()).toHaveLength(20);
    expect(lines()).toHaveLength(20);
    expect(new Set(bench.journal().map(({ seq }) => seq)).size).toBe(20);
  }, 20_000);

  test('R-03: behind a shell the owner is the shell’s parent', async () => {
    const bench = hookBench(cleanup);
    const binary = await compiledBinary();
    const script = `cat > /dev/null; printf '%s' '${JSON.stringify(payload('Stop'))}' | sh -c '"${binary}" hook --agent claude; true'; true`;
    const child = Bun.spawn(['sh', '-c', script], {
      stdin: 'ignore',
      env: { HOME: bench.user, SHADOWOB_CONNECTOR_HOME: bench.home, PATH: process.env['PATH'] ?? '' },
    });
    await child.exited;
    const [record] = bench.journal();
    // Two shells stand between: the test itself is the first ancestor that is none.
    if (process.platform === 'linux') expect(record?.['pid']).toBe(process.pid);
  });

  test('a stdin whose end never comes is left alone after a while', async () => {
    const bench = hookBench(cleanup);
    const child = Bun.spawn([await compiledBinary(), 'hook', '--agent', 'claude'], {
      stdin: 'pipe',
      stdout: 'pipe',
      env: { HOME: bench.user, SHADOWOB_CONNECTOR_HOME: bench.home },
    });
    child.stdin.write('{"session_id":');
    await child.stdin.flush();
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stdout).text()).toBe('');
  });

  test('a closed stdin, and a home that can’t be used, are no errors', async () => {
    const bench = hookBench(cleanup);
    const binary = await compiledBinary();
    const ran = Bun.spawnSync(['sh', '-c', `"${binary}" hook --agent claude <&-`], {
      env: { HOME: '/nonexistent', PATH: process.env['PATH'] ?? '' },
    });
    expect([ran.exitCode, ran.stdout.toString(), ran.stderr.toString()]).toEqual([0, '', '']);
    writeFileSync(join(bench.user, 'file'), '');
    const env = { SHADOWOB_CONNECTOR_HOME: join(bench.user, 'file', 'x') };
    expect(await bench.hook(payload('Stop'), undefined, env)).toMatchObject(SILENT);
  });
});

test('the sink’s own imports are few: no schema library, no command framework, nothing of the service', async () => {
  const root = join(import.meta.dir, '..', '..');
  const built = await Bun.build({
    entrypoints: [join(root, 'src', 'commands', 'hook.ts')],
    target: 'bun',
    metafile: true,
  } as never);
  const inputs = Object.keys(
    (built as { metafile?: { inputs: Record<string, unknown> } }).metafile?.inputs ?? {},
  );
  expect(inputs.length).toBeGreaterThan(5);
  expect(inputs.filter((path) => path.includes('node_modules'))).toEqual([]);
  expect(inputs.filter((path) => /daemon\/(server|protocol|connection|sessions)/.test(path))).toEqual([]);
});
