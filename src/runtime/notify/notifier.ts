import type { LiveConfig } from '../config/live.ts';
import { isQuiet } from '../config/quiet-hours.ts';
import type { NotificationSettings, TitlePrivacy } from '../config/schema.ts';
import { showTitle } from '../config/titles.ts';
import type { Scheduler } from '../daemon/clock.ts';
import type { ServiceLog } from '../daemon/log.ts';
import type { RuntimeInstance } from '../feed.ts';
import { NOTIFY } from '../limits.ts';
import type { Session } from '../session/session.ts';
import { createDecider, type Decider } from './decide.ts';
import type { StoredLedger } from './ledger.ts';
import type { Notice } from './notice.ts';
import { createRuntimeDecider, type RuntimeDecider } from './runtimes.ts';
import type { Sink, SinkResult } from './sinks/sink.ts';

/** What the notifier watches: the daemon's one registry. */
export interface NotifierSource {
  /** Resolves when everything has been looked at once. */
  readonly ready: Promise<void>;
  onChange(listener: () => void): () => void;
  sessions(): readonly Session[];
  instances(): readonly RuntimeInstance[];
  now(): number;
}

export interface NotifierOptions {
  readonly source: NotifierSource;
  readonly config: LiveConfig;
  readonly ledger: StoredLedger;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
  labelOf(runtimeId: string): string;
  sinks(settings: NotificationSettings): readonly Sink[];
}

/** What became of one notice on one way; `unknown` where it was cut off. */
type End = SinkResult['kind'] | 'unknown';

/** How notifying goes, for `daemon status`. */
export interface NotifierStatus {
  readonly enabled: boolean;
  readonly sinks: readonly string[];
  readonly told: number;
  readonly delivered: number;
  readonly failed: number;
  /** The newest failure: which sink, and why. */
  readonly lastFailure?: string;
}

export interface Notifier {
  status(): NotifierStatus;
  /** Ends what is being delivered. */
  stop(): Promise<void>;
}

/**
 * Tells the owner what the registry shows, while notifications are on. What is to be told is written down before it is
 * told (N5): a crash in between loses one notice, and repeats none. A sink that fails is logged and counted. Where all
 * of them failed that is taken back, and the notice is brought again a few times while it is still true; one that any
 * sink delivered, or that was cut off on its way, never is. News of runtimes is not brought again: it passes.
 */
