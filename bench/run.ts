/**
 * Measures what `docs/` promises about lists and scans, on the compiled program, and prints one table.
 *
 *   bun bench/run.ts [--quick] [--only WORD] [--binary FILE] [--runs N] [--keep] [--json]
 *
 * `--quick` takes a tenth of the data; its numbers are only good to see that the bench works. `--only` runs the
 * groups whose name contains the word. All homes lie in a temporary folder, which `--keep` leaves behind. Ends
 * with 1 if a bound is broken.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureFrames, measureRest, someTranscript, startBenchDaemon } from './daemon.ts';
import { compileEntry, generate, type Measured, measure, measureInTurn, type RunOptions } from './measure.ts';
import { type Result, toTable } from './table.ts';

interface Bench {
  readonly folder: string;
  readonly binary: string;
  /** The compiled hello world. */
  readonly hello: string;
  /** Divides the amounts of data. */
  readonly part: number;
  readonly runs: number;
}

/** Groups in the order they run; each generates what it needs and removes it again. */
const GROUPS: Record<string, (bench: Bench) => readonly Result[] | Promise<readonly Result[]>> = {
  start: measureStart,
  list: measureList,
  crowded: measureCrowded,
  many: measureMany,
  sparse: measureSparse,
  mixed: measureMixed,
  scan: measureScan,
  daemon: measureDaemon,
};

function measureStart(bench: Bench): readonly Result[] {
  const home = makeHome(bench, 'start');
  const runs = bench.runs * 3;
  const payload = { session_id: 's', hook_event_name: 'Stop', cwd: '/', transcript_path: '/none.jsonl' };
  const [hello, version, hook] = measureInTurn([
    { command: [bench.hello], env: environment(home), runs },
    options(bench, home, ['--version'], { runs }),
    options(bench, home, ['hook', '--agent', 'claude'], { runs, stdin: JSON.stringify(payload) }),
  ]);
  if (hello === undefined || version === undefined || hook === undefined) return [];
  return [
    record('compiled hello world', hello, ''),
    atMostTimes('--version', version, hello, 2),
    atMostTimes('hook, no daemon', hook, hello, 2.5),
  ];
}

function measureList(bench: Bench): readonly Result[] {
  const home = makeHome(bench, 'list');
  const made = generate('claude', home, 2000 / bench.part);
  const reference = compileEntry('bench/reference/list-and-stat.ts', join(bench.folder, 'list-and-stat'));
  const stats = measure({ command: [reference], env: environment(home), runs: bench.runs });
  const cold = run(bench, home, LIST, { forget: connectorHome(home) });
  const warm = run(bench, home, LIST);
  const shown = run(bench, home, ['session-list']);
  const name = `session-list, ${made.files} transcripts, ${made.megabytes} MB`;
  return [
    record('compiled list-and-stat of the same', stats, ''),
    atMostMs(`${name}, no index`, cold, 200, ratio(cold, stats)),
    atMostMs('the same, nothing changed', warm, 60, ratio(warm, stats)),
    record('the same, for a person', shown, ratio(shown, stats)),
  ];
}

function measureCrowded(bench: Bench): readonly Result[] {
  const home = makeHome(bench, 'crowded');
  const made = generate('crowded', home, 107_000 / bench.part);
  const cold = run(bench, home, LIST, { forget: connectorHome(home) });
  const warm = run(bench, home, LIST);
  const name = `${made.files} files in a folder, 11 sessions`;
  return [
    bothBounds(`${name}, no index`, cold, 1000, 150),
    bothBounds('the same, nothing changed', warm, 1000, 150),
  ];
}

/** No bound names this: G1 is about a folder of sub-agents. It shows what a listed session costs. */
function measureMany(bench: Bench): readonly Result[] {
  const home = makeHome(bench, 'many');
  const made = generate('many', home, 107_000 / bench.part);
  const cold = run(bench, home, LIST, { forget: connectorHome(home), runs: 3 });
  const warm = run(bench, home, LIST, { runs: 3 });
  return [
    record(`${made.files} sessions in a folder, no index`, cold, ''),
    record('the same, nothing changed', warm, ''),
  ];
}

