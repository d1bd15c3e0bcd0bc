import { once, readLines, within } from '../../../runtime/control/stream-lines.ts';
import type { Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { killTree } from '../../../runtime/process/kill-tree.ts';
import { type RunningChild, start, systemHost } from '../../../runtime/process/spawn.ts';
import type { KillReport, ProcessIdentity } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';
import { findCodex } from './program.ts';
import { createRpc, introduce, type Rpc, type RpcListener } from './rpc.ts';

/** How a child ended. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** An app-server of ours on stdio. Nobody else can reach it; it ends with its stdin, and frees its locks then. */
export interface OwnServer {
  readonly rpc: Rpc;
  readonly identity: ProcessIdentity;
  /** Resolves when it has exited and its last line was handed on. */
  readonly exited: Promise<ChildExit>;
  /** The last line that it said on stderr, if any. */
  lastWords(): string | undefined;
  /** Closes its stdin: it ends an open turn as interrupted, and leaves within a moment (0.171). Then TERM, KILL. */
  leave(): Promise<KillReport>;
  kill(): Promise<KillReport>;
}

/** `unusable`: it started and doesn't speak the protocol, as a version without it would. */
export type Started =
  | ({ readonly kind: 'started' } & OwnServer)
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'unusable'; readonly reason: string };

/** Starts `codex app-server` in a folder, and introduces us. */
export async function startOwnServer(
  context: ControlContext,
  workDir: string,
  listener: RpcListener,
): Promise<Started> {
  const program = await findCodex(context);
  if ('reason' in program) return { kind: 'refused', refusal: program };
  const child = start({ argv: [program.path, 'app-server'], env: program.env, cwd: workDir });
  if (child.kind !== 'started') {
    const reason = `Codex could not be started: ${child.message}`;
    return {
      kind: 'refused',
      refusal: { reason, kind: 'runtimeMissing', next: 'See: shadowob-connector runtime-scan' },
    };
  }
  const server = serve(child, listener);
  const hello = await introduce(server.rpc, CONTROL.hostStartMs);
  if (hello.kind === 'result') return { kind: 'started', ...server };
  await server.kill();
  return { kind: 'unusable', reason: server.lastWords() ?? hello.message };
}

function serve(child: RunningChild, listener: RpcListener): OwnServer {
  const feed = createRpc((line) => child.write(`${line}\n`), listener);
  const read = readLines(child.stdout, (line) => feed.line(line));
  const exited = child.exited.then(async (exit) => {
    // Something that it started may hold the pipe open for longer.
    await within(read, CONTROL.ackMs);
    feed.lost(`Codex has ended (${exit.signal ?? `exit code ${exit.code}`})`);
    return exit;
  });
  const end = once(() => child.end(CONTROL.ackMs));
  return {
    rpc: feed.rpc,
    identity: child.identity,
    exited,
    lastWords: () => child.stderrTail().trim().split('\n').at(-1) || undefined,
    async leave() {
      child.closeInput();
      const left = await within(child.exited, CONTROL.leaveMs);
      // The program on the PATH may be a wrapper, and what it started may outlive it (K3).
      return left === undefined ? end() : killTree(child.identity, {}, systemHost);
    },
    kill: end,
  };
}
