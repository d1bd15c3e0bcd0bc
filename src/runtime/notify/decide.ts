import { NOTIFY } from '../limits.ts';
import { type PublicState, publicState } from '../session/project.ts';
import { type Fused, type Session, sessionKey } from '../session/session.ts';
import { hasOpenTurn, type Outcome, outcomeOf, type SessionState } from '../session/state.ts';
import { isAsked } from './asked.ts';
import { compact, type Ledger, type Told } from './ledger.ts';
import { EVENT_OF, folderName, type Notice } from './notice.ts';

/** The kinds of news about sessions. */
export type SessionKind = keyof typeof EVENT_OF;

export interface DecideOptions {
  readonly ledger: Ledger;
  /** Whether a kind is told at all. */
  wants(kind: SessionKind): boolean;
  /** Whether a moment is quiet. */
  isQuiet(now: number): boolean;
  /** How long "done" waits for background shells, milliseconds. */
  patienceMs(): number;
  /** The product's name of a runtime. */
  labelOf(runtimeId: string): string;
}

/** Decides what the owner is told. Pure but for the ledger it is given: the caller gives the time. */
export interface Decider {
  /** Takes the sessions as they are when watching begins: what is over by then is never told. */
  begin(sessions: readonly Session[], now: number): void;
  /** Compares with what was before, and gives what is due by `now`. Called at changes and at {@link nextAt}. */
  observe(sessions: readonly Session[], now: number): readonly Notice[];
  /** When something may become due without any change, epoch milliseconds. */
  nextAt(): number | undefined;
  /** Takes back in the ledger that this was told, for the next start; nothing where something else was said since. */
  release(notice: Notice): void;
  /** Says in the ledger again that this is told; `false`, and nothing said, where it is no longer so. */
  claim(notice: Notice): boolean;
}

/** What the ledger says of a session while a notice is told, and what it says where that fails (N5). */
interface Claim {
  readonly key: string;
  readonly taken: Told | undefined;
  readonly released: Told;
}

interface Rest {
  readonly outcome: Outcome;
  readonly since: number;
  readonly turn: number;
  readonly from: PublicState | 'new';
}

interface Wait {
  /** What it rests on, epoch milliseconds. */
  readonly at: number;
  readonly since: number;
  readonly state: Extract<SessionState, { kind: 'waiting' }>;
  readonly from: PublicState | 'new';
  readonly told: boolean;
}

interface Track {
  /** The word before the present one. */
  readonly from: PublicState | 'new';
  readonly word: PublicState;
  readonly through: number;
  /** Opening of the turn that was seen open and is not over. */
  readonly open?: number | undefined;
  readonly rest?: Rest | undefined;
  /** First rest of the present turn: where the patience for shells begins. */
  readonly firstRest?: number | undefined;
  readonly wait?: Wait | undefined;
  /** What was told last. */
  readonly notice?: Notice | undefined;
}