function measureSparse(bench: Bench): readonly Result[] {
  const small = makeHome(bench, 'small');
  generate('sparse', small, 20 * 1024);
  const large = makeHome(bench, 'large');
  generate('sparse', large, 20 * 1024 ** 3);
  const runs = bench.runs * 3;
  const [short, long] = measureInTurn([
    options(bench, small, LIST, { forget: connectorHome(small), runs }),
    options(bench, large, LIST, { forget: connectorHome(large), runs }),
  ]);
  if (short === undefined || long === undefined) return [];
  // The best runs are compared: what they differ by is the program's own doing.
  const same = long.bestMs <= short.bestMs * 1.1 + 1;
  return [
    record('one transcript of 20 KB', short, ''),
    judge('one of 20 GB (sparse)', long, same, 'the same', `${(long.bestMs / short.bestMs).toFixed(2)} x`),
  ];
}

function measureMixed(bench: Bench): readonly Result[] {
  const home = makeHome(bench, 'mixed');
  generate('claude', home, 300 / bench.part);
  generate('codex', home, 300 / bench.part);
  generate('opencode', home, 200 / bench.part);
  const cold = run(bench, home, LIST, { forget: connectorHome(home) });
  const warm = run(bench, home, LIST);
  return [
    record('300 Claude, 300 Codex, 200 OpenCode sessions, no index', cold, ''),
    record('the same, nothing changed', warm, ''),
  ];
}

const PROGRAMS = [
  'claude',
  'codex',
  'opencode',
  'openclaw',
  'hermes',
  'cursor-agent',
  'kimi',
  'copilot',
  'agy',
  'pi',
  'cc-connect',
];

function measureScan(bench: Bench): readonly Result[] {
  const home = makeHome(bench, 'scan');
  const well = fakePrograms(join(home, 'bin'), undefined);
  const hanging = fakePrograms(join(home, 'hanging'), 'claude');
  const first = run(bench, home, SCAN, { path: well, forget: connectorHome(home), runs: 3 });
  const cached = run(bench, home, SCAN, { path: well });
  const hangs = run(bench, home, SCAN, { path: hanging, forget: connectorHome(home), runs: 1, warmUps: 0 });
  return [
    record('runtime-scan, 11 runtimes, nothing cached', first, ''),
    atMostMs('the same, cached', cached, 60, ''),
    atMostMs('one of them hanging', hangs, 10_100, ''),
  ];
}

/** Warming up is left out: a fresh process still compiles what it runs. */
const WARM_MS = 60_000;
const REST_MS = 20_000;
const FRAMES = 100;

async function measureDaemon(bench: Bench): Promise<readonly Result[]> {
  if (process.platform !== 'linux') return [];
  const home = makeHome(bench, 'daemon');
  generate('claude', home, 40);
  generate('codex', home, 10);
  const { path, id } = someTranscript(home);
  const daemon = await startBenchDaemon(bench.binary, environment(home));
  try {
    const rest = await measureRest(daemon.pid, WARM_MS / bench.part, REST_MS / bench.part);
    const socket = join(connectorHome(home), 'daemon.sock');
    const frames = await measureFrames(socket, path, id, FRAMES / bench.part);
    const at = (share: number) => frames[Math.min(frames.length - 1, Math.floor(frames.length * share))] ?? 0;
    return [
      plain('daemon, 50 sessions: resident', '80 MB', `${Math.round(rest.rssMb)} MB`, rest.rssMb < 80),
      plain('the same, idle', '0.3 % of a core', `${rest.cpu.toFixed(2)} %`, rest.cpu < 0.3),
      plain('appended line to frame, median', '50 ms', ms(at(0.5)), at(0.5) < 50),
      plain('the same, p99', '500 ms', ms(at(0.99)), at(0.99) < 500),
      ...hooksBeside(bench, home, daemon.pid),
    ];
  } finally {
    process.kill(daemon.pid, 'SIGCONT');
    daemon.stop();
  }
}

/** The sink with a daemon that answers, and with one that is stopped and never does (R-24). */
function hooksBeside(bench: Bench, home: string, pid: number): readonly Result[] {
  // A real id: only such a session has a journal, and only what is journaled need not be waited for (R-24).
  const id = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';
  const stdin = JSON.stringify({ session_id: id, hook_event_name: 'UserPromptSubmit', cwd: '/' });
  const pair = () =>
    measureInTurn([
      { command: [bench.hello], env: environment(home), runs: bench.runs * 3 },
      options(bench, home, ['hook', '--agent', 'claude'], { runs: bench.runs * 3, stdin }),
    ]);
  const [hello, hook] = pair();
  process.kill(pid, 'SIGSTOP');
  const [helloAgain, wedged] = pair();
  process.kill(pid, 'SIGCONT');
  if (!hello || !hook || !helloAgain || !wedged) return [];
  return [
    atMostTimes('hook, with the daemon', hook, hello, 2.5),
    atMostTimes('hook, daemon wedged', wedged, helloAgain, 2.5),
  ];
}

