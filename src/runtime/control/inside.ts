import { existsSync } from 'node:fs';
import { z } from 'zod';
import type {
  AbortResult,
  ApprovalAnswer,
  ApprovalResult,
  ControlEvent,
  PendingRequest,
  Refusal,
  RuntimeControl,
  SendRequest,
} from '../control.ts';
import { createClient, type RequestResult, type ServiceClient } from '../daemon/client.ts';
import { endpointOf, socketPathIn } from '../daemon/endpoint.ts';
import {
  type AttachedView,
  attachedView,
  type OrderView,
  orderView,
  pendingOf,
} from '../daemon/inside/schema.ts';
import { CLIENT, CONTROL, INSIDE } from '../limits.ts';
import type { SessionRef } from '../session/session.ts';
import type { ActingContext } from './context.ts';

/** How long the daemon may take to say who is attached; a slower one is not waited for. */
const ASK_MS = 500;

const SEE = 'See: shadowob-connector session-list';

type Context = Pick<ActingContext, 'connectorHome' | 'platform' | 'now'>;

/**
 * The way back before all others: where our extension runs in the program that has a session open, the program's
 * own client takes the order, in the very terminal. Everything else is left to the runtime's own ways.
 */
export function insideFirst<C extends ActingContext>(
  runtimeId: string,
  base: RuntimeControl<C>,
): RuntimeControl<C> {
  return {
    ...base,
    async *send(context, request, signal) {
      const way = await wayOf(context, request);
      if (way) yield* sendInside(context, way, request, signal);
      else if (base.send) yield* base.send(context, request, signal);
      else yield { type: 'refused', at: context.now(), ...NO_WAY };
    },
    async abort(context, request) {
      const program = request.kill ? undefined : await holderOf(context, request.session);
      if (program?.view.can.includes('abort')) return abortInside(program, request.session);
      return base.abort?.(context, request) ?? { kind: 'refused', refusal: NO_WAY };
    },
    async pending(context, session) {
      const [inside, others] = await Promise.all([
        pendingInside(context, runtimeId, session),
        base.pending?.(context, session) ?? [],
      ]);
      const known = new Set(inside.map(({ requestId }) => requestId));
      return [...inside, ...others.filter(({ requestId }) => !known.has(requestId))];
    },
    async approve(context, answer) {
      const program = await holderOf(context, answer.session);
      const lists = program?.view.requests.some(({ requestId }) => requestId === answer.requestId);
      if (program && lists) return approveInside(program, answer);
      return base.approve?.(context, answer) ?? { kind: 'refused', refusal: NO_WAY };
    },
  };
}

const NO_WAY: Refusal = {
  reason: 'no program with our extension in it has this session open',
  kind: 'unsupported',
  next: 'shadowob-connector hooks-status',
};

interface Program {
  readonly client: ServiceClient;
  readonly view: AttachedView;
}

const attachedReply = z.object({ attached: z.array(attachedView) });

/** The programs that are attached now; none where no daemon answers in time. */
async function listAttached(
  { connectorHome, platform }: Context,
  filter: { readonly runtimeId: string; readonly sessionId?: string },
): Promise<readonly Program[]> {
  const socketPath = socketPathIn(connectorHome);
  if (endpointOf(socketPath, platform).kind === 'unix' && !existsSync(socketPath)) return [];
  const client = createClient({ socketPath, platform });
  const reply = await client.request('connector', 'inside-attached', filter, { timeoutMs: ASK_MS });
  const parsed = reply.kind === 'ok' ? attachedReply.safeParse(reply.payload) : undefined;
  return parsed?.success ? parsed.data.attached.map((view) => ({ client, view })) : [];
}

async function holderOf(context: Context, session: SessionRef): Promise<Program | undefined> {
  const { runtimeId, instanceId, sessionId } = session;
  const programs = await listAttached(context, { runtimeId, sessionId });
  return programs.find(({ view }) => view.instanceId === instanceId);
}

interface Way extends Program {
  readonly session: SessionRef;
}

async function wayOf(context: Context, request: SendRequest): Promise<Way | undefined> {
  const { target, whenOwned } = request;
  // A copy is another session, which nobody has open.
  if (target.kind !== 'session' || whenOwned === 'fork') return undefined;
  const session = target.session.ref;
  const program = await holderOf(context, session);
  return program?.view.can.includes('prompt') ? { ...program, session } : undefined;
}

