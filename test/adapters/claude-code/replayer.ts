import { createDepartures } from '../../../src/adapters/claude-code/departures.ts';
import { claudeHook } from '../../../src/adapters/claude-code/hooks.ts';
import { type LiveFile, type OwnerLife, parseLiveFile } from '../../../src/adapters/claude-code/live-file.ts';
import {
  INSTANCE_ID,
  type OtherLife,
  RUNTIME_ID,
  sightingOf,
  type Transcript,
} from '../../../src/adapters/claude-code/session.ts';
import { summaryOf } from '../../../src/adapters/claude-code/transcript.ts';
import { writesLiveFile } from '../../../src/adapters/claude-code/version.ts';
import { splitLines } from '../../../src/runtime/files/jsonl.ts';
import { createRegistry, type Registry } from '../../../src/runtime/session/registry.ts';
import { applyReport, type Reported, reportedClaim } from '../../../src/runtime/session/reported.ts';
import type { Session } from '../../../src/runtime/session/session.ts';
import { type KeyRow, sessionOf } from './recording.ts';

/** Plays a recording through the real readers into a real registry, one event after the other. */
export interface Replayer {
  play(row: KeyRow): void;
  session(id: string): Session | undefined;
  readonly registry: Registry;
}

/** The daemon's view: hooks, live files and rows, each judged as it comes. */
export function createReplayer(): Replayer {
  const registry = createRegistry();
  const files = new Map<string, { id: string; bytes: Buffer; mtimeMs: number }>();
  const live = new Map<string, LiveFile>();
  const torn = new Set<string>();
  const reports = new Map<string, Reported>();
  const dead = new Set<number>();
  const departures = createDepartures();

  const transcriptOf = (id: string): Transcript | undefined => {
    const found = [...files].find(([, file]) => file.id === id);
    if (!found) return undefined;
    const [path, file] = found;
    const { lines } = splitLines(file.bytes);
    const summary = summaryOf(lines, lines, id);
    return { path, mtimeMs: file.mtimeMs, size: file.bytes.length, summary };
  };

  const scan = (now: number): void => {
    const ids = new Set([
      ...[...files.values()].map((f) => f.id),
      ...[...live.values()].map((f) => f.sessionId),
    ]);
    departures.note(new Set([...live.values()].map((file) => file.sessionId)), now);
    const sightings = [...ids].map((sessionId) => {
      const transcript = transcriptOf(sessionId);
      const owners = [...live.values()]
        .filter((file) => file.sessionId === sessionId)
        .map((file) => ({
          file,
          life: (dead.has(file.pid) ? 'dead' : 'alive') satisfies OwnerLife as OwnerLife,
        }));
      const provesAbsence =
        transcript !== undefined &&
        owners.length === 0 &&
        torn.size === 0 &&
        writesLiveFile(transcript.summary.version, transcript.summary.entrypoint);
      const otherLife: OtherLife = provesAbsence
        ? { kind: 'gone', why: 'no live file', at: departures.leftAt(sessionId) ?? transcript.mtimeMs }
        : { kind: 'unknown' };
      return sightingOf({ sessionId, owners, otherLife, ...(transcript ? { transcript } : {}) });
    });
    registry.replace(RUNTIME_ID, sightings, now);
    registry.tick(now);
  };

  const playHook = (row: KeyRow): void => {
    const hook = row.hook && claudeHook(row.hook, row.at);
    if (!hook) return;
    const next = applyReport(reports.get(hook.sessionId), hook.report);
    if (!next) return;
    reports.set(hook.sessionId, next);
    const session = { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: hook.sessionId };
    registry.apply('hooks', [{ session, claims: [reportedClaim('claude-code.hooks', next)] }], row.at);
  };

  return {
    registry,
    session: (sessionId) => registry.find({ runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId }),
    play(row) {
      for (const { path, content } of row.changed) {
        if (!path.includes('sessions/')) continue;
        if (content === undefined) {
          live.delete(path);
          torn.delete(path);
          continue;
        }
        const read = parseLiveFile(content);
        if (read.kind === 'torn') torn.add(path);
        else torn.delete(path);
        if (read.kind === 'live') live.set(path, read.file);
      }
      if (row.src === 'exit') {
        const pid = /"pid": (\d+)/.exec(row.what)?.[1];
        for (const file of live.values()) if (!pid || file.pid === Number(pid)) dead.add(file.pid);
      }
      if (row.text !== undefined && row.file && !row.file.startsWith('subagents/')) {
        const before = files.get(row.file);
        const line = Buffer.from(`${row.text}\n`);
        files.set(row.file, {
          id: before?.id ?? sessionOf(row.scenario, row.file),
          bytes: before ? Buffer.concat([before.bytes, line]) : line,
          mtimeMs: row.at,
        });
      }
      playHook(row);
      scan(row.at);
    },
  };
}
