/** Claude Code's folder of transcripts, in the sizes that break tools (X5, X9, G1, R-27). */
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { chooseEnding, RowWriter, type SessionFacts } from './claude-rows.ts';
import { createRandom, prose, type Random, uuid } from './random.ts';

/** The moment that all times are relative to, so that nothing depends on the day of the run. */
export const BENCH_NOW = Date.UTC(2026, 10, 30, 12);
/** About what an opening and an ending take. */
const SMALLEST = 105_000;
const DAY = 24 * 60 * 60 * 1000;

export interface ClaudeOptions {
  readonly files?: number;
  readonly bytes?: number;
  readonly projects?: number;
  readonly seed?: number;
}

export interface Generated {
  readonly files: number;
  readonly bytes: number;
}

/**
 * `<home>/.claude/projects` with transcripts of realistic rows: 2,000 files and 755 MB by default, from one
 * short question to tens of megabytes; one in ten has a row of 90 KB behind its last conversation row.
 */
export function generateClaude(home: string, options: ClaudeOptions = {}): Generated {
  const files = options.files ?? 2000;
  const random = createRandom(options.seed ?? 1);
  const sizes = spread(files, options.bytes ?? 755_000_000, random);
  const projects = Array.from({ length: options.projects ?? 60 }, (_, n) => `/home/dev/work/project-${n}`);
  let bytes = 0;
  for (const [n, size] of sizes.entries()) {
    const cwd = projects[Math.floor(random() ** 2 * projects.length)] ?? '/home/dev';
    const startedAt = BENCH_NOW - Math.floor(random() * 120 * DAY) - DAY;
    const facts = { id: uuid(random), cwd, prompt: `Task ${n}: ${prose(random, 60)}`, startedAt };
    const path = join(projectFolder(home, cwd), `${facts.id}.jsonl`);
    bytes += writeTranscript(path, facts, size, random);
  }
  return { files, bytes };
}

/** One project folder with so many files: old sub-agent transcripts, and eleven sessions among them (G1). */
export function generateCrowded(home: string, files = 107_000, sessions = 11, seed = 2): Generated {
  const random = createRandom(seed);
  const cwd = '/home/dev/work/crowded';
  const folder = projectFolder(home, cwd);
  let bytes = 0;
  for (let n = 0; n < sessions; n += 1) {
    const facts = { id: uuid(random), cwd, prompt: `Session ${n}`, startedAt: BENCH_NOW - n * DAY };
    bytes += writeTranscript(join(folder, `${facts.id}.jsonl`), facts, 200_000, random);
  }
  const facts = { id: uuid(random), cwd, prompt: 'Look for the bug', startedAt: BENCH_NOW - DAY };
  const rows = new RowWriter(facts, random);
  const small = (rows.prompt(facts.prompt) + rows.answer(200)).replaceAll(
    '"isSidechain":false',
    '"isSidechain":true',
  );
  for (let n = sessions; n < files; n += 1) {
    writeFileSync(join(folder, `agent-${uuid(random).slice(0, 8)}${n}.jsonl`), small);
    bytes += small.length;
  }
  return { files, bytes };
}

/** One project folder with so many real, small sessions. */
export function generateManySessions(home: string, files = 107_000, seed = 3): Generated {
  const random = createRandom(seed);
  const cwd = '/home/dev/work/many';
  const folder = projectFolder(home, cwd);
  let bytes = 0;
  const marker = '00000000-0000-4000-8000-000000000000';
  const rows = new RowWriter({ id: marker, cwd, prompt: 'Say hello', startedAt: BENCH_NOW - DAY }, random);
  const text = rows.prompt('Say hello') + rows.answer(200) + rows.closing(false);
  for (let n = 0; n < files; n += 1) {
    const id = uuid(random);
    writeFileSync(join(folder, `${id}.jsonl`), text.replaceAll(marker, id));
    bytes += text.length;
  }
  return { files, bytes };
}

/** One transcript of this size: real rows at both ends, a hole in between where it is larger than they are. */
export function generateSparse(home: string, size: number, seed = 4): Generated {
  const random = createRandom(seed);
  const cwd = '/home/dev/work/sparse';
  const facts = { id: uuid(random), cwd, prompt: 'A long story', startedAt: BENCH_NOW - DAY };
  const rows = new RowWriter(facts, random);
  const start = rows.prompt(facts.prompt) + rows.toolRound(500);
  const end = `\n${rows.toolRound(3500)}${rows.ending('completed')}${rows.closing(false)}`;
  const path = join(projectFolder(home, cwd), `${facts.id}.jsonl`);
  const fd = openSync(path, 'w');
  writeSync(fd, start);
  const hole = Math.max(start.length, size - end.length);
  ftruncateSync(fd, hole);
  writeSync(fd, end, hole);
  closeSync(fd);
  if (statSync(path).size !== size) truncateSync(path, Math.max(size, hole + end.length));
  return { files: 1, bytes: statSync(path).size };
}

function projectFolder(home: string, cwd: string): string {
  const folder = join(home, '.claude', 'projects', cwd.replaceAll(/[^A-Za-z0-9]/g, '-'));
  mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * Sizes with a long tail that add up to the total: most sessions are short, a few hold most of the bytes. None
 * is smaller than what stands before the first answer.
 */
function spread(files: number, bytes: number, random: Random): number[] {
  const weights = Array.from({ length: files }, () => Math.exp(3.2 * (random() + random() + random() - 1.5)));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const shared = Math.max(0, bytes - files * SMALLEST);
  return weights.map((weight) => SMALLEST + Math.round((weight / sum) * shared));
}

function writeTranscript(path: string, facts: SessionFacts, size: number, random: Random): number {
  const rows = new RowWriter(facts, random);
  const opening = rows.opening();
  const ending = rows.ending(chooseEnding(random)) + rows.closing(random() < 0.1);
  // The middle is never read by a list; a block of rows written again and again fills it fast.
  const block = middle(rows, random);
  const repeats = Math.max(0, Math.round((size - opening.length - ending.length) / block.length));
  const fd = openSync(path, 'w');
  writeSync(fd, opening);
  for (let n = 0; n < repeats; n += 1) writeSync(fd, block);
  writeSync(fd, ending);
  closeSync(fd);
  const at = new Date(facts.startedAt + Math.floor(random() * DAY));
  utimesSync(path, at, at);
  return opening.length + repeats * block.length + ending.length;
}

function middle(rows: RowWriter, random: Random): Buffer {
  const rounds = Array.from({ length: 6 }, () => rows.toolRound(Math.floor(300 + random() ** 3 * 12_000)));
  return Buffer.from([...rounds, rows.answer(900), rows.prompt('Go on, please')].join(''));
}
