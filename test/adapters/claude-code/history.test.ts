import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createClaudeCode } from '../../../src/adapters/claude-code/index.ts';
import { INSTANCE_ID, RUNTIME_ID } from '../../../src/adapters/claude-code/session.ts';
import type { History, HistoryBounds } from '../../../src/runtime/feed.ts';
import { linesOf, sessionOf } from './recording.ts';
import { createTempHome, idOf, NOW, pathOf, rowsOf, type TempHome } from './temp-home.ts';

let temp: TempHome;
beforeEach(() => {
  temp = createTempHome();
});
afterEach(() => temp.close());

const ID = idOf(1);
const rows = rowsOf(ID, NOW);
async function history(
  bounds: HistoryBounds = { entries: 50, bytes: 100_000 },
  sessionId = ID,
): Promise<History> {
  const { context } = temp.context();
  const session = { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId };
  const read = await createClaudeCode(temp.host).history?.(context, session, bounds);
  if (!read) throw new Error('no history');
  return read;
}
const short = (read: History): readonly string[] =>
  read.entries.map((entry) => `${entry.role}: ${entry.text}`);

describe('history', () => {
  test('what was asked, called and answered, oldest first', async () => {
    temp.write(
      pathOf(ID),
      rows.prompt('Make it') + rows.call('Bash', { command: 'mkdir build' }) + rows.result() + rows.done(),
    );
    const read = await history();
    expect(short(read)).toEqual(['user: Make it', 'tool: Bash: mkdir build', 'assistant: Done.']);
    expect(read.entries.map((entry) => entry.at)).toEqual([NOW, NOW + 1_000, NOW + 3_000]);
    expect([read.more, read.skipped]).toEqual([false, 0]);
  });

  test('a recording reads as the conversation that it was', async () => {
    const id = sessionOf('i-perm-deny', 'transcript.jsonl');
    temp.write(pathOf(id), `${linesOf('i-perm-deny', 'transcript.jsonl').join('\n')}\n`);
    const roles = (await history(undefined, id)).entries.map((entry) => entry.role);
    expect(roles.slice(0, 1)).toEqual(['user']);
    expect(roles).toContain('tool');
    expect(short(await history(undefined, id))).toContain('system: interrupted by the user');
  });

  test('the newest entries within the bound; more says that there were others', async () => {
    temp.write(pathOf(ID), Array.from({ length: 30 }, (_, i) => rows.prompt(`p${i}`, i)).join(''));
    const read = await history({ entries: 3, bytes: 1_000 });
    expect(short(read)).toEqual(['user: p27', 'user: p28', 'user: p29']);
    expect(read.more).toBe(true);
  });

  test('bytes of UTF-8 are bounded, and no character is cut in two', async () => {
    temp.write(
      pathOf(ID),
      rows.prompt('first') + rows.done('日本語'.repeat(1_000)) + rows.prompt('last', 9_000),
    );
    const read = await history({ entries: 50, bytes: 200 });
    const bytes = read.entries.reduce((sum, entry) => sum + Buffer.byteLength(entry.text), 0);
    expect(bytes).toBeLessThanOrEqual(200);
    expect(read.entries.map((entry) => entry.cut)).toEqual([undefined, true, undefined]);
    expect(read.entries[1]?.text).toEndWith('…');
    expect(read.entries[1]?.text).not.toContain('\ufffd');
  });

  test('O4, C24 safe for a terminal: no escapes, no secrets; lines and indentation stay', async () => {
    temp.write(
      pathOf(ID),
      rows.prompt('a\u001b[31mb\u202e\nif x:\n\treturn\n\n\n\nkey sk-ant-api03-abcdefghijklmnopqrstuvwx'),
    );
    expect((await history()).entries[0]?.text).toBe('a b\nif x:\n  return\n\nkey •••');
  });

  test('wrappers, metadata and side-chains are not part of it', async () => {
    const side = rows.done('Side').replace('"isSidechain":false', '"isSidechain":true');
    temp.write(
      pathOf(ID),
      rows.meta('mode') +
        rows
          .prompt('<command-name>/x</command-name>')
          .replace('"origin":{"kind":"human"}', '"origin":null')
          .replace('"promptSource":"typed"', '"promptSource":null') +
        side +
        rows.prompt('Real', 1),
    );
    expect(short(await history())).toEqual(['user: Real']);
  });

  test('broken lines are counted; an unknown session has none', async () => {
    temp.write(pathOf(ID), `${rows.prompt('One')}{"parentUuid": broken\n${rows.done()}`);
    const read = await history();
    expect([short(read).length, read.skipped]).toEqual([2, 1]);
    expect(await history(undefined, idOf(99))).toEqual({ entries: [], more: false, skipped: 0 });
  });

  test('X5 only the end of a large file is read', async () => {
    const filler = rows.result(2_000, 1_000, 'x'.repeat(10_000)).repeat(2_000);
    temp.write(pathOf(ID), filler + rows.prompt('Last', 1) + rows.done());
    const { context, work } = temp.context();
    const session = { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: ID };
    const read = await createClaudeCode(temp.host).history?.(context, session, { entries: 2, bytes: 10_000 });
    expect(read && short(read)).toEqual(['user: Last', 'assistant: Done.']);
    expect(work.bytesRead).toBeLessThan(400_000);
  });
});
