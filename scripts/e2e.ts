/**
 * The scenarios with real agent programs (`npm run test:e2e`):
 *
 *   bun scripts/e2e.ts [name…] [-t pattern]      files whose name contains one of the names; all without any
 *
 * Installs the programs once, compiles the executable, and runs each file of `test/e2e/real` in a world of its own,
 * two at a time. The last line is "N passed, N failed". Where no world can be made, the scenarios are skipped and say why.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { type Isolation, OUTSIDE, probeIsolation } from '../test/e2e/lab/isolation.ts';
import { installPrograms } from '../test/e2e/lab/programs.ts';
import { compiledBinary } from '../test/helpers/binary.ts';

const ROOT = resolve(import.meta.dir, '..');
const FOLDER = join('test', 'e2e', 'real');
/** One scenario may wait several times, each with a patience of its own. */
const SCENARIO_MS = 180_000;
/** Each file runs a program, a terminal, a model and our executable: more at once only makes them wait for each other. */
const AT_ONCE = Math.min(2, availableParallelism());

/** Those that take longest begin first, so that none of them is left to run alone. */
const LONGEST = ['opencode-acting', 'opencode-plugin', 'everything', 'codex-acting', 'claude-acting'];

function turnOf(file: string): number {
  const at = LONGEST.indexOf(file.replace('.e2e.ts', ''));
  return at < 0 ? LONGEST.length : at;
}

/** In the environment of everything that this run starts; another one at the same time has another number. */
const RUN = { SHADOWOB_E2E_RUN: String(process.pid) };

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(args: readonly string[]): Promise<number> {
  const { names, pattern } = readArguments(args);
  const files = readdirSync(join(ROOT, FOLDER))
    .filter((file) => file.endsWith('.e2e.ts'))
    .filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
    .toSorted((a, b) => turnOf(a) - turnOf(b));
  if (files.length === 0) throw new Error(`no file of ${FOLDER} has a name with ${names.join(' or ')}`);
  const isolation = probeIsolation();
  if (isolation.kind === 'unavailable') say(`no world of its own can be made here: ${isolation.reason}`);
  else await installPrograms(say);
  const binary = await compiledBinary();
  const counts = await inTurns(files, (file) => runFile(file, pattern, isolation, binary));
  const left = leftBehind();
  if (left.length > 0) say(`left running: ${left.join('; ')}`);
  const sum = (of: (one: Counts) => number) => counts.reduce((total, one) => total + of(one), 0);
  const failed = sum((one) => one.failed) + (left.length > 0 ? 1 : 0);
  const skipped = sum((one) => one.skipped);
  say(`${sum((one) => one.passed)} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return failed > 0 ? 1 : 0;
}

function readArguments(args: readonly string[]): { names: readonly string[]; pattern: string | undefined } {
  const at = args.indexOf('-t');
  if (at < 0) return { names: args, pattern: undefined };
  return { names: args.toSpliced(at, 2), pattern: args[at + 1] };
}

/** Runs all, `AT_ONCE` at a time. */
async function inTurns<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<readonly R[]> {
  const queue = [...items];
  const results: R[] = [];
  const worker = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) results.push(await run(item));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

async function runFile(
  file: string,
  pattern: string | undefined,
  isolation: Isolation,
  binary: string,
): Promise<Counts> {
  const filter = pattern === undefined ? [] : ['-t', pattern];
  const command = [process.execPath, 'test', `--timeout=${SCENARIO_MS}`, ...filter, `./${FOLDER}/${file}`];
  const child = Bun.spawn(isolation.kind === 'available' ? isolation.isolated(command) : command, {
    cwd: ROOT,
    env: { ...process.env, ...RUN, SHADOWOB_TEST_BINARY: binary },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const end = () => child.kill('SIGKILL');
  process.once('SIGINT', end).once('SIGTERM', end);
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  process.off('SIGINT', end).off('SIGTERM', end);
  say(`${out}${err}`.trimEnd());
  return countsOf(`${out}\n${err}`, code);
}

/** What `bun test` says at its end. A run that says nothing, or fails without a failed test, has failed itself. */
function countsOf(output: string, code: number): Counts {
  const plain = Bun.stripANSI(output);
  const number = (word: string) => Number(new RegExp(`^ *(\\d+) ${word}s?$`, 'm').exec(plain)?.[1] ?? 0);
  const [passed, skipped, failed] = [number('pass'), number('skip'), number('fail') + number('error')];
  const broken = failed === 0 && (code !== 0 || !/^Ran \d+ test/m.test(plain));
  return { passed, skipped, failed: broken ? 1 : failed };
}

/** Processes of this run. The end of a world is the end of all that runs in it, so there is none. */
function leftBehind(): readonly string[] {
  if (process.platform !== 'linux') return [];
  const mark = `SHADOWOB_E2E_RUN=${RUN.SHADOWOB_E2E_RUN}\0`;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
        if (!environment.includes(`${OUTSIDE}=`) || !environment.includes(mark)) return [];
        return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`];
      } catch {
        // It has ended, or is another user's.
        return [];
      }
    });
}

process.exit(await main(process.argv.slice(2)));
