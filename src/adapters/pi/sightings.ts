import type { Claim } from '../../runtime/session/evidence.ts';
import type { SessionFacts, SessionRef, Sighting } from '../../runtime/session/session.ts';
import { hasOpenTurn, UNKNOWN } from '../../runtime/session/state.ts';
import type { FoundSession } from './discover.ts';
import { INSTANCE_ID, RUNTIME_ID } from './homes.ts';
import type { Verdict } from './owners.ts';
import type { Summary } from './transcript.ts';

/** Feeds of the adapter, as `session-why` names them. */
export const FEED = {
  /** The rows of a session file. */
  rows: 'pi.transcript',
  /** Running processes and their folders. */
  process: 'pi.process',
} as const;

export function refOf(sessionId: string): SessionRef {
  return { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId };
}

/** When the newest state-bearing line was written; one from the future counts as written when the file was. */
export function writtenAt({ stat }: FoundSession, { turn }: Summary): number {
  return Math.min(turn.at ?? stat.mtimeMs, stat.mtimeMs);
}

/** The sighting of one session file. `verdict` matters only for an open turn. */
export function sightingOf(found: FoundSession, summary: Summary, verdict: Verdict): Sighting {
  const claims = [rowsClaim(found, summary, verdict), processClaim(found, summary, verdict)];
  return {
    session: refOf(found.sessionId),
    facts: factsOf(found, summary, verdict),
    claims: claims.filter((claim) => claim !== undefined),
  };
}

/** An outcome stands whoever lives; an open turn is at work only where somebody could be at it (design rule 3). */
function rowsClaim(found: FoundSession, summary: Summary, { life }: Verdict): Claim | undefined {
  const { turn, skipped } = summary;
  if (turn.at === undefined && turn.state.kind === 'unknown') return undefined;
  const open = hasOpenTurn(turn.state);
  const { mtimeMs } = found.stat;
  const { openedAt, endedAt } = turn.facts;
  return {
    feed: FEED.rows,
    confidence: 'inferred',
    at: writtenAt(found, summary),
    says: open && life === 'unknown' ? UNKNOWN : turn.state,
    turn: {
      ...turn.facts,
      ...(openedAt === undefined ? {} : { openedAt: Math.min(openedAt, mtimeMs) }),
      ...(endedAt === undefined ? {} : { endedAt: Math.min(endedAt, mtimeMs) }),
    },
    detail:
      open && life === 'unknown'
        ? `the newest record is ${turn.last}; whether a process still works on it can't be told`
        : `the newest record is ${turn.last}`,
    ...(skipped > 0 ? { skipped } : {}),
  };
}

function processClaim(found: FoundSession, summary: Summary, verdict: Verdict): Claim | undefined {
  if (!hasOpenTurn(summary.turn.state) || verdict.life === 'unknown') return undefined;
  const about = {
    feed: FEED.process,
    confidence: 'inferred',
    at: writtenAt(found, summary),
    says: { kind: 'silent' },
  } as const;
  if (verdict.life === 'dead')
    return { ...about, life: 'dead', detail: 'no pi that could have written it runs' };
  return {
    ...about,
    owner: String(verdict.pid),
    life: 'alive',
    detail: `pi ${verdict.pid} runs in its folder since before the turn's last write`,
  };
}

function factsOf(found: FoundSession, summary: Summary, verdict: Verdict): SessionFacts {
  const { turn, title, cwd, startedAt, forkedFromId } = summary;
  return {
    source: 'transcript',
    file: found.path,
    sizeBytes: found.stat.size,
    lastActivityAt: writtenAt(found, summary),
    native: {
      transcriptFile: found.path.slice(
        Math.max(found.path.lastIndexOf('/'), found.path.lastIndexOf('\\')) + 1,
      ),
    },
    ...(title ? { title } : {}),
    ...(cwd ? { workDir: cwd } : {}),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(turn.model ? { model: turn.model } : {}),
    ...(turn.usedTokens === undefined ? {} : { contextUsage: { usedTokens: turn.usedTokens } }),
    ...(forkedFromId ? { lineage: { forkedFromId } } : {}),
    ...(verdict.life === 'alive' && hasOpenTurn(turn.state) ? { pids: [verdict.pid] } : {}),
  };
}
