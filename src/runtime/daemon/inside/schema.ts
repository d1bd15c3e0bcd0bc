import { z } from 'zod';
import type { PendingRequest } from '../../control.ts';
import { FIELD, INSIDE, TEXT } from '../../limits.ts';
import { CONNECTOR_VERSION } from '../connector/schema.ts';
import { RequestError } from '../protocol.ts';

/**
 * The payloads of the way back on the `connector` service: what an extension inside a program says, and what commands
 * ask of it. Unknown fields are ignored, absent optionals left out (S-308).
 */

const version = z.literal(CONNECTOR_VERSION).nullish();
const id = z.string().min(1).max(FIELD.idChars);
const name = z.string().max(FIELD.nameChars);
const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);

const session = z.object({
  runtimeId: z.string().min(1).max(FIELD.nameChars),
  instanceId: z.string().min(1).max(FIELD.nameChars),
  sessionId: id,
});

/** What a program's own client can do with its sessions. */
export const ABILITIES = ['prompt', 'abort', 'approve'] as const;

const attach = z.object({
  version,
  runtimeId: z.string().min(1).max(FIELD.nameChars),
  instanceId: z.string().min(1).max(FIELD.nameChars),
  /** The program's process. Up to 1 is nobody's (S-109). */
  pid: z.number().int().min(2),
  /** Version of the extension's text. */
  generation: z.number().int().min(1),
  can: z.array(z.enum(ABILITIES)).max(ABILITIES.length),
});

const request = z.object({
  requestId: id,
  /** The session under whose row it is shown. */
  sessionId: id,
  subject: name,
  detail: z.string().max(INSIDE.detailChars),
  detailCut: optional(z.boolean()),
  /** Epoch milliseconds. */
  askedAt: optional(z.number()),
  allows: z
    .array(z.enum(['allow-once', 'allow-session', 'deny']))
    .min(1)
    .max(3),
  sessionScope: optional(z.string().max(FIELD.pathChars)),
});

const report = z.object({
  version,
  attachment: id,
  /** All sessions that the program has open or has run; replaces what was said before. */
  sessions: optional(z.array(id).max(INSIDE.sessions)),
  /** All permissions that wait in it; replaces what was said before. */
  requests: optional(z.array(request).max(INSIDE.requests)),
  /** The runtime's own events, in order, for its adapter to read. */
  events: optional(z.array(z.unknown()).max(INSIDE.events)),
});

const take = z.object({
  version,
  attachment: id,
  order: id,
  /** From 0. */
  part: z.number().int().min(0),
});

const answer = z.object({
  version,
  attachment: id,
  order: id,
  state: z.enum(['accepted', 'done', 'refused']),
  /** One line: what the program said. */
  detail: optional(name),
  /** Of `refused`: what to try next, one line. */
  next: optional(name),
  /** Of `refused`: it waits for somebody else, or can't be done here at all. */
  kind: optional(z.enum(['refused', 'unsupported', 'notFound', 'timedOut'])),
  /** Of `done`: how the turn ended. */
  outcome: optional(z.enum(['completed', 'failed', 'stopped', 'limited'])),
  /** Of `done`: the program has confirmed it; `false`: sent, and no word of it (A1). */
  confirmed: optional(z.boolean()),
  text: optional(z.string().max(INSIDE.finalChars)),
  error: optional(name),
  notes: optional(z.array(name).max(8)),
});

const part = z.object({
  version,
  /** Of the order that the text is for. */
  order: id,
  index: z
    .number()
    .int()
    .min(0)
    .max(INSIDE.parts - 1),
  /** Base64 of a piece of the UTF-8 text. */
  bytes: z.string().max(Math.ceil((TEXT.partBytes * 4) / 3) + 4),
});

const send = z.object({
  version,
  order: id,
  session,
  parts: z.number().int().min(1).max(INSIDE.parts),
  model: optional(name),
});

const abort = z.object({ version, order: id, session });

const approve = z.object({
  version,
  order: id,
  session,
  requestId: id,
  decision: z.enum(['allow-once', 'allow-session', 'deny']),
});

const attached = z.object({
  version,
  runtimeId: optional(name),
  /** Only the session of this id. */
  sessionId: optional(id),
});

const follow = z.object({ version, order: id });

export type Attach = z.infer<typeof attach>;
export type Report = z.infer<typeof report>;
export type InsideAnswer = z.infer<typeof answer>;
export type InsideRequest = z.infer<typeof request>;
export type Ability = (typeof ABILITIES)[number];

function reader<T>(op: string, schema: z.ZodType<T>): (payload: unknown) => T {
  return (payload) => {
    const parsed = schema.safeParse(payload ?? {});
    if (parsed.success) return parsed.data;
    // Field and reason, never the value that was sent (S-307).
    const issues = parsed.error.issues.slice(0, 3).map((one) => `${one.path.join('.')}: ${one.message}`);
    throw new RequestError(`invalid \`${op}\` payload: ${issues.join('; ')}`);
  };
}

/** Readers of the payloads; each throws `RequestError` naming its operation (S-318). */
export const readInside = {
  attach: reader('inside-attach', attach),
  report: reader('inside-report', report),
  take: reader('inside-take', take),
  answer: reader('inside-answer', answer),
  part: reader('inside-part', part),
  send: reader('inside-send', send),
  abort: reader('inside-abort', abort),
  approve: reader('inside-approve', approve),
  attached: reader('inside-attached', attached),
  follow: reader('inside-follow', follow),
} as const;

const optionalName = z.string().optional();

/** One attached program, as `attached` answers. */
export const attachedView = z.object({
  runtimeId: z.string(),
  instanceId: z.string(),
  pid: z.number(),
  generation: z.number(),
  can: z.array(z.enum(ABILITIES)),
  sessions: z.array(z.string()),
  requests: z.array(request),
});
export type AttachedView = z.infer<typeof attachedView>;

/** One order as a frame of `follow` shows it. */
export const orderView = z.object({
  order: z.string(),
  state: z.enum(['waiting', 'taken', 'accepted', 'done', 'refused']),
  pid: z.number(),
  detail: optionalName,
  next: optionalName,
  kind: z.enum(['refused', 'unsupported', 'notFound', 'timedOut']).optional(),
  outcome: z.enum(['completed', 'failed', 'stopped', 'limited']).optional(),
  confirmed: z.boolean().optional(),
  text: optionalName,
  error: optionalName,
  notes: z.array(z.string()).optional(),
  /** What waits for an answer in its session now. */
  requests: z.array(request),
});
export type OrderView = z.infer<typeof orderView>;

/** A request as the commands know it. */
export function pendingOf(
  { sessionId, ...rest }: InsideRequest,
  at: { readonly runtimeId: string; readonly instanceId: string },
): PendingRequest {
  const { detailCut, askedAt, sessionScope, ...base } = rest;
  return {
    ...base,
    session: { runtimeId: at.runtimeId, instanceId: at.instanceId, sessionId },
    kind: 'permission',
    ...(detailCut === undefined ? {} : { detailCut }),
    ...(askedAt === undefined ? {} : { askedAt }),
    ...(sessionScope === undefined ? {} : { sessionScope }),
  };
}
