import { describe, expect, test } from 'bun:test';
import { missingLine } from '../../src/commands/runtimes.ts';

describe('the line of runtimes that are not installed', () => {
  const names = ['OpenClaw', 'Hermes Agent', 'Cursor CLI'];

  test('has all names where they fit, and where nobody looks', () => {
    const all = 'Not installed: OpenClaw, Hermes Agent, Cursor CLI';
    expect([missingLine(names, undefined), missingLine(names, all.length)]).toEqual([all, all]);
  });

  test('never wraps: it says how many more there are', () => {
    expect(missingLine(names, 48)).toBe('Not installed: OpenClaw, Hermes Agent, 1 more');
    expect(missingLine(names, 40)).toBe('Not installed: OpenClaw, 2 more');
    expect(missingLine(names, 20)).toBe('Not installed: 3');
    for (let columns = 16; columns < 60; columns += 1) {
      expect(Bun.stringWidth(missingLine(names, columns))).toBeLessThanOrEqual(columns);
    }
  });
});
