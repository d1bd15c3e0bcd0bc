import { isGroupEmpty } from './kill-tree.ts';
import type { Platform } from './types.ts';

/**
 * Children that must not outlive us. They have process groups of their own, so a Ctrl-C in the terminal reaches
 * only us; without this a hanging probe would run on after its command was stopped.
 */
const running = new Map<number, () => void>();
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Remembers a child for the time that it runs; returns the function that forgets it. */
export function guardChild(pid: number, platform: Platform): () => void {
  if (running.size === 0) watch();
  running.set(pid, () => endNow(pid, platform));
  return () => {
    if (running.delete(pid) && running.size === 0) unwatch();
  };
}

/** Sends KILL to all guarded children, without waiting. */
export function endGuardedChildren(): void {
  for (const end of running.values()) end();
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
