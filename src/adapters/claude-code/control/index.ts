import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import type { HostSpec, Message } from '../../../runtime/control/driver.ts';
import {
  abortAtHost,
  answerAtHost,
  openThroughHost,
  pendingAtHosts,
  sendThroughHost,
} from '../../../runtime/control/through-host.ts';
import type {
  ControlEvent,
  CreateRequest,
  CreateResult,
  Refusal,
  RuntimeControl,
  SendRequest,
} from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { Session } from '../../../runtime/session/session.ts';
import type { ControlContext } from '../../adapter.ts';
import { INSTANCE_ID, RUNTIME_ID } from '../session.ts';
import { abortElsewhere, NOBODY } from './abort.ts';
import { createClaudeDriver } from './driver.ts';
import { configHomeOf } from './launch.ts';
import { obstacleOf, possessorsOf } from './possession.ts';
import { controlHost } from './system.ts';

/** How Claude Code is acted on; recorded versions 2.1.197 and 2.1.332. Every push goes through a host of ours. */
export const claudeControl: RuntimeControl<ControlContext> = {
  send,
  create,
  async abort(context, { session, known, kill }) {
    const result = await abortAtHost(context, session, kill);
    if (result) return result;
    return known ? abortElsewhere(context, known, kill) : { kind: 'refused', refusal: NOBODY };
  },
  pending: (context, session) => pendingAtHosts(context, RUNTIME_ID, session),
  async approve(context, answer) {
    const result = await answerAtHost(context, answer);
    return result ?? { kind: 'refused', refusal: notAsked(answer.requestId) };
  },
  host: createClaudeDriver,
};

async function* send(
  context: ControlContext,
  request: SendRequest,
  signal: AbortSignal,
): AsyncGenerator<ControlEvent, void> {
  const plan = await planFor(context, request);
  if ('reason' in plan) {
    yield { type: 'refused', at: context.now(), ...plan };
    return;
  }
  for (const text of plan.notes) yield { type: 'note', at: context.now(), text };
  const message: Message = {
    id: randomUUID(),
    text: request.text,
    whenOwned: request.whenOwned,
    approvals: request.approvals,
    ...(request.model === undefined ? {} : { model: request.model }),
  };
  const { followMs } = request;
  yield* sendThroughHost(context, plan.spec, message, {
    signal,
    ...(followMs === undefined ? {} : { followMs }),
  });
}

interface Plan {
  readonly spec: HostSpec;
  readonly notes: readonly string[];
}

async function planFor(context: ControlContext, request: SendRequest): Promise<Plan | Refusal> {
  const { target } = request;
  const notes = slashNotes(request.text);
  if (target.kind === 'new') return { spec: newSpec(context, target.workDir, request), notes };
  const { session } = target;
  const { workDir } = session.facts;
  if (workDir === undefined) return noFolder(session);
  const spec = resumeSpec(context, session, workDir, request);
  const isOpen = request.whenOwned === 'fork' && (await isPossessed(context, session, workDir));
  return { spec: isOpen ? forkOf(spec) : spec, notes: [...notes, ...hugeNotes(session)] };
}

function newSpec(
  context: ControlContext,
  workDir: string,
  request: Pick<SendRequest, 'approvalMs' | 'keepMs'>,
): HostSpec {
  const named = context.env['CLAUDE_CONFIG_DIR'];
  return {
    session: { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: randomUUID() },
    start: { kind: 'new' },
    workDir,
    approvalMs: request.approvalMs,
    keepMs: request.keepMs ?? CONTROL.keepMs,
    // A relative one would mean another folder in the child.
    native: named ? { configHome: resolve(named) } : {},
  };
}

function resumeSpec(
  context: ControlContext,
  { ref, facts }: Session,
  workDir: string,
  request: Pick<SendRequest, 'approvalMs' | 'keepMs'>,
): HostSpec {
  const configHome = facts.file ? configHomeOf({ path: facts.file }, context.home) : undefined;
  const version = facts.native?.['version'];
  return {
    session: ref,
    start: { kind: 'resume' },
    workDir,
    approvalMs: request.approvalMs,
    // A session that is the user's own is let go at once, so that it can be resumed in a terminal.
    keepMs: request.keepMs ?? 0,
    native: {
      ...(configHome ? { configHome } : {}),
      ...(typeof version === 'string' ? { version } : {}),
      ...(facts.headless ? { entrypoint: 'sdk-cli' } : { entrypoint: 'cli' }),
    },
  };
}

/** A copy under an id of ours: its rows, and nothing of what the owner does from now on. */
function forkOf(spec: HostSpec): HostSpec {
  return {
    ...spec,
    session: { ...spec.session, sessionId: randomUUID() },
    start: { kind: 'fork', of: spec.session.sessionId },
  };
}

async function isPossessed(context: ControlContext, session: Session, workDir: string): Promise<boolean> {
  const version = session.facts.native?.['version'];
  const asked = {
    sessionId: session.ref.sessionId,
    workDir,
    ...(typeof version === 'string' ? { version } : {}),
  };
  const possessors = await possessorsOf(asked, context, controlHost(context));
  return obstacleOf(possessors, session.ref.sessionId)?.kind === 'owned';
}

function noFolder({ ref }: Session): Refusal {
  return {
    reason: 'nothing says in which folder this session began, and Claude Code resumes it only there',
    kind: 'refused',
    next: `See: shadowob-connector session-why ${ref.sessionId}`,
  };
}

/** X10: Claude Code reads the whole file and needs 9 to 14 times its size in memory. */
function hugeNotes({ facts }: Session): readonly string[] {
  const size = facts.sizeBytes ?? 0;
  if (size < CONTROL.hugeSessionBytes) return [];
  const mib = (bytes: number): string => `${Math.round(bytes / (1024 * 1024))} MiB`;
  return [
    `a huge session: ${mib(size)}; to resume it may take ${mib(9 * size)} to ${mib(14 * size)} of memory`,
  ];
}

/** The text arrives whole, but what it means is Claude Code's business. */
function slashNotes(text: string): readonly string[] {
  if (!/^\/[a-z]/i.test(text)) return [];
  return ['the text begins with a slash: Claude Code takes it as a command of its own where it knows one'];
}

async function create(context: ControlContext, request: CreateRequest): Promise<CreateResult> {
  const spec = newSpec(context, request.workDir, request);
  const { approvals, model } = request;
  const refusal = await openThroughHost(context, spec, {
    approvals,
    ...(model === undefined ? {} : { model }),
  });
  if (refusal) return { kind: 'refused', refusal };
  const minutes = Math.round(spec.keepMs / 60_000);
  return {
    kind: 'created',
    session: spec.session,
    detail: `it is kept for ${minutes} minutes, and leaves nothing behind if no message comes`,
  };
}

function notAsked(requestId: string): Refusal {
  return {
    reason: `no request ${requestId} of a session that this connector runs waits for an answer`,
    kind: 'notFound',
    next: 'Answer it where it was asked; what can be answered here: shadowob-connector session-approve',
  };
}
