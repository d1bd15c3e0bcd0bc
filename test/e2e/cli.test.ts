import { describe, expect, test } from 'bun:test';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../../src/runtime/errors.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { bareEnvironment, cli, temporaryHome } from '../helpers/cli.ts';
import { layClaude, layCodex, write } from '../helpers/recorded-home.ts';

describe('the executable, without any session', () => {
  test('--version prints the version on its first line and nothing on stderr', async () => {
    using home = temporaryHome();
    const result = await cli(['--version'], { home: home.path });
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(/^\d+\.\d+\.\d+\n/);
  });

  test('--help lists every command, and each has its own help with examples', async () => {
    using home = temporaryHome();
    const help = await cli(['--help'], { home: home.path });
    expect(help.code).toBe(0);
    const names = [
      'runtime-scan',
      'runtime-watch',
      'session-list',
      'session-show',
      'session-why',
      'session-send',
      'session-abort',
      'session-approve',
      'session-create',
      'completions',
    ];
    for (const name of names) {
      expect(help.stdout).toContain(name);
      const own = await cli([name, '--help'], { home: home.path });
      expect([own.code, own.stderr]).toEqual([0, '']);
      expect(own.stdout).toContain(`\nExamples\n  shadowob-connector ${name}`);
    }
  });

  test('O1 a mistyped command fails and names the nearest, as text and as JSON', async () => {
    using home = temporaryHome();
    const text = await cli(['sesion-list'], { home: home.path });
    expect(text).toEqual({
      code: EXIT.unknownCommand,
      stdout: '',
      stderr:
        'shadowob-connector: there is no command "sesion-list"; did you mean "session-list"?\nTry: shadowob-connector session-list\n',
    });
    const json = await cli(['sesion-list', '--json'], { home: home.path });
    expect(json.code).toBe(EXIT.unknownCommand);
    expect(JSON.parse(json.stdout).error).toMatchObject({ kind: 'unknownCommand', exitCode: 21 });
  });

  test('S9 an unsupported capability has its own exit code and is never an empty success', async () => {
    using home = temporaryHome();
    const result = await cli(['session-list', '--runtime', 'cursor', '--json'], { home: home.path });
    expect(result.code).toBe(EXIT.unsupported);
    expect(JSON.parse(result.stdout).error.message).toBe('Cursor CLI: monitoring not available yet');
    const unknown = await cli(['session-list', '--runtime', 'claude-cod'], { home: home.path });
    expect([unknown.code, unknown.stdout]).toEqual([EXIT.notFound, '']);
    expect(unknown.stderr).toContain('did you mean "claude-code"?');
  });

  test('reading leaves nothing behind in a home without sessions', async () => {
    using home = temporaryHome();
    const result = await cli(['session-list'], { home: home.path });
    expect(result.code).toBe(0);
    expect(readdirSync(home.path)).toEqual([]);
  });

  test('completions load in bash, and offer commands, options and values', async () => {
    using home = temporaryHome();
    const script = await cli(['completions', 'bash'], { home: home.path });
    expect(script.code).toBe(0);
    const file = write(home.path, 'completion.bash', script.stdout);
    expect(Bun.spawnSync(['bash', '-n', file]).exitCode).toBe(0);
    const offered = await cli(['complete', '--', 'session-list', '--state', ''], { home: home.path });
    expect(offered.stdout.split('\n').map((line) => line.split('\t')[0])).toContain('waiting');
    const commands = await cli(['complete', '--', 'sess'], { home: home.path });
    expect(commands.stdout).toContain('session-list\t');
  });

  test.skipIf(process.platform === 'win32')(
    'completions work in a bash without any package, loaded twice, and run nothing of what is typed',
    async () => {
      using home = temporaryHome();
      const file = write(
        home.path,
        'completion.bash',
        (await cli(['completions', 'bash'], { home: home.path })).stdout,
      );
      mkdirSync(join(home.path, 'bin'));
      symlinkSync(await compiledBinary(), join(home.path, 'bin', 'shadowob-connector'));
      const typed = async (...words: string[]) => {
        const script = `set -u; . "$0"; . "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
          __shadowob_connector_complete; printf '%s\\n' \${COMPREPLY[@]+"\${COMPREPLY[@]}"}`;
        const child = Bun.spawn(['bash', '--norc', '-c', script, file, 'shadowob-connector', ...words], {
          cwd: home.path,
          env: { ...bareEnvironment(home.path), PATH: `${join(home.path, 'bin')}:/usr/bin:/bin` },
          stdout: 'pipe',
          stderr: 'pipe',
        });
        expect(await new Response(child.stderr).text()).toBe('');
        return (await new Response(child.stdout).text()).trim().split('\n');
      };
      const id = layClaude(home.path, 'h-simple');
      expect(await typed('session-l')).toEqual(['session-list']);
      expect(await typed('session-why', '')).toEqual([id.slice(0, 8)]);
      expect(await typed('session-list', '--state', 'wai')).toEqual(['waiting', 'waiting_for_approval']);
      expect(await typed('session-list', '--state', '=', 'wai')).toEqual(['waiting', 'waiting_for_approval']);
      expect(await typed('session-list', '--state', '=')).toContain('idle');
      expect(await typed('session-list', '--dir', 'b')).toEqual(['bin']);
      await typed('session-show', '$(touch ran)', '');
      expect(existsSync(join(home.path, 'ran'))).toBe(false);
    },
  );

  test('completions for an unknown shell are refused', async () => {
    using home = temporaryHome();
    expect((await cli(['completions', 'tcsh'], { home: home.path })).code).toBe(EXIT.badValue);
  });
});

