import { describe, expect, test } from 'bun:test';
import { createLineDecoder, encodeLine } from '../../../src/runtime/daemon/line-codec.ts';

const bytes = (text: string) => Buffer.from(text, 'utf8');

describe('line codec', () => {
  test('S-301: LF ends a line, and one CR before it is tolerated', () => {
    const decoder = createLineDecoder();
    expect(decoder.push(bytes('{"a":1}\n{"b":2}\r\n\r\r\n'))).toEqual([
      { kind: 'line', text: '{"a":1}' },
      { kind: 'line', text: '{"b":2}' },
      { kind: 'line', text: '\r' },
    ]);
    expect(decoder.pending).toBe(0);
  });

  test('S-301: U+2028, a lone CR and NUL inside a line do not end it', () => {
    const text = '"a\u2028b\rc\u0000"';
    expect(createLineDecoder().push(bytes(`${text}\n`))).toEqual([{ kind: 'line', text }]);
  });

  test('S-304: a line at the ceiling passes, one past it is refused before its end and nothing is kept', () => {
    const atLimit = createLineDecoder(8);
    expect(atLimit.push(bytes('12345678\r\n'))).toEqual([{ kind: 'line', text: '12345678' }]);
    const past = createLineDecoder(8);
    expect(past.push(bytes('123456789'))).toEqual([{ kind: 'tooLong' }]);
    expect(past.pending).toBe(0);
    expect(past.push(bytes('\n{"op":"ping"}\n'))).toEqual([]);
  });

  test('S-304: a CR that may still belong to the line end is waited for, anything else is not', () => {
    const decoder = createLineDecoder(4);
    expect(decoder.push(bytes('1234\r'))).toEqual([]);
    expect(decoder.push(bytes('\n'))).toEqual([{ kind: 'line', text: '1234' }]);
    const other = createLineDecoder(4);
    expect(other.push(bytes('1234\r'))).toEqual([]);
    expect(other.push(bytes('x'))).toEqual([{ kind: 'tooLong' }]);
  });

  test('C-113 S-304: bytes that are not UTF-8 are one last frame', () => {
    const decoder = createLineDecoder();
    const junk = Buffer.concat([bytes('ok\n'), Buffer.from([0x22, 0xff, 0xfe, 0x22, 10]), bytes('later\n')]);
    expect(decoder.push(junk)).toEqual([{ kind: 'line', text: 'ok' }, { kind: 'invalidUtf8' }]);
    expect(decoder.push(bytes('more\n'))).toEqual([]);
  });

  test('S-301: a BOM is content, so that JSON rejects it instead of the codec hiding it', () => {
    expect(createLineDecoder().push(bytes('\ufeff{}\n'))).toEqual([{ kind: 'line', text: '\ufeff{}' }]);
  });

  test('S-304: an encoder refuses what the other side would refuse', () => {
    expect(encodeLine('123456', 8)?.toString()).toBe('"123456"\n');
    expect(encodeLine('1234567', 8)).toBeUndefined();
    expect(encodeLine('ééé', 8)?.length).toBe(9);
    expect(encodeLine('éééé', 8)).toBeUndefined();
  });

  test('S-301: line feeds inside strings never reach the wire', () => {
    expect(encodeLine({ a: 'x\ny\u2028' })?.toString()).toBe('{"a":"x\\ny\u2028"}\n');
  });
});