/** Creates the decider; see {@link Decider}. */
export function createDecider(options: DecideOptions): Decider {
  const { ledger } = options;
  const state = { startedAt: 0, nextAt: undefined as number | undefined, tracks: new Map<string, Track>() };
  const claims = new WeakMap<Notice, Claim>();

  const first = (session: Session, now: number): Track => {
    const { shown } = session;
    const told = ledger.get(sessionKey(session.ref));
    const base = {
      from: 'new',
      word: publicState(shown.state),
      through: told?.through ?? Number.NEGATIVE_INFINITY,
    } as const;
    const resumed = told?.open !== undefined && now - endOf(shown) <= NOTIFY.resumeMs;
    const isNew = (shown.turnOpenedAt ?? 0) > state.startedAt;
    if (resumed || isNew || hasOpenTurn(shown.state)) return { ...base, open: told?.open };
    return { ...base, through: Math.max(base.through, shown.turnOpenedAt ?? 0, shown.turnEndedAt ?? 0) };
  };

  const look = (session: Session, before: Track, now: number): Track => {
    const { shown } = session;
    const word = publicState(shown.state);
    const from = word === before.word ? before.from : before.word;
    const moved: Track = { ...before, word, from };
    if (shown.state.kind === 'unknown')
      return { ...moved, open: undefined, rest: undefined, wait: undefined };
    const wait = waitOf(session, before, from, now, ledger.get(sessionKey(session.ref))?.wait);
    if (hasOpenTurn(shown.state)) return { ...moved, wait, rest: undefined, ...opened(shown, before) };
    return { ...moved, wait, ...rested(shown, before, from, now, state.startedAt) };
  };

  /** What is due of one session; the track afterwards. */
  const due = (session: Session, track: Track, now: number): { track: Track; notices: readonly Notice[] } => {
    const ending = dueRest(session, track, now);
    const waiting = dueWait(session, ending.track, now);
    return { track: waiting.track, notices: [...ending.notices, ...waiting.notices] };
  };

  const dueRest = (
    session: Session,
    track: Track,
    now: number,
  ): { track: Track; notices: readonly Notice[] } => {
    const { rest } = track;
    if (!rest || restDueAt(session, track, rest) > now) return { track, notices: [] };
    const through = Math.max(rest.turn, session.shown.turnEndedAt ?? rest.since);
    const after = { ...track, through, open: undefined, rest: undefined, firstRest: undefined };
    const kind = rest.outcome === 'completed' ? 'done' : rest.outcome === 'failed' ? 'failed' : undefined;
    const silent = kind === undefined || !options.wants(kind) || options.isQuiet(now);
    if (silent) return { track: after, notices: [] };
    const work = session.shown.backgroundWork;
    const about = { ...aboutOf(session, kind, now), from: rest.from, to: track.word };
    return {
      track: after,
      notices: [
        { ...about, id: idOf(session, kind, rest.turn), ...(work > 0 ? { backgroundWork: work } : {}) },
      ],
    };
  };

  const restDueAt = (session: Session, track: Track, rest: Rest): number => {
    const settled = rest.since + NOTIFY.settleMs;
    if (session.shown.backgroundWork === 0 || rest.outcome === 'stopped') return settled;
    return Math.max(settled, (track.firstRest ?? rest.since) + options.patienceMs());
  };

  const dueWait = (
    session: Session,
    track: Track,
    now: number,
  ): { track: Track; notices: readonly Notice[] } => {
    const { wait } = track;
    const pending = wait && !wait.told && wait.since + NOTIFY.settleMs <= now;
    if (!pending || options.isQuiet(now)) return { track, notices: [] };
    const after = { ...track, wait: { ...wait, told: true } };
    const kind = wait.state.for;
    if (!options.wants(kind)) return { track: after, notices: [] };
    const subject = wait.state.on === 'unspecified' ? {} : { subject: wait.state.on };
    const about = { ...aboutOf(session, kind, now), from: wait.from, to: track.word, ...subject };
    return { track: after, notices: [{ ...about, id: idOf(session, kind, wait.at) }] };
  };

  const aboutOf = (session: Session, kind: SessionKind, now: number) => {
    const { ref, facts, shown } = session;
    const folder = folderName(facts.workDir);
    return {
      kind,
      event: EVENT_OF[kind],
      at: now,
      runtimes: [{ id: ref.runtimeId, label: options.labelOf(ref.runtimeId) }],
      session: ref,
      ...(folder === undefined ? {} : { folder }),
      details: {
        ...(facts.title === undefined ? {} : { title: facts.title }),
        ...(facts.workDir === undefined ? {} : { workDir: facts.workDir }),
        ...(shown.error === undefined ? {} : { error: shown.error }),
      },
    };
  };

  /** Ids and times for the next start; nothing for a session that nothing was ever to be told of. */
  const remember = (key: string, before: Track | undefined, track: Track, now: number): void => {
    const wait = track.wait?.told ? track.wait.at : ledger.get(key)?.wait;
    const isNews =
      before !== undefined &&
      (before.open !== track.open || before.wait?.told !== track.wait?.told || hasEnded(before, track));
    if (!isNews && !(before === undefined && track.open !== undefined)) return;
    const through = Number.isFinite(track.through) ? track.through : undefined;
    ledger.set(key, compact({ through, open: track.open, wait, at: now }));
  };

  const soonest = (session: Session, track: Track, now: number): number => {
    const rest = track.rest ? restDueAt(session, track, track.rest) : Number.POSITIVE_INFINITY;
    const open =
      track.wait && !track.wait.told ? track.wait.since + NOTIFY.settleMs : Number.POSITIVE_INFINITY;
    const next = Math.min(rest, open);
    // Only quiet hours keep something back that is due.
    return next <= now ? now + NOTIFY.quietLookMs : next;
  };

  const pass = (sessions: readonly Session[], now: number): readonly Notice[] => {
    const next = new Map<string, Track>();
    const notices: Notice[] = [];
    state.nextAt = undefined;
    for (const session of sessions) {
      const key = sessionKey(session.ref);
      const before = state.tracks.get(key);
      const seen = look(session, before ?? first(session, now), now);
      const held = ledger.get(key);
      const after = due(session, seen, now);
      remember(key, before, after.track, now);
      for (const notice of after.notices) {
        const released = compact({ ...held, open: seen.rest?.turn ?? held?.open, at: now });
        claims.set(notice, { key, taken: ledger.get(key), released });
      }
      next.set(key, { ...after.track, notice: after.notices.at(-1) ?? after.track.notice });
      notices.push(...after.notices);
      const at = soonest(session, after.track, now);
      if (Number.isFinite(at)) state.nextAt = Math.min(at, state.nextAt ?? at);
    }
    state.tracks = next;
    return notices;
  };

  return {
    begin(sessions, now) {
      state.startedAt = now;
      state.tracks = new Map();
      pass(sessions, now);
    },
    observe: pass,
    nextAt: () => state.nextAt,
    release(notice) {
      const claim = claims.get(notice);
      if (claim && ledger.get(claim.key) === claim.taken) ledger.set(claim.key, claim.released);
    },
    claim(notice) {
      const claim = claims.get(notice);
      const track = claim && state.tracks.get(claim.key);
      if (!claim?.taken || track?.notice !== notice || track.word !== notice.to) return false;
      if (ledger.get(claim.key) === claim.released) ledger.set(claim.key, claim.taken);
      return true;
    },
  };
}

