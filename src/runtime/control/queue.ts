import { rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readBounded, writePrivate } from '../files/private-file.ts';
import { TEXT } from '../limits.ts';
import type { SessionRef } from '../session/session.ts';
import type { HostSpec, Message } from './driver.ts';
import { namesIn, parseJson } from './folder.ts';
import { placesOf, queuesFolder } from './places.ts';

/** A message that waits. Its file is 0600, and gone once it was delivered, withdrawn, or is too old. */
export interface QueuedMessage extends Message {
  readonly session: SessionRef;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** It was handed to the runtime and nobody knows whether it arrived: never sent a second time. */
  readonly attempted: boolean;
  /** How a host is started that delivers it when the one that took it is gone; absent in files of older builds. */
  readonly order?: HostSpec;
}

/** The waiting messages of one session, oldest first. Only the holder of the session's lock delivers. */
export interface MessageQueue {
  /** Returns the system's code where it could not be written. */
  put(message: QueuedMessage): string | undefined;
  list(): readonly QueuedMessage[];
  remove(id: string): void;
}

const session = z.object({ runtimeId: z.string(), instanceId: z.string(), sessionId: z.string() });

const schema = z.object({
  version: z.literal(1),
  id: z.uuid(),
  text: z.string(),
  whenOwned: z.enum(['refuse', 'queue', 'fork', 'force']),
  approvals: z.enum(['ask', 'deny', 'runtime-default', 'allow-edits']),
  model: z.string().optional(),
  session,
  createdAt: z.number().int(),
  expiresAt: z.number().int(),
  attempted: z.boolean(),
  order: z
    .object({
      session,
      // A session that has a message behind its first one is there by then.
      start: z.object({ kind: z.literal('resume') }),
      workDir: z.string().min(1),
      approvalMs: z.number().int().positive(),
      keepMs: z.number().int().min(0),
      native: z.record(z.string(), z.string()),
    })
    .optional(),
});

/** JSON makes of one byte up to six. */
const FILE_BYTES = 6 * TEXT.messageBytes + 64 * 1024;
const NAME = /^(\d{14})-([0-9a-f-]{36})\.json$/;

/** The queue of one session. Times in names keep the order; nothing in a name tells what is said. */
export function openQueue(home: string, session: SessionRef): MessageQueue {
  const folder = placesOf(home, session).queue;
  const names = (): readonly string[] =>
    namesIn(folder)
      .filter((name) => NAME.test(name))
      .sort();
  return {
    put(message) {
      const name = `${String(message.createdAt).padStart(14, '0')}-${message.id}.json`;
      const result = writePrivate(join(folder, name), JSON.stringify({ version: 1, ...message }));
      return result.kind === 'failed' ? result.code : undefined;
    },
    list: () => names().flatMap((name) => readMessage(join(folder, name)) ?? []),
    remove(id) {
      for (const name of names())
        if (NAME.exec(name)?.[2] === id) rmSync(join(folder, name), { force: true });
      removeIfEmpty(folder);
    },
  };
}

/** The sessions that messages wait for, whether or not anybody is there to deliver them. */
export function queuedSessions(home: string): readonly SessionRef[] {
  return namesIn(queuesFolder(home)).flatMap((name) => {
    const folder = join(queuesFolder(home), name);
    const [first] = namesIn(folder).flatMap((file) => readMessage(join(folder, file)) ?? []);
    return first ? [first.session] : [];
  });
}

function readMessage(path: string): QueuedMessage | undefined {
  const read = readBounded(path, FILE_BYTES);
  if (read.kind !== 'read') return undefined;
  const parsed = schema.safeParse(parseJson(read.bytes.toString('utf8')));
  if (!parsed.success) return undefined;
  const { version: _, model, order, ...rest } = parsed.data;
  return { ...rest, ...(model === undefined ? {} : { model }), ...(order ? { order } : {}) };
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // More messages wait, or it is gone.
  }
}
