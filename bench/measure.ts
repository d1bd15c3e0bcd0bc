/** Runs programs and says how long and how large they were. */
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dir, '..');

export interface RunOptions {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Deleted before every run: the connector home, for a list with nothing known. */
  readonly forget?: string;
  readonly runs?: number;
  /** Runs that are not counted; they bring files into the system's cache. Default 1. */
  readonly warmUps?: number;
}

export interface Measured {
  /** Whole process, from its start to its end. */
  readonly medianMs: number;
  readonly bestMs: number;
  readonly worstMs: number;
  readonly maxRssMb: number;
  readonly exitCode: number;
  /** Standard output of the last run. */
  readonly output: string;
  readonly errors: string;
}

/** Runs a program several times, one after another. */
export function measure(options: RunOptions): Measured {
  const [measured] = measureInTurn([options]);
  if (measured === undefined) throw new Error('nothing was run');
  return measured;
}

/** Runs several programs in turn, so that what else the computer does meets all of them alike. */
export function measureInTurn(all: readonly RunOptions[]): readonly Measured[] {
  const rounds = Math.max(...all.map((options) => (options.warmUps ?? 1) + (options.runs ?? 9)));
  const runs = all.map((): Run[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, options] of all.entries()) {
      if (round < (options.warmUps ?? 1) + (options.runs ?? 9)) runs[index]?.push(once(options));
    }
  }
  return all.map((options, index) => summary((runs[index] ?? []).slice(options.warmUps ?? 1)));
}

interface Run {
  readonly ms: number;
  readonly rssMb: number;
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

function summary(runs: readonly Run[]): Measured {
  const times = runs.map((run) => run.ms).sort((a, b) => a - b);
  const last = runs.at(-1);
  return {
    medianMs: times[Math.floor(times.length / 2)] ?? 0,
    bestMs: times[0] ?? 0,
    worstMs: times.at(-1) ?? 0,
    maxRssMb: Math.max(...runs.map((run) => run.rssMb)),
    exitCode: last?.exitCode ?? -1,
    output: last?.output ?? '',
    errors: last?.errors ?? '',
  };
}

function once(options: RunOptions): Run {
  if (options.forget !== undefined) rmSync(options.forget, { recursive: true, force: true });
  const started = Bun.nanoseconds();
  const child = Bun.spawnSync([...options.command], {
    env: { ...options.env },
    stdin: options.stdin === undefined ? 'ignore' : Buffer.from(options.stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const ms = (Bun.nanoseconds() - started) / 1e6;
  return {
    ms,
    rssMb: child.resourceUsage.maxRSS / 1e6,
    exitCode: child.exitCode,
    output: child.stdout.toString(),
    errors: child.stderr.toString(),
  };
}

/** Compiles an entry file as the product is compiled. Returns the executable. */
export function compileEntry(entry: string, folder: string): string {
  const builder = join(ROOT, 'scripts', 'build-binaries.ts');
  const command = [process.execPath, builder, '--host', '--entry', join(ROOT, entry), '--out-dir', folder];
  const child = Bun.spawnSync([...command, '--commit', 'bench'], { stdout: 'pipe', stderr: 'pipe' });
  if (child.exitCode !== 0) throw new Error(`${entry} could not be compiled:\n${child.stderr.toString()}`);
  return join(folder, process.platform === 'win32' ? 'shadowob-connector.exe' : 'shadowob-connector');
}

/**
 * Generates a data set in a process of its own. The bench itself must stay small: on Linux the largest size of a
 * child counts from that of the process that started it.
 */
export function generate(what: string, home: string, count: number): { files: number; megabytes: number } {
  const script = join(ROOT, 'bench', 'generate', 'index.ts');
  const child = Bun.spawnSync([process.execPath, script, what, home, String(Math.round(count))], {
    stderr: 'inherit',
  });
  const [, files, megabytes] = /^(\d+) files, ([\d.]+) MB/.exec(child.stdout.toString()) ?? [];
  if (child.exitCode !== 0 || files === undefined) throw new Error(`${what} could not be generated`);
  return { files: Number(files), megabytes: Math.round(Number(megabytes)) };
}
