import { describe, expect, test } from 'bun:test';
import type { RuntimeInstance } from '../../../src/runtime/feed.ts';
import { bannerOf, lineOf, listed } from '../../../src/runtime/notify/notice.ts';
import { createRuntimeDecider } from '../../../src/runtime/notify/runtimes.ts';
import { T } from './sessions.ts';

const LABELS: Readonly<Record<string, string>> = { opencode: 'OpenCode', codex: 'Codex CLI' };

const instance = (runtimeId: string, status: RuntimeInstance['status']): RuntimeInstance => ({
  runtimeId,
  instanceId: status,
  label: runtimeId,
  status,
  capabilities: [],
});

function watch(begin: readonly RuntimeInstance[]) {
  const decider = createRuntimeDecider((id) => LABELS[id] ?? id);
  decider.begin(begin);
  return {
    decider,
    see: (seconds: number, ...instances: readonly RuntimeInstance[]) =>
      decider.observe(instances, T + seconds * 1_000, () => 3),
  };
}

describe('runtimes that come and go (R-44)', () => {
  test('what was there at the beginning is no news, and what comes settles first', () => {
    const w = watch([instance('codex', 'running'), instance('opencode', 'stopped')]);
    expect(w.see(1, instance('codex', 'running'), instance('opencode', 'running'))).toEqual([]);
    expect(w.decider.nextAt()).toBe(T + 3_000);
    const told = w.see(3, instance('codex', 'running'), instance('opencode', 'running'));
    expect(told).toMatchObject([{ event: 'connector.runtime.ready', from: 'off', to: 'ready', sessions: 3 }]);
    expect(told.map(lineOf)).toEqual(['OpenCode is ready. 3 local sessions found.']);
    expect(w.see(9, instance('codex', 'running'), instance('opencode', 'running'))).toEqual([]);
  });

  test('several of one moment are one notice', () => {
    const w = watch([]);
    w.see(1, instance('codex', 'running'));
    w.see(2, instance('codex', 'running'), instance('opencode', 'available'));
    const told = w.see(3, instance('codex', 'running'), instance('opencode', 'available'));
    expect(told.map((one) => bannerOf(one, false).text)).toEqual([
      'Codex CLI and OpenCode are ready. 3 local sessions found.',
    ]);
    expect(w.see(10, instance('codex', 'running'), instance('opencode', 'available'))).toEqual([]);
  });

  test('what flickers is not told, an error is, and what its owner has stopped is not', () => {
    const w = watch([instance('opencode', 'running')]);
    w.see(1, instance('opencode', 'error'));
    expect(w.see(2, instance('opencode', 'running'))).toEqual([]);
    w.see(3, instance('opencode', 'error'));
    expect(w.see(5, instance('opencode', 'error')).map(lineOf)).toEqual(['OpenCode is not reachable.']);
    w.see(6, instance('opencode', 'stopped'));
    expect(w.see(9, instance('opencode', 'stopped'))).toEqual([]);
    w.see(10, instance('opencode', 'running'), instance('opencode', 'error'));
    expect(w.see(12, instance('opencode', 'running'), instance('opencode', 'error'))).toMatchObject([
      { event: 'connector.runtime.degraded' },
    ]);
  });

  test('names are listed as people list them', () => {
    expect([listed([]), listed(['A']), listed(['A', 'B']), listed(['A', 'B', 'C'])]).toEqual([
      '',
      'A',
      'A and B',
      'A, B and C',
    ]);
  });
});
