import { describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  openSync,
  renameSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { extendRollout } from '../../../src/adapters/codex/followed.ts';
import { createCodex } from '../../../src/adapters/codex/index.ts';
import { isInherited } from '../../../src/adapters/codex/inherited.ts';
import type { SessionMeta } from '../../../src/adapters/codex/meta.ts';
import { toRecord } from '../../../src/adapters/codex/records.ts';
import { readRollout, TURN_CAP } from '../../../src/adapters/codex/rollout.ts';
import { applyRecord, NO_TURN, type Turn } from '../../../src/adapters/codex/turn.ts';
import { countFiles, systemFiles } from '../../../src/runtime/files/file-system.ts';
import { createFileReader } from '../../../src/runtime/files/head-tail.ts';
import { splitLines } from '../../../src/runtime/files/jsonl.ts';
import { finished, ID, inHome, Lines, sessionsOf, stateOf, T0 } from './home.ts';
import { linesOf, loadRecording, scenarios } from './recording.ts';

function read(path: string, wantPrompt = true) {
  const result = readRollout(createFileReader(systemFiles), path, systemFiles.stat(path), {
    prompt: wantPrompt,
    context: wantPrompt,
  });
  if (result.kind !== 'read') throw new Error(result.kind);
  return result.value.rollout;
}

/** What folding every single line gives. */
function fold(lines: readonly string[]): Turn {
  let meta: SessionMeta | undefined;
  return lines.reduce((turn: Turn, line) => {
    const record = toRecord(JSON.parse(line));
    if (record.kind === 'meta') meta ??= record.meta;
    return isInherited(record, meta) ? turn : applyRecord(turn, record);
  }, NO_TURN);
}

/** The parts of a turn that a claim is made of. */
function essence({
  phase,
  id,
  openedAt,
  endedAt,
  end,
  error,
  errorCode,
  doing,
  tool,
  calls,
  answeredAt,
}: Turn) {
  const open = phase === 'open' ? { doing, tool, calls: [...calls], answeredAt } : {};
  // A turn whose start lies before the tail is dated by its end record, in whole seconds.
  const opened = phase === 'open' ? openedAt : Math.floor((openedAt ?? 0) / 1000);
  return { phase, id, openedAt: opened, endedAt, end, error, errorCode, ...open };
}

describe('both ends of a file give what all of it gives', () => {
  const recordings = scenarios().map(loadRecording);
  for (const recording of recordings.filter((one) => one.key.length > 0)) {
    test(`after every line of ${recording.name}`, () =>
      inHome(async (home) => {
        for (const file of recording.paths.keys()) {
          const lines = linesOf(recording, file);
          const path = home.write(`sessions/2026/11/30/${file}`, '');
          for (const [at, line] of lines.entries()) {
            appendFileSync(path, `${line}\n`);
            expect(essence(read(path, at % 2 === 0).turn)).toEqual(essence(fold(lines.slice(0, at + 1))));
          }
        }
      }));
  }

  for (const recording of recordings.filter((one) => one.key.length > 0)) {
    test(`and so does reading on from anywhere in ${recording.name}`, () =>
      inHome(async (home) => {
        for (const file of recording.paths.keys()) {
          const lines = linesOf(recording, file);
          for (const cut of [1, 3, Math.floor(lines.length / 2), lines.length - 1]) {
            const path = home.write(`sessions/2026/11/30/${file}`, `${lines.slice(0, cut).join('\n')}\n`);
            const rest = splitLines(Buffer.from(`${lines.slice(cut).join('\n')}\n`)).lines;
            const extended = extendRollout(read(path), rest);
            expect(essence(extended.turn)).toEqual(essence(fold(lines)));
            expect(extended.prompt).toEqual(read(home.write('whole.jsonl', `${lines.join('\n')}\n`)).prompt);
          }
        }
      }));
  }

  test('also where megabytes of output lie between the turn’s start and its end', () =>
    inHome(async (home) => {
      const lines = new Lines()
        .meta()
        .started()
        .context('m', '/w')
        .prompt('Go')
        .call('exec_command', { cmd: 'cat' });
      const big = JSON.stringify({
        type: 'response_item',
        payload: { type: 'function_call_output', output: 'x'.repeat(900_000) },
      });
      const path = home.rollout(`${lines.text}${Array(6).fill(big).join('\n')}\n`);
      const rollout = read(path, false);
      expect(rollout.turn).toMatchObject({ phase: 'open', id: 'turn-1', openedAt: T0 + 10 });
      expect(rollout.context ?? rollout.firstContext).toEqual({ model: 'm', cwd: '/w' });
    }));
});

describe('a long open turn that grows', () => {
  test('only what is new is read, and what follows is the same', () =>
    inHome(async (home) => {
      const big = new Lines().meta().started().context('m', '/w').prompt('Go');
      for (let call = 0; call < 400; call += 1)
        big.call('exec_command', { cmd: 'x'.repeat(10_000) }, `c${call}`).output(`c${call}`);
      const path = home.rollout(big);
      const codex = createCodex(home.host);
      const look = async () => {
        const { files, work } = countFiles();
        const scan = await codex.scan(home.context({ files }));
        return { session: sessionsOf(scan, home.now)[0], work };
      };
      expect((await look()).work.bytesRead).toBeGreaterThan(4_000_000);
      expect((await look()).work.opened).toBe(0);
      appendFileSync(path, `${big.call('exec_command', { cmd: 'ls' }, 'new').lines.at(-1)}\n`);
      const grown = await look();
      expect(grown.work.bytesRead).toBeLessThan(2_000);
      expect(grown.session?.shown.state).toMatchObject({ doing: 'tool', tool: { command: 'ls' } });
      appendFileSync(path, big.complete().lines.at(-1)?.slice(0, 40) ?? '');
      expect((await look()).session?.shown.state).toMatchObject({ doing: 'tool' });
      appendFileSync(path, `${big.lines.at(-1)?.slice(40)}\n`);
      expect((await look()).session?.shown.state).toMatchObject({ kind: 'rested', outcome: 'completed' });
    }));

  test('one that was replaced or cut meanwhile is read anew', () =>
    inHome(async (home) => {
      const codex = createCodex(home.host);
      const look = async () => sessionsOf(await codex.scan(home.context()), home.now)[0];
      const path = home.rollout(
        new Lines().meta().started().prompt('One').call('exec_command', { cmd: 'ls' }),
      );
      expect((await look())?.shown.state.kind).toBe('working');
      writeFileSync(path, new Lines().meta().started().prompt('Two').text);
      expect((await look())?.facts.title).toBe('Two');
      renameSync(home.write('other', finished('Three').text), path);
      expect((await look())?.shown.state.kind).toBe('rested');
    }));
});

describe('X17 the last model and folder', () => {
  test('of turn_context and thread_settings_applied, whichever is later', () =>
    inHome(async (home) => {
      const lines = finished('Go').started().context('gpt-6-sol', '/srv/b');
      const settings = { thread_settings: { model: 'gpt-6.1', cwd: '/srv/c' } };
      expect(read(home.rollout(lines)).context).toEqual({ model: 'gpt-6-sol', cwd: '/srv/b' });
      const later = lines.event('thread_settings_applied', settings);
      expect(read(home.rollout(later)).context).toEqual({ model: 'gpt-6.1', cwd: '/srv/c' });
    }));

  test('context usage is the last request’s, where a window is stated', () =>
    inHome(async (home) => {
      const info = { last_token_usage: { total_tokens: 129_200 }, total_token_usage: { total_tokens: 9e6 } };
      const lines = finished('Go').event('token_count', { info: { ...info, model_context_window: 258_400 } });
      expect(read(home.rollout(lines)).usage).toEqual({
        usedTokens: 129_200,
        maxTokens: 258_400,
        usedPercent: 50,
      });
    }));
});

describe('bad input: the rest is always there', () => {
  const text = finished('Fix the parser').text;
  const bad: Record<string, string | Uint8Array> = {
    'X1 half a line at the end': `${text}{"timestamp":"2026-11-30T12:00:01.000Z","type":"event_msg","payl`,
    'a whole malformed line': `${text}{"timestamp": nonsense}\n`,
    'X13 a BOM and CRLF': `\ufeff${text.replaceAll('\n', '\r\n')}`,
    'X13 a NUL block after a crash': Buffer.concat([
      Buffer.from(text),
      Buffer.alloc(4096),
      Buffer.from('\n'),
    ]),
    'X13 a NUL block in the middle of a line': text.replace('"gpt-5.5"', `"gpt\0\0\0-5.5"`),
    'X13 invalid UTF-8': Buffer.concat([Buffer.from(text), Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a])]),
    'X6 a line of 5 MB': `${text}{"type":"event_msg","payload":{"type":"x","text":"${'y'.repeat(5_000_000)}"}}\n`,
    'U+2028 inside a string': text.replace('Fix the parser', 'Fix the parser\u2028now'),
  };
  for (const [name, content] of Object.entries(bad)) {
    test(name, () =>
      inHome(async (home) => {
        home.rollout('', '01a22e13-63b3-7d80-a6aa-bd3a108d659d');
        home.write(`sessions/2026/11/30/rollout-2026-11-30T12-00-00-${ID}.jsonl`, content);
        const session = (await home.sessions()).find((one) => one.ref.sessionId === ID);
        expect(session && stateOf(session)).toBe('completed');
        expect(session?.facts.title).toStartWith('Fix the parser');
      }),
    );
  }

  test('what was skipped is counted in the claim', () =>
    inHome(async (home) => {
      home.rollout(`${text}{"broken\n{"type":"event_msg","payload":{"x":"${'y'.repeat(2_000_000)}"}}\n`);
      const scan = await home.scan();
      expect(scan.sightings[0]?.claims?.[0]?.skipped).toBe(2);
      // The index remembers the count without reading again.
    }));

  test('an empty file and one with a damaged first line keep the id of their name', () =>
    inHome(async (home) => {
      home.rollout('');
      home.rollout(
        `{"timestamp":"x","type":"session_meta","payl\n${new Lines().started().text}`,
        '01a22e13-63b3-7d80-a6aa-bd3a108d659d',
      );
      const states = (await home.sessions()).map((one) => [one.ref.sessionId, stateOf(one)]);
      expect(states.sort()).toEqual([
        [ID, 'unknown'],
        ['01a22e13-63b3-7d80-a6aa-bd3a108d659d', 'running'],
      ]);
    }));

  test('X9 20 GB cost what 20 KB cost: two bounded reads', () =>
    inHome(async (home) => {
      const path = home.rollout(text);
      const size = 20 * 1024 ** 3;
      truncateSync(path, size);
      const fd = openSync(path, 'r+');
      ftruncateSync(fd, size);
      closeSync(fd);
      appendFileSync(path, `\n${new Lines().started().text}`);
      const { files, work } = countFiles();
      const session = await home.one({ files });
      expect(stateOf(session)).toBe('running');
      expect(session.facts.sizeBytes).toBeGreaterThan(size);
      expect(work.opened).toBe(1);
      expect(work.bytesRead).toBeLessThan(1_000_000);
    }));

  test('a hole of 20 GB at the end: the cap ends the search', () =>
    inHome(async (home) => {
      const path = home.rollout(text);
      truncateSync(path, 20 * 1024 ** 3);
      const { files, work } = countFiles();
      const session = await home.one({ files });
      expect(session.facts.title).toBe('Fix the parser');
      expect(work.bytesRead).toBeLessThan(2 * TURN_CAP);
    }));

  test('truncated while it is read: read once more, and consistent', () =>
    inHome(async (home) => {
      const long = finished('Fix the parser');
      for (let turn = 0; turn < 400; turn += 1) long.started().said('again').complete();
      const path = home.rollout(long);
      let reads = 0;
      const files = {
        ...systemFiles,
        read: (...args: Parameters<typeof systemFiles.read>) => {
          reads += 1;
          if (reads === 1) writeFileSync(path, new Lines().meta().started().prompt('Fix the parser').text);
          return systemFiles.read(...args);
        },
      };
      const session = await home.one({ files });
      expect(stateOf(session)).toBe('running');
    }));

  test('it vanishes between the listing and the reading: one row less, no error', () =>
    inHome(async (home) => {
      home.rollout(text);
      const gone = new Error('gone') as Error & { code: string };
      gone.code = 'ENOENT';
      const files = {
        ...systemFiles,
        open: (path: string): number => {
          if (path.includes('rollout-')) throw gone;
          return systemFiles.open(path);
        },
      };
      const scan = await home.scan({ files });
      expect(scan.problems).toEqual([]);
      expect(scan.sightings.length).toBe(1);
    }));

  test('C24 hostile titles: escapes, bidi and keys are gone', () =>
    inHome(async (home) => {
      home.rollout(finished('\u001b]0;pwned\u0007Use \u202esk-abcdefghijklmnop1234 \u001b[2Jnow\nline two'));
      expect((await home.one()).facts.title).toBe('Use ••• now line two');
    }));
});

