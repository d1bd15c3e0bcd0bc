import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { AdapterContext } from '../../../src/adapters/adapter.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';
import type { ProcessHost } from '../../../src/runtime/process/types.ts';

const ROOT = join(import.meta.dir, '../../recordings/pi');

/** A row of an answer key. */
export interface KeyRow {
  readonly file: string;
  readonly line: number;
  readonly record: string;
  readonly state: string;
}

export interface Recording {
  readonly name: string;
  readonly lines: readonly string[];
  readonly id: string;
  readonly key: readonly KeyRow[];
}

export function recordings(): readonly Recording[] {
  return readdirSync(ROOT)
    .sort()
    .map((name) => {
      const lines = linesOf(join(ROOT, name, 'session.jsonl'));
      const key = linesOf(join(ROOT, name, 'answer-key.jsonl')).map((line) => JSON.parse(line) as KeyRow);
      return {
        name,
        lines,
        id: String(JSON.parse(lines[0] ?? '{}').id),
        key: key.filter(({ file }) => file === 'session.jsonl'),
      };
    });
}

export function recording(name: string): Recording {
  const found = recordings().find((one) => one.name === name);
  if (!found) throw new Error(`no recording ${name}`);
  return found;
}

function linesOf(path: string): readonly string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** A folder of its own, gone after `run`. */
export async function inFolder<T>(run: (folder: string) => Promise<T> | T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'pi-adapter-'));
  try {
    return await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Lays lines down as pi does; the file's time is that of its newest line. */
export function layDown(
  root: string,
  id: string,
  lines: readonly string[],
  place = '--home-dev2-acme-app--',
): string {
  const path = join(root, 'sessions', place, `2026-11-30T20-33-22-115Z_${id}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
  const at = newestTime(lines) / 1_000;
  if (at > 0) utimesSync(path, at, at);
  return path;
}

/** Epoch milliseconds of the newest line that has a time. */
export function newestTime(lines: readonly string[]): number {
  const times = lines.map((line) => Date.parse(/"timestamp":"([^"]+)"/.exec(line)?.[1] ?? ''));
  return Math.max(0, ...times.filter(Number.isFinite));
}

export function contextFor(root: string, more: Partial<AdapterContext> = {}): AdapterContext {
  const { env, ...rest } = more;
  return {
    env: { PI_CODING_AGENT_DIR: root, ...env },
    home: '/nonexistent',
    platform: 'linux',
    now: () => Date.now(),
    log: { debug: () => {}, warn: () => {} },
    ...rest,
  };
}

/** A machine on which no process runs. */
export function emptyMachine(folder: string): ProcessHost {
  const procRoot = join(folder, 'proc');
  mkdirSync(procRoot, { recursive: true });
  writeFileSync(join(procRoot, 'stat'), 'btime 1790000000\n');
  writeFileSync(join(procRoot, 'uptime'), '100000.00 1.00\n');
  return { ...systemHost, platform: 'linux', procRoot };
}
