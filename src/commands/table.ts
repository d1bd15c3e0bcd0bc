import { HOST_COMMAND } from '../runtime/control/names.ts';
import type { Command } from './command.ts';

type Loader = () => Promise<Command>;

// The declarations differ in their argument types; the table only ever hands them to the parser of their own.
const erase = (command: unknown): Command => command as Command;

/** Every command by name; the empty name is what runs without one. Imported on demand (style: cold start). */
export const COMMANDS: Readonly<Record<string, Loader>> = {
  '': async () => erase((await import('./overview.ts')).overview),
  setup: async () => erase((await import('./setup.ts')).setup),
  'runtime-scan': async () => erase((await import('./runtime-scan.ts')).runtimeScan),
  'runtime-watch': async () => erase((await import('./runtime-watch.ts')).runtimeWatch),
  'session-list': async () => erase((await import('./session-list.ts')).sessionList),
  'session-show': async () => erase((await import('./session-show.ts')).sessionShow),
  'session-why': async () => erase((await import('./session-why.ts')).sessionWhy),
  'session-send': async () => erase((await import('./session-send.ts')).sessionSend),
  'session-abort': async () => erase((await import('./session-abort.ts')).sessionAbort),
  'session-approve': async () => erase((await import('./session-approve.ts')).sessionApprove),
  'session-create': async () => erase((await import('./session-create.ts')).sessionCreate),
  [HOST_COMMAND]: async () => erase((await import('./session-host.ts')).sessionHost),
  'status-line': async () => erase((await import('./status-line.ts')).statusLineCommand),
  focus: async () => erase((await import('./focus.ts')).focus),
  notify: async () => erase((await import('./notify.ts')).notify),
  config: async () => erase((await import('./config.ts')).config),
  'install-hooks': async () => erase((await import('./install-hooks.ts')).installHooks),
  'uninstall-hooks': async () => erase((await import('./uninstall-hooks.ts')).uninstallHooks),
  'hooks-status': async () => erase((await import('./hooks-status.ts')).hooksStatus),
  'claude-wrap': async () => erase((await import('./claude-wrap.ts')).claudeWrap),
  'codex-wrap': async () => erase((await import('./codex-wrap.ts')).codexWrap),
  'install-wrapper': async () => erase((await import('./install-wrapper.ts')).installWrapperCommand),
  'uninstall-wrapper': async () => erase((await import('./uninstall-wrapper.ts')).uninstallWrapperCommand),
  daemon: async () => erase((await import('./daemon.ts')).daemon),
  completions: async () => erase((await import('./completions.ts')).completions),
};

/** The loader of a command, or undefined if there is no such command. */
export function findCommand(name: string): Loader | undefined {
  return Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
}

/** All declarations, for help and completions. */
export function loadAll(): Promise<Command[]> {
  return Promise.all(Object.values(COMMANDS).map((load) => load()));
}
