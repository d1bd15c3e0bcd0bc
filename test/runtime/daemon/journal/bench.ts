/** A watcher over real files, with scripted clock and probes: the setting of the journal cases. */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JournalFiles, systemJournalFiles } from '../../../../src/runtime/daemon/journal/files.ts';
import type { LifeProbes } from '../../../../src/runtime/daemon/journal/judge.ts';
import {
  formatRecord,
  type JournalAgent,
  journalFolder,
  journalName,
} from '../../../../src/runtime/daemon/journal/record.ts';
import { createJournalWatcher } from '../../../../src/runtime/daemon/journal/watcher.ts';
import type { Observe } from '../../../../src/runtime/daemon/vocabulary.ts';
import { type Cleanup, createFakeTime, recordLog, tempFolder } from '../harness.ts';
import { A, type EventWord, eventOf, scene, stamp } from '../sessions/dsl.ts';

type Extra = Partial<Pick<Observe, 'pid' | 'cwd' | 'model' | 'agent_id'>> & {
  id?: string;
  agent?: JournalAgent;
  seq?: string;
};

/** A record's line: an event `at` seconds from the start of the case, `end` included. */
export function line(at: number, word: EventWord | 'end', extra: Extra = {}): string {
  const { id = A, agent = 'claude', seq = `${word}${at}`, ...rest } = extra;
  const base = { ...stamp(at, seq), agent, session_id: id };
  if (word === 'end') return formatRecord({ ...base, op: 'end', ...(rest.pid ? { pid: rest.pid } : {}) });
  return formatRecord({ ...base, op: 'observe', event: eventOf(word), ...rest } as never);
}

export function journalBench(cleanup: Cleanup, files: JournalFiles = systemJournalFiles) {
  const home = tempFolder(cleanup);
  const socketPath = join(home, 'daemon.sock');
  const scenery = scene();
  const { log, events } = recordLog();
  const processes = new Map<number, number | null>();
  const locks = new Map<string, ReturnType<LifeProbes['codexLock']>>();
  const probes: LifeProbes = {
    // Start in seconds from the start of the case.
    process: async (pid) => {
      const at = processes.get(pid);
      return at === undefined ? null : { startedAt: at === null ? null : Date.parse(stamp(at, '').ts) };
    },
    codexLock: (id) => locks.get(id) ?? 'unknown',
  };
  const create = () =>
    createJournalWatcher({
      socketPath,
      engine: scenery.engine,
      repos: { cached: 0, nameOf: async (cwd) => cwd.split('/').at(-1) },
      probes,
      clock: scenery.clock,
      scheduler: createFakeTime(),
      log,
      files,
    });
  const state = { watcher: create() };
  const folderOf = (agent: JournalAgent) => journalFolder(socketPath, agent);
  const pathOf = (id: string, agent: JournalAgent) => join(folderOf(agent), journalName(id) ?? id);
  const setTime = (path: string) => {
    const seconds = scenery.clock.now() / 1_000;
    utimesSync(path, seconds, seconds);
  };
  for (const agent of ['claude', 'codex'] as const)
    mkdirSync(folderOf(agent), { recursive: true, mode: 0o700 });

  return {
    ...scenery,
    home,
    socketPath,
    processes,
    locks,
    journalEvents: events,
    folderOf,
    pathOf,
    /** Writes or extends a journal; its time is the case's. */
    write(lines: readonly string[], id = A, agent: JournalAgent = 'claude') {
      appendFileSync(pathOf(id, agent), lines.join(''), { mode: 0o600 });
      setTime(pathOf(id, agent));
    },
    /** Any file in the folder, aged. */
    file(name: string, content: string, ageSeconds = 0, agent: JournalAgent = 'claude') {
      const path = join(folderOf(agent), name);
      writeFileSync(path, content, { mode: 0o600 });
      const seconds = scenery.clock.now() / 1_000 - ageSeconds;
      utimesSync(path, seconds, seconds);
      return path;
    },
    scan: () => state.watcher.scan(),
    /** A new service: nothing remembered but the files. */
    restart() {
      state.watcher = create();
    },
    text: (id = A, agent: JournalAgent = 'claude') => readFileSync(pathOf(id, agent), 'utf8'),
    /** Names that are there, without what is set aside for a while. */
    names: (agent: JournalAgent = 'claude') =>
      readdirSync(folderOf(agent)).filter((name) => !name.endsWith('.aside')),
    asides: (agent: JournalAgent = 'claude') =>
      readdirSync(folderOf(agent)).filter((name) => name.endsWith('.aside')),
    verdicts: () =>
      events
        .filter(({ event }) => /rejected|replayed|removed|compacted/.test(event))
        .map(
          ({ event, fields }) =>
            fields['reason'] ?? (event.endsWith('replayed') ? `proven:${fields['proven']}` : event),
        ),
  };
}
