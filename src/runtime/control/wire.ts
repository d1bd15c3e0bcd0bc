import { z } from 'zod';
import type { AbortResult, ApprovalResult, ControlEvent, PendingRequest, Refusal } from '../control.ts';

/**
 * What a host's replies may hold, checked where they come in: the host may be of another version of ours. Unknown
 * events are skipped, unknown fields left out.
 */

const refusalKind = z.enum([
  'ownedElsewhere',
  'refused',
  'unsupported',
  'runtimeMissing',
  'notFound',
  'timedOut',
  'network',
]);
const refusal = z.object({ reason: z.string(), kind: refusalKind, next: z.string() });
const session = z.object({ runtimeId: z.string(), instanceId: z.string(), sessionId: z.string() });
const decision = z.enum(['allow-once', 'allow-session', 'deny', 'answer']);
const at = z.number();
const question = z.object({
  id: z.string(),
  text: z.string(),
  options: z.array(z.object({ label: z.string(), description: z.string().optional() })),
  multiple: z.boolean(),
});
const request = z.object({
  requestId: z.string(),
  session,
  kind: z.enum(['permission', 'plan', 'question', 'form']),
  askedAt: z.number().optional(),
  expiresAt: z.number().optional(),
  subject: z.string(),
  detail: z.string(),
  detailCut: z.boolean().optional(),
  questions: z.array(question).optional(),
  allows: z.array(decision),
  sessionScope: z.string().optional(),
});

const event = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('queued'),
    at,
    reason: z.string(),
    behind: z.object({ requestId: z.string(), subject: z.string() }).optional(),
  }),
  z.object({ type: z.literal('note'), at, text: z.string() }),
  z.object({
    type: z.literal('accepted'),
    at,
    session,
    mode: z.enum(['server', 'process', 'owned', 'inside', 'queue']),
    detail: z.string(),
    resume: z.string().optional(),
  }),
  z.object({
    type: z.literal('progress'),
    at,
    doing: z.enum(['running', 'streaming', 'tool', 'retrying']),
    text: z.string().optional(),
    tool: z.string().optional(),
  }),
  z.object({ type: z.literal('request'), at, request }),
  z.object({
    type: z.literal('resolved'),
    at,
    requestId: z.string(),
    decision: z.union([decision, z.enum(['expired', 'withdrawn'])]),
  }),
  z.object({
    type: z.literal('done'),
    at,
    outcome: z.enum(['completed', 'failed', 'stopped', 'limited']),
    text: z.string().optional(),
    error: z.string().optional(),
    exitCode: z.number().nullable().optional(),
    notes: z.array(z.string()).optional(),
  }),
  z.object({
    type: z.literal('left'),
    at,
    reason: z.enum(['followed long enough', 'caller left', 'host lost']),
  }),
  refusal.extend({ type: z.literal('refused'), at }),
]);

const news = z.object({ events: z.array(z.unknown()), next: z.number(), ended: z.boolean() });
const submitted = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ticket'), ticket: z.string() }),
  z.object({ kind: z.literal('closing') }),
  z.object({ kind: z.literal('refused'), refusal }),
]);
const approval = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('applied'), detail: z.string() }),
  z.object({ kind: z.literal('sent'), detail: z.string() }),
  z.object({ kind: z.literal('refused'), refusal }),
]);
const abort = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('stopped'), detail: z.string() }),
  z.object({
    kind: z.literal('survived'),
    survivors: z.array(z.object({ pid: z.number(), command: z.string() })),
  }),
  z.object({ kind: z.literal('refused'), refusal }),
]);
const opened = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('opened') }),
  z.object({ kind: z.literal('refused'), refusal }),
]);

/** zod's optional fields may hold `undefined`; JSON never does, so what was parsed has the exact type. */
function exact<T>(value: unknown): T {
  return value as T;
}

/** News of a message: its events, those of unknown form left out. */
export function readNews(payload: unknown): {
  readonly events: readonly ControlEvent[];
  readonly next: number;
  readonly ended: boolean;
} {
  const { events, ...rest } = news.parse(payload);
  return { ...rest, events: events.flatMap((one) => readEvent(one) ?? []) };
}

function readEvent(value: unknown): ControlEvent | undefined {
  const parsed = event.safeParse(value);
  return parsed.success ? exact<ControlEvent>(parsed.data) : undefined;
}

export function readSubmitted(payload: unknown): z.infer<typeof submitted> {
  return submitted.parse(payload);
}

/** Requests that wait; one of unknown form is left out. */
export function readPending(payload: unknown): readonly PendingRequest[] {
  const { requests } = z.object({ requests: z.array(z.unknown()) }).parse(payload);
  return requests.flatMap((one) => {
    const parsed = request.safeParse(one);
    return parsed.success ? [exact<PendingRequest>(parsed.data)] : [];
  });
}

export function readApproval(payload: unknown): ApprovalResult {
  return approval.parse(payload);
}

export function readAbort(payload: unknown): AbortResult {
  return abort.parse(payload);
}

export function readOpened(
  payload: unknown,
): { readonly kind: 'opened' } | { readonly kind: 'refused'; readonly refusal: Refusal } {
  return opened.parse(payload);
}
