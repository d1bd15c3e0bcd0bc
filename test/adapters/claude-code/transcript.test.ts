import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRow } from '../../../src/adapters/claude-code/rows.ts';
import type { TranscriptSummary } from '../../../src/adapters/claude-code/summary.ts';
import { decodeSummary, encodeSummary } from '../../../src/adapters/claude-code/summary.ts';
import { readTranscript } from '../../../src/adapters/claude-code/transcript.ts';
import { applyRow, NO_TURN } from '../../../src/adapters/claude-code/turn.ts';
import { countFiles, type FileSystemPort } from '../../../src/runtime/files/file-system.ts';
import { createFileReader } from '../../../src/runtime/files/head-tail.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { linesOf, scenarios, sessionOf } from './recording.ts';
import { idOf, NOW, rowsOf } from './temp-home.ts';

const ID = idOf(1);
const rows = rowsOf(ID, NOW);
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'claude-transcript-'));
  path = join(folder, `${ID}.jsonl`);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function read(files?: FileSystemPort): TranscriptSummary {
  const result = readTranscript(createFileReader(files), path, ID);
  if (result.kind !== 'read') throw new Error(result.kind);
  return result.value;
}
const wordOf = (summary: TranscriptSummary): string => publicState(summary.turn.state);
function word(text: string | Uint8Array): string {
  writeFileSync(path, text);
  return wordOf(read());
}
const START = rows.prompt('Build it') + rows.call('Bash', { command: 'make' });

test('C11 a picture alone, or what an editor adds alone, is no title: the first words are', () => {
  const picture = rows.prompt('').replace('"content":""', '"content":[{"type":"image","source":{}}]');
  const selected = rows.prompt('<ide_opened_file>/a.ts</ide_opened_file>', 1_000);
  writeFileSync(path, picture + selected + rows.done() + rows.prompt('What is in it?', 9_000) + rows.done());
  expect(read().titles.prompt).toBe('What is in it?');
});

describe('transcript: what a crash, an editor or a disk may leave (X1, X3, X6, X13)', () => {
  test('X1 half of a last line is not there yet', () => {
    const end = rows.result() + rows.done();
    for (const cut of [1, 10, end.length - 1]) expect(word(START + end.slice(0, cut))).not.toBe('completed');
    expect(word(START + end)).toBe('completed');
    expect(word(START + end.slice(0, -1))).toBe('running');
  });

  const cases: readonly [string, string | Uint8Array, string, number][] = [
    ['empty', '', 'unknown', 0],
    ['only line ends', '\n\n\r\n', 'unknown', 0],
    ['a malformed line at the end', `${START}${rows.done()}{"type":"user","mess\n`, 'completed', 1],
    [
      'a malformed line in the middle',
      `${START}{"parentUuid":\n${rows.result()}${rows.done()}`,
      'completed',
      0,
    ],
    ['CRLF', (START + rows.result() + rows.done()).replaceAll('\n', '\r\n'), 'completed', 0],
    ['a BOM', `\ufeff${START}${rows.result()}${rows.done()}`, 'completed', 0],
    ['U+2028 inside a string', START + rows.result() + rows.done('a\u2028b'), 'completed', 0],
    ['a lone surrogate', START + rows.result() + rows.done('\\ud83d'), 'completed', 0],
    ['JSON that is no row', `${START}[1,2]\n7\nnull\n"x"\n`, 'tool_call', 0],
    [
      'a block of NUL after a crash',
      `${START}${'\0'.repeat(512)}\n${rows.result()}${rows.done()}`,
      'completed',
      1,
    ],
    [
      'a line of 5 MB',
      START + rows.result() + rows.done() + rows.result(9_000, 8_000, 'y'.repeat(5_000_000)),
      'completed',
      1,
    ],
  ];
  test.each(cases)('%s', (_, text, want, skipped) => {
    expect(word(text)).toBe(want);
    expect(read().skipped).toBe(skipped);
  });

  test('X13 invalid UTF-8 inside a row', () => {
    const bytes = Buffer.from(START + rows.result() + rows.done('XXXX'));
    bytes.set([0xff, 0xfe, 0xc0, 0x80], bytes.indexOf('XXXX'));
    expect(word(bytes)).toBe('completed');
  });

  test('a row of almost a megabyte is still read', () => {
    expect(word(START + rows.result() + rows.done('z'.repeat(1_000_000)))).toBe('completed');
  });

  test('a FIFO, a folder, a vanished file', () => {
    expect(readTranscript(createFileReader(), folder, ID).kind).toBe('not-a-file');
    expect(readTranscript(createFileReader(), path, ID).kind).toBe('missing');
  });
});

describe('transcript: while it is written (X3)', () => {
  test('truncated and replaced under the reader: read once more', () => {
    writeFileSync(path, START + rows.result() + rows.done() + rows.meta('mode').repeat(400));
    const { files } = countFiles();
    let cut = false;
    const port: FileSystemPort = {
      ...files,
      read(fd, into, offset, length, position) {
        if (!cut) truncateSync(path, START.length);
        cut = true;
        return files.read(fd, into, offset, length, position);
      },
    };
    expect(wordOf(read(port))).toBe('tool_call');
  });

  test('rewritten in place with other rows of the same length', () => {
    writeFileSync(path, START);
    expect(wordOf(read())).toBe('tool_call');
    writeFileSync(path, START.replace('"stop_reason":"tool_use"', '"stop_reason":"end_turn"'));
    expect(wordOf(read())).toBe('completed');
  });
});

