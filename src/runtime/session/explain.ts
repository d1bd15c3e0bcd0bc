import type { Claim, EvidenceLink, Silent } from './evidence.ts';
import { outcomeOf, type SessionState } from './state.ts';

/** What `fuse` decided, and by which claims. */
export interface Verdict {
  readonly state: SessionState;
  readonly by?: Claim;
  readonly why: string;
  /** A second claim that sharpened the decision. */
  readonly refinedBy?: Claim;
}

/** The evidence chain of a verdict, newest first: what each feed said, and what became of it. */
export function explain(claims: readonly Claim[], verdict: Verdict): EvidenceLink[] {
  return [...claims]
    .sort((a, b) => b.at - a.at)
    .map((claim) => ({
      feed: claim.feed,
      ...(claim.owner ? { owner: claim.owner } : {}),
      at: claim.at,
      confidence: claim.confidence,
      says: claim.says,
      ...judge(claim, verdict),
      detail: claim.detail,
      ...(claim.skipped ? { skipped: claim.skipped } : {}),
    }));
}

function judge(claim: Claim, verdict: Verdict): Pick<EvidenceLink, 'verdict' | 'why'> {
  if (claim === verdict.by) return { verdict: 'decides', why: verdict.why };
  if (claim === verdict.refinedBy) return { verdict: 'refines', why: 'says what exactly' };
  if (claim.says.kind === 'silent')
    return {
      verdict: 'life only',
      why: claim.life === 'dead' ? 'its owner is gone' : 'proves that somebody lives',
    };
  const agrees = describesSame(claim.says, verdict.state);
  const by = verdict.by ? `${verdict.by.confidence} evidence of ${verdict.by.feed}` : 'nothing';
  return agrees
    ? { verdict: 'agrees', why: 'says the same' }
    : { verdict: 'overruled', why: `overruled by ${by}` };
}

function describesSame(says: SessionState | Silent, state: SessionState): boolean {
  if (says.kind === 'silent') return false;
  const outcome = outcomeOf(says);
  return says.kind === state.kind || (outcome !== undefined && outcome === outcomeOf(state));
}
