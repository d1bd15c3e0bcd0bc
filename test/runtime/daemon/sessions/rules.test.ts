/** Rules that no case of the engine's own names: what the sink's mapping does to its states. */
import { describe, expect, test } from 'bun:test';
import { mapHook } from '../../../../src/runtime/daemon/sink/mapping.ts';
import type { WireState } from '../../../../src/runtime/daemon/vocabulary.ts';
import { A, scene } from './dsl.ts';

/** The states after each hook of Claude Code, through the sink's mapping. */
function after(...hooks: (readonly [name: string, fields?: object])[]): (WireState | undefined)[] {
  const b = scene();
  return hooks.map(([hook_event_name, fields]) => {
    const op = mapHook('claude', { session_id: A, hook_event_name, ...fields });
    if (op?.op === 'observe') {
      const { op: _, ...observe } = op;
      b.engine.observe({ session_id: A, ...observe }, 'socket');
    }
    return b.engine.list().sessions[0]?.state;
  });
}

describe('hooks through the mapping', () => {
  test('C-143 S-413: a start after compaction is a sign of life: an idle session stays idle', () => {
    const compact = ['SessionStart', { source: 'compact' }] as const;
    expect(after(['UserPromptSubmit'], ['Stop'], compact)).toEqual(['working', 'idle', 'idle']);
    expect(after(['UserPromptSubmit'], compact)).toEqual(['working', 'working']);
  });

  test('S-107: a resume makes even a busy session start again', () => {
    expect(after(['UserPromptSubmit'], ['PreToolUse'], ['SessionStart', { source: 'resume' }])).toEqual([
      'working',
      'working',
      'starting',
    ]);
  });

  test('S-415: the reason of an end is its own field, the message only where that is missing', () => {
    const end = (fields: object) => mapHook('claude', { hook_event_name: 'SessionEnd', ...fields });
    expect(end({ reason: 'clear', message: 'bye' })).toEqual({ op: 'end', reason: 'clear' });
    expect(end({ message: 'bye' })).toEqual({ op: 'end', reason: 'bye' });
  });
});