describe('the executable, over recorded sessions', () => {
  test('session-list shows one row a session with its real title and outcome', async () => {
    using home = temporaryHome();
    const simple = layClaude(home.path, 'h-simple');
    const failed = layClaude(home.path, 'h-api-error-401');
    const codex = layCodex(home.path, 'exec-tool');
    const result = await cli(['session-list', '--json'], { home: home.path });
    expect([result.code, result.stderr]).toEqual([0, '']);
    const snapshot = JSON.parse(result.stdout);
    expect(snapshot.runtimeIds).toEqual(['opencode', 'claude-code', 'codex', 'pi']);
    const rows = new Map(snapshot.sessions.map((row: { sessionId: string }) => [row.sessionId, row]));
    expect(rows.get(simple)).toMatchObject({
      runtimeId: 'claude-code',
      instanceId: 'transcripts',
      state: 'completed',
      source: 'transcript',
      origin: 'unboundLocal',
      evidence: { confidence: 'inferred' },
    });
    expect(rows.get(failed)).toMatchObject({ state: 'failed', petReaction: 'error' });
    expect(rows.get(codex)).toMatchObject({ runtimeId: 'codex', state: 'completed' });
    expect(rows.size).toBe(3);
  });

  test('an id may be shortened where unique; session-show, session-why and the history take it', async () => {
    using home = temporaryHome();
    const id = layClaude(home.path, 'i-simple');
    const why = await cli(['session-why', id.slice(0, 6), '--json'], { home: home.path });
    expect(why.code).toBe(0);
    expect(JSON.parse(why.stdout)).toMatchObject({ state: 'completed', skippedRecords: 0 });
    const show = await cli(['session-show', `claude-code:${id.slice(0, 6)}`], { home: home.path });
    expect(show.code).toBe(0);
    expect(show.stdout).toContain(id);
    const none = await cli(['session-why', 'ffffffff'], { home: home.path });
    expect(none.code).toBe(EXIT.notFound);
  });

  test('a shortened id that means several sessions is refused with their names', async () => {
    using home = temporaryHome();
    const row = (id: string) =>
      `${JSON.stringify({ type: 'user', sessionId: id, cwd: '/home/dev/acme', timestamp: '2026-11-30T12:00:00Z', message: { role: 'user', content: 'Hi' } })}\n`;
    for (const tail of ['1', '2']) {
      const id = `aaaaaaaa-0000-4000-8000-00000000000${tail}`;
      write(home.path, `.claude/projects/-home-dev-acme/${id}.jsonl`, row(id));
    }
    const result = await cli(['session-why', 'aaaa'], { home: home.path });
    expect(result.code).toBe(EXIT.ambiguous);
    expect(result.stderr).toContain('could be any of 2 sessions');
  });

  test('X bad records are skipped and counted in session-why, and the rest of the list is there', async () => {
    using home = temporaryHome();
    const good = layClaude(home.path, 'h-simple');
    const id = 'bbbbbbbb-0000-4000-8000-000000000001';
    const rows = [
      {
        type: 'user',
        sessionId: id,
        cwd: '/home/dev/acme',
        timestamp: '2026-11-30T12:00:00Z',
        message: { role: 'user', content: 'Fix it' },
      },
      {
        type: 'assistant',
        sessionId: id,
        cwd: '/home/dev/acme',
        timestamp: '2026-11-30T12:00:01Z',
        message: { role: 'assistant', stop_reason: 'end_turn', content: [{ type: 'text', text: 'Done' }] },
      },
    ].map((row) => JSON.stringify(row));
    write(
      home.path,
      `.claude/projects/-home-dev-acme/${id}.jsonl`,
      `\ufeff${rows[0]}\r\nnot json at all\r\n\u0000\u0000\u0000\r\n${rows[1]}\r\n{"type":"us`,
    );
    const why = await cli(['session-why', id, '--json'], { home: home.path });
    const data = JSON.parse(why.stdout);
    expect(data.state).toBe('completed');
    expect(data.skippedRecords).toBeGreaterThanOrEqual(2);
    const list = JSON.parse((await cli(['session-list', '--json'], { home: home.path })).stdout);
    expect(list.sessions.map((row: { sessionId: string }) => row.sessionId).sort()).toEqual(
      [good, id].sort(),
    );
  });

  test('--redact hides titles, paths and labels', async () => {
    using home = temporaryHome();
    layClaude(home.path, 'i-perm-approve');
    const plain = await cli(['session-list', '--json'], { home: home.path });
    expect(plain.stdout).toContain('acme-app');
    const hidden = await cli(['session-list', '--json', '--redact'], { home: home.path });
    expect(hidden.stdout).not.toContain('acme-app');
    expect(hidden.stdout).not.toContain('build dir');
  });

  test('output into a reader that goes away ends quietly', async () => {
    using home = temporaryHome();
    for (let i = 0; i < 400; i += 1) {
      const id = `cccccccc-0000-4000-8000-${String(i).padStart(12, '0')}`;
      write(
        home.path,
        `.claude/projects/-p/${id}.jsonl`,
        `${JSON.stringify({ type: 'user', sessionId: id, cwd: '/p', timestamp: '2026-11-30T12:00:00Z', message: { role: 'user', content: 'x'.repeat(90) } })}\n`,
      );
    }
    const binary = await compiledBinary();
    const child = Bun.spawn(['sh', '-c', '"$1" session-list --json --all | head -c 10', 'sh', binary], {
      cwd: home.path,
      env: bareEnvironment(home.path),
      stdout: 'pipe',
      stderr: 'pipe',
    });
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stderr).text()).toBe('');
  });

  test.skipIf(process.platform !== 'linux')(
    'a full disk under stdout is one line, with JSON, too',
    async () => {
      using home = temporaryHome();
      const binary = await compiledBinary();
      for (const words of ['session-list', 'session-list --json']) {
        const child = Bun.spawn(['sh', '-c', `"$1" ${words} > /dev/full`, 'sh', binary], {
          cwd: home.path,
          env: bareEnvironment(home.path),
          stderr: 'pipe',
        });
        const stderr = await new Response(child.stderr).text();
        expect([await child.exited, stderr]).toEqual([1, expect.stringContaining('ENOSPC')]);
        expect(stderr).not.toContain('at writeSync');
      }
    },
  );

  test('R-32 of two homes with one session the newest counts, and session-why says that there are two', async () => {
    using home = temporaryHome();
    const id = layClaude(home.path, 'h-simple', 500_000);
    const other = join(home.path, 'other');
    cpSync(join(home.path, '.claude'), other, { recursive: true });
    const options = { home: home.path, env: { CLAUDE_CONFIG_DIR: other } };
    const why = await cli(['session-why', id], options);
    expect(why.stdout).toContain(`other/projects/`);
    expect(why.stdout).toContain('(the newest of 2 with this id)');
    const list = JSON.parse((await cli(['session-list', '--json'], options)).stdout);
    expect(list.sessions).toHaveLength(1);
  });

  test('R-28 without --all, JSON stays under a megabyte and says what it left out', async () => {
    using home = temporaryHome();
    for (let i = 0; i < 2_500; i += 1) {
      const id = `dddddddd-0000-4000-8000-${String(i).padStart(12, '0')}`;
      write(
        home.path,
        `.claude/projects/-p/${id}.jsonl`,
        `${JSON.stringify({ type: 'user', sessionId: id, cwd: '/home/dev/a/rather/long/path/to/a/project', timestamp: '2026-11-30T12:00:00Z', message: { role: 'user', content: 'Make the list as long as it can be '.repeat(3) } })}\n`,
      );
    }
    const result = await cli(['session-list', '--json'], { home: home.path });
    expect(Buffer.byteLength(result.stdout)).toBeLessThan(1_000_000);
    const snapshot = JSON.parse(result.stdout);
    expect(snapshot.truncated.total).toBe(2_500);
    expect(snapshot.truncated.shown).toBe(snapshot.sessions.length);
    const all = await cli(['session-list', '--json', '--all'], { home: home.path });
    expect(JSON.parse(all.stdout).sessions).toHaveLength(2_500);
  });
});
