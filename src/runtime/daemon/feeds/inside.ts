import type { InsideReader, RuntimeFeed } from '../../feed.ts';
import type { Registry } from '../../session/registry.ts';
import type { Sighting } from '../../session/session.ts';
import type { Scheduler } from '../clock.ts';
import { type Attachment, createDesk, type Desk } from '../inside/desk.ts';
import type { ServiceLog } from '../log.ts';
import { RUNTIME_OF } from '../sessions/claims.ts';
import type { SessionsEngine } from '../sessions/engine.ts';

export interface InsideFeedOptions<Context> {
  readonly registry: Registry;
  readonly feeds: readonly RuntimeFeed<Context>[];
  readonly context: Context;
  readonly engine: SessionsEngine;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly scheduler: Scheduler;
  readonly log: ServiceLog;
  readonly isAlive: (pid: number) => boolean;
  /** The registry may have moved. */
  readonly changed: () => void;
}

/**
 * Takes what extensions inside programs say to the one registry: the connection itself proves that an owner lives
 * events go to the runtime's own reader, and a program that is gone without a word ends its sessions.
 */
export function createInsideFeed<Context>(options: InsideFeedOptions<Context>): Desk {
  const { registry, feeds, context, engine, now, isAlive, changed } = options;
  const readers = new Map<string, InsideReader>();

  const readerOf = (attachment: Attachment): InsideReader | undefined => {
    const known = readers.get(attachment.id);
    if (known) return known;
    const feed = feeds.find(({ id }) => id === attachment.runtimeId);
    const sink = {
      sighted(scope: string, sightings: readonly Sighting[]) {
        registry.apply(scope, sightings, now());
        changed();
      },
      lost(scope: string) {
        registry.withdraw(scope, now());
        changed();
      },
    };
    const reader = feed?.inside?.(context, sink, { pid: attachment.pid });
    if (reader) readers.set(attachment.id, reader);
    return reader;
  };

  return createDesk({
    now,
    scheduler: options.scheduler,
    log: options.log,
    events: {
      changed(attachment, events) {
        registry.replace(scopeOf(attachment), presence(attachment, now()), now());
        const reader = events.length > 0 ? readerOf(attachment) : undefined;
        for (const event of events) reader?.hear(event);
        changed();
      },
      gone(attachment) {
        registry.withdraw(scopeOf(attachment), now());
        readers.get(attachment.id)?.close('the extension’s connection was lost');
        readers.delete(attachment.id);
        // A program that was killed says no end of its own; without this its last word would stand for minutes.
        if (!isAlive(attachment.pid)) endSessions(engine, attachment);
        changed();
      },
    },
  });
}

function scopeOf({ id }: Attachment): string {
  return `inside ${id}`;
}

/** The connection is proof of life, and says nothing of a turn. */
function presence(attachment: Attachment, now: number): readonly Sighting[] {
  const { runtimeId, instanceId, pid, sessions } = attachment;
  return sessions.map((sessionId) => ({
    session: { runtimeId, instanceId, sessionId },
    facts: { pids: [pid] },
    claims: [
      {
        feed: `${runtimeId}.inside`,
        owner: String(pid),
        confidence: 'exact',
        at: now,
        says: { kind: 'silent' },
        life: 'alive',
        detail: `our extension in process ${pid} has it open`,
      },
    ],
  }));
}

function endSessions(engine: SessionsEngine, { runtimeId, sessions }: Attachment): void {
  for (const id of sessions) {
    const entry = engine.entry(id);
    if (entry && RUNTIME_OF[entry.agent] === runtimeId) {
      engine.end({ session_id: id, reason: 'process gone' }, 'local');
    }
  }
}
