import type { Line } from '../../runtime/files/jsonl.ts';

/** What a line may be: bits, since a line of an unusual shape may be several things until it is parsed. */
export const MAY_BE = { turnEvent: 1, context: 2, prompt: 4, usage: 8 } as const;

/** Enough for the frame: time, ordinal, type, and the payload's first key. */
const FRAME_BYTES = 128;
const FRAME = /^\{"timestamp":"[^"]*",(?:"ordinal":\d+,)?"type":"(\w+)","payload":\{(?:"type":"(\w+)")?/;

const BY_EVENT: Readonly<Record<string, number>> = {
  task_started: MAY_BE.turnEvent,
  task_complete: MAY_BE.turnEvent,
  turn_started: MAY_BE.turnEvent,
  turn_complete: MAY_BE.turnEvent,
  turn_aborted: MAY_BE.turnEvent,
  thread_rolled_back: MAY_BE.turnEvent,
  thread_settings_applied: MAY_BE.context,
  user_message: MAY_BE.prompt,
  token_count: MAY_BE.usage,
};

/**
 * What a line may be, seen in its first bytes: of a list of thousands of rollouts most lines are never looked into.
 * A line with another order of keys, spacing or format is searched as a whole. Quotation marks inside JSON strings
 * are escaped, so no text of the conversation matches.
 */
export function mayBe(line: Line): number {
  const [, type, payload] = FRAME.exec(line.prefix(FRAME_BYTES)) ?? [];
  if (type === 'turn_context') return MAY_BE.context;
  if (type !== undefined && type !== 'event_msg') return 0;
  if (payload === undefined) return search(line);
  if (payload === 'item_completed') return isUserItem(line) ? MAY_BE.prompt : 0;
  return BY_EVENT[payload] ?? 0;
}

/** The item follows two ids. */
const ITEM_BYTES = 400;

function isUserItem(line: Line): boolean {
  const type = /"item":\{"type":"(\w+)"/.exec(line.prefix(ITEM_BYTES))?.[1];
  return type === undefined ? line.has('"UserMessage"') : type === 'UserMessage';
}

const EVENT_MARKS = Object.entries(BY_EVENT).map(([name, bit]) => ({ mark: `"${name}"`, bit }));

function search(line: Line): number {
  const named = EVENT_MARKS.reduce((bits, { mark, bit }) => (line.has(mark) ? bits | bit : bits), 0);
  const context = line.has('"turn_context"') ? MAY_BE.context : 0;
  const prompt = line.has('"UserMessage"') ? MAY_BE.prompt : 0;
  // A bare line is the message itself; one that names the folder is the program's own.
  const bare = line.has('"role":"user"') && !line.has('"payload"') ? MAY_BE.prompt | MAY_BE.context : 0;
  return named | context | prompt | bare;
}
