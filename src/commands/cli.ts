import { homedir } from 'node:os';
import type { Logger } from '../adapters/adapter.ts';
import { selfCommand } from '../runtime/control/context.ts';
import { HOST_COMMAND } from '../runtime/control/names.ts';
import { ConnectorError, EXIT, type ExitCode, reasonOf } from '../runtime/errors.ts';
import { compileSparingly } from '../runtime/process/compile-policy.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { openIndex } from '../runtime/store/index-db.ts';
import type { SessionIndex } from '../runtime/store/session-index.ts';
import { VERSION } from '../version.ts';
import type { Answer, Command } from './command.ts';
import { commandHelp, overviewHelp } from './help.ts';
import { openPanel } from './output/panel.ts';
import { printAnswer, printErr, printError, printEvent, printOut, ReaderGone } from './output/print.ts';
import { detectStyle, type Style } from './output/style.ts';
import { isTerminal } from './output/terminal.ts';
import { parseCommandArgs } from './parse.ts';
import { nearest } from './suggest.ts';
import { COMMANDS, findCommand, loadAll } from './table.ts';
import type { World } from './world.ts';

/**
 * Runs one command line and gives the exit code. The only catch of the program: what the user can understand is
 * printed with its next step, everything else leaves with code 1 and its own words.
 */
export async function runCli(argv: readonly string[]): Promise<number> {
  const style = detectStyle(terminal(), process.env, process.platform);
  const json = argv.includes('--json');
  try {
    return await dispatch(argv, style, json);
  } catch (thrown) {
    return report(thrown, json, style);
  }
}

/** `process.stdout` takes 10 ms to make (Bun 1.4.5): it is touched only where somebody looks at it. */
function terminal(): { isTTY: boolean; columns?: number; rows?: number } {
  if (!isTerminal(1)) return { isTTY: false };
  return { isTTY: true, columns: process.stdout.columns, rows: process.stdout.rows };
}

function report(thrown: unknown, json: boolean, style: Style): number {
  if (thrown instanceof ReaderGone) return EXIT.ok;
  const error =
    thrown instanceof ConnectorError
      ? thrown
      : new ConnectorError(
          'unexpected',
          reasonOf(thrown),
          'This is a defect. Run it again with --verbose and report it.',
          thrown,
        );
  try {
    printError(error, json, style);
    if (
      !(thrown instanceof ConnectorError) &&
      process.argv.includes('--verbose') &&
      thrown instanceof Error
    ) {
      printErr(`${thrown.stack ?? ''}\n`);
    }
  } catch (again) {
    // A full disk under stdout takes no document either; stderr can still say so.
    if (!(again instanceof ReaderGone)) printErr(`shadowob-connector: ${reasonOf(again)}\n`);
  }
  return error.exitCode;
}

async function dispatch(argv: readonly string[], style: Style, json: boolean): Promise<number> {
  const [first] = argv;
  const wantsHelp = beforeDoubleDash(argv).some((word) => word === '--help' || word === '-h');
  if (first === 'help' || (wantsHelp && (first === undefined || first.startsWith('-')))) {
    return help(argv[0] === 'help' ? argv[1] : undefined, style);
  }
  if (first === 'complete') return complete(argv.slice(1), style);
  const named = first !== undefined && !first.startsWith('-');
  const loader = named ? findCommand(first) : findCommand('');
  if (!loader) throw unknownCommand(first ?? '');
  const command = await loader();
  if (wantsHelp) return help(command.name, style);
  return run(command, named ? argv.slice(1) : argv, style, json);
}

function beforeDoubleDash(argv: readonly string[]): readonly string[] {
  const at = argv.indexOf('--');
  return at < 0 ? argv : argv.slice(0, at);
}

async function help(name: string | undefined, style: Style): Promise<number> {
  if (name === undefined) {
    printOut(overviewHelp(await loadAll(), style));
    return EXIT.ok;
  }
  const loader = findCommand(name);
  if (!loader) throw unknownCommand(name);
  printOut(commandHelp(await loader(), style));
  return EXIT.ok;
}

/** What the completion scripts call; hidden, and silent about everything that goes wrong. */
async function complete(argv: readonly string[], style: Style): Promise<number> {
  const { answerCompletion } = await import('./completions.ts');
  const { collect } = await import('./collect.ts');
  const { readFilter } = await import('./filter.ts');
  const index = lazyIndex();
  const world = createWorld(style, new AbortController().signal, false, index.open);
  const words = argv[0] === '--' ? argv.slice(1) : argv;
  const filter = readFilter({}, world.cwd, world.now());
  const sessions = async () => (await collect(world, filter)).sessions;
  printOut(await answerCompletion(words, await loadAll(), sessions));
  index.close();
  return EXIT.ok;
}

