import type { Claim } from './evidence.ts';
import { fuse } from './fuse.ts';
import type { Fused, Session, SessionFacts, SessionRef, Sighting } from './session.ts';
import { sessionKey } from './session.ts';
import { hasOpenTurn, sameState, urgency } from './state.ts';

/** What one scope says. Without claims it still knows the session. */
interface Said {
  readonly scope: string;
  readonly claims: readonly Claim[];
}

interface Entry {
  readonly ref: SessionRef;
  facts: SessionFacts;
  /** What each scope (a scan, a live source) says. A list, since nearly every session has one alone. */
  scopes: readonly Said[];
  fused: Fused;
}

/**
 * All sessions and what each feed says about them (design §4). In memory, synchronous, without clock or I/O:
 * the caller gives the time. One-shot commands fill it from one scan, the daemon keeps it.
 */
export interface Registry {
  /** Adds or replaces single claims and facts; used by pushing feeds. */
  apply(scope: string, sightings: readonly Sighting[], now: number): void;
  /** The whole inventory of one scan: what `scope` said before and does not repeat is withdrawn. */
  replace(scope: string, sightings: readonly Sighting[], now: number): void;
  /** Forgets one feed's claims, for example when its connection is lost. */
  withdraw(scope: string, now: number): void;
  /**
   * Re-judges the sessions that are at something, at a later time: evidence ages, held values lapse. False when there
   * is none: a session at rest changes only when somebody speaks, and a scan judges all of them.
   */
  tick(now: number): boolean;
  /** All sessions, sub-agents folded under their parents. */
  sessions(): Session[];
  /** One session by its own identity, sub-agents included. */
  find(ref: SessionRef): Session | undefined;
  readonly size: number;
}

/** Creates an empty registry. */
export function createRegistry(): Registry {
  const entries = new Map<string, Entry>();

  const enter = (sighting: Sighting): Entry => {
    const key = sessionKey(sighting.session);
    const known = entries.get(key);
    if (known) {
      if (sighting.facts) known.facts = mergeFacts(known.facts, sighting.facts);
      return known;
    }
    const entry: Entry = {
      ref: sighting.session,
      facts: sighting.facts ?? {},
      scopes: NOTHING_SAID,
      fused: NOTHING_KNOWN,
    };
    entries.set(key, entry);
    return entry;
  };

  const judge = (entry: Entry, now: number): void => {
    entry.fused = fuse(claimsOf(entry), entry.fused, now);
  };

  const drop = (scope: string, keep: ReadonlySet<string>, now: number): void => {
    for (const [key, entry] of entries) {
      if (keep.has(key) || !speaks(entry, scope)) continue;
      entry.scopes = entry.scopes.filter((said) => said.scope !== scope);
      if (entry.scopes.length === 0) entries.delete(key);
      else judge(entry, now);
    }
  };

  return {
    apply(scope, sightings, now) {
      for (const sighting of sightings) {
        const entry = enter(sighting);
        const before = entry.scopes.find((said) => said.scope === scope)?.claims ?? [];
        say(entry, { scope, claims: mergeClaims(before, sighting.claims ?? []) });
        if (sighting.claims) judge(entry, now);
      }
    },
    replace(scope, sightings, now) {
      if (entries.size > 0) drop(scope, new Set(sightings.map((s) => sessionKey(s.session))), now);
      for (const sighting of sightings) {
        const entry = enter(sighting);
        say(entry, { scope, claims: sighting.claims ?? [] });
        judge(entry, now);
      }
    },
    withdraw(scope, now) {
      drop(scope, NONE, now);
    },
    tick(now) {
      const open = [...entries.values()].filter(({ fused }) => isAtSomething(fused));
      for (const entry of open) judge(entry, now);
      return open.length > 0;
    },
    sessions: () => fold(entries),
    find: (ref) => findIn(entries, ref),
    get size() {
      return entries.size;
    },
  };
}

const NOTHING_KNOWN = fuse([], undefined, 0);
const NONE: ReadonlySet<string> = new Set();

function isAtSomething({ state }: Fused): boolean {
  return hasOpenTurn(state) || state.kind === 'starting';
}

const NOTHING_SAID: readonly Said[] = [];

function speaks(entry: Entry, scope: string): boolean {
  return entry.scopes.some((said) => said.scope === scope);
}

/** Replaces what its scope said before, in its place. */
function say(entry: Entry, next: Said): void {
  if (entry.scopes.length === 0) entry.scopes = [next];
  else if (!speaks(entry, next.scope)) entry.scopes = [...entry.scopes, next];
  else entry.scopes = entry.scopes.map((said) => (said.scope === next.scope ? next : said));
}

function claimsOf(entry: Entry): readonly Claim[] {
  if (entry.scopes.length > 1) return entry.scopes.flatMap((said) => said.claims);
  return entry.scopes[0]?.claims ?? [];
}

