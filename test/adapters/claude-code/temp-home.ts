import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { AdapterContext } from '../../../src/adapters/adapter.ts';
import { countFiles, type FileWork } from '../../../src/runtime/files/file-system.ts';
import type { ProcessHost } from '../../../src/runtime/process/types.ts';
import type { SessionIndex } from '../../../src/runtime/store/session-index.ts';

/** A user's home for one test, with a process table of its own. */
export interface TempHome {
  readonly home: string;
  readonly proc: string;
  readonly host: ProcessHost;
  readonly warnings: string[];
  /** A context whose file work is counted from now on. */
  context(more?: { index?: SessionIndex; env?: Record<string, string>; now?: number; home?: string }): {
    readonly context: AdapterContext;
    readonly work: FileWork;
  };
  /** Writes below the home, making folders; returns the full path. */
  write(path: string, text: string | Uint8Array, mtimeMs?: number): string;
  append(path: string, text: string): void;
  /** Puts a process into the table. */
  run(pid: number, process: FakeProcess): void;
  end(pid: number): void;
  close(): void;
}

export interface FakeProcess {
  readonly startTicks?: string;
  readonly comm?: string;
  readonly argv?: readonly string[];
  readonly cwd?: string;
  readonly environ?: readonly string[];
  readonly terminal?: string;
  readonly ppid?: number;
}

export const NOW = 1_796_100_000_000;
/** The fake system has run for this long at `NOW`; ticks are hundredths of a second. */
const UPTIME_S = 1_000_000;

/** Ticks of a process that started so many milliseconds before `NOW`. */
export function ticksBefore(ms: number): string {
  return String(UPTIME_S * 100 - Math.round(ms / 10));
}

export function createTempHome(): TempHome {
  const root = mkdtempSync(join(tmpdir(), 'claude-home-'));
  const home = join(root, 'home');
  const proc = join(root, 'proc');
  mkdirSync(home);
  mkdirSync(proc);
  writeFileSync(join(proc, 'uptime'), `${UPTIME_S}.00 1.00\n`);
  const warnings: string[] = [];
  const host: ProcessHost = {
    platform: 'linux',
    procRoot: proc,
    now: () => NOW,
    run: async () => ({ kind: 'failedToStart', reason: 'other', message: 'nothing is started here' }),
    kill: () => {},
  };
  return {
    home,
    proc,
    host,
    warnings,
    context(more = {}) {
      const { files, work } = countFiles();
      const context: AdapterContext = {
        env: more.env ?? {},
        home: more.home ?? home,
        platform: 'linux',
        now: () => more.now ?? NOW,
        files,
        ...(more.index ? { index: more.index } : {}),
        log: { debug() {}, warn: (message) => warnings.push(message) },
      };
      return { context, work };
    },
    write(path, text, mtimeMs) {
      const target = join(home, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, text);
      const time = (mtimeMs ?? NOW - 60_000) / 1000;
      utimesSync(target, time, time);
      return target;
    },
    append(path, text) {
      appendFileSync(join(home, path), text);
    },
    run(pid, process) {
      const folder = join(proc, String(pid));
      mkdirSync(join(folder, 'fd'), { recursive: true });
      const zeros = Array.from({ length: 15 }, () => '0');
      const fields = [
        'S',
        String(process.ppid ?? 1),
        '1',
        '1',
        ...zeros,
        process.startTicks ?? ticksBefore(60_000),
      ];
      writeFileSync(join(folder, 'stat'), `${pid} (${process.comm ?? 'claude'}) ${fields.join(' ')} 0 0\n`);
      writeFileSync(join(folder, 'cmdline'), `${(process.argv ?? ['claude']).join('\0')}\0`);
      if (process.environ) writeFileSync(join(folder, 'environ'), `${process.environ.join('\0')}\0`);
      link(process.cwd, join(folder, 'cwd'));
      link(process.terminal, join(folder, 'fd', '0'));
    },
    end: (pid) => rmSync(join(proc, String(pid)), { recursive: true, force: true }),
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}

function link(target: string | undefined, path: string): void {
  if (target === undefined) return;
  // A link that leads nowhere is enough: only its text is read.
  symlinkSync(target, path);
}

/** An id that looks like one of Claude's, with a number of its own. */
export function idOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

const time = (at: number): string => new Date(at).toISOString();

/** Rows as 2.1.332 writes them, with the least that they need. */
export function rowsOf(
  id: string,
  at: number,
  more: { version?: string; cwd?: string; entrypoint?: string } = {},
) {
  const common = {
    isSidechain: false,
    sessionId: id,
    version: more.version ?? '2.1.332',
    cwd: more.cwd ?? '/home/dev/acme-app',
    entrypoint: more.entrypoint ?? 'cli',
    gitBranch: 'main',
    userType: 'external',
  };
  const line = (row: object): string => `${JSON.stringify(row)}\n`;
  return {
    meta: (type: string, rest: object = {}) => line({ type, sessionId: id, ...rest }),
    prompt: (text: string, after = 0) =>
      line({
        parentUuid: null,
        ...common,
        type: 'user',
        message: { role: 'user', content: text },
        uuid: `u-${after}-${id}`,
        timestamp: time(at + after),
        promptSource: 'typed',
        origin: { kind: 'human' },
      }),
    call: (name: string, input: object, after = 1_000) =>
      line({
        parentUuid: 'x',
        ...common,
        message: {
          role: 'assistant',
          model: 'claude-opus-5-5',
          content: [{ type: 'tool_use', id: `t-${after}`, name, input }],
          stop_reason: 'tool_use',
        },
        type: 'assistant',
        uuid: `c-${after}-${id}`,
        timestamp: time(at + after),
      }),
    result: (after = 2_000, call = 1_000, text = 'ok') =>
      line({
        parentUuid: 'x',
        ...common,
        type: 'user',
        message: {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: `t-${call}`, content: text }],
        },
        uuid: `r-${after}-${id}`,
        timestamp: time(at + after),
      }),
    done: (text = 'Done.', after = 3_000) =>
      line({
        parentUuid: 'x',
        ...common,
        message: {
          role: 'assistant',
          model: 'claude-opus-5-5',
          content: [{ type: 'text', text }],
          stop_reason: 'end_turn',
          usage: { input_tokens: 12, cache_read_input_tokens: 1_000 },
        },
        type: 'assistant',
        uuid: `d-${after}-${id}`,
        timestamp: time(at + after),
      }),
  };
}

/** The path of a session's transcript below a home. */
export function pathOf(id: string, folder = '-home-dev-acme-app'): string {
  return `.claude/projects/${folder}/${id}.jsonl`;
}