function unknownCommand(name: string): ConnectorError {
  const hint = nearest(
    name,
    Object.keys(COMMANDS).filter((known) => known !== '' && known !== HOST_COMMAND),
  );
  return new ConnectorError(
    'unknownCommand',
    `there is no command "${name}"${hint ? `; did you mean "${hint}"?` : ''}`,
    hint ? `Try: shadowob-connector ${hint}` : 'See: shadowob-connector --help',
  );
}

/** What a shell reports of a program that SIGINT ended. */
const INTERRUPTED = 130;
/** What takes longer than this says that it is at work. */
const PROGRESS_AFTER_MS = 500;

const QUIET = { end() {} };

/** One line on a terminal's stderr while a command takes its time; it leaves no trace. */
function showProgress(): { end(): void } {
  if (!isTerminal(2) || process.env['TERM'] === 'dumb') return QUIET;
  const state = { shown: false };
  const timer = setTimeout(() => {
    state.shown = true;
    printErr('looking …');
  }, PROGRESS_AFTER_MS);
  return {
    end() {
      clearTimeout(timer);
      if (state.shown) printErr('\r\u001b[K');
      state.shown = false;
    },
  };
}

async function run(command: Command, argv: readonly string[], style: Style, json: boolean): Promise<number> {
  const args = parseCommandArgs(command, argv);
  if (command.brief) compileSparingly();
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const index = lazyIndex();
  const progress = command.asks ? QUIET : showProgress();
  try {
    const answer = await command.run(
      args,
      createWorld(style, stop.signal, args['verbose'] === true, index.open),
    );
    progress.end();
    return await render(answer, json, style, stop.signal);
  } catch (thrown) {
    // Whoever interrupts a command wants it to end, not to hear of a defect.
    if (stop.signal.aborted && !(thrown instanceof ConnectorError)) return INTERRUPTED;
    throw thrown;
  } finally {
    progress.end();
    index.close();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

async function render(
  answer: Answer,
  json: boolean,
  style: Style,
  signal: AbortSignal,
): Promise<ExitCode | typeof INTERRUPTED> {
  if (answer.kind === 'verbatim' || answer.kind === 'document') {
    printAnswer(answer, json, style);
    if (answer.kind === 'verbatim') return EXIT.ok;
    if (answer.interrupted) return INTERRUPTED;
    return answer.failure?.exitCode ?? answer.exitCode ?? EXIT.ok;
  }
  if (answer.kind === 'events') {
    for await (const line of answer.lines(signal)) printEvent(line, json, style);
    const { exitCode, failure } = answer.outcome();
    if (failure) printError(failure, false, style);
    return exitCode;
  }
  if (json) {
    for await (const event of answer.json(signal)) printOut(`${JSON.stringify(event)}\n`);
    return EXIT.ok;
  }
  if (answer.once) {
    for await (const picture of answer.screen(signal, style)) printOut(`${picture}\n`);
    return EXIT.ok;
  }
  const panel = openPanel(style, () => ({
    columns: process.stdout.columns ?? 80,
    rows: process.stdout.rows ?? 24,
  }));
  try {
    for await (const picture of answer.screen(signal, style)) panel.paint(picture);
  } finally {
    panel.close();
  }
  return EXIT.ok;
}

/** The index of unchanged files, opened by the first command that wants it and written when it ends. */
function lazyIndex(): { open(): SessionIndex | undefined; close(): void } {
  const held: { index?: SessionIndex } = {};
  return {
    open() {
      held.index ??= openIndex(connectorHome(process.env, userHome()));
      return held.index;
    },
    close() {
      held.index?.flush();
      held.index?.close();
    },
  };
}

function userHome(): string {
  return process.env['HOME'] || process.env['USERPROFILE'] || homedir();
}

function createWorld(
  style: Style,
  signal: AbortSignal,
  verbose: boolean,
  index: () => SessionIndex | undefined,
): World {
  return {
    env: process.env,
    home: userHome(),
    cwd: process.cwd(),
    platform: process.platform,
    version: VERSION,
    now: Date.now,
    log: stderrLogger(verbose),
    style,
    signal,
    adapters: async () => (await import('../adapters/all.ts')).ADAPTERS,
    index,
    self: selfCommand(process.execPath, Bun.main),
    stdin: {
      get isTerminal() {
        return isTerminal(0);
      },
      read: (limit) => readUpTo(Bun.stdin.stream(), limit),
    },
  };
}

/** The whole of a stream, or one byte more than the limit: enough to know that it is too long. */
async function readUpTo(stream: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  const seen = { bytes: 0 };
  for await (const chunk of stream) {
    chunks.push(chunk);
    seen.bytes += chunk.byteLength;
    if (seen.bytes > limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit + 1);
}

function stderrLogger(verbose: boolean): Logger {
  const write = (level: string, message: string) => printErr(`${level}: ${message}\n`);
  return {
    debug: verbose ? (message) => write('debug', message) : () => {},
    warn: verbose ? (message) => write('warn', message) : () => {},
  };
}