describe('X8 the bare format', () => {
  const bare = (...lines: unknown[]) => `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
  const head = { id: ID, timestamp: '2025-07-01T10:00:00.000Z', instructions: null, git: { branch: 'main' } };
  const message = (role: string, text: string) => ({
    type: 'message',
    role,
    content: [{ type: 'input_text', text }],
  });
  const context = message(
    'user',
    '<environment_context>\n<cwd>/home/dev/acme-app</cwd>\n</environment_context>',
  );

  test('is read: title, folder, start and state', () =>
    inHome(async (home) => {
      home.rollout(
        bare(
          head,
          { record_type: 'state' },
          context,
          message('user', 'Fix it'),
          message('assistant', 'Done'),
        ),
      );
      const session = await home.one();
      expect(session.facts).toMatchObject({
        title: 'Fix it',
        workDir: '/home/dev/acme-app',
        startedAt: Date.parse(head.timestamp),
      });
      expect(stateOf(session)).toBe('completed');
    }));

  test('an open call of long ago is nobody’s: unknown', () =>
    inHome(async (home) => {
      const call = { type: 'function_call', name: 'shell', arguments: '{"command":["ls"]}', call_id: 'c' };
      const path = home.rollout(bare(head, message('user', 'Fix it'), call));
      home.now = systemFiles.stat(path).mtimeMs + 3_600_000;
      expect(stateOf(await home.one())).toBe('unknown');
    }));
});
