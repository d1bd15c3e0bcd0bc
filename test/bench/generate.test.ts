import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  generateClaude,
  generateCrowded,
  generateManySessions,
  generateSparse,
} from '../../bench/generate/claude.ts';
import { generateCodex } from '../../bench/generate/codex.ts';
import { generateOpenCode } from '../../bench/generate/opencode.ts';
import { noCounts, splitLines } from '../../src/runtime/files/jsonl.ts';

let home = '';

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'generate-'));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function hashes(folder: string): unknown[] {
  return filesBelow(folder).map((path) => [path.slice(folder.length), Bun.hash(readFileSync(path))]);
}

/** Every line is whole JSON; gives the types of the rows. */
function typesOf(path: string): string[] {
  const counts = noCounts();
  const split = splitLines(readFileSync(path), { counts });
  const types = split.lines.map((line) => (line.record as { type: string }).type);
  expect(split.torn).toBeUndefined();
  expect(counts).toEqual(noCounts());
  return types;
}

describe('the bench measures the same bytes in every run', () => {
  test('one seed, one set of files', () => {
    const other = mkdtempSync(join(tmpdir(), 'generate-'));
    for (const folder of [home, other]) {
      generateClaude(folder, { files: 6, bytes: 1_500_000 });
      generateCodex(folder, { threads: 4 });
    }
    expect(hashes(home)).toEqual(hashes(other));
    rmSync(other, { recursive: true, force: true });
  });

  test('about as many bytes as were asked for', () => {
    const made = generateClaude(home, { files: 40, bytes: 12_000_000 });
    const total = filesBelow(home).reduce((sum, path) => sum + statSync(path).size, 0);
    expect(total).toBe(made.bytes);
    expect(Math.abs(total - 12_000_000)).toBeLessThan(1_500_000);
  });
});

describe('transcripts have the rows of real ones (R-27)', () => {
  test('whole JSON, conversation between bookkeeping, metadata last', () => {
    generateClaude(home, { files: 40, bytes: 8_000_000 });
    const behind: number[] = [];
    for (const path of filesBelow(home)) {
      const types = typesOf(path);
      expect(types.at(-1)).toBe('last-prompt');
      expect(types).toContain('api-request-shape');
      const text = readFileSync(path, 'latin1');
      const last = Math.max(text.lastIndexOf('"type":"assistant"'), text.lastIndexOf('"role":"user"'));
      behind.push(text.length - last);
    }
    expect(behind.some((bytes) => bytes > 64 * 1024)).toBe(true);
    expect(behind.filter((bytes) => bytes < 16 * 1024).length).toBeGreaterThan(20);
  });

  test('G1: a crowded folder has the sessions among the sub-agents', () => {
    generateCrowded(home, 200, 3);
    const names = filesBelow(home).map((path) => path.split('/').at(-1) ?? '');
    expect(names.length).toBe(200);
    expect(names.filter((name) => !name.startsWith('agent-')).length).toBe(3);
    const agent = filesBelow(home).find((path) => path.includes('agent-')) ?? '';
    expect(readFileSync(agent, 'utf8').includes('"isSidechain":true')).toBe(true);
  });

  test('many sessions: each with its own id', () => {
    generateManySessions(home, 20);
    for (const path of filesBelow(home)) {
      const id = path.split('/').at(-1)?.replace('.jsonl', '') ?? '';
      expect(readFileSync(path, 'utf8').includes(`"sessionId":"${id}"`)).toBe(true);
    }
  });

  test.each([20 * 1024, 3 * 1024 ** 3])('X9: a sparse one of %d bytes', (size) => {
    expect(generateSparse(home, size)).toEqual({ files: 1, bytes: size });
    const [path = ''] = filesBelow(home);
    expect(statSync(path).blocks * 512).toBeLessThan(200_000);
  });
});

describe('the other stores', () => {
  test('Codex: the first line is longer than 20 KB, packed ones unpack to rollouts', () => {
    generateCodex(home, { threads: 6, packedEvery: 3 });
    const paths = filesBelow(home);
    expect(paths.filter((path) => path.endsWith('.zst')).length).toBe(2);
    for (const path of paths) {
      const bytes = path.endsWith('.zst') ? Bun.zstdDecompressSync(readFileSync(path)) : readFileSync(path);
      const [first] = splitLines(bytes).lines;
      expect(first?.size).toBeGreaterThan(20_000);
      expect(first?.record).toMatchObject({ type: 'session_meta', ordinal: 0 });
    }
  });

  test('OpenCode: closed, in WAL mode, with sessions, messages and parts', () => {
    generateOpenCode(home, { sessions: 5, messages: 4 });
    const folder = join(home, '.local', 'share', 'opencode');
    const database = new Database(join(folder, 'opencode.db'), { readwrite: true });
    const count = (table: string): unknown =>
      database.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0];
    expect([count('session'), count('message'), count('part')]).toEqual([5, 20, 40]);
    expect(database.query('PRAGMA journal_mode').values()).toEqual([['wal']]);
    database.close();
  });
});
