import type { Claim, EvidenceLink, TurnFacts } from './evidence.ts';
import { explain, type Verdict } from './explain.ts';
import { ledgerOverExact, ledgerOverReport } from './ledger.ts';
import type { Fused } from './session.ts';
import {
  hasOpenTurn,
  IDLE,
  type Outcome,
  outcomeOf,
  restedWith,
  type SessionState,
  UNKNOWN,
  urgency,
} from './state.ts';

/** A hook newer than a fresh exact value may raise urgency this long, then lapses (R-05; longest seen 0.11 s). */
export const RAISE_WINDOW_MS = 1_000;
/** How long an idle owner may wait for the row that says how its turn ended (R-09; latest seen 0.17 s). */
export const OUTCOME_GRACE_MS = 300;
/** How long work without any record of its turn outlasts its owner's rest: records come in batches of 0.1 s. */
export const RECORD_LAG_MS = 100;
/** How long after an owner was seen to leave the record of its turn's end may still come (seen: 0.02 s). */
export const LAST_WORDS_MS = 100;
/** An open turn without any proof of life stands this long on its newest record (K-01). */
export const UNPROVEN_TTL_MS = 300_000;
/** A time further ahead than this is of another clock, or of ours before it was set back. */
const CLOCK_SKEW_MS = 30_000;

type Spoken = Claim & { readonly says: SessionState };

const spoken = (claim: Claim): claim is Spoken => claim.says.kind !== 'silent';

/**
 * Decides between the standing claims of all feeds about one session (design rule 2, R-01 … R-20).
 * Pure: the same claims, previous result and time give the same answer, whatever order they came in.
 *
 * @param previous the last result for this session, needed only for values that must be held
 * @param now epoch milliseconds
 */
export function fuse(claims: readonly Claim[], previous: Fused | undefined, now: number): Fused {
  const found = gather(claims, previous, now);
  const context: Context = leftJustNow(found) ? { ...found, life: 'unknown' } : found;
  const { exact, turnOpenedAt } = context;

  const verdict = exact ? fuseExact(context, exact) : fuseWithoutExact(context);
  const settled = settleLife(context, verdict);
  const ending = endOfTurn(claims, turnOpenedAt);
  const lastOutcome = outcomeOf(settled.state) ?? ending?.end ?? previous?.lastOutcome;
  return new Judgement(context, settled, ending, lastOutcome);
}

/** Explains itself when asked: only `session-why` asks for the chain, and a list has thousands of sessions. */
class Judgement implements Fused {
  readonly state: SessionState;
  readonly life: Fused['life'];
  readonly evidence: Fused['evidence'];
  readonly turnOpenedAt: number | undefined;
  readonly turnEndedAt: number | undefined;
  readonly lastOutcome: Outcome | undefined;
  readonly error: string | undefined;
  readonly backgroundWork: number;
  readonly #claims: readonly Claim[];
  readonly #verdict: Verdict;

  constructor(
    { claims, life, turnOpenedAt, backgroundWork }: Context,
    verdict: Verdict,
    ending: TurnFacts | undefined,
    lastOutcome: Outcome | undefined,
  ) {
    const { state, by } = verdict;
    this.state = state;
    this.life = life;
    this.evidence = by && { source: by.feed, at: by.at, confidence: by.confidence };
    this.turnOpenedAt = turnOpenedAt;
    this.turnEndedAt = ending?.endedAt;
    this.lastOutcome = lastOutcome;
    this.error = ending?.error && outcomeOf(state) === 'failed' ? ending.error : undefined;
    this.backgroundWork = backgroundWork;
    this.#claims = claims;
    this.#verdict = verdict;
  }

