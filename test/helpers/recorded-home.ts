import { copyFileSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const RECORDINGS = resolve(import.meta.dir, '..', 'recordings');

/** Lays one recorded Claude Code transcript out where the program itself would have it. */
export function layClaude(home: string, scenario: string, ageMs = 60_000): string {
  const source = join(RECORDINGS, 'claude-code', scenario, 'transcript.jsonl');
  const row = readFileSync(source, 'utf8')
    .split('\n')
    .map((line) => (line === '' ? {} : JSON.parse(line)))
    .find((one) => typeof one.cwd === 'string' && typeof one.sessionId === 'string');
  const folder = row.cwd.replace(/[^A-Za-z0-9]/g, '-');
  const target = join(home, '.claude', 'projects', folder, `${row.sessionId}.jsonl`);
  lay(source, target, ageMs);
  return row.sessionId;
}

/** Lays one recorded Codex rollout out under the name the program gave it. */
export function layCodex(home: string, scenario: string, ageMs = 60_000): string {
  const source = join(RECORDINGS, 'codex', scenario, 'rollout.jsonl');
  const meta = JSON.parse(readFileSync(source, 'utf8').split('\n', 1)[0] ?? '{}');
  const stamp = String(meta.timestamp).slice(0, 19).replaceAll(':', '-');
  const day = stamp.slice(0, 10).replaceAll('-', '/');
  const target = join(home, '.codex', 'sessions', day, `rollout-${stamp}-${meta.payload.id}.jsonl`);
  lay(source, target, ageMs);
  return meta.payload.id;
}

function lay(source: string, target: string, ageMs: number): void {
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(source, target);
  const at = (Date.now() - ageMs) / 1_000;
  utimesSync(target, at, at);
}

/** Writes a file below a home, with its folders. */
export function write(home: string, path: string, content: string | Uint8Array): string {
  const target = join(home, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, content);
  return target;
}