describe('transcript: bounded, whatever its size (X5, X9, R-27)', () => {
  test('X9 20 GB of a hole take as much as 20 KB', () => {
    const tail = rows.result() + rows.done();
    writeFileSync(path, START);
    const fd = openSync(path, 'r+');
    const size = 20 * 1024 ** 3;
    ftruncateSync(fd, size);
    writeSync(fd, `\n${tail}`, size);
    closeSync(fd);
    const { files, work } = countFiles();
    const summary = read(files);
    expect([wordOf(summary), summary.titles.prompt]).toEqual(['completed', 'Build it']);
    expect(work.opened).toBe(1);
    expect(work.bytesRead).toBeLessThan(300_000);
  });

  test('metadata of 100 KB and more behind the last conversation row: the tail grows until it is found', () => {
    const blob = rows.meta('api-request-blob', { message: { role: 'user', content: 'x'.repeat(90_000) } });
    const start = START + rows.result();
    writeFileSync(
      path,
      'x\n'.repeat(200_000) + start + rows.done() + blob.repeat(3) + rows.meta('last-prompt'),
    );
    const { files, work } = countFiles();
    expect(wordOf(read(files))).toBe('completed');
    expect(work.bytesRead).toBeLessThan(1_400_000);
  });

  test('more than sixteen megabytes without a conversation row: unknown rather than everything read', () => {
    const blob = rows.meta('api-request-blob', { message: { content: 'x'.repeat(500_000) } });
    writeFileSync(path, START + blob.repeat(40));
    const { files, work } = countFiles();
    expect(wordOf(read(files))).toBe('unknown');
    expect(work.bytesRead).toBeLessThan(20_000_000);
  });

  test('large rows are not parsed: an attachment may hold what looks like anything', () => {
    const attachment = `{"parentUuid":"x","isSidechain":false,"attachment":{"type":"prompt_snapshot","text":"\\"type\\":\\"user\\""},"type":"attachment"}\n`;
    expect(word(START + rows.result() + rows.done() + attachment)).toBe('completed');
  });

  test('a prompt of megabytes is skipped; the next one titles the session', () => {
    writeFileSync(path, rows.prompt('p'.repeat(2_000_000)) + rows.prompt('Then this', 10) + rows.done());
    const summary = read();
    expect([wordOf(summary), summary.titles.prompt, summary.cwd]).toEqual([
      'completed',
      'Then this',
      '/home/dev/acme-app',
    ]);
  });
});

describe('transcript: the bounded reader says what all rows say, at every row of every recording', () => {
  test.each(scenarios())('%s', (scenario) => {
    const names = [
      ...new Set(linesOf(scenario, 'expected.jsonl').flatMap((line) => JSON.parse(line).file ?? [])),
    ];
    for (const name of names.filter((file) => !file.startsWith('subagents/'))) {
      const id = sessionOf(scenario, name);
      const reader = createFileReader();
      writeFileSync(path, '');
      let full = NO_TURN;
      for (const line of linesOf(scenario, name)) {
        appendFileSync(path, `${line}\n`);
        const row = readRow(JSON.parse(line));
        if (row) full = applyRow(full, row);
        const bounded = readTranscript(reader, path, id);
        if (bounded.kind !== 'read') throw new Error(bounded.kind);
        const { turn } = bounded.value;
        expect([turn.state, turn.at, turn.turn.end, turn.turn.endedAt, turn.model, turn.pending]).toEqual([
          full.state,
          full.at,
          full.turn.end,
          full.turn.endedAt,
          full.model,
          full.pending,
        ]);
        const kept = decodeSummary(encodeSummary(bounded.value));
        expect(kept && publicState(kept.turn.state)).toBe(publicState(turn.state));
      }
    }
  });
});

describe('summary: what the index gives back', () => {
  test('everything but labels and words, and equal once more', () => {
    writeFileSync(path, START);
    const summary = read();
    const once = decodeSummary(encodeSummary(summary));
    expect(once?.turn.state).toEqual({ kind: 'working', doing: 'tool', tool: { name: 'Bash' } });
    expect(once && decodeSummary(encodeSummary(once))).toEqual(once);
    expect({ ...once, turn: undefined }).toEqual({ ...summary, turn: undefined } as never);
  });

  test.each(['', '{', '{}', '00000000{}', '{"turn":{"state":["rested","completed"]}}'])(
    'what it isn’t: %s',
    (text) => {
      expect(decodeSummary(text)).toBeUndefined();
    },
  );

  test('an entry that differs in one character is not believed', () => {
    writeFileSync(path, START);
    const kept = encodeSummary(read());
    for (let at = 0; at < kept.length; at += 1) {
      const other = kept[at] === '0' ? '1' : '0';
      expect(decodeSummary(kept.slice(0, at) + other + kept.slice(at + 1))).toBeUndefined();
    }
    expect(decodeSummary(kept.slice(0, -1))).toBeUndefined();
  });
});
