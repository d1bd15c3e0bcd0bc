import { isGroupEmpty } from './kill-tree.ts';
import type { Platform } from './types.ts';

/**
 * Children that must not outlive us. They have process groups of their own, so a Ctrl-C in the terminal reaches
 * only us; without this a hanging probe would run on after its command was stopped.
 */
const guards = new Set<Guard>();
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Stands by one child, from before its start until it has ended. */
export interface Guard {
  /** The child that has been started; none yet while undefined. */
  pid?: number;
  readonly platform: Platform;
  /** Ends the watch; the child is left as it is. */
  readonly release: () => void;
}

/**
 * Begins to stand by a child. To be called before the child is started: a signal that comes between its start
 * and our listening would leave it alone.
 */
export function openGuard(platform: Platform): Guard {
  if (guards.size === 0) watch();
  const guard: Guard = {
    platform,
    release: () => {
      if (guards.delete(guard) && guards.size === 0) unwatch();
    },
  };
  guards.add(guard);
  return guard;
}

/** Sends KILL to all guarded children, without waiting. */
export function endGuardedChildren(): void {
  for (const { pid, platform } of guards) if (pid !== undefined) endNow(pid, platform);
}

function endNow(pid: number, platform: Platform): void {
  const group = platform !== 'win32' && !isGroupEmpty(pid, process);
  try {
    process.kill(group ? -pid : pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function watch(): void {
  process.on('exit', endGuardedChildren);
  for (const signal of ENDING_SIGNALS) process.on(signal, onSignal);
}

function unwatch(): void {
  process.off('exit', endGuardedChildren);
  for (const signal of ENDING_SIGNALS) process.off(signal, onSignal);
}

/** Listening to a signal takes its default away, so it is sent again; unless somebody else handles it too. */
function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return;
  endGuardedChildren();
  unwatch();
  process.kill(process.pid, signal);
}