  get chain(): readonly EvidenceLink[] {
    return explain(this.#claims, this.#verdict);
  }
}

interface Context {
  readonly claims: readonly Claim[];
  readonly life: Fused['life'];
  readonly exact: Spoken | undefined;
  readonly recorded: Spoken | undefined;
  readonly reported: Spoken | undefined;
  readonly turnOpenedAt: number | undefined;
  readonly backgroundWork: number;
  readonly previous: Fused | undefined;
  readonly now: number;
}

/**
 * Sorts the claims by what they are good for, in one pass since a list has thousands of sessions. Any living owner
 * means alive; death must be proven and nobody else may live.
 */
function gather(claims: readonly Claim[], previous: Fused | undefined, now: number): Context {
  let exact: Spoken | undefined;
  let recorded: Spoken | undefined;
  let reported: Spoken | undefined;
  let life: Fused['life'] = 'unknown';
  let turnOpenedAt = openedBefore(previous, now);
  let backgroundWork = 0;
  for (const claim of claims) {
    if (claim.life === 'alive' || (claim.life === 'dead' && life === 'unknown')) life = claim.life;
    const openedAt = claim.turn?.openedAt;
    if (openedAt !== undefined && (turnOpenedAt === undefined || openedAt > turnOpenedAt))
      turnOpenedAt = openedAt;
    if (claim.backgroundWork !== undefined) backgroundWork = Math.max(backgroundWork, claim.backgroundWork);
    if (!spoken(claim)) continue;
    if (claim.confidence === 'inferred') recorded = newer(recorded, claim);
    else if (claim.confidence === 'reported') reported = newer(reported, claim);
    else if (claim.life !== 'dead') exact = moreUrgent(exact, claim);
  }
  return { claims, life, exact, recorded, reported, turnOpenedAt, backgroundWork, previous, now };
}

/** How long ago. What lies ahead is of before the clock was set back, and that is long ago. */
function ageOf(at: number, now: number): number {
  return at > now + CLOCK_SKEW_MS ? Number.POSITIVE_INFINITY : now - at;
}

/** A remembered start that lies ahead is forgotten: no end would come after it before the clock is there again. */
function openedBefore(previous: Fused | undefined, now: number): number | undefined {
  const at = previous?.turnOpenedAt;
  return at === undefined || ageOf(at, now) === Number.POSITIVE_INFINITY ? undefined : at;
}

/** The newer of two claims; between equals the feed's name decides, so that the order of arrival never does. */
function newer(a: Spoken | undefined, b: Spoken): Spoken {
  if (!a) return b;
  const later = b.at - a.at || (a.feed < b.feed ? -1 : 1);
  return later > 0 ? b : a;
}

/** Of several live owners the most urgent speaks; between equals the newest. */
function moreUrgent(a: Spoken | undefined, b: Spoken): Spoken {
  if (!a) return b;
  return (urgency(b.says) - urgency(a.says) || b.at - a.at) > 0 ? b : a;
}

/**
 * An owner that was seen to leave a moment ago: the record of how its turn ended may be on its way, so its death
 * is not counted yet. Where reports follow the turn they have told already.
 */
function leftJustNow(context: Context): boolean {
  const { claims, life, recorded, previous, now } = context;
  if (life !== 'dead' || previous?.life === 'dead' || previous?.state.kind !== 'working') return false;
  if (reportsFollow(context) || recorded?.says.kind !== 'working') return false;
  const noticedAt = Math.max(...claims.filter((c) => c.life === 'dead').map((c) => c.at));
  return now - noticedAt < LAST_WORDS_MS;
}

/** Whether the newest turn is one that reports speak of. */
function reportsFollow({ reported, turnOpenedAt }: Context): boolean {
  const openedAt = reported?.turn?.openedAt;
  return openedAt !== undefined && openedAt + RAISE_WINDOW_MS >= (turnOpenedAt ?? 0);
}

/**
 * The end of the newest turn: a report of it beats a record of it, unless the record is the program's own ledger; an
 * end before the prompt is another turn's.
 */
function endOfTurn(claims: readonly Claim[], openedAt: number | undefined): TurnFacts | undefined {
  let best: Claim | undefined;
  for (const claim of claims) {
    const { turn } = claim;
    if (turn?.end === undefined || (turn.endedAt ?? claim.at) < (openedAt ?? Number.NEGATIVE_INFINITY))
      continue;
    if (!best || (endRank(claim) - endRank(best) || best.at - claim.at) < 0) best = claim;
  }
  return best?.turn;
}

const END_RANK = { exact: 1, reported: 2, inferred: 3 } as const;

function endRank(claim: Claim): number {
  return claim.ledger ? 0 : END_RANK[claim.confidence];
}

function fuseExact(context: Context, exact: Spoken): Verdict {
  const { recorded } = context;
  const recordStands = recorded?.ledger && ledgerOverExact(exact, recorded, context.turnOpenedAt);
  if (recordStands) return { state: recorded.says, by: recorded, why: recordStands };
  const raised = raiseByNewer(context, exact);
  if (raised) return raised;
  if (exact.says.kind === 'waiting') return refineWait(context, exact);
  if (exact.says.kind === 'working') return refineWork(context, exact);
  if (exact.says.kind === 'idle') return settleIdle(context, exact);
  if (exact.says.kind === 'ended') return endedExact(context, exact);
  return { state: exact.says, by: exact, why: 'the runtime itself says so' };
}

/** An end told by the program itself cuts only a turn that is open: one that has ended keeps its outcome. */
function endedExact(context: Context, exact: Spoken): Verdict {
  const why = 'the runtime itself says so';
  if (outcomeOf(exact.says)) return { state: exact.says, by: exact, why };
  const end = endOfTurn(context.claims, context.turnOpenedAt)?.end;
  const outcome = end ?? (context.turnOpenedAt === undefined ? undefined : 'stopped');
  return { state: { kind: 'ended', ...(outcome ? { outcome } : {}) }, by: exact, why };
}

/** A newer hook or prompt record may raise urgency for a moment; lowering waits for the exact feed. */
function raiseByNewer(context: Context, exact: Spoken): Verdict | undefined {
  const candidates = [context.reported, promptRecord(context.recorded)].filter(
    (c): c is Spoken => c !== undefined,
  );
  const raising = candidates.find((claim) => {
    const at = claim === context.recorded ? (claim.turn?.openedAt ?? claim.at) : claim.at;
    const fresh = at > exact.at && ageOf(at, context.now) <= RAISE_WINDOW_MS;
    const shownThere = exact.showsWaits && claim.says.kind === 'waiting';
    return fresh && !shownThere && urgency(claim.says) > urgency(exact.says);
  });
  if (raising)
    return { state: raising.says, by: raising, why: 'newer than the live value and more urgent (R-05)' };
  const ownerWithoutStatus = context.claims.some((c) => c.life === 'alive' && c.says.kind === 'silent');
  if (!ownerWithoutStatus || urgency(exact.says) > 1) return undefined;
  const other = fuseWithoutExact(context);
  const newerWork = other.by && hasOpenTurn(other.state) && other.by.at > exact.at;
  return newerWork
    ? { ...other, why: 'a second owner, which gives no status, has the newer turn (R-04)' }
    : undefined;
}

function promptRecord(claim: Spoken | undefined): Spoken | undefined {
  return claim?.says.kind === 'working' && claim.turn?.openedAt !== undefined ? claim : undefined;
}

/** The tool's name beats the wait's own label: a question is input, a plan is an approval. */
function refineWait(context: Context, exact: Spoken): Verdict {
  const named = [context.reported, context.recorded].find(
    (c) =>
      c?.says.kind === 'waiting' &&
      (c.says.on === 'question' || c.says.on === 'plan' || c.says.on === 'form'),
  );
  if (named)
    return {
      state: named.says,
      by: exact,
      refinedBy: named,
      why: 'waits, and the pending call says for what (R-06)',
    };
  const tool = [context.reported, context.recorded].find(
    (c) => c && 'tool' in c.says && c.says.tool !== undefined,
  );
  if (exact.says.kind === 'waiting' && !exact.says.tool && tool && 'tool' in tool.says && tool.says.tool) {
    return {
      state: { ...exact.says, tool: tool.says.tool },
      by: exact,
      refinedBy: tool,
      why: 'the runtime itself says so',
    };
  }
  return { state: exact.says, by: exact, why: 'the runtime itself says so' };
}

/** "Busy" says that, not what: records and hooks say which tool runs. */
function refineWork(context: Context, exact: Spoken): Verdict {
  const why = 'the runtime itself says so';
  const { says } = exact;
  // A retry is the model's: no call that a record has open is what it does now.
  if (says.kind === 'working' && (says.doing !== 'running' || says.retrying))
    return { state: says, by: exact, why };
  const { recorded } = context;
  if (recorded?.ledger && recorded.says.kind === 'working')
    return { state: recorded.says, by: exact, refinedBy: recorded, why };
  const openedAt = context.turnOpenedAt ?? Number.NEGATIVE_INFINITY;
  const detail = [context.recorded, context.reported]
    .filter((c): c is Spoken => c !== undefined && c.says.kind === 'working' && c.at >= openedAt)
    .sort((a, b) => b.at - a.at)[0];
  return detail
    ? { state: detail.says, by: exact, refinedBy: detail, why }
    : { state: exact.says, by: exact, why };
}

/** A live owner that rests: how its turn ended is told by report, then record, then nothing at all. */
function settleIdle(context: Context, exact: Spoken): Verdict {
  const ending = endOfTurn(context.claims, context.turnOpenedAt);
  const held = heldOpen(context, exact, ending);
  if (held)
    return { state: held, by: exact, why: 'just came to rest; waiting for the record that says how (R-09)' };
  if (ending?.end)
    return { state: restedWith(ending.end), by: exact, why: 'rests; the turn’s own end says how (R-09)' };
  if (context.turnOpenedAt === undefined)
    return { state: IDLE, by: exact, why: 'a live owner, and no turn yet (R-02)' };
  return {
    state: { kind: 'rested', outcome: 'stopped' },
    by: exact,
    why: 'rests and nothing says that the turn ended well (R-09)',
  };
}

/**
 * The work that stays for a moment after its owner came to rest, because its records may be on their way. Not
 * where reports follow the turn, since its end would have been reported by now; nor from a wait, which without
 * work in between was not granted.
 */
function heldOpen(context: Context, exact: Spoken, ending: TurnFacts | undefined): SessionState | undefined {
  if (reportsFollow(context)) return undefined;
  const { previous, recorded, turnOpenedAt } = context;
  // The owner itself says how its newest turn ended: there is no record to wait for.
  if (exact.turn?.end && (exact.turn.endedAt ?? exact.at) >= (turnOpenedAt ?? Number.NEGATIVE_INFINITY))
    return undefined;
  const restedFor = ageOf(exact.at, context.now);
  const learnt = previous?.turnOpenedAt !== turnOpenedAt;
  const worked = previous?.state.kind === 'working' ? previous.state : undefined;
  // It worked although the newest known turn had ended, or there was none: another turn, without a record yet.
  const unseen =
    ending?.endedAt === previous?.turnEndedAt && (ending !== undefined || turnOpenedAt === undefined);
  if (unseen) return !learnt && restedFor < RECORD_LAG_MS ? worked : undefined;
  if (ending?.end || restedFor >= OUTCOME_GRACE_MS) return undefined;
  const recordedWork = learnt && recorded?.says.kind === 'working' ? recorded.says : undefined;
  return previous?.state.kind === 'waiting' ? undefined : (worked ?? recordedWork);
}

function fuseWithoutExact(context: Context): Verdict {
  const { reported, recorded, life, now } = context;
  const reportStands = reported && (life === 'alive' || now - reported.at <= UNPROVEN_TTL_MS);
  if (!reported || !reportStands) {
    return recorded
      ? { state: recorded.says, by: recorded, why: 'what the records state' }
      : { state: UNKNOWN, why: 'no feed has spoken of a turn' };
  }
  const recordStands = recorded?.ledger && ledgerOverReport(reported, recorded, life, now);
  if (recordStands) return { state: recorded.says, by: recorded, why: recordStands };
  if (reported.says.kind === 'ended') return endedReport(context, reported);
  if (recorded?.ledger) return { state: reported.says, by: reported, why: 'the newest report' };
  if (!recorded) return { state: reported.says, by: reported, why: 'the newest report' };
  const overrule = recordOverrules(reported, recorded);
  if (overrule) return { state: recorded.says, by: recorded, why: overrule };
  return refineReport(reported, recorded);
}

/** A reported end cuts only a turn that is open: one that a record saw end keeps that outcome. */
function endedReport(context: Context, reported: Spoken): Verdict {
  const end = endOfTurn(context.claims, context.turnOpenedAt)?.end;
  return {
    state: end ? { kind: 'ended', outcome: end } : reported.says,
    by: reported,
    why: 'the newest report',
  };
}

/** A report knows that somebody waits; the record under it may know for what, or which tool runs. */
function refineReport(reported: Spoken, recorded: Spoken): Verdict {
  const why = 'the newest report';
  const finer =
    reported.says.kind === 'working' &&
    recorded.says.kind === 'working' &&
    reported.says.doing === 'running' &&
    recorded.at >= reported.at;
  return finer
    ? { state: recorded.says, by: reported, refinedBy: recorded, why }
    : { state: reported.says, by: reported, why };
}

/** When a parsed record ranks with a report: it ends the turn, answers the wait, or opens a newer turn. */
function recordOverrules(reported: Spoken, recorded: Spoken): string | undefined {
  const rests = recorded.turn?.end !== undefined && !hasOpenTurn(recorded.says);
  if (rests && (recorded.turn?.endedAt ?? recorded.at) > reported.at && urgency(reported.says) > 1) {
    return 'a later record ends the turn (R-10, R-12)';
  }
  if (recorded.says.kind !== 'working') return undefined;
  if (reported.says.kind === 'waiting' && (recorded.answeredAt ?? 0) > reported.at) {
    return 'a later record answers the wait (R-10)';
  }
  const opened = recorded.turn?.openedAt ?? 0;
  if (urgency(reported.says) <= 2 && opened > reported.at) return 'a later record opens a new turn';
  return undefined;
}

/** What death, or the lack of any proof of life, does to the verdict (R-02, design rule 3). */
function settleLife(context: Context, verdict: Verdict): Verdict {
  const { life, now } = context;
  const { state } = verdict;
  if (life === 'dead') return buried(context, verdict);
  if (life === 'alive') {
    if (state.kind === 'unknown')
      return { ...verdict, state: IDLE, why: 'a live owner, and no turn yet (R-02)' };
    const limit = verdict.by?.confidence === 'exact' ? undefined : verdict.by?.staleAfterMs;
    const silentFor = now - Math.max(...context.claims.filter(spoken).map((c) => c.at), 0);
    if (limit !== undefined && hasOpenTurn(state) && silentFor > limit) {
      return { ...verdict, state: UNKNOWN, why: 'too long without any sign of work (S1)' };
    }
    return verdict;
  }
  const byExact = verdict.by?.confidence === 'exact';
  if (!byExact && (hasOpenTurn(state) || state.kind === 'starting' || state.kind === 'idle')) {
    const silentFor = now - (verdict.by?.at ?? 0);
    if (silentFor > UNPROVEN_TTL_MS)
      return {
        ...verdict,
        state: UNKNOWN,
        why: 'an open turn, but no proof that anybody still works on it (design rule 3)',
      };
  }
  return verdict;
}

function buried(context: Context, verdict: Verdict): Verdict {
  const { state } = verdict;
  const ending = endOfTurn(context.claims, context.turnOpenedAt);
  const known = outcomeOf(state) ?? ending?.end;
  const cutByDeath = context.claims.some(
    (c) =>
      c.life === 'dead' &&
      spoken(c) &&
      hasOpenTurn(c.says) &&
      c.at > (ending?.endedAt ?? Number.NEGATIVE_INFINITY),
  );
  if (hasOpenTurn(state) || (cutByDeath && state.kind !== 'ended'))
    return {
      ...verdict,
      state: { kind: 'ended', outcome: 'stopped' },
      why: 'the owner is gone and its turn was open (R-02)',
    };
  if (state.kind === 'ended') return verdict;
  const outcome = known ?? context.previous?.lastOutcome;
  return {
    ...verdict,
    state: { kind: 'ended', ...(outcome ? { outcome } : {}) },
    why: outcome ? 'the owner is gone; the turn had ended (R-02)' : 'the owner is gone',
  };
}
