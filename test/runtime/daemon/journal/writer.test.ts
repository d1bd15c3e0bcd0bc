import { afterEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  formatRecord,
  idOfName,
  type JournalRecord,
  journalName,
  payloadOf,
  readRecord,
} from '../../../../src/runtime/daemon/journal/record.ts';
import { appendJournal } from '../../../../src/runtime/daemon/journal/writer.ts';
import { readPayload } from '../../../../src/runtime/daemon/protocol.ts';
import { formatNanos } from '../../../../src/runtime/daemon/stamp.ts';
import { NOTIFICATIONS, PLAIN_EVENTS, STOP_OUTCOMES } from '../../../../src/runtime/daemon/vocabulary.ts';
import { createCleanup, tempFolder } from '../harness.ts';
import { A, B } from '../sessions/dsl.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

function target(options: { run?: boolean; sessionId?: string } = {}) {
  const home = tempFolder(cleanup);
  if (options.run !== false) mkdirSync(join(home, 'run'), { mode: 0o700 });
  const at = {
    socketPath: join(home, 'daemon.sock'),
    agent: 'claude',
    sessionId: options.sessionId ?? A,
    now: Date.now(),
  } as const;
  return {
    at,
    home,
    folder: join(home, 'run', 'sessions', 'claude'),
    path: join(home, 'run', 'sessions', 'claude', `${A}.jsonl`),
  };
}
const mode = (path: string) => statSync(path).mode & 0o777;

describe('the journal’s writer', () => {
  test('C-160 S-501 S-506: folders 0700, file 0600, whatever the umask; the line as it is', () => {
    const { at, home, folder, path } = target();
    const before = process.umask(0o002);
    expect(appendJournal(at, '{"v":1}\n')).toBe('journaled');
    process.umask(before);
    expect([mode(join(home, 'run', 'sessions')), mode(folder), mode(path)]).toEqual([0o700, 0o700, 0o600]);
    appendJournal(at, '{"v":2}\n');
    expect(readFileSync(path, 'utf8')).toBe('{"v":1}\n{"v":2}\n');
  });

  test('C-161 S-505 R-39: where the service never ran nothing is made', () => {
    const { at, home } = target({ run: false });
    expect(appendJournal(at, 'x\n')).toBe('skipped');
    expect(readdirSync(home)).toEqual([]);
  });

  test('C3: a run folder that others can write into, or that is a link, is not ours', () => {
    const open = target();
    chmodSync(join(open.home, 'run'), 0o777);
    expect(appendJournal(open.at, 'x\n')).toBe('skipped');
    const linked = target({ run: false });
    symlinkSync(open.home, join(linked.home, 'run'));
    expect(appendJournal(linked.at, 'x\n')).toBe('skipped');
  });

  test.each([
    ['../../etc/passwd', undefined],
    ['s1', undefined],
    [A.slice(0, -1), undefined],
    [`${A}\n`, undefined],
    [`${A}/..`, undefined],
    [`${A}\0`, undefined],
    ['a'.repeat(4_096), undefined],
    [A.toUpperCase(), `${A}.jsonl`],
  ])('C-162 C-399 S-504 S-906: id %j names %p', (sessionId, name) => {
    const { at, home, folder } = target({ sessionId });
    expect(journalName(sessionId)).toBe(name);
    expect(appendJournal(at, 'x\n')).toBe(name ? 'journaled' : 'skipped');
    expect(readdirSync(name ? folder : home)).toEqual([name ?? 'run']);
  });

  test('C-163 K-21: 512 KiB is the end, one byte less is not', () => {
    const { at, folder, path } = target();
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, 'x'.repeat(512 * 1024 - 1));
    expect(appendJournal(at, 'y\n')).toBe('journaled');
    writeFileSync(path, 'x'.repeat(512 * 1024));
    expect(appendJournal(at, 'y\n')).toBe('full');
    expect(statSync(path).size).toBe(512 * 1024);
  });

  test('C-165 S-506: a link in the file’s place is not followed; a looser file is tightened', () => {
    const { at, home, folder, path } = target();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(home, 'precious'), 'mine');
    symlinkSync(join(home, 'precious'), path);
    expect(appendJournal(at, 'x\n')).toBe('failed');
    expect(readFileSync(join(home, 'precious'), 'utf8')).toBe('mine');
    const other = { ...at, sessionId: B };
    writeFileSync(join(folder, `${B}.jsonl`), '', { mode: 0o644 });
    chmodSync(join(folder, `${B}.jsonl`), 0o644);
    expect(appendJournal(other, 'x\n')).toBe('journaled');
    expect(mode(join(folder, `${B}.jsonl`))).toBe(0o600);
  });

  test('S-509: a folder in the file’s place, or a FIFO, is a failure and not a wait', () => {
    const { at, folder, path } = target();
    mkdirSync(path, { recursive: true });
    expect(appendJournal(at, 'x\n')).toBe('failed');
    const fifo = Bun.which('mkfifo');
    if (fifo) {
      Bun.spawnSync([fifo, join(folder, `${B}.jsonl`)]);
      expect(appendJournal({ ...at, sessionId: B }, 'x\n')).toBe('failed');
    }
  });

  test.skipIf(process.getuid?.() === 0)('C-166 S-509: a read-only folder is a failure, and no error', () => {
    const { at, folder } = target();
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o500);
    expect(appendJournal(at, 'x\n')).toBe('failed');
    chmodSync(folder, 0o700);
  });

  test('S-508 K-23: a new journal takes the ones of a week ago with it, and nothing else', () => {
    const { at, home, folder, path } = target();
    mkdirSync(folder, { recursive: true });
    const aged = (name: string, days: number): string => {
      writeFileSync(join(folder, name), 'x');
      const seconds = Date.now() / 1_000 - days * 86_400;
      utimesSync(join(folder, name), seconds, seconds);
      return join(folder, name);
    };
    const old = aged(`${B}.jsonl`, 7.1);
    const kept = [
      aged('1c8f7d2b-3a5e-4b9f-8d4c-6e2f8a0b3c5e.jsonl', 6.9),
      aged('README', 99),
      aged(`.${B}.jsonl.1.aside`, 99),
    ];
    writeFileSync(join(home, 'target'), 'x');
    symlinkSync(join(home, 'target'), join(folder, '2c8f7d2b-3a5e-4b9f-8d4c-6e2f8a0b3c5e.jsonl'));
    appendJournal(at, 'x\n');
    expect(existsSync(old)).toBe(false);
    for (const path of kept) expect(existsSync(path)).toBe(true);
    expect(existsSync(join(home, 'target'))).toBe(true);
    const again = aged(`${B}.jsonl`, 8);
    appendJournal(at, 'y\n');
    expect(existsSync(again)).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('x\ny\n');
  });

  test('C-154 S-506: eight processes of fifty lines each stay whole', async () => {
    const { at, path } = target();
    const script = `import { appendJournal } from ${JSON.stringify(join(import.meta.dir, '../../../../src/runtime/daemon/journal/writer.ts'))};
      const at = ${JSON.stringify(at)};
      for (let n = 0; n < 50; n += 1) appendJournal(at, JSON.stringify({ by: process.pid, n, fill: 'z'.repeat(300) }) + '\\n');`;
    const children = Array.from({ length: 8 }, () =>
      Bun.spawn([process.execPath, '-e', script], { stderr: 'inherit' }),
    );
    for (const child of children) expect(await child.exited).toBe(0);
    const lines = readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toHaveLength(400);
    expect(new Set(lines.map(({ by, n }) => `${by} ${n}`)).size).toBe(400);
  }, 20_000);
});

