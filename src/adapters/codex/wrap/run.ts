import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fitsSocketPath } from '../../../runtime/daemon/endpoint.ts';
import { createReporter } from '../../../runtime/daemon/reporter.ts';
import { systemFiles } from '../../../runtime/files/file-system.ts';
import { WRAP } from '../../../runtime/limits.ts';
import { exitCodeOf, exitCodeOfFailure, startAttached } from '../../../runtime/process/in-place.ts';
import { type RunningChild, start, systemHost } from '../../../runtime/process/spawn.ts';
import { ensureHome } from '../../../runtime/store/home.ts';
import { linkServer } from '../control/socket.ts';
import { codexHome } from '../homes.ts';
import { realHost } from '../host.ts';
import { realSocket } from '../server-find.ts';
import { onServer, passReason } from './command-line.ts';
import { hasThread } from './first-client.ts';
import { endLeftovers, forgetRecord, recordPath, writeRecord } from './leftovers.ts';
import { observeServer } from './observer.ts';

/** What the wrapper has of the outside world. */
export interface CodexWrapOptions {
  /** `codex` and its arguments. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly pid: number;
  /** Address of the service. */
  readonly address: string;
  /** The user's home folder. */
  readonly home: string;
  readonly connectorHome: string;
  /** Stdout is one. */
  readonly isTerminal: boolean;
  /** Calls back for these signals from now on. */
  onSignal(signals: readonly NodeJS.Signals[], take: (signal: NodeJS.Signals) => void): void;
  /** How long the server may take until it listens (K-19). */
  readonly readyMs?: number;
}

export type CodexWrapOutcome =
  | { readonly kind: 'ended'; readonly exitCode: number }
  /** Nothing was started: the command is to run as it is (S-760). */
  | { readonly kind: 'passThrough'; readonly reason: string };

/**
 * Runs Codex's terminal on an app-server of its own and reports that server's threads (S-760 … S-766). Server and
 * socket are gone when it returns.
 */
export async function runCodexWrap(options: CodexWrapOptions): Promise<CodexWrapOutcome> {
  const [program = '', ...args] = options.argv;
  const reason = passReason(args) ?? unfit(options);
  if (reason !== undefined) return { kind: 'passThrough', reason };
  const link = join(options.connectorHome, `codex-wrap-${options.pid}.sock`);
  if (!fitsSocketPath(link)) return { kind: 'passThrough', reason: 'the socket path is too long' };
  if (ensureHome(options.connectorHome, options.platform).kind !== 'ready') {
    return { kind: 'passThrough', reason: 'the connector home can’t be used' };
  }
  const terminal = { kill: (_signal: NodeJS.Signals): void => {} };
  // Ours only has to outlive a Ctrl-C, which the terminal program gets by itself (S-766).
  options.onSignal(['SIGINT'], () => {});
  options.onSignal(['SIGTERM', 'SIGHUP'], (signal) => terminal.kill(signal));

  const startedAt = Date.now();
  const server = start({ argv: [program, 'app-server', '--listen', `unix://${link}`], env: options.env });
  if (server.kind !== 'started') return { kind: 'passThrough', reason: server.message };
  void drain(server);
  const socket = await listening(link, server, options.readyMs ?? WRAP.serverReadyMs);
  if (socket === undefined) {
    await endServer(server, link);
    return { kind: 'passThrough', reason: 'the app-server does not listen' };
  }
  const tui = startAttached({ ...options, argv: onServer(program, link, args) });
  if (tui.kind !== 'started') {
    await endServer(server, link);
    return { kind: 'ended', exitCode: exitCodeOfFailure(tui) };
  }
  terminal.kill = tui.kill;
  const record = recordPath(options.connectorHome, options.pid);
  const recorded = writeRecord(record, server.identity.pid, [options.pid, tui.pid], systemHost);
  void recorded.then(() => endLeftovers(options.connectorHome, systemHost));
  const reporter = createReporter({ address: options.address });
  const home = codexHome(options);
  const observer = observeServer({
    mayConnect: () => hasThread(home, socket, startedAt, systemFiles, realHost),
    connect: () => linkServer(socket, { notified() {}, asked() {}, lost() {} }),
    send: reporter.send,
  });
  const end = await tui.exited;
  observer.end();
  await Promise.all([reporter.finish(), endServer(server, link), recorded]);
  forgetRecord(record);
  return { kind: 'ended', exitCode: exitCodeOf(end) };
}

function unfit({ isTerminal, platform }: CodexWrapOptions): string | undefined {
  if (!isTerminal) return 'the output is no terminal';
  return platform === 'win32' ? 'Codex has no such server on Windows' : undefined;
}

/** What the server says is for nobody; unread, it would block it. */
async function drain(server: RunningChild): Promise<void> {
  const reader = server.stdout.getReader();
  while (!(await reader.read()).done);
}

const LISTEN_POLL_MS = 50;

/** The socket's real path once somebody accepts there; `undefined` if the server has left, or takes too long. */
async function listening(link: string, server: RunningChild, readyMs: number): Promise<string | undefined> {
  const state = { left: false };
  void server.exited.then(() => {
    state.left = true;
  });
  const end = performance.now() + readyMs;
  while (!state.left && performance.now() < end) {
    const socket = realSocket(link);
    if (socket !== undefined && (await accepts(socket))) return socket;
    await Bun.sleep(LISTEN_POLL_MS);
  }
  return undefined;
}

/** A connection without a word: who speaks first is the server's first client, and that is not us. */
async function accepts(path: string): Promise<boolean> {
  try {
    const socket = await Bun.connect({ unix: path, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    // Not yet.
    return false;
  }
}

/** TERM, KILL after the grace, and no socket left: Codex keeps it in a folder of its own and links to it (0.171). */
async function endServer(server: RunningChild, link: string): Promise<void> {
  const target = realSocket(link);
  await server.end(WRAP.stopMs);
  for (const path of [link, ...(target === undefined || target === link ? [] : [target, `${target}.lock`])]) {
    removeSocket(path);
  }
}

function removeSocket(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A folder that is no longer ours to change; a socket without a listener harms nobody.
  }
}
