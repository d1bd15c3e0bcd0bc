import { describe, expect, test } from 'bun:test';
import { createSseParser } from '../../../src/adapters/opencode/sse.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const parse = (...chunks: readonly string[]): readonly string[] => {
  const parser = createSseParser();
  return chunks.flatMap((chunk) => parser.push(bytes(chunk)));
};

describe('an event stream', () => {
  test('gives the data of each event at its empty line', () => {
    expect(parse('data: {"a":1}\n\ndata: {"b":2}\n\n')).toEqual(['{"a":1}', '{"b":2}']);
  });

  test('keeps half a line until its rest comes', () => {
    expect(parse('da', 'ta: {"a"', ':1}\n', '\n')).toEqual(['{"a":1}']);
  });

  test('knows CRLF and lone CR, also cut in between', () => {
    expect(parse('data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n')).toEqual(['1', '2', '3']);
    expect(parse('data: 1\r', '\n\r', '\ndata: 2\r\n\r\n')).toEqual(['1', '2']);
  });

  test('joins several data lines, and leaves comments and other fields out', () => {
    expect(parse(': heartbeat\nevent: x\nid: 7\ndata: a\ndata:b\n\n: only a comment\n\n')).toEqual(['a\nb']);
  });

  test('an event without its empty line is not there yet', () => {
    expect(parse('data: 1\n')).toEqual([]);
  });

  test('forgets an event beyond the limit, counts it, and goes on with the next', () => {
    const parser = createSseParser(10);
    const long = 'x'.repeat(30);
    const out = ['data: ', long, long, '\n', 'data: y\n', '\n', 'data: ok\n\n'].flatMap((chunk) =>
      parser.push(bytes(chunk)),
    );
    expect(out).toEqual(['ok']);
    expect(parser.dropped).toBe(1);
  });

  test('garbage is no event, and breaks nothing', () => {
    const parser = createSseParser();
    expect(parser.push(new Uint8Array([0xff, 0xfe, 0x00, 0x0a, 0x0a, 0x80]))).toEqual([]);
    expect(parser.push(bytes('\n\ndata: 1\n\n'))).toEqual(['1']);
  });
});
