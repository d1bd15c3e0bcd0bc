import { z } from 'zod';
import { RequestError } from '../daemon/protocol.ts';
import type { Service } from '../daemon/service.ts';
import { CONTROL } from '../limits.ts';
import type { Host } from './host.ts';
import { createUploads } from './uploads.ts';

/** Name of the service on a host's socket. */
export const HOST_SERVICE = 'host';

const approvals = z.enum(['ask', 'deny', 'runtime-default', 'allow-edits']);
const part = z.object({ id: z.uuid(), index: z.number().int().min(0), bytes: z.base64() });
const submit = z.object({
  id: z.uuid(),
  parts: z.number().int().min(1),
  whenOwned: z.enum(['refuse', 'queue', 'fork', 'force']),
  approvals,
  model: z.string().max(512).optional(),
  expiresAt: z.number().int().optional(),
});
const follow = z.object({
  ticket: z.uuid(),
  from: z.number().int().min(0),
  holdMs: z.number().int().min(0).max(CONTROL.holdMs),
});
const leave = z.object({ ticket: z.uuid() });
const answer = z.object({
  session: z.object({ runtimeId: z.string(), instanceId: z.string(), sessionId: z.string() }),
  requestId: z.string().min(1).max(256),
  decision: z.enum(['allow-once', 'allow-session', 'deny', 'answer']),
  note: z.string().max(16_384).optional(),
  answers: z.record(z.string(), z.array(z.string().max(16_384))).optional(),
});
const abort = z.object({ kill: z.boolean() });
const open = z.object({ approvals, model: z.string().max(512).optional() });

function read<T>(op: string, schema: z.ZodType<T>, payload: unknown): T {
  const parsed = schema.safeParse(payload ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new RequestError(`invalid \`${op}\` payload: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}

/** Optional fields that are undefined are left out, as `exactOptionalPropertyTypes` wants it. */
function defined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never;
}

/** What a host answers on its private socket. Texts come in parts, because one line holds no more than 1 MiB. */
export function hostService(host: Host): Service {
  const uploads = createUploads();
  return {
    name: HOST_SERVICE,
    ops: {
      hello: () => host.status(),
      part(payload) {
        const { id, index, bytes } = read('part', part, payload);
        uploads.add(id, index, Buffer.from(bytes, 'base64'));
        return { kind: 'taken' };
      },
      submit(payload) {
        const { parts, expiresAt, ...message } = read('submit', submit, payload);
        const known = host.ticket(message.id);
        if (known) return { kind: 'ticket', ticket: known.id };
        const text = uploads.take(message.id, parts);
        const result = host.submit({ ...defined(message), text }, expiresAt);
        return result.kind === 'ticket' ? { kind: 'ticket', ticket: result.ticket.id } : result;
      },
      async follow(payload, { signal }) {
        const { ticket, from, holdMs } = read('follow', follow, payload);
        const found = host.ticket(ticket);
        if (!found) throw new RequestError('unknown ticket');
        return found.follow(from, holdMs, signal);
      },
      leave(payload) {
        host.ticket(read('leave', leave, payload).ticket)?.leave();
        return { kind: 'left' };
      },
      pending: () => ({ requests: host.pending() }),
      answer: (payload) => host.answer(defined(read('answer', answer, payload))),
      abort: (payload) => host.abort(read('abort', abort, payload).kill),
      async open(payload) {
        const refusal = await host.open(defined(read('open', open, payload)));
        return refusal ? { kind: 'refused', refusal } : { kind: 'opened' };
      },
    },
  };
}
