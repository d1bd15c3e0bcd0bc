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
import { createClaudeCode } from '../../../src/adapters/claude-code/index.ts';
import { INSTANCE_ID, RUNTIME_ID } from '../../../src/adapters/claude-code/session.ts';
import type { FeedScan } from '../../../src/runtime/feed.ts';
import type { ProcessHost } from '../../../src/runtime/process/types.ts';
import { createRegistry, type Registry } from '../../../src/runtime/session/registry.ts';
import type { Session } from '../../../src/runtime/session/session.ts';
import { memoryIndex } from '../../../src/runtime/store/memory-index.ts';
import { type KeyRow, sessionOf } from './recording.ts';

/** Plays a recording onto a disk of its own and looks at it with the adapter's own scan, as a one-shot command does. */
export interface DiskReplayer {
  play(row: KeyRow, unread: boolean): Promise<void>;
  session(id: string): Session | undefined;
  readonly registry: Registry;
  /** One scan of what lies there now, at the recording's time. */
  look(): Promise<FeedScan>;
  close(): void;
}

/** A home folder and a process table of its own; every look is one scan with the recording's clock. */
export function createDiskReplayer(): DiskReplayer {
  const root = mkdtempSync(join(tmpdir(), 'claude-replay-'));
  const home = join(root, 'home');
  const proc = join(root, 'proc');
  mkdirSync(join(home, '.claude', 'sessions'), { recursive: true });
  mkdirSync(proc);
  const registry = createRegistry();
  const clock = { now: 0 };
  const host: ProcessHost = {
    platform: 'linux',
    procRoot: proc,
    now: () => clock.now,
    run: async () => ({ kind: 'failedToStart', reason: 'other', message: 'nothing is started here' }),
    kill: () => {},
  };
  const adapter = createClaudeCode(host);
  const index = memoryIndex();
  const running = new Map<number, string>();

  const look = (): Promise<FeedScan> => {
    const log = { debug() {}, warn() {} };
    const context = { env: {}, home, platform: 'linux' as const, now: () => clock.now, log, index };
    return adapter.scan(context);
  };
  const scan = async (): Promise<void> => {
    const found = await look();
    registry.replace(RUNTIME_ID, found.sightings, clock.now);
  };

  /** The process that writes a live file is there from its first version until the recording says that it has ended. */
  const start = (pid: number, procStart: string): void => {
    if (running.get(pid) === procStart) return;
    running.set(pid, procStart);
    mkdirSync(join(proc, String(pid), 'fd'), { recursive: true });
    const fields = ['S', '1', String(pid), String(pid), ...Array.from({ length: 15 }, () => '0'), procStart];
    writeFileSync(join(proc, String(pid), 'stat'), `${pid} (claude) ${fields.join(' ')} 0 0\n`);
    writeFileSync(join(proc, String(pid), 'cmdline'), 'claude\0');
    symlinkSync('/home/dev/acme-app', join(proc, String(pid), 'cwd'));
  };
  const stop = (pid: number): void => {
    running.delete(pid);
    rmSync(join(proc, String(pid)), { recursive: true, force: true });
  };

  return {
    registry,
    look,
    session: (sessionId) => registry.find({ runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId }),
    async play(row, unread) {
      clock.now = row.at;
      for (const { path, content } of row.changed) {
        const target = join(home, path.replace(/^[^/]*cfg\//, '.claude/'));
        if (content === undefined) {
          rmSync(target, { force: true });
          continue;
        }
        mkdirSync(dirname(target), { recursive: true });
        writeFileSync(target, content);
        const procStart = /"procStart": ?"(\d+)"/.exec(content)?.[1];
        const pid = /sessions\/(\d+)\.json$/.exec(path)?.[1];
        if (procStart && pid) start(Number(pid), procStart);
      }
      if (row.src === 'exit') {
        const pid = /"pid": (\d+)/.exec(row.what)?.[1];
        for (const known of [...running.keys()]) if (!pid || known === Number(pid)) stop(known);
      }
      if (row.text !== undefined && row.file) append(home, row, row.file, row.text);
      if (!unread) await scan();
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}

function append(home: string, row: KeyRow, file: string, text: string): void {
  const folder = join(home, '.claude', 'projects', '-home-dev-acme-app');
  const id = sessionOf(row.scenario, file);
  const path = file.startsWith('subagents/') ? join(folder, id, file) : join(folder, `${id}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, `${text}\n`);
  utimesSync(path, row.at / 1000, row.at / 1000);
}
