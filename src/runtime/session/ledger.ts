import type { Claim } from './evidence.ts';
import type { Fused } from './session.ts';
import { hasOpenTurn, type SessionState } from './state.ts';

/**
 * How far a program's own status may lag behind what it writes down: longest seen 0.03 s, in both directions
 * (Codex 0.171). Only an older value than this speaks of something newer than the record.
 */
export const LEDGER_LAG_MS = 1_000;
/** A hook of the turn's end may itself hold the end back as long as its time limit allows: 600 s by default (Codex). */
export const END_HOLD_MS = 600_000;

type Spoken = Claim & { readonly says: SessionState };

/**
 * Whether a ledger's record stands against the program's exact value, and why. The record is the same program's, and
 * says more: it ends the turn, answers the wait, or opens a turn, and the status only follows.
 */
export function ledgerOverExact(
  exact: Spoken,
  ledger: Spoken,
  turnOpenedAt: number | undefined,
): string | undefined {
  const { openedAt, endedAt, end } = ledger.turn ?? {};
  const open = hasOpenTurn(ledger.says);
  if (hasOpenTurn(exact.says)) {
    const ends = !open && end !== undefined && endedAt !== undefined;
    if (ends && endedAt >= exact.at - LEDGER_LAG_MS && endedAt >= (turnOpenedAt ?? endedAt)) {
      return 'the program’s own record ends the turn, its status follows (R-12)';
    }
    // The records show a question before the status does, and its answer too.
    const asks = exact.says.kind === 'working' && ledger.says.kind === 'waiting';
    if (asks && ledger.at >= exact.at - LEDGER_LAG_MS) return 'the program’s own record asks the user';
    const nothingPends = ledger.says.kind === 'working' && ledger.says.doing !== 'tool';
    const answered = exact.says.kind === 'waiting' && nothingPends && (ledger.answeredAt ?? 0) > exact.at;
    return answered ? 'the program’s own record answers the wait (R-10)' : undefined;
  }
  const lag = exact.says.kind === 'idle' ? LEDGER_LAG_MS : -1;
  if (open && openedAt !== undefined && openedAt >= exact.at - lag)
    return 'the program’s own record opens a turn, its status follows';
  return undefined;
}

/**
 * Whether a ledger's record stands against the newest report, and why. Reports add what a ledger can't hold: waits,
 * and a prompt or an end that is not written down yet. When the turn begins, ends and what is done in it is the
 * ledger's to say: a start hook fires inside the first turn, an end hook before the end (Codex).
 */
export function ledgerOverReport(
  reported: Spoken,
  ledger: Spoken,
  life: Fused['life'],
  now: number,
): string | undefined {
  if (ledger.says.kind === 'unknown') return undefined;
  const { openedAt = 0, endedAt = 0 } = ledger.turn ?? {};
  const open = hasOpenTurn(ledger.says);
  const promptedSince = !open && (reported.turn?.openedAt ?? 0) > endedAt;
  switch (reported.says.kind) {
    case 'waiting':
      if (!open) return endedAt > reported.at ? 'a later record ends the turn (R-10, R-12)' : undefined;
      return (ledger.answeredAt ?? openedAt) > reported.at
        ? 'a later record answers the wait (R-10)'
        : undefined;
    case 'working':
      return promptedSince ? undefined : 'the program’s own records say what is done';
    case 'idle':
    case 'rested': {
      if (promptedSince) return undefined;
      if (!open || openedAt > reported.at) return 'the program’s own records say how the turn stands';
      const foretold = life !== 'dead' && now - reported.at <= END_HOLD_MS;
      return foretold ? 'the end is reported and not yet recorded: it may still go on' : undefined;
    }
    case 'ended':
      if (life === 'alive') return 'its owner lives on (R-04)';
      return open && openedAt > reported.at ? 'a later record opens a new turn' : undefined;
    case 'starting':
    case 'unknown':
      return 'the program’s own records say how the turn stands';
  }
}
