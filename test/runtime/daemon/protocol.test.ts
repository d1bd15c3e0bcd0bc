import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { endpointOf, fitsSocketPath } from '../../../src/runtime/daemon/endpoint.ts';
import { createLog, resolveLogLevel } from '../../../src/runtime/daemon/log.ts';
import { chainOf, parseEnvelope, readPayload, success } from '../../../src/runtime/daemon/protocol.ts';
import { formatNanos, formatSeconds, nanosToMs, parseNanos } from '../../../src/runtime/daemon/stamp.ts';
import { readEvent } from '../../../src/runtime/daemon/vocabulary.ts';

const SESSION = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';

describe('payloads (S-308, S-312 … S-318)', () => {
  test('S-312: the literal example is read as it stands', () => {
    const payload = JSON.parse(
      '{"session_id":"0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c","cwd":"/home/me/web","event":"pre_tool_use","pid":4242,"stamp":{"ts":"2026-11-12T08:15:42.507331904Z","seq":"30917-1794471342507331904"}}',
    );
    expect(readPayload.observe(payload)).toMatchObject(payload);
  });

  test.each([
    [{ event: 'stop' }, 'session_id'],
    [{ session_id: '  ', event: 'stop' }, 'session_id'],
    [{ session_id: 7, event: 'stop' }, 'session_id'],
    [{ session_id: 'a'.repeat(257), event: 'stop' }, 'session_id'],
    [{ session_id: SESSION }, 'event'],
    [{ session_id: SESSION, event: 'frobnicate' }, 'event'],
    [{ session_id: SESSION, event: { notification: 'party' } }, 'event'],
    [{ session_id: SESSION, event: { stream_state: 'done' } }, 'event'],
    [{ session_id: SESSION, event: 'stop', agent: 'grok' }, 'agent'],
    [{ session_id: SESSION, event: 'stop', pid: 'x' }, 'pid'],
    [{ session_id: SESSION, event: 'stop', cwd: 'p'.repeat(4_097) }, 'cwd'],
    [{ session_id: SESSION, event: 'stop', stamp: { ts: 'yesterday', seq: '1' } }, 'stamp.ts'],
    [{ session_id: SESSION, event: 'stop', stamp: { ts: '2026-11-12T08:15:42Z' } }, 'stamp.seq'],
    [{ session_id: SESSION, event: 'stop', outcome: 'won' }, 'outcome'],
  ])('C-015 S-317 S-318: %j is refused, naming %s and not its value', (payload, field) => {
    expect(() => readPayload.observe(payload)).toThrow(`invalid \`observe\` payload: ${field}: `);
  });

  test('S-307: error texts never repeat what was sent', () => {
    for (const secret of ['s3cret-token', { s3cret: 1 }, ['s3cret']]) {
      for (const field of ['session_id', 'event', 'agent', 'cwd', 'stamp', 'pid']) {
        const payload = { session_id: SESSION, event: 'stop', [field]: secret };
        const text = (() => {
          try {
            readPayload.observe(payload);
            return '';
          } catch (error) {
            return String(error);
          }
        })();
        expect(text).not.toContain('s3cret');
      }
    }
  });

  test('S-308: unknown fields are dropped, null counts as absent, optionals have defaults', () => {
    const read = readPayload.observe({
      session_id: SESSION,
      event: 'stop',
      agent: null,
      cwd: null,
      brand_new: [1],
    });
    expect(JSON.parse(JSON.stringify(read))).toEqual({ session_id: SESSION, event: 'stop' });
    expect(readPayload.window({ key: 'k' })).toEqual({ key: 'k', folders: [], tabs: 0, terminals: 0 });
    expect(readPayload.end({ session_id: SESSION, reason: 'clear', pid: 42 })).toEqual({
      session_id: SESSION,
      reason: 'clear',
      pid: 42,
      stamp: undefined,
    });
  });

  test('C-039 S-109 S-006: pids up to 1 and blank texts say nothing', () => {
    const read = readPayload.observe({
      session_id: SESSION,
      event: 'stop',
      pid: 1,
      cwd: ' ',
      model: '',
      agent_id: '  ',
    });
    expect([read.pid, read.cwd, read.model, read.agent_id]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(readPayload.observe({ session_id: SESSION, event: 'stop', pid: 0 }).pid).toBeUndefined();
    expect(readPayload.observe({ session_id: SESSION, event: 'stop', pid: -5 }).pid).toBeUndefined();
    expect(readPayload.observe({ session_id: SESSION, event: 'stop', pid: 2 }).pid).toBe(2);
  });

  test('S-317: a blank window key is named; counts may not be negative', () => {
    expect(() => readPayload.window({ key: ' ' })).toThrow('invalid `window` payload: key: ');
    expect(() => readPayload.window({ key: 'k', tabs: -1 })).toThrow('tabs');
    expect(() => readPayload.windowUnregister({})).toThrow('invalid `window-unregister` payload: key');
    expect(() => readPayload.end({ session_id: '' })).toThrow('invalid `end` payload: session_id: ');
  });

  test('any JSON at all is either read or refused with a reason, never anything else', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        for (const read of Object.values(readPayload)) {
          try {
            read(payload);
          } catch (error) {
            expect(error).toHaveProperty('name', 'RequestError');
          }
        }
      }),
    );
  });

  test('S-302: envelopes; a service of null is the daemon', () => {
    expect(parseEnvelope('{"op":"ping"}')).toEqual({ service: 'daemon', op: 'ping', payload: undefined });
    expect(parseEnvelope('{"service":null,"op":"x","payload":0}')).toEqual({
      service: 'daemon',
      op: 'x',
      payload: 0,
    });
  });

  test('S-303 S-307: null is no payload; a cause that is itself ends', () => {
    expect(success(null)).toEqual({ ok: true });
    expect(success(0)).toEqual({ ok: true, payload: 0 });
    const loop = new Error('again');
    loop.cause = loop;
    expect(chainOf(loop).length).toBeLessThan(100);
    expect(chainOf('text')).toBe('text');
    expect(chainOf(new Error(''))).toBe('unknown error');
  });
});