export function startNotifier(options: NotifierOptions): Notifier {
  const { source, config, ledger, scheduler, log } = options;
  const counts = { told: 0, delivered: 0, failed: 0, lastFailure: '' };
  const state = {
    watching: undefined as { sessions: Decider; runtimes: RuntimeDecider } | undefined,
    stopped: false,
    ready: false,
    cancel: () => {},
  };
  const lines = new Map<string, { waiting: number; last: Promise<unknown> }>();
  const retries = new Set<() => void>();
  const telling = new Set<Promise<void>>();
  const ended = new AbortController();
  const settings = () => config.current().config.notifications;

  const begin = (): { sessions: Decider; runtimes: RuntimeDecider } => {
    const sessions = createDecider({
      ledger,
      wants: (kind) => settings().states[kind],
      isQuiet: (now) => isQuiet(settings().quietHours, now),
      patienceMs: () => settings().shellPatienceMinutes * 60_000,
      labelOf: options.labelOf,
    });
    const runtimes = createRuntimeDecider(options.labelOf);
    sessions.begin(source.sessions(), source.now());
    runtimes.begin(source.instances());
    return { sessions, runtimes };
  };

  const look = (): void => {
    if (state.stopped || !state.ready) return;
    state.cancel();
    if (!settings().enabled) {
      state.watching = undefined;
      return;
    }
    const watching = state.watching ?? begin();
    state.watching = watching;
    const now = source.now();
    const all = source.sessions();
    const news = [
      ...watching.sessions.observe(all, now),
      ...runtimeNews(watching.runtimes, source, settings(), now),
    ];
    save();
    tell(news, watching.sessions);
    const next = Math.min(watching.sessions.nextAt() ?? Infinity, watching.runtimes.nextAt() ?? Infinity);
    if (Number.isFinite(next)) state.cancel = scheduler.after(Math.max(1, next - now), look);
  };

  const save = (): void => {
    const unsaved = ledger.save();
    if (unsaved !== undefined) log('warn', 'notify_ledger', { error: unsaved });
  };

  const tell = (news: readonly Notice[], decider: Decider): void => {
    counts.told += news.length;
    for (const notice of news) start(notice, decider, 0);
  };

  const start = (notice: Notice, decider: Decider, round: number): void => {
    const sending = send(notice, decider, round).finally(() => telling.delete(sending));
    telling.add(sending);
  };

  /** Each sink goes at its own pace: a webhook that tries again keeps no banner back. */
  const send = async (notice: Notice, decider: Decider, round: number): Promise<void> => {
    const { privacy, notifications } = config.current().config;
    const shown = withPrivacy(notice, privacy.titles);
    const sent = options.sinks(notifications).map((sink) => enqueue(sink, shown));
    const ends = await Promise.all(sent);
    if (ends.length === 0 || ends.some((end) => end !== 'failed')) return;
    decider.release(notice);
    save();
    const pause = NOTIFY.againMs[round];
    if (pause !== undefined && notice.session && !state.stopped) again(notice, decider, round + 1, pause);
  };

  const again = (notice: Notice, decider: Decider, round: number, pause: number): void => {
    const cancel = scheduler.after(pause, () => {
      retries.delete(cancel);
      const isWanted = settings().enabled && wants(notice.kind) && state.watching?.sessions === decider;
      if (!isWanted) return;
      const isWait = notice.kind === 'approval' || notice.kind === 'input';
      if (isQuiet(settings().quietHours, source.now())) {
        if (isWait) again(notice, decider, round, NOTIFY.quietLookMs);
        return;
      }
      if (!decider.claim(notice)) return;
      save();
      start(notice, decider, round);
    });
    retries.add(cancel);
  };

  const wants = (kind: Notice['kind']): boolean => kind !== 'test' && settings().states[kind];

  const enqueue = (sink: Sink, notice: Notice): Promise<End> => {
    const line = lines.get(sink.name) ?? { waiting: 0, last: Promise.resolve() };
    lines.set(sink.name, line);
    if (line.waiting >= NOTIFY.queued) {
      counts.failed += 1;
      log('warn', 'notify_dropped', { event: notice.event, sink: sink.name, reason: 'queue' });
      return Promise.resolve('failed');
    }
    line.waiting += 1;
    const end = line.last.then(async () => {
      const result = state.stopped ? 'failed' : await deliver(sink, notice);
      line.waiting -= 1;
      return result;
    });
    line.last = end;
    return end;
  };

  const deliver = async (sink: Sink, notice: Notice): Promise<End> => {
    const result = await sink.send(notice, ended.signal);
    if (result.kind === 'delivered') counts.delivered += 1;
    else {
      counts.failed += 1;
      counts.lastFailure = `${sink.name}: ${result.reason}`;
    }
    const reason = result.kind === 'failed' ? { reason: result.reason } : {};
    log(result.kind === 'failed' ? 'warn' : 'info', 'notified', {
      event: notice.event,
      id: notice.id,
      sink: sink.name,
      outcome: result.kind,
      ...reason,
    });
    return result.kind === 'failed' && ended.signal.aborted ? 'unknown' : result.kind;
  };

  const unlisten = [source.onChange(look), config.onChange(look)];
  source.ready.then(() => {
    state.ready = true;
    look();
  });

  return {
    status: () => ({
      enabled: settings().enabled,
      sinks: options.sinks(settings()).map(({ name, words }) => `${name}: ${words}`),
      told: counts.told,
      delivered: counts.delivered,
      failed: counts.failed,
      ...(counts.lastFailure === '' ? {} : { lastFailure: counts.lastFailure }),
    }),
    async stop() {
      state.stopped = true;
      state.cancel();
      for (const end of unlisten) end();
      for (const cancel of retries) cancel();
      ended.abort();
      await Promise.all([...lines.values()].map(({ last }) => last));
      await Promise.all(telling);
      ledger.save();
    },
  };
}

function runtimeNews(
  decider: RuntimeDecider,
  source: NotifierSource,
  settings: NotificationSettings,
  now: number,
): readonly Notice[] {
  const countOf = (ids: readonly string[]) =>
    source.sessions().filter(({ ref }) => ids.includes(ref.runtimeId)).length;
  const news = decider.observe(source.instances(), now, countOf);
  const isTold = settings.states.runtimes && !isQuiet(settings.quietHours, now);
  return isTold ? news : [];
}

/** What a sink with details may show is bound by the owner's own choice for titles, too. */
function withPrivacy(notice: Notice, titles: TitlePrivacy): Notice {
  const { title, workDir, error } = notice.details;
  const shown = showTitle({ title, workDir }, titles);
  return {
    ...notice,
    details: {
      ...(shown.title === undefined ? {} : { title: shown.title }),
      ...(shown.workDir === undefined ? {} : { workDir: shown.workDir }),
      ...(error === undefined || titles === 'hidden' ? {} : { error }),
    },
  };
}