/** A feed replaces its own claim, and only its own; `owner` tells several speakers of one feed apart. */
function mergeClaims(old: readonly Claim[], next: readonly Claim[]): readonly Claim[] {
  const replaced = (claim: Claim) => next.some((one) => one.feed === claim.feed && one.owner === claim.owner);
  return [...old.filter((claim) => !replaced(claim)), ...next];
}

/** Present replaces, absent never erases (S-006); `lastActivityAt` only moves forward, `startedAt` only back. */
function mergeFacts(old: SessionFacts, next: SessionFacts): SessionFacts {
  const merged: SessionFacts = {
    ...old,
    ...next,
    ...(old.lineage || next.lineage ? { lineage: { ...old.lineage, ...next.lineage } } : {}),
  };
  const last = Math.max(old.lastActivityAt ?? 0, next.lastActivityAt ?? 0);
  const first = Math.min(
    old.startedAt ?? Number.POSITIVE_INFINITY,
    next.startedAt ?? Number.POSITIVE_INFINITY,
  );
  return {
    ...merged,
    ...(last > 0 ? { lastActivityAt: last } : {}),
    ...(Number.isFinite(first) ? { startedAt: first } : {}),
  };
}

function parentKey(entry: Entry): string | undefined {
  const parentId = entry.facts.lineage?.parentId;
  return parentId === undefined ? undefined : sessionKey({ ...entry.ref, sessionId: parentId });
}

/** The topmost known ancestor; who is caught in a loop of the records is its own. */
function rootKey(entries: ReadonlyMap<string, Entry>, key: string): string {
  const seen = new Set([key]);
  const climb = (at: string): string => {
    const entry = entries.get(at);
    const parent = entry && parentKey(entry);
    if (!parent || !entries.has(parent)) return at;
    if (seen.has(parent)) return key;
    seen.add(parent);
    return climb(parent);
  };
  return climb(key);
}

function fold(entries: ReadonlyMap<string, Entry>): Session[] {
  const children = new Map<string, Entry[]>();
  const folded = new Set<string>();
  for (const [key, entry] of entries) {
    const root = parentKey(entry) ? rootKey(entries, key) : key;
    if (root === key) continue;
    folded.add(key);
    children.set(root, [...(children.get(root) ?? []), entry]);
  }
  const sessions: Session[] = [];
  for (const [key, entry] of entries) {
    if (!folded.has(key)) sessions.push(toSession(entry, children.get(key) ?? NO_CHILDREN));
  }
  return sessions;
}

function findIn(entries: ReadonlyMap<string, Entry>, ref: SessionRef): Session | undefined {
  const key = sessionKey(ref);
  const entry = entries.get(key);
  if (!entry) return undefined;
  const below = [...entries].filter(([k, e]) => k !== key && parentKey(e) && rootKey(entries, k) === key);
  return toSession(
    entry,
    below.map(([, e]) => e),
  );
}

const NO_CHILDREN: readonly Entry[] = [];
const NO_SUB_AGENTS: readonly SessionRef[] = [];
/** What is found on this computer stays on it until its owner binds it (design §8). */
const LOCAL = { origin: 'unboundLocal', visibility: 'localSummaryOnly' } as const;

function toSession(entry: Entry, children: readonly Entry[]): Session {
  if (children.length === 0) {
    const { ref, facts, fused } = entry;
    const { origin = LOCAL.origin } = facts;
    const { visibility } = LOCAL;
    return { ref, facts, own: fused, shown: fused, subAgents: NO_SUB_AGENTS, origin, visibility };
  }
  const live = children.filter((c) => hasOpenTurn(c.fused.state) && c.fused.life !== 'dead');
  const urgent = [...live].sort((a, b) => urgency(b.fused.state) - urgency(a.fused.state))[0];
  const childLeads = urgent !== undefined && urgency(urgent.fused.state) > urgency(entry.fused.state);
  const shown: Fused = childLeads
    ? {
        ...entry.fused,
        chain: entry.fused.chain,
        state: urgent.fused.state,
        ...(urgent.fused.evidence ? { evidence: urgent.fused.evidence } : {}),
      }
    : entry.fused;
  const lastActivityAt = Math.max(
    entry.facts.lastActivityAt ?? 0,
    ...live.map((c) => c.facts.lastActivityAt ?? 0),
  );
  return {
    ref: entry.ref,
    facts: lastActivityAt > 0 ? { ...entry.facts, lastActivityAt } : entry.facts,
    own: entry.fused,
    shown,
    ...(childLeads ? { shownFrom: urgent.ref.sessionId } : {}),
    subAgents: children.map((c) => c.ref),
    ...LOCAL,
    ...(entry.facts.origin === undefined ? {} : { origin: entry.facts.origin }),
  };
}

/** True if a list row would look different. Liveness churn and evidence times alone are no change (S-121). */
export function looksDifferent(a: Session, b: Session): boolean {
  return (
    !sameState(a.shown.state, b.shown.state) ||
    a.facts.lastActivityAt !== b.facts.lastActivityAt ||
    a.facts.title !== b.facts.title ||
    a.facts.model !== b.facts.model ||
    a.facts.workDir !== b.facts.workDir
  );
}