function plain(what: string, bound: string, measured: string, ok: boolean): Result {
  return { what, bound, measured, ratio: '', verdict: ok ? 'ok' : 'TOO MUCH' };
}

const LIST = ['session-list', '--json'];
const SCAN = ['runtime-scan', '--json'];

function fakePrograms(folder: string, hanging: string | undefined): string {
  mkdirSync(folder, { recursive: true });
  for (const name of PROGRAMS) {
    const path = join(folder, name);
    writeFileSync(path, `#!/bin/sh\n${name === hanging ? 'exec sleep 60' : `echo "${name} 1.2.3"`}\n`);
    chmodSync(path, 0o755);
  }
  return `${folder}:/usr/bin:/bin`;
}

function makeHome(bench: Bench, name: string): string {
  const home = join(bench.folder, name);
  mkdirSync(home, { recursive: true });
  return home;
}

function connectorHome(home: string): string {
  return join(home, '.shadowob', 'connector');
}

function environment(home: string, path = '/usr/bin:/bin'): Record<string, string> {
  return { HOME: home, USERPROFILE: home, PATH: path, NO_COLOR: '1', TERM: 'dumb' };
}

type Extra = Partial<RunOptions> & { readonly path?: string };

function options(bench: Bench, home: string, words: readonly string[], extra: Extra = {}): RunOptions {
  const { path, ...rest } = extra;
  return { runs: bench.runs, ...rest, command: [bench.binary, ...words], env: environment(home, path) };
}

function run(bench: Bench, home: string, words: readonly string[], extra: Extra = {}): Measured {
  return measure(options(bench, home, words, extra));
}

function ms(value: number): string {
  return value < 100 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

function shown(measured: Measured): string {
  const spread = `${ms(measured.bestMs)} to ${ms(measured.worstMs)}`;
  return `${ms(measured.medianMs)} (${spread}), ${Math.round(measured.maxRssMb)} MB`;
}

function ratio(measured: Measured, to: Measured): string {
  return `${(measured.medianMs / to.medianMs).toFixed(2)} x`;
}

function judge(what: string, measured: Measured, ok: boolean, bound: string, against: string): Result {
  const result = { what, bound, measured: shown(measured), ratio: against };
  if (measured.exitCode !== 0) {
    const said = measured.errors.split('\n', 1)[0] ?? '';
    return { ...result, measured: `exit ${measured.exitCode}: ${said.slice(0, 60)}`, verdict: 'not there' };
  }
  if (bound === '') return { ...result, verdict: 'for the record' };
  return { ...result, verdict: ok ? 'ok' : 'TOO MUCH' };
}

function record(what: string, measured: Measured, against: string): Result {
  return judge(what, measured, true, '', against);
}

function atMostMs(what: string, measured: Measured, bound: number, against: string): Result {
  return judge(what, measured, measured.medianMs <= bound, `${bound} ms`, against);
}

function atMostTimes(what: string, measured: Measured, to: Measured, times: number): Result {
  const ok = measured.medianMs <= to.medianMs * times;
  return judge(what, measured, ok, `${times} x hello world`, ratio(measured, to));
}

function bothBounds(what: string, measured: Measured, maxMs: number, maxMb: number): Result {
  const ok = measured.medianMs <= maxMs && measured.maxRssMb <= maxMb;
  return judge(what, measured, ok, `${maxMs} ms, ${maxMb} MB`, '');
}

async function main(argv: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      binary: { type: 'string' },
      runs: { type: 'string', default: '9' },
      keep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), 'connector-bench-'));
  try {
    const runs = Number(values.runs);
    const hello = compileEntry('bench/reference/hello.ts', join(folder, 'hello'));
    const binary = values.binary ?? compileEntry('src/main.ts', join(folder, 'product'));
    const bench: Bench = { folder, binary, hello, part: values.quick ? 10 : 1, runs };
    const results: Result[] = [];
    for (const [name, group] of Object.entries(GROUPS)) {
      if (!name.includes(values.only)) continue;
      console.error(`${name} …`);
      results.push(...(await group(bench)));
      if (!values.keep)
        for (const home of [name, 'small', 'large'])
          rmSync(join(folder, home), { recursive: true, force: true });
    }
    console.log(values.json ? JSON.stringify(results, null, 2) : toTable(results));
    return results.some((result) => result.verdict === 'TOO MUCH') ? 1 : 0;
  } finally {
    if (values.keep) console.error(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = await main(process.argv.slice(2));
