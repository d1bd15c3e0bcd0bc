import { describe, expect, test } from 'bun:test';
import {
  createLineStream,
  MAX_LINE_BYTES,
  noCounts,
  parseRecord,
  splitLines,
} from '../../../src/runtime/files/jsonl.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');
const texts = (lines: readonly { text: string }[]): string[] => lines.map((line) => line.text);

describe('what ends a line', () => {
  test('LF, with its CR dropped', () => {
    const split = splitLines(bytes('{"a":1}\n{"b":2}\r\n'));
    expect(texts(split.lines)).toEqual(['{"a":1}', '{"b":2}']);
    expect(split.committed).toBe(17);
    expect(split.torn).toBeUndefined();
  });

  test('neither U+2028, U+2029, U+0085, a lone CR nor a form feed', () => {
    const text = '{"a":"x\u2028y\u2029z\u0085"}\r{"b":"\f"}';
    expect(texts(splitLines(bytes(`${text}\n`)).lines)).toEqual([text]);
  });

  test('empty lines are no lines', () => {
    expect(texts(splitLines(bytes('\n\r\n{"a":1}\n\n')).lines)).toEqual(['{"a":1}']);
  });

  test('an empty file has no lines and nothing torn (X13)', () => {
    const split = splitLines(bytes(''));
    expect(split).toEqual({ lines: [], committed: 0, torn: undefined });
  });
});

describe('offsets are bytes, not characters', () => {
  test('start and end of each line, counted from where the bytes begin', () => {
    const split = splitLines(bytes('{"é":"日本"}\n{"b":2}\r\n'), { start: 100 });
    const first = Buffer.byteLength('{"é":"日本"}');
    expect(split.lines.map((line) => [line.start, line.end, line.size])).toEqual([
      [100, 100 + first + 1, first],
      [100 + first + 1, 100 + first + 1 + 9, 7],
    ]);
    expect(split.committed).toBe(100 + first + 10);
  });
});

describe('X1: a torn last line never advances the committed offset', () => {
  test('the half that was written is given apart, and read whole once it is whole', () => {
    const stream = createLineStream();
    expect(texts(stream.push(bytes('{"n":1}\n{"type":"us')))).toEqual(['{"n":1}']);
    expect(stream.committed).toBe(8);
    expect(stream.torn()?.text).toBe('{"type":"us');
    const rest = stream.push(bytes('er"}\n'));
    expect(rest.map(parseRecord)).toEqual([{ type: 'user' }]);
    expect(stream.committed).toBe(8 + 16);
    expect(stream.torn()).toBeUndefined();
  });

  test('in one read: the torn line is not among the lines, even if it would parse', () => {
    const split = splitLines(bytes('{"a":1}\n{"b":2}'));
    expect(texts(split.lines)).toEqual(['{"a":1}']);
    expect(split.committed).toBe(8);
    expect(split.torn?.text).toBe('{"b":2}');
    expect(split.torn?.start).toBe(8);
  });

  test('a whole malformed line is counted and does advance', () => {
    const counts = noCounts();
    const split = splitLines(bytes('{"type":"us\n{"b":2}\n'), { counts });
    expect(split.lines.map(parseRecord)).toEqual([undefined, { b: 2 }]);
    expect(split.committed).toBe(20);
    expect(counts.malformed).toBe(1);
  });

  test('a malformed line that is asked for twice is counted once', () => {
    const counts = noCounts();
    const [line] = splitLines(bytes('{\n'), { counts }).lines;
    expect([line?.record, line?.record]).toEqual([undefined, undefined]);
    expect(counts.malformed).toBe(1);
  });
});

describe('X13: what crashes and editors leave behind', () => {
  test('a BOM is dropped at the start of the file only', () => {
    const split = splitLines(bytes('\ufeff{"a":1}\n\ufeff{"b":2}\n'));
    expect(split.lines.map((line) => line.start)).toEqual([3, 11]);
    expect(texts(split.lines)).toEqual(['{"a":1}', '\ufeff{"b":2}']);
    expect(texts(splitLines(bytes('\ufeff{"a":1}\n'), { start: 5 }).lines)).toEqual(['\ufeff{"a":1}']);
  });

  test('a file that is only a BOM, or a BOM and a line end, has no lines', () => {
    expect(splitLines(bytes('\ufeff\r\n')).lines).toEqual([]);
    expect(splitLines(bytes('\ufeff')).torn?.text).toBe('');
  });

  test('a NUL block is counted; what stands before and after it are lines of their own', () => {
    const counts = noCounts();
    const content = `{"a":1}\n{"half":"${'\0'.repeat(9000)}{"b":2}\n${'\0'.repeat(3)}\n{"c":3}\n`;
    const split = splitLines(bytes(content), { counts });
    expect(split.lines.map(parseRecord)).toEqual([{ a: 1 }, undefined, { b: 2 }, { c: 3 }]);
    expect(counts).toEqual({ oversized: 0, invalidUtf8: 0, nulBlocks: 2, malformed: 1 });
    expect(split.committed).toBe(content.length);
    const [, half, b] = split.lines;
    expect(half?.end).toBe(8 + '{"half":"'.length);
    expect(b?.start).toBe(8 + '{"half":"'.length + 9000);
    expect(b?.end).toBe((b?.start ?? 0) + 8);
  });

  test('invalid UTF-8 and an encoded lone surrogate are decoded leniently and counted', () => {
    const counts = noCounts();
    const content = Buffer.concat([
      bytes('{"a":"'),
      Buffer.from([0xff, 0xed, 0xa0, 0x80]),
      bytes('"}\n{"ok":"\ufffd"}\n{"lone":"\\ud800"}\n'),
    ]);
    const records = splitLines(content, { counts }).lines.map(parseRecord);
    expect(records).toEqual([{ a: '\ufffd\ufffd\ufffd\ufffd' }, { ok: '\ufffd' }, { lone: '\ud800' }]);
    expect(counts.invalidUtf8).toBe(1);
  });

  test('JSON that is nested half a million deep is malformed, not a crash', () => {
    const counts = noCounts();
    const deep = '['.repeat(500_000);
    const [line] = splitLines(bytes(`${deep}\n`), { counts }).lines;
    expect(line?.record).toBeUndefined();
    expect(counts.malformed).toBe(1);
  });
});

