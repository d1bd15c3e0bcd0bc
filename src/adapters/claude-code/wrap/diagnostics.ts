import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { WRAP } from '../../../runtime/limits.ts';

/** Names a file for the wrapper's diagnostics (S-740). */
export const LOG_VARIABLE = 'SHADOWOB_CONNECTOR_CLAUDE_WRAP_LOG';

/** Numbers and words of ours only: never a word of the conversation, nor of the service (S-742). */
export type RecordFields = Readonly<Record<string, string | number | null | undefined>>;

/** The diagnostics file: one JSON object a line. Nothing here waits, and whatever fails ends it silently (S-740). */
export interface Diagnostics {
  /** Records that were not written. */
  readonly dropped: number;
  record(event: string, fields: RecordFields): void;
  /** Resolves when all was written, at the latest after 200 ms; nothing is taken after it. */
  finish(): Promise<void>;
}

export interface DiagnosticsOptions {
  readonly path: string | undefined;
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly platform: NodeJS.Platform;
}

/** `undefined` unless an absolute path is named: then there is no file, no writer, and no cost (C-278). */
export function openDiagnostics(options: DiagnosticsOptions): Diagnostics | undefined {
  const { path } = options;
  if (!path || !isAbsolute(path)) return undefined;
  const state = { queue: [] as string[], dropped: 0, broken: false, busy: false, working: Promise.resolve() };
  const opening = openFile(path, options.platform);

  async function work(): Promise<void> {
    const file = await opening;
    state.broken ||= file === undefined;
    while (file && !state.broken && state.queue.length > 0) {
      const text = state.queue.splice(0).join('');
      await file.appendFile(text).catch(() => {
        // A full disk, a file that went away: diagnostics are not worth a word to the user.
        state.broken = true;
      });
    }
    if (state.broken) state.dropped += state.queue.splice(0).length;
    state.busy = false;
  }

  return {
    get dropped() {
      return state.dropped;
    },
    record(event, fields) {
      if (state.broken || state.queue.length >= WRAP.records) {
        state.dropped += 1;
        return;
      }
      const time = new Date(options.now()).toISOString();
      state.queue.push(`${JSON.stringify({ time, wrapper_pid: options.pid, event, ...fields })}\n`);
      if (state.busy) return;
      state.busy = true;
      state.working = work();
    },
    async finish() {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, WRAP.recordsMs);
      await Promise.race([state.working, promise]);
      clearTimeout(timer);
      state.broken = true;
      // Not awaited: a disk that takes its time has had it. Bun throws when a handle is collected open (1.4.5).
      void opening.then((file) => file?.close()).catch(() => {});
    },
  };
}

/**
 * A regular file, never through a link (S-906); created 0600, an existing one keeps its mode. Not blocking: a pipe
 * that nobody reads is refused by the system at once. `undefined` for everything else.
 */
async function openFile(path: string, platform: NodeJS.Platform): Promise<FileHandle | undefined> {
  try {
    const before = await lstat(path).catch(() => undefined);
    if (before && !before.isFile()) return undefined;
    const noLinks = platform === 'win32' ? 0 : constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | noLinks;
    const file = await open(path, flags, 0o600);
    if ((await file.stat()).isFile()) return file;
    await file.close();
  } catch {
    // No folder, no permission, a link: the wrapper works without.
  }
  return undefined;
}