function hasEnded(before: Track, track: Track): boolean {
  return before.through !== track.through && before.rest !== undefined;
}

/** When the newest turn ended; without a word of that, when what decides was said. */
function endOf(shown: Fused): number {
  return shown.turnEndedAt ?? shown.evidence?.at ?? 0;
}

/**
 * The turn that is seen open. One that opened before the last one ended is that one again: a background command that
 * wakes the model (N2), a compaction.
 */
function opened(shown: Fused, before: Track): Pick<Track, 'open' | 'firstRest'> {
  const turn = shown.turnOpenedAt;
  if (turn === undefined || turn <= before.through) return { open: before.open, firstRest: before.firstRest };
  const isNew = before.firstRest !== undefined && turn > before.firstRest;
  return { open: turn, firstRest: isNew ? undefined : before.firstRest };
}

/** The rest of a turn that was watched; nothing for one that is over and done with. */
function rested(
  shown: Fused,
  before: Track,
  from: PublicState | 'new',
  now: number,
  startedAt: number,
): Pick<Track, 'open' | 'rest' | 'firstRest' | 'through'> {
  const outcome = outcomeOf(shown.state);
  const turn = shown.turnOpenedAt ?? before.open;
  const none = { open: before.open, rest: undefined, firstRest: before.firstRest, through: before.through };
  if (outcome === undefined || turn === undefined || turn <= before.through) return none;
  // Too short to be seen open, and yet within the watch. From `unknown` nothing is told.
  const within = turn > startedAt && before.word !== 'unknown';
  if (before.open === undefined && !within)
    return { ...none, through: Math.max(turn, shown.turnEndedAt ?? turn) };
  const same = before.rest?.outcome === outcome && before.rest.turn === turn;
  const rest = same && before.rest ? before.rest : { outcome, since: now, turn, from };
  const firstRest = before.firstRest ?? Math.min(now, shown.turnEndedAt ?? now);
  return { open: before.open ?? turn, rest, firstRest, through: before.through };
}

function waitOf(
  session: Session,
  before: Track,
  from: PublicState | 'new',
  now: number,
  toldAt: number | undefined,
): Wait | undefined {
  const { state, evidence } = session.shown;
  if (state.kind !== 'waiting' || !isAsked(session.shown)) return undefined;
  const at = evidence?.at ?? now;
  const held = before.wait;
  const isSame = (known: number) => at <= known + NOTIFY.sameWaitMs;
  if (held && (isSame(held.at) || !isOther(held.state, state))) return { ...held, state };
  // A wait that was told before, and was lost from sight for a moment or by a restart, is told once.
  const told = (toldAt !== undefined && isSame(toldAt)) || before.word === 'unknown';
  return { at, since: now, state, from, told };
}

/** Whether a wait that follows another without work in between asks something else. */
function isOther(a: Wait['state'], b: Wait['state']): boolean {
  const isClear = a.on !== 'unspecified' && b.on !== 'unspecified';
  const isOtherTool = a.tool !== undefined && b.tool !== undefined && a.tool.name !== b.tool.name;
  return a.for !== b.for || (isClear && a.on !== b.on) || isOtherTool;
}

function idOf({ ref }: Session, kind: SessionKind, at: number): string {
  return new Bun.CryptoHasher('sha256')
    .update(`${sessionKey(ref)} ${kind} ${at}`)
    .digest('hex')
    .slice(0, 24);
}