describe('X6: the cap on a line', () => {
  const row = (length: number): string => `{"x":"${'y'.repeat(length - 8)}"}`;

  test('at the cap it is a line, one byte past it is skipped and counted', () => {
    const counts = noCounts();
    const split = splitLines(bytes(`${row(64)}\n${row(65)}\n{"z":1}\n`), { maxLineBytes: 64, counts });
    expect(split.lines.map((line) => line.size)).toEqual([64, 7]);
    expect(counts.oversized).toBe(1);
    expect(split.committed).toBe(65 + 66 + 8);
  });

  test('a 5 MB line is not kept in memory while it arrives, and the next line is read', () => {
    const counts = noCounts();
    const stream = createLineStream({ counts });
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const held: number[] = [];
    for (let sent = 0; sent < 5_000_000; sent += chunk.length) {
      expect(stream.push(chunk)).toEqual([]);
      held.push(stream.pending);
    }
    expect(Math.max(...held)).toBe(MAX_LINE_BYTES);
    expect(stream.pending).toBe(0);
    expect(stream.torn()).toBeUndefined();
    expect(stream.committed).toBe(0);
    expect(texts(stream.push(bytes('\n{"next":1}\n')))).toEqual(['{"next":1}']);
    expect(counts.oversized).toBe(1);
    expect(stream.committed).toBe(77 * chunk.length + 12);
  });

  test('a NUL block of 64 MB before a row costs neither memory nor the row', () => {
    const counts = noCounts();
    const stream = createLineStream({ counts });
    const hole = Buffer.alloc(1024 * 1024);
    for (let sent = 0; sent < 64; sent += 1) stream.push(hole);
    expect(stream.pending).toBe(0);
    expect(stream.push(bytes('{"after":1}\n')).map(parseRecord)).toEqual([{ after: 1 }]);
    expect(counts).toEqual({ oversized: 0, invalidUtf8: 0, nulBlocks: 1, malformed: 0 });
  });
});

describe('a line is a view', () => {
  test('its text cannot be taken from a buffer that was given back, but a text that was taken stays', () => {
    const lease = { live: true };
    const [first, second] = splitLines(bytes('{"a":1}\n{"b":2}\n'), { lease }).lines;
    expect(first?.text).toBe('{"a":1}');
    lease.live = false;
    expect(first?.record).toEqual({ a: 1 });
    expect(() => second?.text).toThrow('given back');
    expect(() => second?.has('b')).toThrow('given back');
  });

  test('a stream may reuse the chunk that it was fed with', () => {
    const stream = createLineStream();
    const chunk = bytes('{"a":1}\n{"b"');
    const lines = stream.push(chunk);
    chunk.fill(0x20);
    expect(texts(lines)).toEqual(['{"a":1}']);
    expect(texts(stream.push(bytes(':2}\n')))).toEqual(['{"b":2}']);
  });

  test('has() looks at raw bytes without parsing', () => {
    const [line] = splitLines(bytes('{"type":"user","é":1}\n')).lines;
    expect(line?.has('"type":"user"')).toBe(true);
    expect(line?.has('"type":"assistant"')).toBe(false);
  });
});

describe('a look at the start of a line', () => {
  test('gives the first bytes as Latin-1, without decoding or parsing', () => {
    const counts = noCounts();
    const [line] = splitLines(Buffer.from('{"type":"mode","ü":1}\n'), { counts }).lines;
    expect(line?.prefix(14)).toBe('{"type":"mode"');
    expect(line?.prefix(1_000)).toBe('{"type":"mode","Ã¼":1}');
    expect([line?.byteAt(0), line?.byteAt(2), line?.byteAt(21), line?.byteAt(22)]).toEqual([
      123,
      116,
      125,
      undefined,
    ]);
    expect(counts).toEqual(noCounts());
  });
});
