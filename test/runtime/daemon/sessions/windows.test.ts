import { describe, expect, test } from 'bun:test';
import { A, B, scene } from './dsl.ts';

const VS = (window_key: string) => ({ kind: 'vs_code' as const, window_key });
const TERMINAL = { kind: 'terminal' as const };

describe('which window shows a session', () => {
  test('C-090 C-091 S-008 S-206: a window that embeds Claude over the folder; one without tabs does not', () => {
    const { O, W, row, bumped } = scene();
    O(A, 'pre', { cwd: '/home/me/proj/sub' });
    W('w1', ['/home/me/proj']);
    expect([row(A)?.source, bumped()]).toEqual([VS('w1'), true]);
    W('w1', ['/home/me/proj'], 0, 0);
    expect([row(A)?.source, bumped()]).toEqual([TERMINAL, true]);
    W('w1', ['/home/me/proj'], 0, 2);
    expect(row(A)?.source).toEqual(VS('w1'));
  });

  test('C-093 S-206.1: the longest folder wins, whoever came first', () => {
    const { O, W, row } = scene();
    O(A, 'pre', { cwd: '/repo/sub/x' });
    O(B, 'pre', { cwd: '/repo/other' });
    W('z', ['/repo/sub']);
    W('a', ['/repo']);
    expect(row(A)?.source).toEqual(VS('z'));
    expect(row(B)?.source).toEqual(VS('a'));
  });

  test('C-094 S-206.2 S-207: of equal folders the newest registration wins, heartbeats or not', () => {
    const { O, W, row, bumped, clock } = scene();
    O(A, 'pre', { cwd: '/p' });
    W('w1', ['/p']);
    clock.plus(20);
    W('w2', ['/p']);
    expect(row(A)?.source).toEqual(VS('w2'));
    clock.plus(1);
    W('w1', ['/p']);
    expect([row(A)?.source, bumped()]).toEqual([VS('w2'), false]);
  });

  test('C-095 S-206.3: of equal registrations the lowest key wins', () => {
    const { O, W, row } = scene();
    O(A, 'pre', { cwd: '/p' });
    W('b', ['/p']);
    W('a', ['/p']);
    expect(row(A)?.source).toEqual(VS('a'));
  });

  test('C-096 S-205: unregistering and coming back is a fresh registration; so is coming back after the TTL', () => {
    const { O, W, U, row, clock } = scene();
    O(A, 'pre', { cwd: '/p' });
    W('w1', ['/p']);
    clock.plus(1);
    W('w2', ['/p']);
    clock.plus(1);
    expect([U('w1'), U('w1')]).toEqual([true, false]);
    W('w1', ['/p']);
    expect(row(A)?.source).toEqual(VS('w1'));
    clock.plus(20);
    W('w2', ['/p']);
    clock.plus(11);
    W('w1', ['/p']);
    W('w2', ['/p']);
    expect(row(A)?.source).toEqual(VS('w1'));
  });

  test.each([
    ['/p', '/pq', false],
    ['/p', '/p', true],
    ['/p/', '/p', true],
    ['/p', '/p/', true],
    ['/', '/p', true],
    ['/P', '/p', false],
    ['/p/q', '/p', false],
    ['/tmp/x', '/private/tmp/x', false],
  ])('C-101 S-206: folder %s and cwd %s: whole components of plain text', (folder, cwd, matches) => {
    const { O, W, row, events } = scene();
    O(A, 'pre', { cwd });
    W('w', [folder]);
    expect(row(A)?.source).toEqual(matches ? VS('w') : TERMINAL);
    const missed = events.some(
      ({ event, level }) => event === 'session_attribution_miss' && level === 'debug',
    );
    expect(missed).toBe(!matches);
  });

  test('R-46 S-206: on Windows case and the kind of slash do not count', () => {
    const { O, W, row } = scene({ platform: 'win32' });
    O(A, 'pre', { cwd: 'C:\\Work\\Proj\\sub' });
    W('w', ['c:/work/proj']);
    expect(row(A)?.source).toEqual(VS('w'));
  });

  test('C-098 C-099 S-208: focus opens the winner’s first folder, and names a session without a window', () => {
    const { O, W, engine } = scene();
    O(A, 'pre', { cwd: '/p/x' });
    O(B, 'pre', { cwd: '/elsewhere' });
    W('w', ['/p/other', '/p']);
    expect(engine.focusFolder(A)).toBe('/p/other');
    expect(() => engine.focusFolder(B)).toThrow(B);
    expect(() => engine.focusFolder('ghost')).toThrow('ghost');
  });
});

