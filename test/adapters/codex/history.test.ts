import { describe, expect, test } from 'bun:test';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { readHistory } from '../../../src/adapters/codex/history.ts';
import { finished, ID, inHome, Lines, OTHER_ID, T0, type TestHome } from './home.ts';
import { loadRecording, RECORDINGS } from './recording.ts';

const PLENTY = { entries: 100, bytes: 100_000 };
const of = (home: TestHome, id = ID, bounds = PLENTY) =>
  readHistory(home.context(), { runtimeId: 'codex', instanceId: 'transcripts', sessionId: id }, bounds);
const texts = (history: ReturnType<typeof of>) =>
  history.entries.map((entry) => `${entry.role}: ${entry.text}`);

function place(home: TestHome, scenario: string): void {
  const recording = loadRecording(scenario);
  for (const [file, path] of recording.paths) {
    mkdirSync(join(home.path(path), '..'), { recursive: true });
    copyFileSync(join(recording.folder, file), home.path(path));
  }
}

describe('history', () => {
  test('prompts, words, calls, in their order, without the program’s own messages (exec-tool)', () =>
    inHome(async (home) => {
      place(home, 'exec-tool');
      const id = loadRecording('exec-tool').key[0] as unknown as { thread: string };
      expect(texts(of(home, id.thread))).toEqual([
        'user: List the files',
        'assistant: Let me look at the directory.',
        'tool: exec_command: ls && sleep 1 && cat add.js',
        'assistant: The repo has README.md and add.js.',
      ]);
    }));

  test('a summary made for compaction is no answer (tui-compact)', () =>
    inHome(async (home) => {
      place(home, 'tui-compact');
      const id = loadRecording('tui-compact').key[0] as unknown as { thread: string };
      const lines = texts(of(home, id.thread));
      expect(lines).toContain('system: history compacted');
      expect(lines.some((line) => line.includes('Summary:'))).toBe(false);
    }));

  test('a fork goes on from where its parent was cut (exec-fork)', () =>
    inHome(async (home) => {
      place(home, 'exec-fork');
      const fork = '01a22e14-40b2-7e31-acc4-ff92d4a2d09e';
      expect(texts(of(home, fork)).filter((line) => line.startsWith('user'))).toEqual([
        'user: What does add do?',
        'user: And subtract?',
      ]);
    }));

  test('a rewound thread shows what is left of it (tui-backtrack)', () =>
    inHome(async (home) => {
      place(home, 'tui-backtrack');
      const prompts = texts(of(home, '01a22e22-4cd7-7791-be02-6ab3adb6385c')).filter((line) =>
        line.startsWith('user'),
      );
      expect(prompts).toEqual(['user: What does add do?', 'user: And subtract?']);
    }));

  test('a packed thread', () =>
    inHome(async (home) => {
      const name = `rollout-2026-11-30T20-08-39-${ID}.jsonl.zst`;
      mkdirSync(home.path('sessions/2026/11/30'), { recursive: true });
      copyFileSync(join(RECORDINGS, 'compressed-rollout', name), home.path(`sessions/2026/11/30/${name}`));
      expect(texts(of(home))).toContain('user: What does add do?');
    }));

  test('errors and interruptions are said', () =>
    inHome(async (home) => {
      const error = { error: { message: 'usage limit' } };
      home.rollout(new Lines().meta().started().prompt('A').aborted().started().prompt('B').complete(error));
      expect(texts(of(home))).toEqual(['user: A', 'system: interrupted', 'user: B', 'system: usage limit']);
      expect(of(home).entries[0]?.at).toBe(T0 + 20);
    }));

  test('bounds: the newest entries, and bytes; a long one is cut between characters', () =>
    inHome(async (home) => {
      const lines = new Lines().meta();
      for (let turn = 0; turn < 50; turn += 1)
        lines.started().prompt(`Prompt ${turn}`).said('Yes').complete();
      home.rollout(lines);
      const few = of(home, ID, { entries: 3, bytes: 10_000 });
      expect([texts(few), few.more]).toEqual([['assistant: Yes', 'user: Prompt 49', 'assistant: Yes'], true]);
      home.rollout(finished('é'.repeat(5_000)));
      const cut = of(home, ID, { entries: 10, bytes: 1_001 });
      const long = cut.entries.find((entry) => entry.role === 'user');
      expect(long?.cut).toBe(true);
      expect(Buffer.byteLength(long?.text ?? '')).toBeLessThanOrEqual(501);
      expect(long?.text).toMatch(/^é+…$/);
      const all = of(home);
      expect([all.more, all.entries.length]).toEqual([false, 2]);
    }));

  test('O4, C24 cleaned for a terminal, indentation kept, secrets masked, broken lines counted', () =>
    inHome(async (home) => {
      const text = 'Run:\n\tif x:\u001b[2J\n\t\tkey = sk-abcdefghijklmnop1234\r\n\n\n\n\nend';
      home.rollout(`${new Lines().meta().started().prompt(text).text}{"UserMessage" broken\n`);
      const history = of(home);
      expect(history.entries[0]?.text).toBe('Run:\n  if x:\n    key = •••\n\nend');
      expect(history.skipped).toBe(1);
    }));

  test('a session that is not there has no history', () =>
    inHome(async (home) => {
      expect(of(home, OTHER_ID)).toEqual({ entries: [], more: false, skipped: 0 });
    }));

  test('a loop of bases in damaged files ends', () =>
    inHome(async (home) => {
      const base = (id: string) => ({ history_base: { thread_id: id, end_ordinal_exclusive: 99 } });
      home.rollout(new Lines().meta(ID, base(OTHER_ID)).started().prompt('A'));
      home.rollout(new Lines().meta(OTHER_ID, base(ID)).started().prompt('B'), OTHER_ID);
      expect(of(home).entries.length).toBeLessThanOrEqual(16);
    }));
});