async function* sendInside(
  context: Context,
  { client, view, session }: Way,
  request: SendRequest,
  signal: AbortSignal,
): AsyncGenerator<ControlEvent, void> {
  const at = (): number => context.now();
  if (request.approvals !== 'ask') {
    yield { type: 'refused', at: at(), ...ownPolicy(view.pid) };
    return;
  }
  const order = crypto.randomUUID();
  const laid = await layDown(client, order, session, request);
  if (laid) {
    yield { type: 'refused', at: at(), ...laid };
    return;
  }
  const left = new AbortController();
  const leave = (): void => left.abort();
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  const state = { accepted: false, waiting: new Map<string, PendingRequest>(), timedOut: false };
  const timer = { cancel: () => {} };
  try {
    for await (const seen of follow(client, order, left.signal)) {
      if (seen === 'lost') break;
      yield* requestsOf(seen, session, state.waiting, at());
      if (seen.state === 'refused') {
        yield { type: 'refused', at: at(), ...refusalOf(seen) };
        return;
      }
      if ((seen.state === 'accepted' || seen.state === 'done') && !state.accepted) {
        state.accepted = true;
        const detail = `process ${view.pid}: ${seen.detail ?? 'it has the message'}`;
        yield { type: 'accepted', at: at(), session, mode: 'inside', detail };
        if (request.followMs === undefined) return;
        timer.cancel = after(request.followMs, () => {
          state.timedOut = true;
          leave();
        });
      }
      if (seen.state === 'done') {
        yield { type: 'done', at: at(), ...endOf(seen) };
        return;
      }
    }
    if (state.timedOut) yield { type: 'left', at: at(), reason: 'followed long enough' };
    else if (signal.aborted) yield { type: 'left', at: at(), reason: 'caller left' };
    else if (state.accepted) yield { type: 'left', at: at(), reason: 'host lost' };
    else yield { type: 'refused', at: at(), ...DAEMON_LOST };
  } finally {
    timer.cancel();
    leave();
    signal.removeEventListener('abort', leave);
  }
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

function ownPolicy(pid: number): Refusal {
  return {
    reason: `process ${pid} has it open, and asks by its own rules: another policy can’t be given to one turn of it`,
    kind: 'unsupported',
    next: 'Send it with --approvals ask, or to a copy: --when-owned fork',
  };
}

const DAEMON_LOST: Refusal = {
  reason: 'the daemon was lost before the program said that it has the message; it may have it',
  kind: 'network',
  next: 'Look at its terminal before you send it again.',
};

/** Lays the message down in parts. A refusal says why the daemon did not take it. */
async function layDown(
  client: ServiceClient,
  order: string,
  session: SessionRef,
  { text, model }: SendRequest,
): Promise<Refusal | undefined> {
  const bytes = Buffer.from(text, 'utf8');
  const parts = Math.max(1, Math.ceil(bytes.length / INSIDE.partBytes));
  for (let index = 0; index < parts; index += 1) {
    const piece = bytes.subarray(index * INSIDE.partBytes, (index + 1) * INSIDE.partBytes);
    const payload = { order, index, bytes: piece.toString('base64') };
    const refusal = refusedBy(await client.request('connector', 'inside-part', payload));
    if (refusal) return refusal;
  }
  const payload = { order, session, parts, ...(model === undefined ? {} : { model }) };
  return refusedBy(await client.request('connector', 'inside-send', payload));
}

function refusedBy(reply: RequestResult): Refusal | undefined {
  if (reply.kind === 'ok') return undefined;
  if (reply.kind === 'unreachable') {
    return { reason: `the daemon did not take it: ${reply.detail}`, kind: 'network', next: SEE };
  }
  const unknown = reply.error.startsWith('no request');
  return { reason: reply.error, kind: unknown ? 'notFound' : 'refused', next: SEE };
}

/** What becomes of an order, until it is over; `lost` when the daemon no longer says. */
async function* follow(
  client: ServiceClient,
  order: string,
  signal: AbortSignal,
): AsyncGenerator<OrderView | 'lost', void> {
  const frames = client.subscribe('connector', 'inside-follow', {
    payload: { order },
    signal,
    pollOp: 'inside-attached',
  });
  for await (const frame of frames) {
    const parsed = frame.kind === 'snapshot' ? orderView.safeParse(frame.payload) : undefined;
    if (!parsed?.success) {
      // Orders live in the daemon's memory: one that began anew knows nothing of them.
      yield 'lost';
      return;
    }
    yield parsed.data;
    if (parsed.data.state === 'done' || parsed.data.state === 'refused') return;
  }
}

function* requestsOf(
  seen: OrderView,
  session: SessionRef,
  waiting: Map<string, PendingRequest>,
  at: number,
): Generator<ControlEvent> {
  if (seen.state !== 'accepted') return;
  const now = new Map(seen.requests.map((one) => [one.requestId, pendingOf(one, session)]));
  for (const [id, request] of now) if (!waiting.has(id)) yield { type: 'request', at, request };
  for (const requestId of waiting.keys()) {
    // By whom and how it was answered is not told here, only that it no longer waits.
    if (!now.has(requestId)) yield { type: 'resolved', at, requestId, decision: 'withdrawn' };
  }
  waiting.clear();
  for (const [id, request] of now) waiting.set(id, request);
}

function refusalOf({ detail, kind, next }: OrderView): Refusal {
  return { reason: detail ?? 'the program refused it', kind: kind ?? 'refused', next: next ?? SEE };
}

function endOf({ outcome, text, error, notes, confirmed }: OrderView) {
  const unsure = confirmed === false && outcome === undefined ? ['the end of the turn was not seen'] : [];
  const all = [...(notes ?? []), ...unsure];
  return {
    outcome: outcome ?? 'stopped',
    ...(text === undefined ? {} : { text }),
    ...(error === undefined ? {} : { error }),
    ...(all.length > 0 ? { notes: all } : {}),
  } as const;
}

/** The order's end, or why it was not seen in time. */
async function ending(client: ServiceClient, order: string, ms: number): Promise<OrderView | undefined> {
  const left = new AbortController();
  const cancel = after(ms, () => left.abort());
  const held: { last?: OrderView } = {};
  try {
    for await (const seen of follow(client, order, left.signal)) {
      if (seen === 'lost') break;
      held.last = seen;
    }
    return held.last;
  } finally {
    cancel();
    left.abort();
  }
}

async function abortInside({ client, view }: Program, session: SessionRef): Promise<AbortResult> {
  const order = crypto.randomUUID();
  const refusal = refusedBy(await client.request('connector', 'inside-abort', { order, session }));
  if (refusal) return { kind: 'refused', refusal };
  const seen = await ending(client, order, INSIDE.acceptMs + CONTROL.interruptMs);
  if (seen?.state === 'refused') return { kind: 'refused', refusal: refusalOf(seen) };
  if (seen?.state === 'done' && seen.confirmed === true) {
    return { kind: 'stopped', detail: `process ${view.pid} has stopped its turn` };
  }
  return {
    kind: 'refused',
    refusal: {
      reason: `process ${view.pid} was asked to stop, and the end of its turn was not seen`,
      kind: 'timedOut',
      next: `Look at its terminal; to end it: shadowob-connector session-abort ${session.sessionId} --kill`,
    },
  };
}

async function pendingInside(
  context: Context,
  runtimeId: string,
  session: SessionRef | undefined,
): Promise<readonly PendingRequest[]> {
  const programs = await listAttached(context, { runtimeId });
  const all = programs.flatMap(({ view }) => view.requests.map((request) => pendingOf(request, view)));
  return all.filter(
    (one) =>
      !session ||
      (one.session.sessionId === session.sessionId && one.session.instanceId === session.instanceId),
  );
}

async function approveInside({ client, view }: Program, answer: ApprovalAnswer): Promise<ApprovalResult> {
  const { session, requestId, decision, note } = answer;
  if (note !== undefined) return { kind: 'refused', refusal: noNote(view.pid) };
  const order = crypto.randomUUID();
  const payload = { order, session, requestId, decision };
  const refusal = refusedBy(await client.request('connector', 'inside-approve', payload));
  if (refusal) return { kind: 'refused', refusal };
  const seen = await ending(client, order, INSIDE.acceptMs + CLIENT.requestMs);
  if (seen?.state === 'refused') return { kind: 'refused', refusal: refusalOf(seen) };
  if (seen?.state === 'done' && seen.confirmed === true) {
    return { kind: 'applied', detail: `process ${view.pid}: ${seen.detail ?? 'it has the answer'}` };
  }
  return { kind: 'sent', detail: seen?.detail ?? `process ${view.pid} has not confirmed it` };
}

/** With a word a denial goes on, without one it ends the turn: one may not stand for the other. */
function noNote(pid: number): Refusal {
  return {
    reason: `process ${pid} takes a denial, but no word with it`,
    kind: 'unsupported',
    next: 'Deny it without --note, then send the word as a message.',
  };
}
