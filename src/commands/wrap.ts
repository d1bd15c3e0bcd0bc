import { homedir } from 'node:os';
import { endpointOf, socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import {
  becomeProgram,
  exitCodeOf,
  exitCodeOfFailure,
  type ProgramOptions,
  startAttached,
} from '../runtime/process/in-place.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { printErr, printError } from './output/print.ts';
import { stdoutSink } from './output/stream.ts';
import { detectStyle } from './output/style.ts';
import { isTerminal } from './output/terminal.ts';

/** The wrappers by name; `main.ts` starts them before the command table, since their output is another program's. */
export type WrapName = 'claude-wrap' | 'codex-wrap';

/** What a wrapper's command line says. */
export interface WrapArguments {
  readonly socket: string | undefined;
  /** Program and arguments, exactly as they were given. */
  readonly program: readonly string[];
}

/**
 * `[--socket PATH] -- program arguments…` (S-701, S-760).
 *
 * @throws ConnectorError `usage` for anything else; the program is then not started, since nobody knows which it is
 */
export function parseWrapArguments(name: WrapName, argv: readonly string[]): WrapArguments {
  const at = argv.indexOf('--');
  const program = at < 0 ? [] : argv.slice(at + 1);
  const options = at < 0 ? argv : argv.slice(0, at);
  const next = `Use: shadowob-connector ${name} [--socket PATH] -- <program> [arguments…]`;
  if (program.length === 0) throw new ConnectorError('usage', `${name} needs a program after --`, next);
  const [first, second, ...more] = options;
  if (first === undefined) return { socket: undefined, program };
  if (first.startsWith('--socket=') && second === undefined) {
    return { socket: first.slice('--socket='.length), program };
  }
  if (first === '--socket' && second !== undefined && more.length === 0) return { socket: second, program };
  throw new ConnectorError('usage', `${name} does not know ${options.join(' ')}`, next);
}

/** Runs a wrapper to its end, and leaves with the program's own exit code. */
export async function runWrap(name: WrapName, argv: readonly string[]): Promise<never> {
  try {
    process.exit(await wrap(name, parseWrapArguments(name, argv)));
  } catch (error) {
    if (!(error instanceof ConnectorError)) throw error;
    printError(error, false, detectStyle({ isTTY: isTerminal(1) }, process.env, process.platform));
    process.exit(error.exitCode);
  }
}

const RELAYED = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

async function wrap(name: WrapName, { socket, program }: WrapArguments): Promise<number> {
  const { env, platform, pid } = process;
  const options: ProgramOptions = { argv: program, env, platform };
  const home = env['HOME'] || env['USERPROFILE'] || homedir();
  const address = endpointOf(socket ?? socketPathIn(connectorHome(env, home)), platform).path;
  const complain = (line: string): void => printErr(`shadowob-connector: ${line}\n`);
  if (name === 'codex-wrap') {
    const { runCodexWrap } = await import('../adapters/codex/wrap/run.ts');
    const outcome = await runCodexWrap({
      ...options,
      pid,
      address,
      home,
      connectorHome: connectorHome(env, home),
      isTerminal: isTerminal(1),
      onSignal: (signals, take) => listenTo(signals, take),
    });
    return outcome.kind === 'ended' ? outcome.exitCode : passThrough(options, complain);
  }
  if (isTerminal(1)) return passThrough(options, complain);
  // A defect of ours outside of what is guarded: the bytes still go their way, which is all that counts (S-702).
  for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, () => {});
  const { runClaudeWrap } = await import('../adapters/claude-code/wrap/run.ts');
  return runClaudeWrap({
    ...options,
    pid,
    address,
    stdin: Bun.stdin.stream(),
    stdout: stdoutSink(),
    onSignal: (take) => listenTo(RELAYED, take),
    complain,
  });
}

function listenTo(signals: readonly NodeJS.Signals[], take: (signal: NodeJS.Signals) => void): void {
  for (const signal of signals) process.on(signal, take);
}

/** Becomes the program; where that can't be done, runs it on our terminal and mirrors its end (S-701). */
async function passThrough(options: ProgramOptions, complain: (line: string) => void): Promise<number> {
  becomeProgram(options);
  const program = startAttached(options);
  if (program.kind !== 'started') {
    complain(`${options.argv[0] ?? ''} can’t be started: ${program.message}`);
    return exitCodeOfFailure(program);
  }
  // A Ctrl-C reaches the program by itself; ours only has to outlive it.
  listenTo(['SIGINT'], () => {});
  listenTo(['SIGTERM', 'SIGHUP'], program.kill);
  return exitCodeOf(await program.exited);
}
