import { z } from 'zod';
import { CONTROL, FIELD, TEXT } from '../../limits.ts';
import { CONNECTOR_VERSION, reader } from './schema.ts';

const version = z.literal(CONNECTOR_VERSION).nullish();
const id = z.string().min(1).max(FIELD.pathChars);
const runtime = z.string().min(1).max(FIELD.nameChars);
const folder = z.string().min(1).max(FIELD.pathChars);
const model = z.string().min(1).max(FIELD.nameChars);
const span = z.number().int().min(1_000).max(CONTROL.keepMaxMs);
/** Half a surrogate pair can be written in JSON, and would be changed on its way. */
const whole = z
  .string()
  .refine((text) => text.isWellFormed(), { message: 'is no Unicode: half a surrogate pair' });
const words = whole.max(TEXT.noteChars);

const how = {
  /** What the turn may do without asking; nothing is approved by sending a message. */
  approvals: z.enum(['ask', 'deny', 'runtime-default', 'allow-edits']).default('ask'),
  /** After how long an unanswered request is denied, milliseconds. */
  approvalMs: span.default(CONTROL.approvalMs),
  /** How long a process of ours stays after a turn, milliseconds. */
  keepMs: z.number().int().min(0).max(CONTROL.keepMaxMs).nullish(),
  managedServer: z.boolean().nullish(),
  model: model.nullish(),
};

/** One part of a long text, in order from 0; base64, so that a character may be cut between two of them. */
const upload = z.object({
  version,
  id: z.uuid(),
  index: z.number().int().min(0),
  bytes: z.base64().max(Math.ceil(TEXT.partBytes / 3) * 4),
});

const send = z
  .object({
    version,
    /** A session by its id, or a beginning of it that only it has. */
    session: id.nullish(),
    runtime: runtime.nullish(),
    /** Instead of `session`: begins one there. */
    new: z.object({ runtime, dir: folder }).nullish(),
    /** The whole text, or `parts` with what was sent before by `upload`. */
    text: whole.nullish(),
    parts: z.object({ id: z.uuid(), count: z.number().int().min(1) }).nullish(),
    whenOwned: z.enum(['refuse', 'queue', 'fork', 'force']).default('refuse'),
    /** Answer only when the turn is over, or this has passed; absent: once it is accepted or queued. */
    followMs: z.number().int().min(1).max(CONTROL.keepMaxMs).nullish(),
    ...how,
  })
  .refine((one) => (one.session == null) !== (one.new == null), { message: 'give either session or new' })
  .refine((one) => (one.text == null) !== (one.parts == null), { message: 'give either text or parts' })
  .refine((one) => Buffer.byteLength(one.text ?? '') <= TEXT.partBytes, {
    path: ['text'],
    message: `longer than ${TEXT.partBytes} bytes: send it in parts`,
  });

const abort = z.object({
  version,
  session: id,
  runtime: runtime.nullish(),
  kill: z.boolean().default(false),
});

const approve = z
  .object({
    version,
    /** Without one, what waits is listed. */
    request: id.nullish(),
    session: id.nullish(),
    runtime: runtime.nullish(),
    decision: z.enum(['allow-once', 'allow-session', 'deny', 'answer']).nullish(),
    /** A word to the model with a denial. */
    note: words.nullish(),
    /** Answers by question id. */
    answers: z.record(z.string().max(FIELD.idChars), z.array(words).max(FIELD.folders)).nullish(),
  })
  .refine((one) => one.decision == null || one.request != null, { message: 'a decision needs its request' });

const create = z.object({
  version,
  runtime,
  dir: folder,
  title: z.string().max(FIELD.nameChars).nullish(),
  ...how,
});

/** What `send` is given, its defaults filled in. */
export type SendPayload = z.infer<typeof send>;
export type AbortPayload = z.infer<typeof abort>;
export type ApprovePayload = z.infer<typeof approve>;
export type CreatePayload = z.infer<typeof create>;

/** Readers of the payloads of the acting operations; each throws `RequestError` naming its operation. */
export const readAct = {
  upload: reader('upload', upload),
  send: reader('send', send),
  abort: reader('abort', abort),
  approve: reader('approve', approve),
  create: reader('create', create),
} as const;