describe('a journal’s record (S-502, S-510)', () => {
  const text = fc.string({ minLength: 1, maxLength: 40 }).filter((value) => value.trim() !== '');
  const base = {
    ts: fc.bigInt({ min: 0n, max: 4_000_000_000_000_000_000n }).map(formatNanos),
    seq: text,
    agent: fc.constantFrom('claude' as const, 'codex' as const),
    session_id: fc.constantFrom(A, B, A.toUpperCase()),
    pid: fc.integer({ min: 2, max: 4_194_304 }),
  };
  const event = fc.oneof(
    fc.constantFrom(...PLAIN_EVENTS),
    fc.record({ notification: fc.constantFrom(...NOTIFICATIONS) }),
  );
  const record: fc.Arbitrary<JournalRecord> = fc.oneof(
    fc.record(
      {
        ...base,
        op: fc.constant('observe' as const),
        event,
        cwd: text,
        agent_id: text,
        transcript_path: text,
        model: text,
        outcome: fc.constantFrom(...STOP_OUTCOMES),
        background: fc.integer({ min: 1, max: 9 }),
      },
      { requiredKeys: ['ts', 'seq', 'agent', 'session_id', 'op', 'event'] },
    ),
    fc.record(
      { ...base, op: fc.constant('end' as const), reason: text },
      { requiredKeys: ['ts', 'seq', 'agent', 'session_id', 'op'] },
    ),
  );

  test('what is written is read back, on one line, and is a good payload for the socket', () => {
    fc.assert(
      fc.property(record, (written) => {
        const line = formatRecord(written);
        expect(line.indexOf('\n')).toBe(line.length - 1);
        const read = readRecord(JSON.parse(line), written.agent, written.session_id.toLowerCase());
        expect(read).toEqual(written);
        if (written.op === 'observe') readPayload.observe(payloadOf(written));
        else readPayload.end(payloadOf(written));
      }),
    );
  });

  test('S-502: the literal line, its keys in this order', () => {
    const line = formatRecord({
      ts: '2026-11-12T08:15:42.507331904Z',
      seq: '30917-1794471342507331904',
      agent: 'codex',
      session_id: A,
      op: 'observe',
      event: 'post_tool_use',
      pid: 30917,
      cwd: '/home/me/web',
    });
    expect(line).toBe(
      `{"v":1,"ts":"2026-11-12T08:15:42.507331904Z","seq":"30917-1794471342507331904","agent":"codex","session_id":"${A}","op":"observe","event":"post_tool_use","pid":30917,"cwd":"/home/me/web"}\n`,
    );
  });

  test('C-024 S-005: Claude’s payload has no `agent`, Codex’s has one', () => {
    const base = {
      ts: '2026-11-12T08:15:42Z',
      seq: '1',
      session_id: A,
      op: 'observe',
      event: 'stop',
    } as const;
    expect(payloadOf({ ...base, agent: 'claude' })).toEqual({
      session_id: A,
      event: 'stop',
      stamp: { ts: base.ts, seq: '1' },
    });
    expect(payloadOf({ ...base, agent: 'codex' })).toMatchObject({ agent: 'codex' });
    expect(readPayload.observe(payloadOf({ ...base, agent: 'claude' })).agent).toBeUndefined();
  });

  test('anything else is read as nothing, and never throws', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(readRecord(value, 'claude', A)).toBeUndefined();
      }),
    );
  });

  test('S-520: only the exact lower-case form is a journal’s name', () => {
    expect(idOfName(`${A}.jsonl`)).toBe(A);
    for (const name of [
      A,
      `${A.toUpperCase()}.jsonl`,
      `${A}.jsonl.tmp`,
      `.${A}.jsonl`,
      '.jsonl',
      'x.jsonl',
    ]) {
      expect(idOfName(name)).toBeUndefined();
    }
  });
});