describe('window reports', () => {
  test('S-120 S-121: counts that flip nothing do not bump; other folders in other order do', () => {
    const { W, bumped } = scene();
    const steps = [
      [['/a', '/b'], 1, true],
      [['/a', '/b'], 5, false],
      [['/b', '/a'], 5, true],
      [['/b', '/a'], 0, true],
      [['/b', '/a'], 0, false],
    ] as const;
    for (const [folders, tabs, expected] of steps) {
      W('w', folders, tabs);
      expect(bumped()).toBe(expected);
    }
  });

  test('S-120 K-03: a report whose reap removed another window bumps', () => {
    const { W, bumped, clock } = scene();
    W('w1', ['/a']);
    clock.plus(15);
    W('w2', ['/b']);
    clock.plus(16);
    W('w2', ['/b']);
    expect(bumped()).toBe(true);
  });

  test('C-082 S-203: at 256 the quietest goes, of equals the lowest key', () => {
    const { O, W, row, clock } = scene();
    for (let n = 0; n < 256; n += 1) W(`w${String(n).padStart(3, '0')}`, [`/f${n}`]);
    clock.plus(1);
    W('w000', ['/f0']);
    W('x', ['/x']);
    O(A, 'pre', { cwd: '/f1' });
    O(B, 'pre', { cwd: '/f0' });
    expect(row(A)?.source).toEqual(TERMINAL);
    expect(row(B)?.source).toEqual(VS('w000'));
    O('c', 'pre', { cwd: '/f2' });
    expect(row('c')?.source).toEqual(VS('w002'));
  });

  test('C-100 S-209: time in which the service was deaf is given back, never past now, without a bump', () => {
    const { O, W, row, clock, engine } = scene();
    O(A, 'pre', { cwd: '/a' });
    O(B, 'pre', { cwd: '/b' });
    W('w2', ['/b']);
    clock.plus(260);
    W('w1', ['/a']);
    clock.plus(40);
    const version = engine.version();
    engine.creditOutage(25_000);
    expect(engine.version()).toBe(version);
    expect([row(A)?.source, row(B)?.source]).toEqual([VS('w1'), TERMINAL]);
    O(A, 'pre');
    engine.creditOutage(1e12);
    clock.plus(30);
    expect(row(A)?.source).toEqual(VS('w1'));
    clock.plus(1);
    expect(row(A)?.source).toEqual(TERMINAL);
  });

  test('C-401 S-933: one line each, with the right word', () => {
    const { W, U, engine, clock, events } = scene();
    W('w', ['/a'], 1);
    W('w', ['/a'], 2);
    W('w', ['/a'], 0);
    U('w');
    W('w', ['/a'], 1);
    clock.plus(31);
    engine.list();
    for (let n = 0; n < 257; n += 1) W(`x${n}`, []);
    const lines = events.filter(({ event }) => event.startsWith('session_window'));
    expect(
      lines
        .slice(0, 7)
        .map(({ event, fields }) => [event, fields['outcome'] ?? fields['removed'] ?? fields['reason']]),
    ).toEqual([
      ['session_window_reported', 'registered'],
      ['session_window_reported', 'refresh'],
      ['session_window_reported', 'embedding_changed'],
      ['session_window_unregistered', true],
      ['session_window_reported', 'registered'],
      ['session_window_reaped', 'window_ttl'],
      ['session_windows_reaped', undefined],
    ] as never);
    expect(lines.filter(({ event }) => event === 'session_window_evicted')).toHaveLength(1);
  });
});