describe('events from journals', () => {
  test('S-007: the hand-checked reader and the wire schema agree on every value', () => {
    const words = fc.constantFrom(
      'session_start',
      'stop',
      'permission_prompt',
      'idle_prompt',
      'other',
      'working',
      'ended',
      'x',
    );
    const candidate = fc.oneof(
      words,
      fc.record({ notification: words }),
      fc.record({ stream_state: words }),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(candidate, (event) => {
        const read = readEvent(event);
        const parse = () => readPayload.observe({ session_id: SESSION, event }).event;
        if (read === undefined) expect(parse).toThrow();
        else expect(parse()).toEqual(read);
      }),
    );
  });
});

describe('stamps (S-009)', () => {
  test('C-057: nanoseconds are kept and compared', () => {
    const a = parseNanos('2026-10-03T03:40:05.186123456Z');
    const b = parseNanos('2026-10-03T03:40:05.186123457Z');
    expect(a !== undefined && b !== undefined && a < b).toBe(true);
    expect(formatNanos(a ?? 0n)).toBe('2026-10-03T03:40:05.186123456Z');
    expect(nanosToMs(a ?? 0n)).toBe(Date.parse('2026-10-03T03:40:05.186Z'));
  });

  test('other forms of RFC 3339 name the same instant; other texts none', () => {
    const base = parseNanos('2026-10-03T03:40:05Z');
    expect(parseNanos('2026-10-03T05:40:05+02:00')).toBe(base);
    expect(parseNanos('2026-10-03t03:40:05.0z')).toBe(base);
    expect(parseNanos('2026-10-03T03:40:05.1234567891Z')).toBe((base ?? 0n) + 123_456_789n);
    for (const text of [
      '',
      'now',
      '2026-10-03',
      '2026-13-03T00:00:00Z',
      '2026-10-03T03:40:05',
      '1759462805',
    ]) {
      expect(parseNanos(text)).toBeUndefined();
    }
    expect(formatSeconds(Date.parse('2026-10-03T03:40:05.999Z'))).toBe('2026-10-03T03:40:05Z');
  });

  test('what is written is read back', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -1_000_000_000_000_000_000n, max: 4_000_000_000_000_000_000n }),
        (nanos) => {
          expect(parseNanos(formatNanos(nanos))).toBe(nanos);
        },
      ),
    );
  });
});

describe('where the socket lies', () => {
  test('R-46: a named pipe on Windows, the path itself elsewhere', () => {
    expect(endpointOf('/h/daemon.sock', 'linux')).toEqual({ kind: 'unix', path: '/h/daemon.sock' });
    const pipe = endpointOf('C:\\h\\daemon.sock', 'win32');
    expect(pipe.path).toMatch(/^\\\\\.\\pipe\\shadowob-connector-[0-9a-f]{32}$/);
    expect(endpointOf('c:/H/DAEMON.sock', 'win32')).toEqual(pipe);
    expect(endpointOf('\\\\.\\pipe\\mine', 'win32')).toEqual({ kind: 'pipe', path: '\\\\.\\pipe\\mine' });
  });

  test('S-332: bytes count, not characters', () => {
    expect(fitsSocketPath(`/${'a'.repeat(102)}`)).toBe(true);
    expect(fitsSocketPath(`/${'a'.repeat(103)}`)).toBe(false);
    expect(fitsSocketPath(`/${'é'.repeat(52)}`)).toBe(false);
  });
});

describe('the log', () => {
  test('S-930 C-400: environment over settings, unknown words fall back and are named', () => {
    expect(resolveLogLevel(undefined, undefined)).toEqual({ level: 'info' });
    expect(resolveLogLevel('debug', undefined)).toEqual({ level: 'debug' });
    expect(resolveLogLevel('debug', 'WARN')).toEqual({ level: 'warn' });
    expect(resolveLogLevel('debug', ' ')).toEqual({ level: 'debug' });
    expect(resolveLogLevel(undefined, 'noisy')).toEqual({
      level: 'info',
      warning: 'unknown log level "noisy", using info',
    });
    expect(resolveLogLevel('debug', 'noisy')).toMatchObject({
      level: 'debug',
      warning: expect.stringContaining('noisy'),
    });
  });

  test('S-906: a hostile value can forge neither a line nor a field', () => {
    const lines: string[] = [];
    const log = createLog(
      'debug',
      () => 0,
      (line) => void lines.push(line),
    );
    log('trace', 'unheard');
    log('warn', 'seen', { id: 'a b\n2026 error x=1', n: 3, gone: undefined, ok: true });
    expect(lines).toEqual(['1970-01-01T00:00:00.000Z warn seen id="a b\\n2026 error x=1" n=3 ok=true\n']);
  });
});
