import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { placesOf } from '../../../../src/runtime/control/places.ts';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { CONTROL, TEXT } from '../../../../src/runtime/limits.ts';
import { document, lines, messages, noHosts, openStage, starts } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

// The fake program is started by a shell script; Windows has its own forms, which `spawn` tests.
describe.skipIf(process.platform === 'win32')('session-send, with a program that speaks the protocol', () => {
  test('returns once the runtime has accepted; the document has the existing connector’s fields and ours', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run([
      'session-send',
      '--runtime',
      'claude-code',
      '--session',
      id,
      '--message',
      'hi',
      '--json',
    ]);
    expect(ran.code).toBe(0);
    expect(document(ran)).toEqual({
      runtimeId: 'claude-code',
      instanceId: 'transcripts',
      sessionId: id,
      accepted: true,
      queued: false,
      mode: 'process',
      detail: expect.stringContaining('session-approve'),
      resume: `cd ${stage.folder} && claude --resume ${id}`,
      approvals: 'ask',
      events: [expect.objectContaining({ type: 'accepted', sessionId: id, at: expect.stringMatching(/Z$/) })],
    });
    await noHosts(stage);
  });

  test('36: it runs in the session’s folder, with nothing of the text in its arguments', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run(['session-send', id, '--message', 'a secret plan', '--wait']);
    expect([ran.code, ran.stdout]).toEqual([0, '13 units\n']);
    expect(stage.log()[0]).toMatchObject({ cwd: stage.folder, configDir: null });
    expect(JSON.stringify(starts(stage))).not.toContain('secret');
    expect(starts(stage)[0]).toEqual(
      expect.arrayContaining(['--resume', id, '--permission-prompt-tool', 'stdio']),
    );
    await noHosts(stage);
  });

  test('36: text that begins with a dash, from stdin, a file, or the command line, arrives whole', async () => {
    await using stage = openStage();
    const id = stage.session();
    writeFileSync(join(stage.home, 'task.md'), '--resume x\n');
    const ways: [string[], string | undefined, string][] = [
      [['--message', '-'], '-p\n', '-p\n'],
      [[], '  --help', '  --help'],
      [['--message=-x'], undefined, '-x'],
      [['--message-file', 'task.md'], undefined, '--resume x\n'],
    ];
    for (const [args, stdin] of ways) {
      const ran = await stage.run(
        ['session-send', id, ...args, '--wait'],
        stdin === undefined ? {} : { stdin },
      );
      expect(ran.code).toBe(0);
    }
    expect(messages(stage)).toEqual(ways.map(([, , text]) => text));
    await noHosts(stage);
  });

  test('36: 1 MB, and the largest text there may be, arrive whole; one byte more is refused by name (R-40)', async () => {
    await using stage = openStage();
    const id = stage.session();
    const texts = ['x'.repeat(1024 * 1024), '\u0001'.repeat(TEXT.messageBytes)];
    for (const [i, text] of texts.entries()) {
      writeFileSync(join(stage.home, `${i}.txt`), text);
      const ran = await stage.run(['session-send', id, '--message-file', `${i}.txt`, '--wait']);
      expect([ran.code, ran.stdout]).toEqual([0, `${text.length} units\n`]);
    }
    expect(messages(stage)).toEqual(texts);
    writeFileSync(join(stage.home, 'more.txt'), 'x'.repeat(TEXT.messageBytes + 1));
    for (const args of [
      ['--message-file', 'more.txt'],
      ['--message', '-'],
    ]) {
      const stdin = 'x'.repeat(TEXT.messageBytes + 1);
      const ran = await stage.run(['session-send', id, ...args, '--json'], { stdin });
      expect(ran.code).toBe(EXIT.badValue);
      expect(document(ran)['error']).toMatchObject({
        message: expect.stringContaining(`${TEXT.messageBytes} is the limit`),
      });
    }
    await noHosts(stage);
  });

  test('a folder that is not there is named: a new session has begun in none', async () => {
    await using stage = openStage();
    const gone = join(stage.home, 'gone');
    const begin = ['session-send', '--new', '--runtime', 'claude-code', '--dir', gone, '--message', 'Hello'];
    const ran = await stage.run(begin);
    expect([ran.code, ran.stderr]).toEqual([
      EXIT.refused,
      expect.stringContaining(`there is no folder ${gone}`),
    ]);
    expect(ran.stderr).toContain('--dir');
  });

  test('bytes that are no UTF-8, and an empty text, are refused before anything is started', async () => {
    await using stage = openStage();
    const id = stage.session();
    writeFileSync(join(stage.home, 'latin1'), Buffer.from([0x67, 0xfc, 0x6e]));
    const wrong = await stage.run(['session-send', id, '--message-file', 'latin1']);
    const empty = await stage.run(['session-send', id, '--message', '-'], { stdin: ' \n' });
    expect([wrong.code, empty.code]).toEqual([EXIT.badValue, EXIT.badValue]);
    expect([wrong.stderr, empty.stderr].join()).toMatch(/not UTF-8.*is empty/s);
    expect(stage.log()).toEqual([]);
  });

  test('--wait --json is one event a line, from accepted to done', async () => {
    await using stage = openStage();
    const ran = await stage.run(['session-send', stage.session(), '--message', 'hi', '--wait', '--json']);
    expect(lines(ran).map((event) => event['type'])).toEqual(['accepted', 'progress', 'done']);
    expect(lines(ran).at(-1)).toMatchObject({ outcome: 'completed', text: '2 units', exitCode: 0 });
    await noHosts(stage);
  });

  test('M7: a session that the runtime does not know is refused in its own words, not accepted', async () => {
    await using stage = openStage();
    const env = { FAKE_CLAUDE_UNKNOWN: '1' };
    const ran = await stage.run(['session-send', stage.session(), '--message', 'hi', '--json'], { env });
    expect(ran.code).toBe(EXIT.notFound);
    expect(document(ran)).toMatchObject({ accepted: false, error: { kind: 'notFound' } });
    expect(ran.stderr).toContain('No conversation found');
    await noHosts(stage);
  });

  test('a program that is not installed is said so, with the command that installs it', async () => {
    await using stage = openStage();
    const id = stage.session();
    const ran = await stage.run(['session-send', id, '--message', 'hi'], { env: { PATH: '/usr/bin:/bin' } });
    expect(ran.code).toBe(EXIT.runtimeMissing);
    expect(ran.stderr).toMatch(/is not installed.*Install it: /s);
    await noHosts(stage);
  });

  test('X10: a huge session warns first', async () => {
    await using stage = openStage();
    const id = stage.session();
    const project = join(stage.home, '.claude', 'projects', stage.folder.replace(/[^A-Za-z0-9]/g, '-'));
    truncateSync(join(project, `${id}.jsonl`), CONTROL.hugeSessionBytes);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--json']);
    expect(document(ran)['events']).toMatchObject([
      { type: 'note', text: expect.stringContaining('a huge session: 64 MiB') },
      { type: 'accepted' },
    ]);
    await noHosts(stage);
  });

  test('files of ours are private, and only the lock stays', async () => {
    await using stage = openStage();
    const id = stage.session();
    await stage.run(['session-send', id, '--message', 'hi', '--keep', '1m']);
    const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: id };
    const { record, socket, lock } = placesOf(stage.connectorHome, ref);
    for (const path of [record, socket, lock]) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(record, '..')).mode & 0o777).toBe(0o700);
    await stage.run(['session-abort', id, '--kill']);
    await noHosts(stage);
    expect([existsSync(record), existsSync(socket), existsSync(lock)]).toEqual([false, false, true]);
  });

  test('the session is named once, and a new one needs its runtime', async () => {
    await using stage = openStage();
    const wrong = [
      ['session-send', '--message', 'x'],
      ['session-send', 'a', '--session', 'b', '--message', 'x'],
      ['session-send', '--new', '--message', 'x'],
      ['session-send', 'a', '--new', '--runtime', 'claude-code', '--message', 'x'],
      ['session-send', 'a', '--dir', '/', '--message', 'x'],
    ];
    for (const args of wrong) expect((await stage.run(args)).code).toBe(EXIT.usage);
    const policy = await stage.run(['session-send', 'a', '--message', 'x', '--approvals', 'all']);
    const owned = await stage.run(['session-send', 'a', '--message', 'x', '--when-owned', 'frok']);
    expect([policy.code, owned.code]).toEqual([EXIT.badValue, EXIT.badValue]);
    expect(owned.stderr).toContain('did you mean "fork"?');
    const codex = await stage.run(['session-send', '--new', '--runtime', 'kimi', '--message', 'x']);
    expect(codex.code).toBe(EXIT.unsupported);
  });
});
